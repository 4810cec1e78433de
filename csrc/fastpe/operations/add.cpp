// SPDX-License-Identifier: BSD-3-Clause
#include "add.h"

#include <algorithm>

#include "copy.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"

namespace fastpe {
namespace {

// Adds the tile's rows to as many rows of x.
Combination combination_of(const Block<char>& out, const Block<const char>& x, const Tile& tile, const Factors& factors,
                           const Access& access) {
  Combination c{};
  c.out = out.data;
  c.out_row_stride_bytes = out.row_stride_bytes;
  c.x = x.data;
  c.x_row_stride_bytes = x.row_stride_bytes;
  c.x_offsets_bytes = x.row_offsets_bytes;
  c.addend = tile.data;
  c.addend_row_stride_bytes = tile.row_stride_bytes;
  c.addend_offsets_bytes = tile.row_offsets_bytes;
  c.rows = tile.count;
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

OperationShape shape_of_adding(const ConstRows& x, const Rows& out, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(out, batch_rows);
  shape.is_transposed = shape.is_transposed && x.is_transposed();
  shape.reads_items = true;
  shape.is_in_place = x.data == out.data;
  shape.may_be_non_temporal = !is_new && !shape.is_in_place;
  shape.has_contiguous_columns = shape.has_contiguous_columns && x.has_contiguous_columns();
  shape.most_columns = std::min(shape.most_columns, most_columns_of(x));
  shape.are_items_rows = shape.has_contiguous_columns && out.seq_len == 1 && out.inner_count == out.item_count &&
                         x.inner_count == x.item_count;
  shape.targets = shape.has_contiguous_columns ? 1 : 0;
  if (!shape.has_contiguous_columns) {
    shape.scratch_bytes = shape.is_transposed ? transposed_bytes : shape.rows_in_scratch_bytes();
  }
  return shape;
}

OperationShape shape_of_gathering(const Rows& out, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(out, batch_rows);
  shape.reads_items = true;
  shape.may_be_non_temporal = !is_new;
  if (!shape.has_contiguous_columns) shape.scratch_bytes = shape.rows_in_scratch_bytes();
  return shape;
}

}  // namespace

Add::Add(const ConstRows& x, const Rows& out, std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of_adding(x, out, batch_rows, is_new)), x_(x), out_(out), factors_(factors) {}

void Add::set_prefetch(const Place& next, const Access& access, Combination& combination) const {
  // Non-temporal stores leave the processor's own prefetches enough time.
  if (!access.prefetch || access.non_temporal || next.l >= x_.seq_len || next.item >= x_.item_count) return;
  combination.next_x = x_.row(next.item, next.l);
  if (!shape_.is_in_place) combination.next_out = out_.row(next.item, next.l);
}

void Add::apply(const Tile& tile, const Items& items, const Workspace& workspace) const {
  if (items.count() > 1 && shape_.has_contiguous_columns && out_.inner_count > 1 &&
      out_.inner_count == x_.inner_count) {
    return add_to_inner_items(tile, items, workspace);
  }
  if (shape_.is_transposed) return add_to_columns(tile, items, workspace);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    add_to_item(tile, item, next_place(tile, item, items, workspace.access), workspace);
  }
}

void Add::apply_to_each(const Tile& rows, const Items& items, const Workspace& workspace) const {
  combine(combination_of(inner_block_of(out_, items.begin, 0), inner_block_of(x_, items.begin, 0), rows, factors_,
                         workspace.access),
          out_.dtype, rows.dtype);
}

void Add::add_to_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const {
  if (shape_.has_contiguous_columns) {
    Combination c = combination_of(block_of(out_, item, tile.l, tile.columns.first),
                                   block_of(x_, item, tile.l, tile.columns.first), tile, factors_, workspace.access);
    set_prefetch(next, workspace.access, c);
    return combine(c, out_.dtype, tile.dtype);
  }
  const std::int64_t bytes = element_bytes(out_.dtype), first = tile.columns.first, columns = tile.columns.count;
  const std::int64_t end_l = tile.l + tile.count, at_once = shape_.rows_in_scratch();
  const Block<char> scratch{workspace.scratch, columns * bytes, bytes};
  for (std::int64_t l = tile.l; l < end_l; l += at_once) {
    const Tile rows = tile.rows_between(l, std::min(end_l, l + at_once));
    copy_block(scratch, block_of(x_, item, l, first), rows.count, columns, bytes);
    combine(combination_of(scratch, scratch.read_only(), rows, factors_, {}), out_.dtype, tile.dtype);
    copy_block(block_of(out_, item, l, first), scratch.read_only(), rows.count, columns, bytes);
  }
}

void Add::add_to_inner_items(const Tile& tile, const Items& items, const Workspace& workspace) const {
  for (std::int64_t first = items.begin; first < items.end;) {
    const std::int64_t end = std::min(items.end, (first / out_.inner_count + 1) * out_.inner_count);
    for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
      const Tile one_row{tile.row(l), 0, tile.dtype, l, end - first, tile.columns};
      Combination c = combination_of(inner_block_of(out_, first, l), inner_block_of(x_, first, l), one_row, factors_,
                                     workspace.access);
      set_prefetch({first, l + 1}, workspace.access, c);
      combine(c, out_.dtype, tile.dtype);
    }
    first = end;
  }
}

