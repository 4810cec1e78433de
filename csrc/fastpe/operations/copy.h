// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows and columns that lie anywhere in memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fastpe/cache_line.h"
#include "fastpe/tile.h"

namespace fastpe {

// Rows of elements, of which both the rows and the columns may lie apart.
template <class Byte>
struct Block {
  Byte* data;
  std::int64_t row_stride_bytes, column_stride_bytes;
  const std::int64_t* row_offsets_bytes = nullptr;  // of each row from `data` on; null: rows have a stride

  Byte* row(std::int64_t i) const {
    return data + (row_offsets_bytes == nullptr ? i * row_stride_bytes : row_offsets_bytes[i]);
  }
  bool has_contiguous_columns(std::int64_t bytes) const { return column_stride_bytes == bytes; }
  bool has_contiguous_rows(std::int64_t bytes) const { return row_stride_bytes == bytes && !row_offsets_bytes; }
  Block<const char> read_only() const { return {data, row_stride_bytes, column_stride_bytes, row_offsets_bytes}; }
  Block transposed() const { return {data, column_stride_bytes, row_stride_bytes}; }
  Block from(std::int64_t first_row, std::int64_t column) const {
    Byte* const at = data + column * column_stride_bytes;
    if (row_offsets_bytes != nullptr) return {at, 0, column_stride_bytes, row_offsets_bytes + first_row};
    return {at + first_row * row_stride_bytes, row_stride_bytes, column_stride_bytes};
  }
};

template <class Byte>
Block<Byte> block_of(const BasicRows<Byte>& rows, std::int64_t item, std::int64_t l, std::int64_t column = 0) {
  return {rows.row(item, l, column), rows.seq_stride_bytes, rows.column_stride_bytes};
}
// Row l of each of the items that lie side by side inside of the sequence, from `item` on.
template <class Byte>
Block<Byte> inner_block_of(const BasicRows<Byte>& rows, std::int64_t item, std::int64_t l, std::int64_t column = 0) {
  return {rows.row(item, l, column), rows.inner_stride_bytes, rows.column_stride_bytes};
}
inline Block<const char> block_of(const Tile& tile, std::int64_t column) {
  const std::int64_t bytes = element_bytes(tile.dtype);
  return {tile.data + (column - tile.columns.first) * bytes, tile.row_stride_bytes, bytes, tile.row_offsets_bytes};
}

// Elements of 2, 4 or 8 bytes.
void zero_block(const Block<char>& block, std::int64_t rows, std::int64_t columns, std::int64_t element_bytes);
void copy_block(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns,
                std::int64_t element_bytes);

// Where rows are transposed, an operation transposes this many rows of the tile, and a cache line of its columns, into
// its scratch memory. They stay in L1 while all items are done with them.
constexpr std::int64_t transposed_rows = 256;
constexpr std::int64_t transposed_bytes = transposed_rows * cache_line_bytes + cache_line_bytes * cache_line_bytes / 2;

// Columns of a tile as the rows of another one, which are put `to` there.
Tile transposed_tile(const Tile& tile, const Columns& columns, char* to);

// Calls on_part(rows, columns) for each part of the tile that is transposed at once, and each of these columns, at most
// `most` at once.
template <class OnPart>
void for_each_transposed_part(const Tile& tile, const Columns& columns, std::int64_t most, const OnPart& on_part) {
  const std::int64_t end_l = tile.l + tile.count, end_column = columns.first + columns.count;
  for (std::int64_t l = tile.l; l < end_l; l += transposed_rows) {
    const Tile rows = tile.rows_between(l, std::min(end_l, l + transposed_rows));
    for (std::int64_t column = columns.first; column < end_column; column += most) {
      on_part(rows, Columns{column, std::min(most, end_column - column)});
    }
  }
}

}  // namespace fastpe
