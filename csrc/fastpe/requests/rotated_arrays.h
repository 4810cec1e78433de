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
  const char* partial;    // what to do where only a part of each head is rotated
  std::int64_t head_dim;  // columns of a head; 0: not known
};
int seq_axis_of(const ArrayView& array, const RotateRequest& request);
// Checks everything that does not depend on positions. What these are given for follows from all arrays.
Extent checked_extent(const RotateRequest& request, const ExpectedHeads& heads);

struct GivenTables {
  ArrayView cos, sin;  // [rows, pairs], or [B, L, pairs]: a row for each row of the arrays
  bool interleaved;
  std::int64_t head_dim;  // 0: as many columns as the pairs have
};
// All but whether they have rows for the positions.
void check_tables(const GivenTables& tables, const ArrayView& x);
// Of the arrays' dtype or float32.
void require_table_dtype(const ArrayView& table, const ArrayView& x);

}  // namespace fastpe
