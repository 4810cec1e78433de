// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows whose elements may lie apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fastpe {

template <class Element>
void copy_elements_apart(char* to, std::int64_t to_stride_bytes, const char* from, std::int64_t from_stride_bytes,
                         std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i) {
    std::memcpy(to + i * to_stride_bytes, from + i * from_stride_bytes, sizeof(Element));
  }
}

inline void copy_row(char* to, std::int64_t to_stride_bytes, const char* from, std::int64_t from_stride_bytes,
                     std::int64_t columns, std::int64_t element_bytes) {
  if (to_stride_bytes == element_bytes && from_stride_bytes == element_bytes) {
    std::memmove(to, from, static_cast<std::size_t>(columns * element_bytes));
    return;
  }
  switch (element_bytes) {
    case 2: return copy_elements_apart<std::uint16_t>(to, to_stride_bytes, from, from_stride_bytes, columns);
    case 4: return copy_elements_apart<std::uint32_t>(to, to_stride_bytes, from, from_stride_bytes, columns);
    default: return copy_elements_apart<std::uint64_t>(to, to_stride_bytes, from, from_stride_bytes, columns);
  }
}

template <class Element>
void alternate_elements(char* out, const char* first, const char* second, std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i) {
    Element pair[2];
    std::memcpy(&pair[0], first + i * static_cast<std::int64_t>(sizeof(Element)), sizeof(Element));
    std::memcpy(&pair[1], second + i * static_cast<std::int64_t>(sizeof(Element)), sizeof(Element));
    std::memcpy(out + 2 * i * static_cast<std::int64_t>(sizeof(Element)), pair, sizeof pair);
  }
}

// out = first[0], second[0], first[1], second[1] ..
inline void copy_alternately(char* out, std::int64_t out_stride_bytes, const char* first, const char* second,
                             std::int64_t columns, std::int64_t element_bytes) {
  if (out_stride_bytes != element_bytes) {
    copy_row(out, 2 * out_stride_bytes, first, element_bytes, columns, element_bytes);
    copy_row(out + out_stride_bytes, 2 * out_stride_bytes, second, element_bytes, columns, element_bytes);
    return;
  }
  switch (element_bytes) {
    case 2: return alternate_elements<std::uint16_t>(out, first, second, columns);
    case 4: return alternate_elements<std::uint32_t>(out, first, second, columns);
    default: return alternate_elements<std::uint64_t>(out, first, second, columns);
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
