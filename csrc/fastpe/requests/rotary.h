// SPDX-License-Identifier: BSD-3-Clause
// Requests to a rotary embedding, or to tables in its place.
#pragma once

#include "fastpe/operations/write.h"
#include "request.h"
#include "rotary_embedding.h"

namespace fastpe {

struct TablesRequest {
  const TableForm& form;
  ArrayView out[2];  // as many as the form has
  PlacementArguments placement;
  std::optional<DType> dtype;
  int max_threads;
};
void write_tables(const RotaryEmbedding& embedding, const TablesRequest& request, FrontEnd& front_end);

struct RotateRequest {
  Slice<ArrayView> arrays;  // x first
  Slice<ArrayView> outs;    // one for each array; without them, the results are the arrays themselves, or a new one
  bool is_in_place;
  PlacementArguments placement;
  std::optional<std::int64_t> seq_axis;
  bool is_inverse;
  int max_threads;
};
void rotate(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end);

// Rotates keys on: the positions are distances to move by.
void shift(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end);

struct GivenTables {
  ArrayView cos, sin;  // [rows, pairs], or [B, L, pairs]: a row for each row of the arrays
  bool interleaved;
  std::int64_t head_dim;  // 0: as many columns as the pairs have
};
void rotate_by_tables(const GivenTables& tables, const RotateRequest& request, FrontEnd& front_end);

}  // namespace fastpe
