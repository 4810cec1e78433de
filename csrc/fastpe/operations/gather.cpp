// SPDX-License-Identifier: BSD-3-Clause
#include "gather.h"

#include <algorithm>

#include "copy.h"
#include "fastpe/error.h"

namespace fastpe {
namespace {

OperationShape shape_of(const Rows& out, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(out, batch_rows);
  shape.reads_items = true;
  shape.may_be_non_temporal = !is_new;
  if (!shape.has_contiguous_columns) shape.scratch_bytes = shape.rows_in_scratch_bytes();
  return shape;
}

}  // namespace

Gather::Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
               std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of(out, batch_rows, is_new)),
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

void Gather::apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const {
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    gather_item(tile, item, item + 1 < items.end ? Place{item + 1, tile.l} : next, workspace);
  }
}

void Gather::gather_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const {
  constexpr std::int64_t most_rows = 64;
  const std::int64_t bytes = element_bytes(out_.dtype);
  const std::int64_t end = tile.l + tile.count;
  const bool is_apart = !out_.has_contiguous_columns();
  const Access access = is_apart ? Access{} : workspace.access;
  for (std::int64_t l = tile.l; l < end;) {
    const std::int64_t rows = std::min(is_apart ? shape_.rows_in_scratch() : most_rows, end - l);
    // Gathered rows come from memory however small the output is, so the row after these is always prefetched.
    const Place after = l + rows < end || next.item == item ? Place{item, l + rows} : next;
    const bool has_next = after.l < out_.seq_len && after.item < out_.item_count;
    std::int64_t x_offsets_bytes[most_rows + 1];
    for (std::int64_t i = 0; i < rows; ++i) x_offsets_bytes[i] = embedding_offset_bytes({item, l + i});
    x_offsets_bytes[rows] = has_next ? embedding_offset_bytes(after) : x_offsets_bytes[rows - 1];
    Combination c = combination_of(tile, l, rows, factors_, access);
    c.x = vocabulary_.data + tile.columns.first * bytes;
    c.x_offsets_bytes = x_offsets_bytes;
    const Block<char> scratch{workspace.scratch, tile.columns.count * bytes, bytes};
    const Block<char> out = block_of(out_, item, l, tile.columns.first);
    c.out = is_apart ? scratch.data : out.data;
    c.out_row_stride_bytes = is_apart ? scratch.row_stride_bytes : out.row_stride_bytes;
    if (access.prefetch && !access.non_temporal) c.next_out = c.out + c.out_row_stride_bytes;
    combine(c, out_.dtype, tile.dtype);
    if (is_apart) copy_block(out, scratch.read_only(), rows, tile.columns.count, bytes);
    l += rows;
  }
}

void Gather::write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const {
  const std::int64_t bytes = element_bytes(out_.dtype);
  for (std::int64_t i = l; i < l + count; ++i) {
    const std::int64_t offset_bytes = embedding_offset_bytes({item, i}) + columns.first * bytes;
    copy_block(block_of(out_, item, i, columns.first), {vocabulary_.data + offset_bytes, 0, bytes}, 1, columns.count,
               bytes);
  }
}

}  // namespace fastpe
