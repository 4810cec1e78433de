// SPDX-License-Identifier: BSD-3-Clause
// How sums and rotations go over the rows of an array, in any order of its axes: whatever it is, an operation gets
// blocks whose columns have no gaps, and the rows of the encoding for them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "copy.h"
#include "operation.h"

namespace fastpe {

// Where rows are transposed, this many rows of the tile, and a cache line of its columns, are transposed into the
// scratch memory. They stay in L1 while all items are done with them.
constexpr std::int64_t transposed_rows = 256;
constexpr std::int64_t transposed_bytes = transposed_rows * cache_line_bytes + cache_line_bytes * cache_line_bytes / 2;

// Rows that are read, and where the results go, which may be the same memory.
struct ReadWrite {
  ConstRows x;
  Rows out;
  Order order;  // in which both can be walked

  bool is_in_place() const { return x.data == out.data; }
  std::int64_t scratch_bytes(const OperationShape& shape) const {
    return order == Order::rows ? 0 : order == Order::columns ? transposed_bytes : shape.rows_in_scratch_bytes();
  }
};

// Copies these columns where the results go to other memory.
inline void copy_unless_in_place(const ReadWrite& arrays, const Range& items, const Range& rows, const Range& columns) {
  if (arrays.is_in_place() || columns.count == 0) return;
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    copy_block(arrays.out.block(item, rows.first, columns.first), arrays.x.block(item, rows.first, columns.first),
               rows.count, columns.count, element_bytes(arrays.out.dtype));
  }
}

// Rows that come next, to be prefetched; null: none.
struct NextRows {
  const char *x = nullptr, *out = nullptr;
};
inline NextRows next_rows(const ReadWrite& arrays, std::int64_t item, std::int64_t l, const Access& access) {
  if (!access.prefetch || l >= arrays.out.seq_len) return {};
  return {arrays.x.row(item, l), arrays.is_in_place() || access.non_temporal ? nullptr : arrays.out.row(item, l)};
}
// The row at which the items begin again.
inline std::int64_t next_l(const Tile& tile, const Workspace& workspace) {
  return tile.rows.first + std::min(tile.rows.count, workspace.segment_rows);
}

// One after the other, or where they lie side by side inside of the sequence, one row of all of them after the other.
template <class DoRows>
void walk_rows(const ReadWrite& arrays, const Tile& tile, const Range& items, const NextRows& after_last,
               const Access& access, const DoRows& do_rows) {
  const auto& [x, out, order] = arrays;
  if (items.count == 1 || out.inner_count == 1 || out.inner_count != x.inner_count) {
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      const bool is_last = item + 1 == items.end();
      const NextRows next = is_last ? after_last : next_rows(arrays, item + 1, tile.rows.first, access);
      do_rows(out.block(item, tile.rows.first), x.block(item, tile.rows.first), tile, next);
    }
    return;
  }
  for (std::int64_t first = items.first; first < items.end();) {
    const std::int64_t end = std::min(items.end(), (first / out.inner_count + 1) * out.inner_count);
    for (std::int64_t l = tile.rows.first; l < tile.rows.end(); ++l) {
      const Tile same{{tile.row(l), 0, tile.block.column_stride_bytes}, tile.dtype, {l, end - first}, tile.columns};
      do_rows(out.inner_block(first, l), x.inner_block(first, l), same, next_rows(arrays, first, l + 1, access));
    }
    first = end;
  }
}

// Some rows at a time are put together in the scratch memory.
template <class DoRows>
void walk_in_scratch(const ReadWrite& arrays, const OperationShape& shape, const Tile& tile, const Range& items,
                     char* memory, const DoRows& do_rows) {
  const std::int64_t bytes = element_bytes(shape.dtype), at_once = shape.rows_in_scratch(),
                     columns = tile.columns.count;
  const Block<char> scratch{memory, columns * bytes, bytes};
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    for (std::int64_t l = tile.rows.first; l < tile.rows.end(); l += at_once) {
      const Tile rows = tile.part({l, std::min(tile.rows.end() - l, at_once)});
      copy_block(scratch, arrays.x.block(item, l, tile.columns.first), rows.rows.count, columns, bytes);
      do_rows(scratch, scratch.read_only(), rows, NextRows());
      copy_block(arrays.out.block(item, l, tile.columns.first), scratch.read_only(), rows.rows.count, columns, bytes);
    }
  }
}

// Where columns are runs, these are done some at a time, each with those at `distance`, twice that .. from it, `groups`
// in all. In arrays, they are `step` times as far from each other as in the tile.
struct Columns {
  Slice<Range> ranges;
  std::int64_t groups = 1, distance = 0, step = 1;
};

// Each column is a row for do_rows: a part of the tile is transposed once, and serves all items.
template <class DoRows>
void walk_columns(const ReadWrite& arrays, const Tile& tile, const Columns& of, const Range& range, const Range& items,
                  char* memory, const DoRows& do_rows) {
  const std::int64_t bytes = element_bytes(tile.dtype), most_columns = cache_line_bytes / bytes / of.groups;
  // Rows a power of two apart would take each other's place in L1.
  const std::int64_t stride_bytes = transposed_rows * bytes + cache_line_bytes;
  for (std::int64_t l = tile.rows.first; l < tile.rows.end(); l += transposed_rows) {
    const Tile rows = tile.part({l, std::min(tile.rows.end() - l, transposed_rows)});
    for (std::int64_t column = range.first; column < range.end(); column += most_columns) {
      const std::int64_t count = std::min(most_columns, range.end() - column);
      for (std::int64_t group = 0; group < of.groups; ++group) {
        copy_block({memory + group * count * stride_bytes, bytes, stride_bytes},
                   rows.block.from(0, column + group * of.distance - tile.columns.first), rows.rows.count, count,
                   bytes);
      }
      const Tile transposed{{memory, stride_bytes, bytes}, tile.dtype, {0, of.groups * count}, {0, rows.rows.count}};
      for (std::int64_t item = items.first; item < items.end(); ++item) {
        Block<char> out = arrays.out.block(item, l, of.step * column).transposed();
        Block<const char> x = arrays.x.block(item, l, of.step * column).transposed();
        const bool is_last = item + 1 == items.end();
        const char* const next = is_last ? arrays.x.row(items.first, l, of.step * (column + count))
                                         : arrays.x.row(item + 1, l, of.step * column);
        out.row_stride_bytes *= of.step;
        x.row_stride_bytes *= of.step;
        do_rows(out, x, transposed, NextRows{next});
      }
    }
  }
}

// Calls do_rows(out, x, tile, next) for all rows of the tile and these items: blocks of arrays whose rows have no gaps,
// and as many rows of the encoding. `after_last` is what follows the last item.
template <class DoRows>
void walk(const ReadWrite& arrays, const OperationShape& shape, const Tile& tile, const Columns& columns,
          const Range& items, const NextRows& after_last, const Workspace& workspace, const DoRows& do_rows) {
  switch (arrays.order) {
    case Order::rows: return walk_rows(arrays, tile, items, after_last, workspace.access, do_rows);
    case Order::columns:
      for (const Range& range : columns.ranges) {
        walk_columns(arrays, tile, columns, range, items, workspace.scratch, do_rows);
      }
      return;
    case Order::apart: return walk_in_scratch(arrays, shape, tile, items, workspace.scratch, do_rows);
  }
}

}  // namespace fastpe
