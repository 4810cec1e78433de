// SPDX-License-Identifier: BSD-3-Clause
#include "rotate.h"

#include <algorithm>

#include "copy.h"
#include "fastpe/dispatch.h"

namespace fastpe {
namespace {

bool has_contiguous_columns(const HeadArray& array) {
  return array.x.has_contiguous_columns() && array.out.has_contiguous_columns();
}

bool is_in_place(const HeadArray& array) { return array.x.data == array.out.data; }

OperationShape shape_of(const Slice<HeadArray>& arrays, std::int64_t batch_rows, const Pairing& pairing) {
  OperationShape shape = shape_of_writing(arrays[0].out, batch_rows);
  shape.columns = shape.columns_at_once = 2 * pairing.pairs;
  shape.items_per_batch_row = shape.bytes_written = 0;
  shape.reads_items = shape.is_in_place = true;
  for (const HeadArray& array : arrays) {
    shape.items_per_batch_row += batch_rows > 0 ? array.out.item_count / batch_rows : 0;
    shape.bytes_written += array.out.item_count * array.out.seq_len * shape.columns * element_bytes(shape.dtype);
    shape.is_in_place = shape.is_in_place && is_in_place(array);
    shape.has_contiguous_columns = shape.has_contiguous_columns && has_contiguous_columns(array);
    if (!has_contiguous_columns(array)) shape.scratch_bytes = std::max(shape.scratch_bytes, array.out.row_bytes());
  }
  return shape;
}

}  // namespace

Rotate::Rotate(Slice<HeadArray> arrays, std::int64_t batch_rows, const Pairing& pairing)
    : Operation(shape_of(arrays, batch_rows, pairing)), arrays_(arrays), pairing_(pairing) {}

Rotate::Heads Rotate::heads_at(std::int64_t item, std::int64_t most) const {
  const std::int64_t row = item / shape_.items_per_batch_row;
  std::int64_t head = item % shape_.items_per_batch_row;
  const HeadArray* array = arrays_.items;
  std::int64_t heads_per_row = array->out.item_count / shape_.batch_rows;
  while (head >= heads_per_row) {
    head -= heads_per_row;
    ++array;
    heads_per_row = array->out.item_count / shape_.batch_rows;
  }
  return {*array, row * heads_per_row + head, std::min(most, heads_per_row - head)};
}

void Rotate::set_prefetch(const Place& next, const Access& access, Rotation& rotation) const {
  if (!access.prefetch || next.l >= shape_.seq_len || next.item >= shape_.items()) return;
  const Heads heads = heads_at(next.item, 1);
  rotation.next_x = heads.array.x.row(heads.first, next.l);
  if (!is_in_place(heads.array)) rotation.next_out = heads.array.out.row(heads.first, next.l);
}

void Rotate::rotate_rows(const Rotation& rotation, const char* table_row) const {
  const std::int64_t bytes = element_bytes(shape_.dtype), table_bytes = element_bytes(shape_.tile_dtype);
  const auto kernel = active_kernels().rotate[index_of(shape_.dtype)];
  for (const PairRange& rotated : pairing_.rotated) {
    const std::int64_t first_bytes = (pairing_.interleaved ? 2 : 1) * rotated.first * bytes;
    Rotation part = rotation;
    part.pairs = rotated.count;
    part.half = pairing_.pairs;
    part.interleaved = pairing_.interleaved;
    part.conjugate = pairing_.conjugate;
    part.out += first_bytes;
    part.x += first_bytes;
    if (part.next_x != nullptr) part.next_x += first_bytes;
    if (part.next_out != nullptr) part.next_out += first_bytes;
    part.cosines = table_row + rotated.first * table_bytes;
    part.sines = part.cosines + pairing_.pairs * table_bytes;
    kernel(part);
  }
}

// Whether the heads are one inner axis, in both arrays: a work unit may begin within one and end within the next.
bool Rotate::are_inner_heads(const Heads& heads) {
  const HeadArray& array = heads.array;
  return heads.count > 1 && heads.count == array.out.inner_count && heads.count == array.x.inner_count &&
         heads.first % heads.count == 0;
}

void Rotate::apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const {
  for (std::int64_t item = items.begin; item < items.end;) {
    const Heads heads = heads_at(item, items.end - item);
    item += heads.count;
    const bool is_contiguous = has_contiguous_columns(heads.array);
    if (is_contiguous && are_inner_heads(heads)) {
      rotate_inner_heads(tile, heads, item - heads.count, workspace);
      continue;
    }
    for (std::int64_t i = 0; i < heads.count; ++i) {
      const std::int64_t at = item - heads.count + i;
      const Place next_item{at + 1, tile.l};
      const Place& after = at + 1 < items.end ? next_item : next;
      if (is_contiguous) {
        rotate_head(tile, heads.array, heads.first + i, after, workspace);
        continue;
      }
      for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
        rotate_strided_row(tile, heads.array, heads.first + i, l, workspace.scratch);
      }
    }
  }
}

