// SPDX-License-Identifier: BSD-3-Clause
#include "add.h"

#include <algorithm>

#include "fastpe/error.h"

namespace fastpe {
namespace {

OperationShape shape_of_gathering(const Rows& out, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(out, batch_rows);
  shape.reads_items = true;
  shape.may_be_non_temporal = !is_new;
  if (shape.order != Order::rows) shape.scratch_bytes = shape.rows_in_scratch_bytes();
  return shape;
}

}  // namespace

Add::Add(const ReadWrite& arrays, std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of_walking(arrays, batch_rows, is_new)), arrays_(arrays), factors_(factors) {
  shape_.targets = shape_.order == Order::rows ? 1 : 0;
}

void Add::apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const {
  walk(arrays_, shape_, tile, items, access, scratch, sum_of(factors_, access.non_temporal),
       [this](const Combination& sum) { add_rows(sum, shape_.dtype); });
}

Target Add::target(int /*number*/, std::int64_t item, std::int64_t l) const {
  const auto& [x, out, order] = arrays_;
  return {{out.row(item, l), out.seq_stride_bytes, x.row(item, l), x.seq_stride_bytes, factors_.scale, factors_.alpha},
          shape_.dtype,
          {0, shape_.columns}};
}

void Add::write_invalid(const Range& items, const Range& rows, const Range& columns) const {
  copy_unless_in_place(arrays_, items, rows, columns);
}

Gather::Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
               std::int64_t batch_rows, const Factors& factors, bool is_new)
    : Operation(shape_of_gathering(out, batch_rows, is_new)),
      vocabulary_(vocabulary),
      ids_(ids),
      id_axes_(id_axes),
      out_(out),
      factors_(factors) {}

void Gather::check(Interruption* interruption) const {
  for (std::int64_t item = 0; item < out_.item_count; ++item) {
    for (std::int64_t l = 0; l < out_.seq_len; ++l) {
      const std::int64_t id = ids_.integer_at(item, l);
      if (id < 0 || id >= vocabulary_.rows) {
        refuse(ErrorKind::index, "ids", {place_of(id_axes_, item, l), " is ", ids_.at(item, l)},
               {"0 to ", vocabulary_.rows - 1, ": table has ", vocabulary_.rows, " rows"}, {});
      }
      throw_if_interrupted(interruption, 1);
    }
  }
}

std::int64_t Gather::embedding_offset_bytes(std::int64_t item, std::int64_t l) const {
  const std::int64_t id = std::clamp<std::int64_t>(ids_.integer_at(item, l), 0, vocabulary_.rows - 1);
  return id * vocabulary_.row_stride_bytes;
}

void Gather::apply(const Tile& tile, const Range& items, const Access& access, char* memory) const {
  constexpr std::int64_t most_rows = 64;
  const bool is_apart = shape_.order != Order::rows;
  const std::int64_t bytes = element_bytes(shape_.dtype), columns = tile.columns.count, end_l = tile.rows.end();
  const std::int64_t at_once = is_apart ? shape_.rows_in_scratch() : most_rows;
  const Block<char> scratch{memory, columns * bytes, bytes};
  Combination sum = sum_of(factors_, access.non_temporal);
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    for (std::int64_t l = tile.rows.first; l < end_l; l += at_once) {
      const std::int64_t count = std::min(end_l - l, at_once);
      std::int64_t offsets_bytes[most_rows + 1];
      for (std::int64_t i = 0; i < count; ++i) offsets_bytes[i] = embedding_offset_bytes(item, l + i);
      // Gathered rows come from memory however small the output is, so the row after these is always prefetched.
      const bool is_in_item = l + count < end_l, is_last = item + 1 == items.end();
      const std::int64_t next_item = is_in_item ? item : is_last ? items.first : item + 1;
      const std::int64_t l_after = is_in_item || is_last ? l + count : tile.rows.first;
      offsets_bytes[count] =
          l_after < out_.seq_len ? embedding_offset_bytes(next_item, l_after) : offsets_bytes[count - 1];
      const Block<char> out = out_.block(item, l, tile.columns.first);
      const Block<const char> x{vocabulary_.data + tile.columns.first * bytes, 0, bytes, offsets_bytes};
      set_rows(sum, is_apart ? scratch : out, x, tile.part({l, count}));
      if (!is_apart && access.prefetch && !access.non_temporal) sum.next_out = out.data + out.row_stride_bytes;
      add_rows(sum, shape_.dtype);
      if (is_apart) copy_block(out, scratch.read_only(), count, columns, bytes);
    }
  }
}

void Gather::write_invalid(const Range& items, const Range& rows, const Range& columns) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    for (std::int64_t l = rows.first; l < rows.end(); ++l) {
      const char* const embedding = vocabulary_.data + embedding_offset_bytes(item, l) + columns.first * bytes;
      copy_block(out_.block(item, l, columns.first), {embedding, 0, bytes}, 1, columns.count, bytes);
    }
  }
}

}  // namespace fastpe
