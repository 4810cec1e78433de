// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows whose elements may lie apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fastpe {

template <std::size_t bytes>
void copy_elements_apart(char* to, std::int64_t to_stride_bytes, const char* from, std::int64_t from_stride_bytes,
                         std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i) {
    std::memcpy(to + i * to_stride_bytes, from + i * from_stride_bytes, bytes);
  }
}

inline void copy_row(char* to, std::int64_t to_stride_bytes, const char* from, std::int64_t from_stride_bytes,
                     std::int64_t columns, std::int64_t element_bytes) {
  if (to_stride_bytes == element_bytes && from_stride_bytes == element_bytes) {
    std::memmove(to, from, static_cast<std::size_t>(columns * element_bytes));
    return;
  }
  switch (element_bytes) {
    case 2: return copy_elements_apart<2>(to, to_stride_bytes, from, from_stride_bytes, columns);
    case 4: return copy_elements_apart<4>(to, to_stride_bytes, from, from_stride_bytes, columns);
    default: return copy_elements_apart<8>(to, to_stride_bytes, from, from_stride_bytes, columns);
  }
}

}  // namespace fastpe
