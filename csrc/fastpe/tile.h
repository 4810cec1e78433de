// SPDX-License-Identifier: BSD-3-Clause
// What sources and operations exchange: rows of an encoding that are there, or the place where rows are to be written.
#pragma once

#include <cassert>
#include <cstdint>

#include "arrays.h"

namespace fastpe {

// How a call uses memory. The plan decides it.
struct Access {
  bool non_temporal = false;      // store past the caches
  bool prefetch = false;          // arrays are in memory: the processor's own prefetches are too late
  std::int64_t segment_rows = 1;  // of a tile: they are combined with one item after the other
};

// Rows l .. l + count - 1 of an encoding, and some of its columns, the first of which stands at `data`.
struct Tile {
  const char* data;
  std::int64_t row_stride_bytes;
  DType dtype;
  std::int64_t l, count;
  Columns columns;
  const std::int64_t* row_offsets_bytes = nullptr;  // of each row from `data` on; null: rows have a stride

  const char* row(std::int64_t at) const {
    assert(l <= at && at < l + count);
    return row_offsets_bytes == nullptr ? data + (at - l) * row_stride_bytes : data + row_offsets_bytes[at - l];
  }
  Tile rows_between(std::int64_t first, std::int64_t end) const {
    assert(l <= first && first < end && end <= l + count);
    if (row_offsets_bytes == nullptr) return {row(first), row_stride_bytes, dtype, first, end - first, columns};
    return {data, 0, dtype, first, end - first, columns, row_offsets_bytes + (first - l)};
  }
};

// Where a source writes these columns of its rows as it makes them: out = PE. With x, its kernel also does the sum of
// `Add`: out = x * scale + alpha * PE.
struct Target {
  DType dtype;
  Columns columns;
  char* out;
  std::int64_t out_row_stride_bytes;
  const char* x = nullptr;  // null: only the encoding
  std::int64_t x_row_stride_bytes = 0;
  double scale = 1.0, alpha = 1.0;
  Access access = {};

  // The same rows in reverse order, of which this one's first is the last of `count`.
  Target reversed(std::int64_t count) const {
    Target t = *this;
    t.out += (count - 1) * out_row_stride_bytes;
    t.out_row_stride_bytes = -out_row_stride_bytes;
    if (x != nullptr) t.x += (count - 1) * x_row_stride_bytes;
    t.x_row_stride_bytes = -x_row_stride_bytes;
    return t;
  }
};

}  // namespace fastpe