void Rotate::rotate_head(const Tile& tile, const HeadArray& array, std::int64_t head, const Place& next,
                         const Workspace& workspace) const {
  copy_columns(array, head, tile.l, tile.count, first_copied_column());
  Rotation rotation{};
  rotation.out = array.out.row(head, tile.l);
  rotation.out_row_stride_bytes = array.out.seq_stride_bytes;
  rotation.x = array.x.row(head, tile.l);
  rotation.x_row_stride_bytes = array.x.seq_stride_bytes;
  rotation.tile_row_stride_bytes = tile.row_stride_bytes;
  rotation.rows = tile.count;
  set_prefetch(next, workspace.access, rotation);
  rotate_rows(rotation, tile.row(tile.l));
}

void Rotate::rotate_inner_heads(const Tile& tile, const Heads& heads, std::int64_t first_item,
                                const Workspace& workspace) const {
  const HeadArray& array = heads.array;
  for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
    for (std::int64_t i = 0; i < heads.count; ++i) copy_columns(array, heads.first + i, l, 1, first_copied_column());
    Rotation rotation{};
    rotation.out = array.out.row(heads.first, l);
    rotation.out_row_stride_bytes = array.out.inner_stride_bytes;
    rotation.x = array.x.row(heads.first, l);
    rotation.x_row_stride_bytes = array.x.inner_stride_bytes;
    rotation.rows = heads.count;
    set_prefetch({first_item, l + 1}, workspace.access, rotation);
    rotate_rows(rotation, tile.row(l));
  }
}

void Rotate::rotate_strided_row(const Tile& tile, const HeadArray& array, std::int64_t head, std::int64_t l,
                                char* scratch) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  const std::int64_t columns = is_in_place(array) ? shape_.columns : array.out.columns;
  copy_row(scratch, bytes, array.x.row(head, l), array.x.column_stride_bytes, columns, bytes);
  Rotation rotation{};
  rotation.out = scratch;
  rotation.x = scratch;
  rotation.rows = 1;
  rotate_rows(rotation, tile.row(l));
  copy_row(array.out.row(head, l), array.out.column_stride_bytes, scratch, bytes, columns, bytes);
}

bool Rotate::rotates_all() const { return pairing_.rotated.size() == 1 && pairing_.rotated[0].count == pairing_.pairs; }

void Rotate::copy_columns(const HeadArray& array, std::int64_t head, std::int64_t l, std::int64_t count,
                          std::int64_t first) const {
  if (is_in_place(array) || first == array.out.columns) return;
  for (std::int64_t i = l; i < l + count; ++i) {
    copy_row(array.out.row(head, i, first), array.out.column_stride_bytes, array.x.row(head, i, first),
             array.x.column_stride_bytes, array.out.columns - first, element_bytes(shape_.dtype));
  }
}

void Rotate::write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns /*columns*/) const {
  const Heads heads = heads_at(item, 1);
  copy_columns(heads.array, heads.first, l, count, 0);
}

}  // namespace fastpe
