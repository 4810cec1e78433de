// SPDX-License-Identifier: BSD-3-Clause
#include "combine.h"

#include "fastpe/dispatch.h"

namespace fastpe {

Combination combination_of(const Tile& tile, std::int64_t l, std::int64_t rows, const Factors& factors,
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
  return c;
}

void combine(const Combination& combination, DType dtype, DType addend_dtype) {
  const Kernels& kernels = active_kernels();
  const auto& of_dtypes = addend_dtype == dtype ? kernels.combine_same_dtype : kernels.combine;
  of_dtypes[index_of(dtype)](combination);
}

}  // namespace fastpe
