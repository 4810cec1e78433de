// SPDX-License-Identifier: BSD-3-Clause
// out = PE, in one array, or in the form in which an engine takes cosines and sines. Rows that are not valid become
// zero.
#pragma once

#include <array>

#include "operation.h"

namespace fastpe {

enum class TableForm {
  halves,   // cosines in one array and sines in another
  tile,     // the same, each array's columns twice, one set after the other
  repeat,   // the same, each column twice
  cos_sin,  // one array: cosines, then sines
  sin_cos,  // one array: sines, then cosines
  pairs,    // one array: cosine, sine, cosine, sine ..
};

constexpr int arrays_of(TableForm form) {
  return form == TableForm::halves || form == TableForm::tile || form == TableForm::repeat ? 2 : 1;
}
constexpr int columns_per_pair(TableForm form) { return form == TableForm::halves ? 1 : 2; }

class Write final : public Operation {
 public:
  // `is_new`: the call made the array. Its memory has no pages yet, and is stored to through the caches.
  Write(const Rows& out, bool is_new);
  // As many arrays as the form has, of the same shape but for their strides. The encoding's rows are `pairs` cosines,
  // then as many sines.
  Write(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs, bool is_new);

  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  Target target(int number, std::int64_t item, std::int64_t l, Columns columns) const override;
  void write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const override;

 private:
  // Columns from, from + 1 .. of the encoding at columns to, to + step .. of one of the arrays.
  struct Part {
    int array;
    std::int64_t from, count, to, step;
  };
  // The part of `part` that lies within these columns of the encoding.
  static Part part_within(const Part& part, const Columns& columns);
  void add_part(int array, std::int64_t from, std::int64_t count, std::int64_t to, std::int64_t step);
  void finish_shape(bool is_new);
  Slice<Part> parts() const { return {parts_.data(), part_count_}; }
  const Rows& out_of(const Part& part) const { return out_[static_cast<std::size_t>(part.array)]; }

  std::array<Rows, 2> out_;
  std::array<Part, 4> parts_;
  std::size_t part_count_ = 0;
};

}  // namespace fastpe
