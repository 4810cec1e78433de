// SPDX-License-Identifier: BSD-3-Clause
// What hosts of attention compute by hand besides rotations: small functions, checked before the first write.
#pragma once

#include <cstdint>

#include "fastpe/checks/array_view.h"

namespace fastpe {

// T5's row of biases for each position of a key minus that of its query, integers of any shape. `out` is int32 or
// int64. Of the `n` buckets of one direction, the first m = n / 2 have one distance each; distance r from m on has
// bucket m + floor(log(r / m) / log(max_distance / m) * (n - m)), or the last one.
struct BucketsRequest {
  ArrayView relative_positions, out;
  bool is_bidirectional;
  std::int64_t num_buckets, max_distance;
};
void relative_buckets(const BucketsRequest& request);

// ALiBi's slopes, rounded once, as `out` has them: [heads], float32 or float64. With n the largest power of 2 up to the
// number of heads, head i from 1 has 2^(-max_bias * i / n); heads beyond have every other slope of 2n heads.
void alibi_slopes(double max_bias, const ArrayView& out);

// Of a mask [L] or [B, S], bool or 0 and 1: how many rows before each one are valid, and 1 for rows that are not.
// `out` is int32 or int64, of the mask's shape, or for its last rows only.
void position_ids(const ArrayView& mask, const ArrayView& out);

}  // namespace fastpe
