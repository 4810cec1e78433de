// SPDX-License-Identifier: BSD-3-Clause
#include "add.h"

#include <algorithm>

#include "copy.h"
#include "fastpe/dispatch.h"

namespace fastpe {
namespace {

OperationShape shape_of(const ConstRows& x, const Rows& out, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(out, batch_rows);
  shape.is_transposed = shape.is_transposed && x.is_transposed();
  shape.columns_at_once =
      std::min(shape.columns_at_once, columns_at_once(x.columns, x.column_stride_bytes, element_bytes(x.dtype)));
  shape.reads_items = true;
  shape.is_in_place = x.data == out.data;
  shape.may_be_non_temporal = !is_new && !shape.is_in_place;
  shape.has_contiguous_columns = shape.has_contiguous_columns && x.has_contiguous_columns();
  shape.targets = shape.has_contiguous_columns ? 1 : 0;
  if (!shape.has_contiguous_columns) {
    shape.scratch_bytes = shape.is_transposed ? transposed_bytes : shape.rows_in_scratch_bytes();
  }
  return shape;
}

}  // namespace

Combination combination_of(const Tile& tile, std::int64_t l, std::int64_t rows, const Factors& factors,
                           const Access& access) {
  Combination c{};
  const Tile from_l = tile.rows_between(l, l + 1);
  c.addend = from_l.data;
  c.addend_row_stride_bytes = from_l.row_stride_bytes;
  c.addend_offsets_bytes = from_l.row_offsets_bytes;
  c.rows = rows;
  c.columns = tile.columns.count;
  c.scale = factors.scale;
  c.alpha = factors.alpha;
  c.non_temporal = access.non_temporal;
  return c;
}

void combine(const Combination& combination, DType dtype, DType addend_dtype) {
  const Kernels& kernels = active_kernels();
  const auto& of_dtypes = addend_dtype == dtype ? kernels.combine_same_dtype : kernels.combine;
  of_dtypes[index_of(dtype)](combination);
}

Add::Add(const ConstRows& x, const Rows& out, std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of(x, out, batch_rows, is_new)), x_(x), out_(out), factors_(factors) {}

const char* Add::next_x_at(const Place& place, const Columns& columns) const {
  if (place.l >= x_.seq_len || place.item >= x_.item_count) return nullptr;
  return x_.row(place.item, place.l, columns.first);
}

void Add::set_prefetch(const Place& next, const Tile& tile, const Access& access, Combination& combination) const {
  // Non-temporal stores leave the processor's own prefetches enough time.
  if (!access.prefetch || access.non_temporal) return;
  combination.next_x = next_x_at(next, tile.columns);
  if (combination.next_x == nullptr || shape_.is_in_place) return;
  combination.next_out = out_.row(next.item, next.l, tile.columns.first);
}

void Add::apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const {
  if (items.count() > 1 && shape_.has_contiguous_columns && out_.inner_count > 1 &&
      out_.inner_count == x_.inner_count) {
    return add_to_inner_items(tile, items, next, workspace);
  }
  if (shape_.is_transposed) return add_to_columns(tile, items, workspace);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const Place next_item{item + 1, tile.l};
    const Place& after = item + 1 < items.end ? next_item : next;
    shape_.has_contiguous_columns ? add_to_item(tile, item, after, workspace)
                                  : add_to_item_in_scratch(tile, item, workspace);
  }
}

void Add::apply_to_each(const Tile& tile, const std::int64_t* tile_offsets_bytes, const Items& items, const Place& next,
                        const Workspace& workspace) const {
  const bool is_one_axis = out_.inner_count == out_.item_count && x_.inner_count == x_.item_count;
  if (shape_.seq_len > 1 || !is_one_axis || !shape_.has_contiguous_columns) {
    return Operation::apply_to_each(tile, tile_offsets_bytes, items, next, workspace);
  }
  Combination c = combination_of(tile, tile.l, items.count(), factors_, workspace.access);
  c.addend_offsets_bytes = tile_offsets_bytes;
  c.out = out_.row(items.begin, tile.l, tile.columns.first);
  c.out_row_stride_bytes = out_.inner_stride_bytes;
  c.x = x_.row(items.begin, tile.l, tile.columns.first);
  c.x_row_stride_bytes = x_.inner_stride_bytes;
  combine(c, out_.dtype, tile.dtype);
}

void Add::add_to_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const {
  Combination c = combination_of(tile, tile.l, tile.count, factors_, workspace.access);
  c.out = out_.row(item, tile.l, tile.columns.first);
  c.out_row_stride_bytes = out_.seq_stride_bytes;
  c.x = x_.row(item, tile.l, tile.columns.first);
  c.x_row_stride_bytes = x_.seq_stride_bytes;
  set_prefetch(next, tile, workspace.access, c);
  combine(c, out_.dtype, tile.dtype);
}

