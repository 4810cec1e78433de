// SPDX-License-Identifier: BSD-3-Clause
#include "gather.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "combine.h"
#include "copy.h"
#include "fastpe/messages.h"

namespace fastpe {
namespace {

OperationShape shape_of(const Rows& out, std::int64_t rows) {
  OperationShape shape = shape_of_writing(out, rows);
  shape.reads_items = true;
  if (!shape.has_contiguous_rows) shape.scratch_bytes = out.row_bytes();
  return shape;
}

}  // namespace

Gather::Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
               std::int64_t rows, const Factors& factors)
    : Operation(shape_of(out, rows)),
      vocabulary_(vocabulary),
      ids_(ids),
      id_axes_(id_axes),
      out_(out),
      factors_(factors) {}

void Gather::check(Lookout& lookout) const {
  for (std::int64_t item = 0; item < out_.item_count; ++item) {
    for (std::int64_t l = 0; l < out_.seq_len; ++l) {
      const std::int64_t id = ids_.integer_at(item, l);
      if (id < 0 || id >= vocabulary_.rows) {
        throw std::out_of_range(place("ids", id_axes_, item, l) + " is " + text_of(ids_.at(item, l)) +
                                ", expected 0 to " + std::to_string(vocabulary_.rows - 1) + ": table has " +
                                std::to_string(vocabulary_.rows) + " rows");
      }
      lookout.pass(1);
    }
  }
}

const char* Gather::embedding_at(const Place& place, const Columns& columns) const {
  if (place.l >= out_.seq_len || place.item >= out_.item_count) return nullptr;
  const std::int64_t id = std::clamp<std::int64_t>(ids_.integer_at(place.item, place.l), 0, vocabulary_.rows - 1);
  return vocabulary_.row(id) + columns.first * element_bytes(vocabulary_.dtype);
}

void Gather::apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const {
  const std::int64_t bytes = element_bytes(out_.dtype);
  const bool is_strided = !out_.has_contiguous_rows();
  const Memory& memory = workspace.memory;
  const bool has_whole_lines = tile.columns.count * bytes % cache_line_bytes == 0;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const Place next_item{item + 1, tile.l};
    const Place& after = item + 1 < items.end ? next_item : next;
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const std::int64_t l = tile.l + i;
      char* const out = out_.row(item, l, tile.columns.first);
      Combination c = combination_of(tile, l, 1, factors_, memory);
      c.x = embedding_at({item, l}, tile.columns);
      // Gathered rows come from memory however small the output is.
      c.next_x = embedding_at({after.item, after.l + i}, tile.columns);
      c.out = is_strided ? workspace.scratch : out;
      // Streaming a row that shares its first or last cache line with another takes a quarter longer than plain stores.
      const bool is_on_line = reinterpret_cast<std::intptr_t>(c.out) % cache_line_bytes == 0;
      c.streaming = memory.streaming && !is_strided && has_whole_lines && is_on_line;
      combine(c, out_.dtype, tile.dtype);
      if (is_strided) copy_row(out, out_.column_stride_bytes, workspace.scratch, bytes, tile.columns.count, bytes);
    }
  }
}

void Gather::leave(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const {
  const std::int64_t bytes = element_bytes(out_.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    copy_row(out_.row(item, l + i, columns.first), out_.column_stride_bytes, embedding_at({item, l + i}, columns),
             bytes, columns.count, bytes);
  }
}

}  // namespace fastpe
