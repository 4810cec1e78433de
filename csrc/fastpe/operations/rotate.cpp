// SPDX-License-Identifier: BSD-3-Clause
#include "rotate.h"

#include <algorithm>

#include "fastpe/dispatch.h"

namespace fastpe {
namespace {

// Rows are rotated into the scratch memory, and go past the caches from there: as many at once.
std::int64_t non_temporal_rows(const OperationShape& shape) {
  constexpr std::int64_t most_bytes = 8 * 1024;
  return std::max<std::int64_t>(1, most_bytes / std::max<std::int64_t>(1, shape.row_bytes_at_once()));
}

OperationShape shape_of(const View<ReadWrite>& arrays, std::int64_t batch_rows, const Pairing& pairing, bool is_new) {
  OperationShape shape = shape_of_writing(arrays[0].out, batch_rows);
  shape.columns = 2 * pairing.pairs;
  shape.most_columns = INT64_MAX;
  shape.order = arrays[0].order;
  shape.items_per_batch_row = shape.bytes_written = 0;
  shape.reads_items = true;
  shape.may_be_non_temporal = !is_new && pairing.rotates_all();
  for (const ReadWrite& array : arrays) {
    shape.items_per_batch_row += batch_rows > 0 ? array.out.item_count / batch_rows : 0;
    shape.bytes_written += array.out.item_count * array.out.seq_len * shape.columns * element_bytes(shape.dtype);
    shape.order = common_order(shape.order, array.order);
    shape.scratch_bytes = std::max(shape.scratch_bytes, array.scratch_bytes(shape));
    if (array.is_in_place() || array.out.columns != shape.columns) shape.may_be_non_temporal = false;
  }
  if (shape.may_be_non_temporal) {
    shape.scratch_bytes = std::max(shape.scratch_bytes, non_temporal_rows(shape) * shape.row_bytes_at_once());
  }
  return shape;
}

}  // namespace

ReadWrite heads_of(const ConstRows& x, const Rows& out) {
  ReadWrite heads(x, out);
  // The kernel takes one distance between the columns of a pair.
  if (heads.order == Order::columns && x.column_stride_bytes != out.column_stride_bytes) heads.order = Order::apart;
  return heads;
}

Rotate::Rotate(View<ReadWrite> arrays, std::int64_t batch_rows, const Pairing& pairing, bool is_new)
    : Operation(shape_of(arrays, batch_rows, pairing, is_new)), arrays_(arrays), pairing_(pairing) {}

Rotate::ItemsOfArray Rotate::first_items(const Range& items) const {
  const std::int64_t row = items.first / shape_.items_per_batch_row;
  std::int64_t head = items.first % shape_.items_per_batch_row;
  const ReadWrite* array = arrays_.items;
  std::int64_t heads_per_row = array->out.item_count / shape_.batch_rows;
  while (head >= heads_per_row) {
    head -= heads_per_row;
    ++array;
    heads_per_row = array->out.item_count / shape_.batch_rows;
  }
  return {*array, {row * heads_per_row + head, std::min(items.count, heads_per_row - head)}};
}

void Rotate::rotate_rows(const Rotation& rows) const {
  const std::int64_t bytes = element_bytes(shape_.dtype), table_bytes = element_bytes(shape_.tile_dtype);
  for (const Range& rotated : pairing_.rotated) {
    const std::int64_t first_bytes = (pairing_.interleaved ? 2 : 1) * rotated.first * bytes;
    Rotation part = rows;
    part.pairs = rotated.count;
    part.out += first_bytes;
    part.x += first_bytes;
    if (rows.next_x != nullptr) part.next_x += first_bytes;
    if (rows.next_out != nullptr) part.next_out += first_bytes;
    part.tile += rotated.first * table_bytes;
    part.sines = part.tile + pairing_.pairs * table_bytes;
    active_kernels().rotate[index_of(shape_.dtype)](part);
  }
}

void Rotate::rotate_non_temporal(const Rotation& rows, char* memory) const {
  const std::int64_t row_bytes = shape_.row_bytes_at_once(), at_once = non_temporal_rows(shape_);
  const bool has_gaps = rows.out_row_stride_bytes != row_bytes;
  Rotation part = rows;
  part.out = memory;
  part.out_row_stride_bytes = row_bytes;
  for (std::int64_t first = 0; first < rows.rows; first += at_once) {
    char* const out = rows.out + first * rows.out_row_stride_bytes;
    part.rows = std::min(at_once, rows.rows - first);
    const std::int64_t together = has_gaps ? 1 : part.rows;
    for (std::int64_t row = 0; row < part.rows; row += together) {
      // Lines that are filled only in part are read first.
      FASTPE_PREFETCH_TO_WRITE(out + row * rows.out_row_stride_bytes);
      FASTPE_PREFETCH_TO_WRITE(out + row * rows.out_row_stride_bytes + together * row_bytes - 1);
    }
    rotate_rows(part);
    for (std::int64_t row = 0; row < part.rows; row += together) {
      active_kernels().copy_non_temporal(
          {out + row * rows.out_row_stride_bytes, memory + row * row_bytes, together * row_bytes});
    }
    part.x += at_once * rows.x_row_stride_bytes;
    if (part.next_x != nullptr) part.next_x += at_once * rows.x_row_stride_bytes;
    if (part.tile_offsets_bytes != nullptr) {
      part.tile_offsets_bytes += at_once;
    } else {
      part.tile += at_once * rows.tile_row_stride_bytes;
    }
  }
}

// A pair is two columns, which are runs of the sequence: for the kernel, as many pairs as rows, and one row for each
// pair. The tile has the pairs' cosines, then their sines.
void Rotate::rotate_columns(const Rotation& columns) const {
  const std::int64_t columns_apart = pairing_.interleaved ? 1 : pairing_.pairs;
  const std::int64_t column_stride_bytes = columns.x_row_stride_bytes / (pairing_.interleaved ? 2 : 1);
  Rotation rotation = columns;
  rotation.rows = columns.rows / 2;
  rotation.pairs = columns.columns;
  rotation.sines = columns.tile + rotation.rows * columns.tile_row_stride_bytes;
  rotation.half = columns_apart * (column_stride_bytes / element_bytes(shape_.dtype));
  rotation.interleaved = false;
  rotation.next_x = nullptr;
  active_kernels().rotate[index_of(shape_.dtype)](rotation);
}

void Rotate::apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const {
  Rotation rotation{};
  rotation.half = pairing_.pairs;
  rotation.interleaved = pairing_.interleaved;
  rotation.conjugate = pairing_.conjugate;
  for (std::int64_t first = items.first; first < items.end();) {
    const auto [array, heads] = first_items({first, items.end() - first});
    first += heads.count;
    const std::int64_t first_kept = pairing_.rotates_all() ? shape_.columns : 0;
    copy_unless_in_place(array, heads, tile.rows, {first_kept, array.out.columns - first_kept});
    if (array.order == Order::columns) {
      for (const Range& rotated : pairing_.rotated) {
        walk_columns(
            array, tile, rotated, heads, scratch, rotation, [this](const Rotation& rows) { rotate_columns(rows); },
            pairing_.pairs, pairing_.interleaved ? 2 : 1);
      }
      continue;
    }
    walk(array, shape_, tile, heads, access, scratch, rotation,
         [&](const Rotation& rows) { access.non_temporal ? rotate_non_temporal(rows, scratch) : rotate_rows(rows); });
  }
}

void Rotate::write_invalid(const Range& items, const Range& rows, const Range& /*columns*/) const {
  for (std::int64_t first = items.first; first < items.end();) {
    const auto [array, heads] = first_items({first, items.end() - first});
    copy_unless_in_place(array, heads, rows, {0, array.out.columns});
    first += heads.count;
  }
}

}  // namespace fastpe