void Add::add_to_columns(const Tile& tile, const Items& items, const Workspace& workspace) const {
  const std::int64_t most_columns = cache_line_bytes / element_bytes(tile.dtype);
  for_each_transposed_part(tile, tile.columns, most_columns, [&](const Tile& rows, const Columns& columns) {
    const Tile transposed = transposed_tile(rows, columns, workspace.scratch);
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      Combination c = combination_of(block_of(out_, item, rows.l, columns.first).transposed(),
                                     block_of(x_, item, rows.l, columns.first).transposed(), transposed, factors_, {});
      const bool is_last = item + 1 == items.end;
      c.next_x =
          x_.row(is_last ? items.begin : item + 1, rows.l, is_last ? columns.first + columns.count : columns.first);
      combine(c, out_.dtype, tile.dtype);
    }
  });
}

Target Add::target(int /*number*/, std::int64_t item, std::int64_t l) const {
  return {out_.dtype,      {0, out_.columns},   out_.row(item, l), out_.seq_stride_bytes,
          x_.row(item, l), x_.seq_stride_bytes, factors_.scale,    factors_.alpha};
}

void Add::write_invalid(const Items& items, std::int64_t l, std::int64_t count, const Columns& columns) const {
  if (shape_.is_in_place) return;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    copy_block(block_of(out_, item, l, columns.first), block_of(x_, item, l, columns.first), count, columns.count,
               element_bytes(out_.dtype));
  }
}

Gather::Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
               std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of_gathering(out, batch_rows, is_new)),
      vocabulary_(vocabulary),
      ids_(ids),
      id_axes_(id_axes),
      out_(out),
      factors_(factors) {}

void Gather::check(Poller& poller) const {
  for (std::int64_t item = 0; item < out_.item_count; ++item) {
    for (std::int64_t l = 0; l < out_.seq_len; ++l) {
      const std::int64_t id = ids_.integer_at(item, l);
      if (id < 0 || id >= vocabulary_.rows) {
        refuse(ErrorKind::index, "ids", {place_of(id_axes_, item, l), " is ", ids_.at(item, l)},
               {"0 to ", vocabulary_.rows - 1, ": table has ", vocabulary_.rows, " rows"}, {});
      }
      poller.pass(1);
    }
  }
}

std::int64_t Gather::embedding_offset_bytes(const Place& place) const {
  const std::int64_t id = std::clamp<std::int64_t>(ids_.integer_at(place.item, place.l), 0, vocabulary_.rows - 1);
  return id * vocabulary_.row_stride_bytes;
}

void Gather::apply(const Tile& tile, const Items& items, const Workspace& workspace) const {
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    gather_item(tile, item, next_place(tile, item, items, workspace.access), workspace);
  }
}

void Gather::gather_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const {
  constexpr std::int64_t most_rows = 64;
  const std::int64_t bytes = element_bytes(out_.dtype), first = tile.columns.first, columns = tile.columns.count;
  const std::int64_t end_l = tile.l + tile.count;
  const bool is_apart = !out_.has_contiguous_columns();
  const std::int64_t at_once = is_apart ? shape_.rows_in_scratch() : most_rows;
  const Block<char> scratch{workspace.scratch, columns * bytes, bytes};
  for (std::int64_t l = tile.l; l < end_l; l += at_once) {
    const Tile rows = tile.rows_between(l, std::min(end_l, l + at_once));
    // Gathered rows come from memory however small the output is, so the row after these is always prefetched.
    const Place after = l + rows.count < end_l || next.item == item ? Place{item, l + rows.count} : next;
    const bool has_next = after.l < out_.seq_len && after.item < out_.item_count;
    std::int64_t offsets_bytes[most_rows + 1];
    for (std::int64_t i = 0; i < rows.count; ++i) offsets_bytes[i] = embedding_offset_bytes({item, l + i});
    offsets_bytes[rows.count] = has_next ? embedding_offset_bytes(after) : offsets_bytes[rows.count - 1];
    const Block<const char> x{vocabulary_.data + first * bytes, 0, bytes, offsets_bytes};
    const Block<char> out = block_of(out_, item, l, first);
    Combination c = combination_of(is_apart ? scratch : out, x, rows, factors_, workspace.access);
    if (!is_apart && workspace.access.prefetch && !c.non_temporal) c.next_out = c.out + c.out_row_stride_bytes;
    combine(c, out_.dtype, tile.dtype);
    if (is_apart) copy_block(out, scratch.read_only(), rows.count, columns, bytes);
  }
}

void Gather::write_invalid(const Items& items, std::int64_t l, std::int64_t count, const Columns& columns) const {
  const std::int64_t bytes = element_bytes(out_.dtype);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    for (std::int64_t i = l; i < l + count; ++i) {
      const char* const embedding = vocabulary_.data + embedding_offset_bytes({item, i}) + columns.first * bytes;
      copy_block(block_of(out_, item, i, columns.first), {embedding, 0, bytes}, 1, columns.count, bytes);
    }
  }
}

}  // namespace fastpe
