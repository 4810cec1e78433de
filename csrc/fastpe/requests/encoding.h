// SPDX-License-Identifier: BSD-3-Clause
// Requests to a sinusoidal encoding, or to a learned table in its place.
#pragma once

#include "fastpe/operations/add.h"
#include "fastpe/sources/sinusoid/encoding.h"
#include "request.h"

namespace fastpe {

struct EncodeRequest : Request {
  ArrayView out;
  std::optional<DType> dtype;
};
void encode(const Encoding& encoding, const EncodeRequest& request, FrontEnd& front_end);

struct AddRequest : Request {
  ArrayView x, out;  // without `out`, the result is x itself, or a new array
  bool is_in_place = false;
  ArrayView table;  // learned, in place of the encoding
  Factors factors;
  std::optional<std::int64_t> seq_axis;
  std::optional<std::int64_t> first_column;  // x has columns of the encoding from this one on, else all of them
};
// `encoding` may be null where there is a table. Otherwise it also says where rows are counted from.
void add(const Encoding* encoding, const AddRequest& request, FrontEnd& front_end);

struct EmbedRequest : Request {
  ArrayView ids, table, position_table, out;
  Factors factors;
};
// Where the request says nothing of validity, rows of the encoding's padding_idx are not valid.
void embed(const Encoding& encoding, const EmbedRequest& request, FrontEnd& front_end);

}  // namespace fastpe
