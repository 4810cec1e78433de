// SPDX-License-Identifier: BSD-3-Clause
// out = PE, in one array, or in the form in which an engine takes cosines and sines. Rows that are not valid become
// zero.
#pragma once

#include <array>
#include <cstddef>

#include "operation.h"

namespace fastpe {

enum class InnerAxes { columns, pairs, matrices, complex };  // what the last axes of tables are

// Arrangements of the cosines and sines of n pairs, in the order of the C library's numbers. "complex", the last, has
// none.
struct TableForm {
  // Columns [from, from + count) of rows of n cosines and n sines, in units of n: at columns to * n, to * n + 1 .., or
  // with a step, at columns to, to + step ..
  struct Part {
    std::size_t array;
    std::int64_t from, count, to, step;
    bool is_negative = false;
  };

  const char* name;
  std::size_t array_count;
  InnerAxes inner;
  int columns_per_pair;
  std::size_t part_count;
  Part parts[4];

  bool are_angles() const { return part_count == 0; }
};

inline constexpr TableForm table_forms[] = {
    {"halves", 2, InnerAxes::columns, 1, 2, {{0, 0, 1, 0, 1}, {1, 1, 1, 0, 1}}},
    // each array's columns twice, one set after the other
    {"tile", 2, InnerAxes::columns, 2, 4, {{0, 0, 1, 0, 1}, {0, 0, 1, 1, 1}, {1, 1, 1, 0, 1}, {1, 1, 1, 1, 1}}},
    // each column twice
    {"repeat", 2, InnerAxes::columns, 2, 4, {{0, 0, 1, 0, 2}, {0, 0, 1, 1, 2}, {1, 1, 1, 0, 2}, {1, 1, 1, 1, 2}}},
    {"cos_sin", 1, InnerAxes::columns, 2, 1, {{0, 0, 2, 0, 1}}},
    {"sin_cos", 1, InnerAxes::columns, 2, 2, {{0, 1, 1, 0, 1}, {0, 0, 1, 1, 1}}},
    {"pairs", 1, InnerAxes::pairs, 2, 2, {{0, 0, 1, 0, 2}, {0, 1, 1, 1, 2}}},
    // cos, -sin, sin, cos
    {"matrices",
     1,
     InnerAxes::matrices,
     4,
     4,
     {{0, 0, 1, 0, 4}, {0, 1, 1, 1, 4, true}, {0, 1, 1, 2, 4}, {0, 0, 1, 3, 4}}},
    {"angles", 1, InnerAxes::columns, 1, 0, {}},
    {"complex", 1, InnerAxes::complex, 2, 2, {{0, 0, 1, 0, 2}, {0, 1, 1, 1, 2}}},
};

class Write final : public Operation {
 public:
  // `is_new`: the call made the array. Its memory has no pages yet, and is stored to through the caches.
  Write(const Rows& out, bool is_new);
  // As many arrays as the form has, of the same shape but for their strides. The encoding's rows are `pairs` cosines,
  // then as many sines.
  Write(const std::array<Rows, 2>& out, const TableForm& form, std::int64_t pairs, bool is_new);

  void apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const override;
  Target target(int number, std::int64_t item, std::int64_t l) const override;
  void write_invalid(const Range& items, const Range& rows, const Range& columns) const override;

 private:
  using Part = TableForm::Part;  // in columns: `from`, from + 1 .. of the encoding at `to`, to + step .. of an array
  void finish_shape(bool is_new);
  View<Part> parts() const { return {parts_.data(), part_count_}; }
  const Rows& out_of(const Part& part) const { return out_[part.array]; }
  // Some columns of an array that is written as it is, or all of a form.
  Range columns_of(const Part& part, const Range& columns) const {
    return part_count_ == 1 ? columns : Range{0, part.count};
  }

  std::array<Rows, 2> out_;
  std::array<Part, 4> parts_;
  std::size_t part_count_ = 0;
};

}  // namespace fastpe
