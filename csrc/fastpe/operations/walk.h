// SPDX-License-Identifier: BSD-3-Clause
// How sums and rotations go over the rows of an array, in any order of its axes: whatever it is, an operation gets
// blocks whose columns have no gaps, and the rows of the encoding for them.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "copy.h"
#include "operation.h"

namespace fastpe {

// Of a tile, a cache line of columns is transposed into the scratch memory.
constexpr std::int64_t transposed_bytes = transposed_rows * cache_line_bytes + cache_line_bytes * cache_line_bytes / 2;

// Rows that are read, and where the results go, which may be the same memory.
struct ReadWrite {
  ReadWrite() = default;
  ReadWrite(const ConstRows& x_, const Rows& out_) : x(x_), out(out_), order(common_order(x_.order(), out_.order())) {}

  ConstRows x;
  Rows out;
  Order order = Order::rows;  // in which both can be walked

  bool is_in_place() const { return x.data == out.data; }
  std::int64_t scratch_bytes(const OperationShape& shape) const {
    return order == Order::rows ? 0 : order == Order::columns ? transposed_bytes : shape.rows_in_scratch_bytes();
  }
};

// The shape of an operation that goes over `arrays` by walk(). `is_new`: the call made the array `out`.
inline OperationShape shape_of_walking(const ReadWrite& arrays, std::int64_t batch_rows, bool is_new) {
  OperationShape shape = shape_of_writing(arrays.out, batch_rows);
  shape.order = arrays.order;
  shape.most_columns = std::min(shape.most_columns, most_columns_of(arrays.x));
  shape.reads_items = true;
  shape.may_be_non_temporal = !is_new && !arrays.is_in_place();
  shape.scratch_bytes = arrays.scratch_bytes(shape);
  return shape;
}

// Copies these columns where the results go to other memory.
inline void copy_unless_in_place(const ReadWrite& arrays, const Range& items, const Range& rows, const Range& columns) {
  if (arrays.is_in_place() || columns.count == 0) return;
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    copy_block(arrays.out.block(item, rows.first, columns.first), arrays.x.block(item, rows.first, columns.first),
               rows.count, columns.count, element_bytes(arrays.out.dtype));
  }
}

// Puts into the arguments of a kernel what it does at once: as many rows and columns as the tile has.
inline void set_rows(RowsAtOnce& rows, const Block<char>& out, const Block<const char>& x, const Tile& tile) {
  rows.out = out.data;
  rows.out_row_stride_bytes = out.row_stride_bytes;
  rows.x = x.data;
  rows.x_row_stride_bytes = x.row_stride_bytes;
  rows.x_offsets_bytes = x.row_offsets_bytes;
  rows.tile = tile.block.data;
  rows.tile_row_stride_bytes = tile.block.row_stride_bytes;
  rows.tile_offsets_bytes = tile.block.row_offsets_bytes;
  rows.tile_dtype = tile.dtype;
  rows.rows = tile.rows.count;
  rows.columns = tile.columns.count;
  rows.next_x = rows.next_out = nullptr;
}

// What comes next, which the kernel prefetches row by row: the processor's own prefetches end with these rows.
inline void set_next(RowsAtOnce& rows, const ReadWrite& arrays, std::int64_t item, std::int64_t l,
                     const Access& access) {
  if (!access.prefetch || l >= arrays.out.seq_len) return;
  rows.next_x = arrays.x.row(item, l);
  if (!arrays.is_in_place() && !access.non_temporal) rows.next_out = arrays.out.row(item, l);
}

// One item after the other, or where they lie side by side inside of the sequence, one row of all of them after the
// other. The next rows are those of the next item, and behind the last one, of the first item again.
template <class Arguments, class DoRows>
void walk_rows(const ReadWrite& arrays, const Tile& tile, const Range& items, const Access& access, Arguments& rows,
               const DoRows& do_rows) {
  const auto& [x, out, order] = arrays;
  const std::int64_t l = tile.rows.first;
  if (items.count == 1 || out.inner_count == 1 || out.inner_count != x.inner_count) {
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      set_rows(rows, out.block(item, l), x.block(item, l), tile);
      const bool is_last = item + 1 == items.end();
      set_next(rows, arrays, is_last ? items.first : item + 1, is_last ? tile.rows.end() : l, access);
      do_rows(rows);
    }
    return;
  }
  for (std::int64_t first = items.first; first < items.end();) {
    const std::int64_t end = std::min(items.end(), (first / out.inner_count + 1) * out.inner_count);
    for (std::int64_t row = l; row < tile.rows.end(); ++row) {
      const Tile same{{tile.row(row), 0, tile.block.column_stride_bytes}, tile.dtype, {0, end - first}, tile.columns};
      set_rows(rows, out.inner_block(first, row), x.inner_block(first, row), same);
      set_next(rows, arrays, first, row + 1, access);
      do_rows(rows);
    }
    first = end;
  }
}

