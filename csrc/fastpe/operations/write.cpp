// SPDX-License-Identifier: BSD-3-Clause
#include "write.h"

#include "copy.h"

namespace fastpe {
namespace {

OperationShape shape_of(const Rows& out, bool is_new) {
  // Each item is its own row of arguments: to copy rows that are only written takes as long as to make them again.
  OperationShape shape = shape_of_writing(out, out.item_count);
  shape.tile_dtype = out.dtype;
  shape.may_be_non_temporal = !is_new;
  shape.targets = shape.has_contiguous_rows ? 1 : 0;
  return shape;
}

}  // namespace

Write::Write(const Rows& out, bool is_new) : Operation(shape_of(out, is_new)), out_(out) {}

void Write::apply(const Tile& tile, const Items& items, const Place& /*next*/, const Workspace& /*workspace*/) const {
  const std::int64_t bytes = element_bytes(out_.dtype), row_bytes = tile.columns.count * bytes;
  const bool has_gaps =
      out_.column_stride_bytes != bytes || out_.seq_stride_bytes != row_bytes || tile.row_stride_bytes != row_bytes;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    if (!has_gaps) {
      copy_row(out_.row(item, tile.l), bytes, tile.data, bytes, tile.count * tile.columns.count, bytes);
      continue;
    }
    for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
      copy_row(out_.row(item, l, tile.columns.first), out_.column_stride_bytes, tile.row(l), bytes, tile.columns.count,
               bytes);
    }
  }
}

Target Write::target(int /*number*/, std::int64_t item, std::int64_t l, Columns columns) const {
  return {out_.dtype, columns, out_.row(item, l, columns.first), out_.seq_stride_bytes};
}

void Write::skip(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const {
  const std::int64_t bytes = element_bytes(out_.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    char* const row = out_.row(item, l + i);
    for (std::int64_t column = columns.first; column < columns.first + columns.count; ++column) {
      std::memset(row + column * out_.column_stride_bytes, 0, static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace fastpe
