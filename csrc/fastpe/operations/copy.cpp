// SPDX-License-Identifier: BSD-3-Clause
#include "copy.h"

#include <cassert>
#include <cstddef>
#include <cstring>

#include "fastpe/cache_line.h"

namespace fastpe {
namespace {

// The columns of `from` have no gaps, the rows of `to` have none. A block of one cache line each way lies in a buffer
// in between, so that each line of both is read or written once, however far apart they are.
template <class Element>
void copy_transposed(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t most = cache_line_bytes / static_cast<std::int64_t>(sizeof(Element));
  constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
  alignas(cache_line_bytes) Element buffer[most][most];
  for (std::int64_t column = 0; column < columns; column += most) {
    for (std::int64_t row = 0; row < rows; row += most) {
      if (rows - row >= most && columns - column >= most) {
        for (std::int64_t i = 0; i < most; ++i) {
          const char* const line = from.row(row + i) + column * size;
          FASTPE_PREFETCH_TO_READ(line + cache_line_bytes);  // the next columns, whose lines lie as far apart
          std::memcpy(buffer[i], line, cache_line_bytes);
        }
        for (std::int64_t c = 0; c < most; ++c) {
          Element line[most];
          for (std::int64_t i = 0; i < most; ++i) line[i] = buffer[i][c];
          std::memcpy(to.data + row * size + (column + c) * to.column_stride_bytes, line, cache_line_bytes);
        }
        continue;
      }
      for (std::int64_t i = row; i < rows && i < row + most; ++i) {
        for (std::int64_t c = column; c < columns && c < column + most; ++c) {
          std::memcpy(to.data + i * size + c * to.column_stride_bytes, from.row(i) + c * size, size);
        }
      }
    }
  }
}

template <class Element>
void copy_apart(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
  if (from.has_contiguous_columns(size) && to.has_contiguous_rows(size)) {
    return copy_transposed<Element>(to, from, rows, columns);
  }
  if (from.has_contiguous_rows(size) && to.has_contiguous_columns(size)) {
    return copy_transposed<Element>(to.transposed(), from.transposed(), columns, rows);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::memcpy(to.row(row) + column * to.column_stride_bytes, from.row(row) + column * from.column_stride_bytes,
                  size);
    }
  }
}

}  // namespace

void copy_block(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns,
                std::int64_t element_bytes) {
  if (to.has_contiguous_columns(element_bytes) && from.has_contiguous_columns(element_bytes)) {
    const std::int64_t row_bytes = columns * element_bytes;
    const bool has_gaps =
        to.row_stride_bytes != row_bytes || from.row_stride_bytes != row_bytes || from.row_offsets_bytes != nullptr;
    const std::int64_t at_once = has_gaps ? 1 : rows;
    for (std::int64_t row = 0; row < rows; row += at_once) {
      std::memmove(to.row(row), from.row(row), static_cast<std::size_t>(at_once * row_bytes));
    }
    return;
  }
  if (to.has_contiguous_rows(element_bytes) && from.has_contiguous_rows(element_bytes)) {
    return copy_block(to.transposed(), from.transposed(), columns, rows, element_bytes);
  }
  switch (element_bytes) {
    case 2: return copy_apart<std::uint16_t>(to, from, rows, columns);
    case 4: return copy_apart<std::uint32_t>(to, from, rows, columns);
    case 8: return copy_apart<std::uint64_t>(to, from, rows, columns);
    default: assert(false);
  }
}

}  // namespace fastpe
