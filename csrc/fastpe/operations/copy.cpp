// SPDX-License-Identifier: BSD-3-Clause
#include "copy.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <utility>

#include "fastpe/cache_line.h"

namespace fastpe {
namespace {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FASTPE_HAS_SHUFFLES 1
#endif
#endif

// As many elements of as many rows as 16 bytes hold. Each step interleaves the rows of both halves.
template <class Element>
struct Square {
  static constexpr int size = 16 / sizeof(Element);

#if defined(FASTPE_HAS_SHUFFLES)
  typedef Element Row __attribute__((vector_size(16)));

  // Elements of a and b by turns, from this one of each on.
  template <int first, int... i>
  static Row interleaved(Row a, Row b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * size)...);
  }
  static void copy_transposed(char* to, std::int64_t stride_bytes, const char* const* rows, std::int64_t at_byte) {
    constexpr std::make_integer_sequence<int, size> all;
    Row from[size], made[size];
    for (int i = 0; i < size; ++i) std::memcpy(&from[i], rows[i] + at_byte, sizeof(Row));
    for (int step = 1; step < size; step *= 2) {
      for (int i = 0; i < size / 2; ++i) {
        made[2 * i] = interleaved<0>(from[i], from[i + size / 2], all);
        made[2 * i + 1] = interleaved<size / 2>(from[i], from[i + size / 2], all);
      }
      std::memcpy(from, made, sizeof from);
    }
    for (int i = 0; i < size; ++i) std::memcpy(to + i * stride_bytes, &from[i], sizeof(Row));
  }
#else
  static void copy_transposed(char* to, std::int64_t stride_bytes, const char* const* rows, std::int64_t at_byte) {
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(Element));
    for (int i = 0; i < size; ++i) {
      for (int c = 0; c < size; ++c) {
        std::memcpy(to + c * stride_bytes + i * bytes, rows[i] + at_byte + c * bytes, sizeof(Element));
      }
    }
  }
#endif
};

template <class Element>
void zero_elements(const Block<char>& block, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    char* const at = block.row(row);
    for (std::int64_t column = 0; column < columns; ++column) {
      std::memset(at + column * block.column_stride_bytes, 0, sizeof(Element));
    }
  }
}

template <class Element>
void copy_elements(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::memcpy(to.row(row) + column * to.column_stride_bytes, from.row(row) + column * from.column_stride_bytes,
                  sizeof(Element));
    }
  }
}

// The columns of `from` have no gaps, the rows of `to` have none. A cache line of columns, and as many rows, are done
// at a time.
template <class Element>
void copy_transposed(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t bytes = sizeof(Element), most = cache_line_bytes / bytes, square = Square<Element>::size;
  // Lines that lie a power of two apart take each other's place in L1 before they are full: these are made in a buffer.
  constexpr std::int64_t conflicting_bytes = 1024;
  alignas(cache_line_bytes) char buffer[most * cache_line_bytes];
  const bool is_buffered = to.column_stride_bytes % conflicting_bytes == 0;
  const std::int64_t stride_bytes = is_buffered ? cache_line_bytes : to.column_stride_bytes;
  for (std::int64_t column = 0; column < columns; column += most) {
    for (std::int64_t row = 0; row < rows; row += most) {
      const Block<char> lines = to.from(row, column);
      const std::int64_t row_count = std::min(most, rows - row), column_count = std::min(most, columns - column);
      if (row_count < most || column_count < most) {
        copy_elements<Element>(lines, from.from(row, column), row_count, column_count);
        continue;
      }
      char* const made = is_buffered ? buffer : lines.data;
      for (std::int64_t i = 0; i < most; i += square) {
        const char* lines_from[square];
        for (std::int64_t k = 0; k < square; ++k) {
          lines_from[k] = from.row(row + i + k) + column * bytes;
          FASTPE_PREFETCH_TO_READ(lines_from[k] + cache_line_bytes);  // the next columns, whose lines lie as far apart
        }
        for (std::int64_t c = 0; c < most; c += square) {
          Square<Element>::copy_transposed(made + c * stride_bytes + i * bytes, stride_bytes, lines_from, c * bytes);
        }
      }
      for (std::int64_t c = 0; is_buffered && c < most; ++c) {
        std::memcpy(lines.data + c * to.column_stride_bytes, buffer + c * cache_line_bytes, cache_line_bytes);
      }
    }
  }
}

template <class Element>
void copy_apart(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t bytes = sizeof(Element);
  if (from.has_contiguous_columns(bytes) && to.has_contiguous_rows(bytes)) {
    copy_transposed<Element>(to, from, rows, columns);
  } else if (from.has_contiguous_rows(bytes) && to.has_contiguous_columns(bytes)) {
    copy_transposed<Element>(to.transposed(), from.transposed(), columns, rows);
  } else {
    copy_elements<Element>(to, from, rows, columns);
  }
}

}  // namespace

void zero_block(const Block<char>& block, std::int64_t rows, std::int64_t columns, std::int64_t element_bytes) {
  if (block.has_contiguous_columns(element_bytes)) {
    const std::int64_t at_once = block.row_stride_bytes == columns * element_bytes ? rows : 1;
    for (std::int64_t row = 0; row < rows; row += at_once) {
      std::memset(block.row(row), 0, static_cast<std::size_t>(at_once * columns * element_bytes));
    }
    return;
  }
  if (block.has_contiguous_rows(element_bytes)) return zero_block(block.transposed(), columns, rows, element_bytes);
  switch (element_bytes) {
    case 2: return zero_elements<std::uint16_t>(block, rows, columns);
    case 4: return zero_elements<std::uint32_t>(block, rows, columns);
    case 8: return zero_elements<std::uint64_t>(block, rows, columns);
    default: assert(false);
  }
}

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
