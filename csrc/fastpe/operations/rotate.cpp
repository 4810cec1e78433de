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

// In both arrays, at the same stride: the kernel takes one.
bool is_transposed(const HeadArray& array) {
  return array.x.is_transposed() && array.out.is_transposed() &&
         array.x.column_stride_bytes == array.out.column_stride_bytes;
}

bool is_in_place(const HeadArray& array) { return array.x.data == array.out.data; }

Rotation rotation_of(const Block<char>& out, const Block<const char>& x) {
  Rotation rotation{};
  rotation.out = out.data;
  rotation.out_row_stride_bytes = out.row_stride_bytes;
  rotation.x = x.data;
  rotation.x_row_stride_bytes = x.row_stride_bytes;
  return rotation;
}

OperationShape shape_of(const Slice<HeadArray>& arrays, std::int64_t batch_rows, const Pairing& pairing) {
  OperationShape shape = shape_of_writing(arrays[0].out, batch_rows);
  shape.columns = 2 * pairing.pairs;
  shape.most_columns = INT64_MAX;
  shape.items_per_batch_row = shape.bytes_written = 0;
  shape.reads_items = shape.is_in_place = true;
  for (const HeadArray& array : arrays) {
    shape.items_per_batch_row += batch_rows > 0 ? array.out.item_count / batch_rows : 0;
    shape.bytes_written += array.out.item_count * array.out.seq_len * shape.columns * element_bytes(shape.dtype);
    shape.is_in_place = shape.is_in_place && is_in_place(array);
    shape.has_contiguous_columns = shape.has_contiguous_columns && has_contiguous_columns(array);
    shape.is_transposed = shape.is_transposed && is_transposed(array);
    if (has_contiguous_columns(array)) continue;
    shape.scratch_bytes =
        std::max(is_transposed(array) ? transposed_bytes : shape.rows_in_scratch_bytes(), shape.scratch_bytes);
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

void Rotate::rotate_rows(const Rotation& rotation, const Tile& tile) const {
  const std::int64_t bytes = element_bytes(shape_.dtype), table_bytes = element_bytes(shape_.tile_dtype);
  const auto kernel = active_kernels().rotate[index_of(shape_.dtype)];
  for (const PairRange& rotated : pairing_.rotated) {
    const std::int64_t first_bytes = (pairing_.interleaved ? 2 : 1) * rotated.first * bytes;
    Rotation part = rotation;
    part.rows = tile.count;
    part.pairs = rotated.count;
    part.half = pairing_.pairs;
    part.interleaved = pairing_.interleaved;
    part.conjugate = pairing_.conjugate;
    part.out += first_bytes;
    part.x += first_bytes;
    if (part.next_x != nullptr) part.next_x += first_bytes;
    if (part.next_out != nullptr) part.next_out += first_bytes;
    part.tile_row_stride_bytes = tile.row_stride_bytes;
    part.tile_offsets_bytes = tile.row_offsets_bytes;
    part.cosines = tile.data + rotated.first * table_bytes;
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

void Rotate::apply(const Tile& tile, const Items& items, const Workspace& workspace) const {
  for (std::int64_t item = items.begin; item < items.end;) {
    const Heads heads = heads_at(item, items.end - item);
    item += heads.count;
    if (is_transposed(heads.array)) {
      rotate_columns(tile, heads, workspace);
      continue;
    }
    if (has_contiguous_columns(heads.array) && are_inner_heads(heads)) {
      rotate_inner_heads(tile, heads, item - heads.count, workspace);
      continue;
    }
    for (std::int64_t i = 0; i < heads.count; ++i) {
      const Place next = next_place(tile, item - heads.count + i, items, workspace.access);
      rotate_head(tile, heads.array, heads.first + i, next, workspace);
    }
  }
}

void Rotate::rotate_head(const Tile& tile, const HeadArray& array, std::int64_t head, const Place& next,
                         const Workspace& workspace) const {
  copy_columns(array, head, tile.l, tile.count, first_copied_column());
  if (has_contiguous_columns(array)) {
    Rotation rotation = rotation_of(block_of(array.out, head, tile.l), block_of(array.x, head, tile.l));
    set_prefetch(next, workspace.access, rotation);
    return rotate_rows(rotation, tile);
  }
  const std::int64_t bytes = element_bytes(shape_.dtype), columns = shape_.columns;
  const std::int64_t end_l = tile.l + tile.count, at_once = shape_.rows_in_scratch();
  const Block<char> scratch{workspace.scratch, columns * bytes, bytes};
  for (std::int64_t l = tile.l; l < end_l; l += at_once) {
    const Tile rows = tile.rows_between(l, std::min(end_l, l + at_once));
    copy_block(scratch, block_of(array.x, head, l), rows.count, columns, bytes);
    rotate_rows(rotation_of(scratch, scratch.read_only()), rows);
    copy_block(block_of(array.out, head, l), scratch.read_only(), rows.count, columns, bytes);
  }
}

void Rotate::rotate_inner_heads(const Tile& tile, const Heads& heads, std::int64_t first_item,
                                const Workspace& workspace) const {
  const HeadArray& array = heads.array;
  for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
    for (std::int64_t i = 0; i < heads.count; ++i) copy_columns(array, heads.first + i, l, 1, first_copied_column());
    Rotation rotation = rotation_of(inner_block_of(array.out, heads.first, l), inner_block_of(array.x, heads.first, l));
    set_prefetch({first_item, l + 1}, workspace.access, rotation);
    rotate_rows(rotation, {tile.row(l), 0, tile.dtype, l, heads.count, tile.columns});
  }
}

// A pair is two columns, which are runs of the sequence: for the kernel, as many pairs as rows, and one row for each
// pair.
void Rotate::rotate_columns(const Tile& tile, const Heads& heads, const Workspace& workspace) const {
  const HeadArray& array = heads.array;
  for (std::int64_t i = 0; i < heads.count; ++i) {
    copy_columns(array, heads.first + i, tile.l, tile.count, first_copied_column());
  }
  const std::int64_t step = pairing_.interleaved ? 2 : 1;
  const std::int64_t columns_between = pairing_.interleaved ? 1 : pairing_.pairs;
  const std::int64_t most_pairs = cache_line_bytes / element_bytes(tile.dtype) / 2;
  for (const PairRange& rotated : pairing_.rotated) {
    const Columns pairs{rotated.first, rotated.count};
    for_each_transposed_part(tile, pairs, most_pairs, [&](const Tile& rows, const Columns& part) {
      const Tile cosines = transposed_tile(rows, part, workspace.scratch);
      const Tile sines =
          transposed_tile(rows, {pairing_.pairs + part.first, part.count}, workspace.scratch + transposed_bytes / 2);
      for (std::int64_t head = heads.first; head < heads.first + heads.count; ++head) {
        Rotation rotation = rotation_of(block_of(array.out, head, rows.l, step * part.first).transposed(),
                                        block_of(array.x, head, rows.l, step * part.first).transposed());
        rotation.out_row_stride_bytes *= step;
        rotation.x_row_stride_bytes *= step;
        rotation.cosines = cosines.data;
        rotation.sines = sines.data;
        rotation.tile_row_stride_bytes = cosines.row_stride_bytes;
        rotation.rows = part.count;
        rotation.pairs = rows.count;
        rotation.half = columns_between * (array.x.column_stride_bytes / element_bytes(shape_.dtype));
        rotation.conjugate = pairing_.conjugate;
        active_kernels().rotate[index_of(shape_.dtype)](rotation);
      }
    });
  }
}

bool Rotate::rotates_all() const { return pairing_.rotated.size() == 1 && pairing_.rotated[0].count == pairing_.pairs; }

void Rotate::copy_columns(const HeadArray& array, std::int64_t head, std::int64_t l, std::int64_t count,
                          std::int64_t first) const {
  if (is_in_place(array) || first == array.out.columns) return;
  copy_block(block_of(array.out, head, l, first), block_of(array.x, head, l, first), count, array.out.columns - first,
             element_bytes(shape_.dtype));
}

void Rotate::write_invalid(const Items& items, std::int64_t l, std::int64_t count, const Columns& /*columns*/) const {
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const Heads heads = heads_at(item, 1);
    copy_columns(heads.array, heads.first, l, count, 0);
  }
}

}  // namespace fastpe