void Add::add_to_inner_items(const Tile& tile, const Items& items, const Place& next,
                             const Workspace& workspace) const {
  const std::int64_t end_l = tile.l + tile.count;
  for (std::int64_t first = items.begin; first < items.end;) {
    const std::int64_t end = std::min(items.end, (first / out_.inner_count + 1) * out_.inner_count);
    const Place next_items{end, tile.l};
    const Place& after = end < items.end ? next_items : next;
    for (std::int64_t l = tile.l; l < end_l; ++l) {
      Combination c = combination_of(tile, l, end - first, factors_, workspace.access);
      c.addend = tile.row(l);
      c.addend_row_stride_bytes = 0;
      c.addend_offsets_bytes = nullptr;
      c.out = out_.row(first, l, tile.columns.first);
      c.out_row_stride_bytes = out_.inner_stride_bytes;
      c.x = x_.row(first, l, tile.columns.first);
      c.x_row_stride_bytes = x_.inner_stride_bytes;
      const Place next_place = l + 1 < end_l ? Place{first, l + 1} : after;
      set_prefetch(next_place, tile, workspace.access, c);
      combine(c, out_.dtype, tile.dtype);
    }
    first = end;
  }
}

void Add::add_to_columns(const Tile& tile, const Items& items, const Workspace& workspace) const {
  const std::int64_t most_columns = cache_line_bytes / element_bytes(tile.dtype);
  for_each_transposed_part(tile, tile.columns, most_columns, [&](const Tile& rows, const Columns& columns) {
    const TransposedTile transposed(rows, columns, workspace.scratch);
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      Combination c = combination_of(rows, rows.l, columns.count, factors_, {});
      c.addend = transposed.data;
      c.addend_row_stride_bytes = transposed.row_stride_bytes;
      c.addend_offsets_bytes = nullptr;
      c.columns = rows.count;
      c.out = out_.row(item, rows.l, columns.first);
      c.out_row_stride_bytes = out_.column_stride_bytes;
      c.x = x_.row(item, rows.l, columns.first);
      c.x_row_stride_bytes = x_.column_stride_bytes;
      const bool is_last = item + 1 == items.end;
      c.next_x =
          x_.row(is_last ? items.begin : item + 1, rows.l, is_last ? columns.first + columns.count : columns.first);
      combine(c, out_.dtype, tile.dtype);
    }
  });
}

void Add::add_to_item_in_scratch(const Tile& tile, std::int64_t item, const Workspace& workspace) const {
  const std::int64_t bytes = element_bytes(out_.dtype), columns = tile.columns.count;
  const Block<char> scratch{workspace.scratch, columns * bytes, bytes};
  const std::int64_t end_l = tile.l + tile.count, at_once = shape_.rows_in_scratch();
  for (std::int64_t l = tile.l; l < end_l; l += at_once) {
    const std::int64_t rows = std::min(at_once, end_l - l);
    const Block<const char> x = block_of(x_, item, l, tile.columns.first);
    const Block<char> out = block_of(out_, item, l, tile.columns.first);
    Combination c = combination_of(tile, l, rows, factors_, {});
    c.x = x.data;
    c.x_row_stride_bytes = x.row_stride_bytes;
    if (!x_.has_contiguous_columns()) {
      copy_block(scratch, x, rows, columns, bytes);
      c.x = scratch.data;
      c.x_row_stride_bytes = scratch.row_stride_bytes;
    }
    const bool is_apart = !out_.has_contiguous_columns();
    c.out = is_apart ? scratch.data : out.data;
    c.out_row_stride_bytes = is_apart ? scratch.row_stride_bytes : out.row_stride_bytes;
    combine(c, out_.dtype, tile.dtype);
    if (is_apart) copy_block(out, scratch.read_only(), rows, columns, bytes);
  }
}

Target Add::target(int /*number*/, std::int64_t item, std::int64_t l, Columns columns) const {
  return {out_.dtype,
          columns,
          out_.row(item, l, columns.first),
          out_.seq_stride_bytes,
          x_.row(item, l, columns.first),
          x_.seq_stride_bytes,
          factors_.scale,
          factors_.alpha};
}

void Add::write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const {
  if (shape_.is_in_place) return;
  copy_block(block_of(out_, item, l, columns.first), block_of(x_, item, l, columns.first), count, columns.count,
             element_bytes(out_.dtype));
}

}  // namespace fastpe