// Some rows at a time are put together in the scratch memory.
template <class Arguments, class DoRows>
void walk_in_scratch(const ReadWrite& arrays, const OperationShape& shape, const Tile& tile, const Range& items,
                     char* memory, Arguments& rows, const DoRows& do_rows) {
  const std::int64_t bytes = element_bytes(shape.dtype), at_once = shape.rows_in_scratch(),
                     columns = tile.columns.count;
  const Block<char> scratch{memory, columns * bytes, bytes};
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    for (std::int64_t l = tile.rows.first; l < tile.rows.end(); l += at_once) {
      const Tile part = tile.part({l, std::min(tile.rows.end() - l, at_once)});
      copy_block(scratch, arrays.x.block(item, l, tile.columns.first), part.rows.count, columns, bytes);
      set_rows(rows, scratch, scratch.read_only(), part);
      do_rows(rows);
      copy_block(arrays.out.block(item, l, tile.columns.first), scratch.read_only(), part.rows.count, columns, bytes);
    }
  }
}

// Each column is a row for do_rows: a part of the tile is transposed once, and serves all items. Where rows of the
// encoding are cosines, then sines, `range` counts pairs: the columns k and pairs + k of the tile are transposed, and
// column_step * k is the pair's first column in arrays.
template <class Arguments, class DoRows>
void walk_columns(const ReadWrite& arrays, const Tile& tile, const Range& range, const Range& items, char* memory,
                  Arguments& rows, const DoRows& do_rows, std::int64_t pairs = 0, std::int64_t column_step = 1) {
  const std::int64_t groups = pairs == 0 ? 1 : 2;
  const std::int64_t bytes = element_bytes(tile.dtype), most_columns = cache_line_bytes / bytes / groups;
  // Rows a power of two apart would take each other's place in L1.
  const std::int64_t stride_bytes = transposed_rows * bytes + cache_line_bytes;
  for (std::int64_t l = tile.rows.first; l < tile.rows.end(); l += transposed_rows) {
    const Tile part = tile.part({l, std::min(tile.rows.end() - l, transposed_rows)});
    for (std::int64_t column = range.first; column < range.end(); column += most_columns) {
      const std::int64_t count = std::min(most_columns, range.end() - column);
      for (std::int64_t group = 0; group < groups; ++group) {
        copy_block({memory + group * count * stride_bytes, bytes, stride_bytes},
                   part.block.from(0, column + group * pairs - tile.columns.first), part.rows.count, count, bytes);
      }
      for (std::int64_t item = items.first; item < items.end(); ++item) {
        Block<char> out = arrays.out.block(item, l, column_step * column).transposed();
        Block<const char> x = arrays.x.block(item, l, column_step * column).transposed();
        out.row_stride_bytes *= column_step;
        x.row_stride_bytes *= column_step;
        set_rows(rows, out, x, {{memory, stride_bytes, bytes}, tile.dtype, {0, groups * count}, part.rows});
        const bool is_last = item + 1 == items.end();
        rows.next_x = is_last ? arrays.x.row(items.first, l, column_step * (column + count))
                              : arrays.x.row(item + 1, l, column_step * column);
        do_rows(rows);
      }
    }
  }
}

// Calls do_rows(rows) for all rows of the tile and these items: with the arguments of a kernel, which begin with
// RowsAtOnce and otherwise stay as they are given.
template <class Arguments, class DoRows>
void walk(const ReadWrite& arrays, const OperationShape& shape, const Tile& tile, const Range& items,
          const Access& access, char* scratch, Arguments rows, const DoRows& do_rows) {
  assert(shape.scratch_bytes >= arrays.scratch_bytes(shape));
  switch (arrays.order) {
    case Order::rows: return walk_rows(arrays, tile, items, access, rows, do_rows);
    case Order::columns: return walk_columns(arrays, tile, tile.columns, items, scratch, rows, do_rows);
    case Order::apart: return walk_in_scratch(arrays, shape, tile, items, scratch, rows, do_rows);
  }
}

}  // namespace fastpe
