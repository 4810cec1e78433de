// SPDX-License-Identifier: BSD-3-Clause
// What sources and operations exchange: rows of an encoding that are ready, or the place where rows are to be written.
#pragma once

#include <cstdint>

#include "arrays.h"

namespace fastpe {

// How a call uses memory.
struct Memory {
  bool streaming = false;       // stores bypass the cache
  bool fetches_ahead = false;   // x comes from memory: the processor's own prefetching is too late
  bool fetches_close = false;   // x is fetched into the first-level cache, which has room
  bool unaligned_sums = false;  // stores of sums begin where rows do
  bool sums_in_halves = false;  // vectors of float32 are added in halves
};

// Rows l .. l + count - 1 of an encoding, and these of its columns. Columns from the operation's jump_column on lie
// jump_bytes further.
struct Tile {
  const char* data;
  std::int64_t row_stride_bytes;
  DType dtype;
  std::int64_t l, count;
  Columns columns;
  std::int64_t jump_bytes = 0;

  const char* row(std::int64_t at) const { return data + (at - l) * row_stride_bytes; }
  Tile part(std::int64_t first, std::int64_t end) const {
    return {row(first), row_stride_bytes, dtype, first, end - first, columns, jump_bytes};
  }
};

// Where a source writes rows while it makes them: out = PE, or x * scale + alpha * PE.
struct Sink {
  DType dtype;
  Columns columns;
  char* out;
  std::int64_t out_row_stride_bytes;
  // Columns from jump_column on, counted from the first one written, go jump_bytes further. Not with x.
  std::int64_t jump_column = 0, jump_bytes = 0;
  const char* x = nullptr;  // null: the encoding alone
  std::int64_t x_row_stride_bytes = 0;
  double scale = 1.0, alpha = 1.0;
  Memory memory = {};
};

}  // namespace fastpe
