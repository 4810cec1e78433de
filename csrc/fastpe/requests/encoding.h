// SPDX-License-Identifier: BSD-3-Clause
// Requests to a sinusoidal encoding, or to a learned table in its place.
#pragma once

#include "fastpe/operations/add.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "request.h"

namespace fastpe {

struct EncodeRequest {
  ArrayView out;
  PlacementArguments placement;
  std::optional<DType> dtype;
  int max_threads;
};
void encode(const SinusoidalEncoding& encoding, const EncodeRequest& request, FrontEnd& front_end);

struct AddRequest {
  ArrayView x, out;  // without `out`, the result is x itself, or a new array
  bool is_in_place;
  ArrayView table;  // learned, in place of the encoding
  PlacementArguments placement;
  Factors factors;
  std::optional<std::int64_t> seq_axis;
  std::optional<std::int64_t> first_column;  // x has columns of the encoding from this one on, else all of them
  int max_threads;
};
// `encoding` may be null where there is a table. Otherwise it also says where rows are counted from.
void add(const SinusoidalEncoding* encoding, const AddRequest& request, FrontEnd& front_end);

struct EmbedRequest {
  ArrayView ids, table, position_table, out;
  PlacementArguments placement;
  std::optional<std::int64_t> padding_idx;  // rows of this id are not valid, where `placement` says nothing of them
  Factors factors;
  int max_threads;
};
void embed(const SinusoidalEncoding& encoding, const EmbedRequest& request, FrontEnd& front_end);

}  // namespace fastpe
