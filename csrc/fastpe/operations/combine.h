// SPDX-License-Identifier: BSD-3-Clause
// The sum of rows and a tile, for the operations that add.
#pragma once

#include "add.h"
#include "fastpe/kernels/kernels.h"

namespace fastpe {

// Everything but x and out: `rows` of the tile from l on.
inline Combination combination_of(const Tile& tile, std::int64_t l, std::int64_t rows, const Factors& factors,
                                  const Memory& memory) {
  Combination c{};
  c.addend = tile.row(l);
  c.addend_row_stride_bytes = tile.row_stride_bytes;
  c.rows = rows;
  c.columns = tile.columns.count;
  c.scale = factors.scale;
  c.alpha = factors.alpha;
  c.streaming = memory.streaming;
  c.fetches_close = memory.fetches_close;
  c.unaligned = memory.unaligned_sums;
  c.in_halves = memory.sums_in_halves;
  return c;
}

void combine(const Combination& combination, DType dtype, DType addend_dtype);

}  // namespace fastpe
