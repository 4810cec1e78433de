// SPDX-License-Identifier: BSD-3-Clause
#include "operation.h"

#include "copy.h"

namespace fastpe {

OperationShape shape_of_writing(const Rows& out, std::int64_t batch_rows) {
  OperationShape shape;
  shape.batch_rows = batch_rows;
  shape.items_per_batch_row = batch_rows > 0 ? out.item_count / batch_rows : 0;
  shape.seq_len = out.seq_len;
  shape.columns = out.columns;
  shape.is_transposed = out.is_transposed();
  shape.dtype = out.dtype;
  shape.tile_dtype = row_dtype(out.dtype);
  shape.bytes_written = out.bytes();
  shape.has_contiguous_columns = out.has_contiguous_columns();
  return shape;
}

std::int64_t OperationShape::rows_in_scratch() const {
  constexpr std::int64_t most_bytes = 128 * 1024;
  const std::int64_t bytes = element_bytes(dtype);
  return std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(1, columns * bytes), 1, cache_line_bytes / bytes);
}

Tile transposed_tile(const Tile& tile, const Columns& columns, char* to) {
  const std::int64_t bytes = element_bytes(tile.dtype);
  // Rows a power of two apart would take each other's place in L1.
  const std::int64_t row_stride_bytes = transposed_rows * bytes + cache_line_bytes;
  copy_block({to, bytes, row_stride_bytes}, block_of(tile, columns.first), tile.count, columns.count, bytes);
  return {to, row_stride_bytes, tile.dtype, 0, columns.count, tile.count};
}

void Operation::apply_to_each(const Tile& tile, const std::int64_t* tile_offsets_bytes, const Items& items,
                              const Workspace& workspace) const {
  Tile own = tile;
  for (std::int64_t i = 0; i < items.count(); ++i) {
    own.data = tile.data + tile_offsets_bytes[i];
    apply(own, {items.begin + i, items.begin + i + 1}, workspace);
  }
}

}  // namespace fastpe
