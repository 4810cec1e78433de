// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows whose elements may lie apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fastpe {

inline void copy_row(char* to, std::int64_t to_stride_bytes, const char* from, std::int64_t from_stride_bytes,
                     std::int64_t columns, std::int64_t element_bytes) {
  if (to_stride_bytes == element_bytes && from_stride_bytes == element_bytes) {
    std::memmove(to, from, static_cast<std::size_t>(columns * element_bytes));
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    std::memcpy(to + i * to_stride_bytes, from + i * from_stride_bytes, static_cast<std::size_t>(element_bytes));
  }
}

// Rows of elements that lie far apart are done in parts of this span: a part's cache lines serve the next rows too, and
// a call can be interrupted between two parts.
inline std::int64_t columns_at_once(std::int64_t columns, std::int64_t stride_bytes, std::int64_t element_bytes) {
  constexpr std::int64_t span_bytes = 8 * 1024 * 1024;
  constexpr std::int64_t least_columns = 2048;
  const std::int64_t stride = std::abs(stride_bytes);
  if (stride == element_bytes || columns <= least_columns) return columns;
  return std::min(columns, std::max(span_bytes / std::max<std::int64_t>(stride, 1), least_columns));
}

}  // namespace fastpe
