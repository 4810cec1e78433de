// SPDX-License-Identifier: BSD-3-Clause
// Arrays as the core sees them: pointers, shapes and strides that somebody else has checked.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cache_line.h"
#include "dtype.h"

namespace fastpe {

constexpr int max_axes = 64;  // of a NumPy array
constexpr int max_item_axes = 8;

// Objects one after the other that somebody else owns.
template <class T>
struct View {
  const T* items = nullptr;
  std::size_t count = 0;

  const T* begin() const { return items; }
  const T* end() const { return items + count; }
  const T& operator[](std::size_t index) const { return items[index]; }
};

// Axes that one index counts through, the last one fastest.
struct Axes {
  int count = 0;
  std::int64_t shape[max_item_axes] = {};
  std::int64_t strides_bytes[max_item_axes] = {};

  void add(std::int64_t length, std::int64_t stride_bytes) {
    shape[count] = length;
    strides_bytes[count] = stride_bytes;
    ++count;
  }
  std::int64_t offset_of(std::int64_t index) const {
    std::int64_t bytes = 0;
    for (int axis = count - 1; axis > 0; --axis) {
      bytes += index % shape[axis] * strides_bytes[axis];
      index /= shape[axis];
    }
    return count > 0 ? bytes + index * strides_bytes[0] : 0;
  }
};

// The numbers first, first + 1 .. first + count - 1: of rows, columns, items ..
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return first + count; }
};

// What of rows lies together in memory.
enum class Order {
  rows,     // the columns of a row have no gaps
  columns,  // columns are runs of the sequence's elements, and rows lie apart
  apart,    // neither
};
inline Order common_order(Order a, Order b) { return a == b ? a : Order::apart; }

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

// Items x sequence x columns. An item is one index of all axes but the sequence and the columns: the axes `outer`, and
// one inner axis with a smaller stride than the sequence's, which is walked inside of the sequence. A sequence of one
// row has its innermost axis inside.
struct RowsLayout {
  DType dtype = DType::float32;
  Axes outer;
  std::int64_t seq_len = 0;
  std::int64_t seq_stride_bytes = 0;
  std::int64_t inner_count = 1;
  std::int64_t inner_stride_bytes = 0;
  std::int64_t item_count = 1;
  std::int64_t columns = 0;
  std::int64_t column_stride_bytes = 0;

  std::int64_t offset_of(std::int64_t item, std::int64_t l) const {
    const std::int64_t along = l * seq_stride_bytes;
    if (inner_count == 1) return along + outer.offset_of(item);
    // This saves a division, whose time a single row would notice.
    if (item < inner_count) return along + item * inner_stride_bytes;
    return along + outer.offset_of(item / inner_count) + item % inner_count * inner_stride_bytes;
  }
  // Call add_items() for each axis that items count, one after the other, and then walk_inside() once.
  void add_items(std::int64_t length, std::int64_t stride_bytes);
  void walk_inside();

  std::int64_t row_bytes() const { return columns * element_bytes(dtype); }
  Order order() const {
    const std::int64_t bytes = element_bytes(dtype);
    if (column_stride_bytes == bytes || columns <= 1) return Order::rows;
    const bool has_runs = seq_stride_bytes == bytes && seq_len * bytes >= cache_line_bytes;
    return has_runs && column_stride_bytes % bytes == 0 ? Order::columns : Order::apart;
  }
  std::int64_t bytes() const { return item_count * seq_len * row_bytes(); }
};

// Rows in memory. Rows that are only read have another type than rows that are written.
template <class Byte>
struct BasicRows : RowsLayout {
  Byte* data = nullptr;

  Byte* row(std::int64_t item, std::int64_t l, std::int64_t column = 0) const {
    assert(0 <= item && item < item_count && 0 <= l && l < seq_len && column >= 0);
    return data + offset_of(item, l) + column * column_stride_bytes;
  }
  Block<Byte> block(std::int64_t item, std::int64_t l, std::int64_t column = 0) const {
    return {row(item, l, column), seq_stride_bytes, column_stride_bytes};
  }
  // Row l of each of the items that lie side by side inside of the sequence, from `item` on.
  Block<Byte> inner_block(std::int64_t item, std::int64_t l) const {
    return {row(item, l), inner_stride_bytes, column_stride_bytes};
  }
};
using Rows = BasicRows<char>;
using ConstRows = BasicRows<const char>;

inline ConstRows read_only(const Rows& rows) {
  ConstRows result;
  static_cast<RowsLayout&>(result) = rows;
  result.data = rows.data;
  return result;
}

// Of rows that are numbered through all items.
inline const char* row_of(const ConstRows& rows, std::int64_t index) {
  return rows.row(index / rows.seq_len, index % rows.seq_len);
}

// A [rows, columns] array that is only read. Its columns have no gaps.
struct TableView {
  const char* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride_bytes = 0;

  const char* row(std::int64_t index) const {
    assert(0 <= index && index < rows);
    return data + index * row_stride_bytes;
  }
};

// A number of an array before it is checked: an integer, or a fractional number.
struct Number {
  std::int64_t integer;  // saturated if the array's own number does not fit; of a fraction, INT64_MIN
  double value;

  bool is_integer() const { return integer != INT64_MIN; }
  bool is_exact_integer() const { return is_integer() && integer != INT64_MAX; }
};

inline Number number_of(std::int64_t integer) { return {integer, static_cast<double>(integer)}; }

// Integers, float32 or float64, that are looked up by (row, place in the sequence), or by only one of the two.
struct NumbersView {
  const char* data = nullptr;
  DType dtype = DType::int64;
  std::int64_t row_stride_bytes = 0;
  std::int64_t seq_stride_bytes = 0;

  bool is_given() const { return data != nullptr; }
  // int64, in which most positions and ids come, is read in place.
  Number at(std::int64_t row, std::int64_t l) const {
    return dtype == DType::int64 ? number_of(int64_at(row, l)) : converted_at(row, l);
  }
  std::int64_t integer_at(std::int64_t row, std::int64_t l) const {
    return dtype == DType::int64 ? int64_at(row, l) : converted_at(row, l).integer;
  }

 private:
  std::int64_t int64_at(std::int64_t row, std::int64_t l) const {
    std::int64_t value;
    std::memcpy(&value, data + row * row_stride_bytes + l * seq_stride_bytes, sizeof value);
    return value;
  }
  Number converted_at(std::int64_t row, std::int64_t l) const;
};

}  // namespace fastpe
