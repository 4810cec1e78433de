// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a rotation, checked against each other, and the tables that may be given for it.
#pragma once

#include <cstdint>
#include <optional>

#include "request.h"

namespace fastpe {

// Names of the arrays in the order in which they are given: "x", "the second array" ..
const char* rotated_name(std::size_t index);

struct RotateRequest : Request {
  View<ArrayView> arrays;  // x first
  View<ArrayView> outs;    // one for each array; without them, the results are the arrays themselves, or a new one
  bool is_in_place = false;
  std::optional<std::int64_t> seq_axis;
  bool is_inverse = false;
  bool is_shift = false;  // keys are rotated on: the positions are distances to move by
};

struct ExpectedHeads {
  std::int64_t rotary_dim;
  int coordinate_count;   // of each position; 0: it is one number
  const char* narrower;   // what to do about heads that are narrower
  const char* partial;    // what to do where only a part of each head is rotated
  std::int64_t head_dim;  // columns of a head; 0: not known
};
int seq_axis_of(const ArrayView& array, const RotateRequest& request);
// Checks everything that does not depend on positions. What these are given for follows from all arrays.
Extent checked_extent(const RotateRequest& request, const ExpectedHeads& heads);

// [rows, pairs] or [B, L, pairs] of one dtype each, for whole heads, or for a part of heads that are `head_dim` wide.
struct CheckedTables {
  ConstRows cosines, sines;
};
CheckedTables checked_tables(const ArrayView& cos, const ArrayView& sin, const ArrayView& x, bool interleaved,
                             std::int64_t head_dim);
// Of the arrays' dtype or float32.
void require_table_dtype(const ArrayView& table, const ArrayView& x);

}  // namespace fastpe
