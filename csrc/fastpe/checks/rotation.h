// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a rotation, checked against each other, and the tables that may be given for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fastpe/operations/rotate.h"
#include "placement.h"

namespace fastpe {

// Names of the arrays in the order in which they are given: "x", "the second array" ..
const char* rotated_name(std::size_t index);

class RotationChecks {
 public:
  struct Rules {
    std::int64_t rotary_dim;
    std::optional<std::int64_t> seq_axis;
    bool in_place;
    int coordinate_count;       // of each position; 0: it is one number
    const char* narrower;       // what to do about heads that are narrower
    std::int64_t head_dim = 0;  // columns of a head; 0: not known
  };
  // Checks everything that does not depend on positions. The first array is x. The caller owns the views.
  RotationChecks(Slice<ArrayView> arrays, const PlacementArguments& arguments, const Rules& rules);

  const ArrayView& x() const { return arrays_[0]; }
  const Extent& extent() const { return extent_; }
  int seq_axis_of(const ArrayView& array) const;

 private:
  Extent extent_of_array(const ArrayView& array) const;
  void refuse_tables() const;
  std::string other_seq_axis(const ArrayView& array) const;
  void check_like_x(const ArrayView& array, const char* per_row);

  Slice<ArrayView> arrays_;
  Rules rules_;
  bool is_packed_;
  Extent extent_;
};

// [rows, pairs] or [B, L, pairs] of one dtype each, for whole heads, or for a part of heads that are `head_dim` wide.
struct CheckedTables {
  ConstRows cosines, sines;
};
CheckedTables checked_tables(const ArrayView& cos, const ArrayView& sin, const ArrayView& x, std::int64_t head_dim);
// Of the arrays' dtype or float32.
void require_table_dtype(const ArrayView& table, const ArrayView& x);

}  // namespace fastpe
