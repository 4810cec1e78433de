// SPDX-License-Identifier: BSD-3-Clause
// duplicate: each row twice, one copy behind the other. It moves bytes, and never changes a bit of them.
//
// It reads and writes exactly the rows' bytes, with any alignment; out is apart from the rows.
//
// Streaming: rows without gaps are one range of bytes, so every line but the first and the last is streamed whole. Most
// lines, and those from the end of a second copy to the next row, are read from the rows as they are. A line from the
// end of a first copy to its second one is a seam, which is put together in the cache. Seams are made many rows ahead:
// a load right after the two stores that make a seam would wait for them.
// Made in the cache row by row and streamed from there, rows took 1.2 to 1.5 times as long (Zen 3, AVX2).
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

inline void stream_duplicates(const Duplication& d, std::int64_t bytes_to_line) {
  constexpr std::int64_t line = byte_line;
  constexpr std::int64_t seams_at_once = 64;
  alignas(64) char seams[seams_at_once][2 * line];
  const std::int64_t row_bytes = d.row_bytes, bytes_written = 2 * d.rows * row_bytes;
  const char* const rows = d.from;
  char* const out = d.out;
  copy_elements(out, rows, bytes_to_line);
  std::int64_t row = 0, rows_with_seam = 0;
  std::int64_t at = bytes_to_line;  // in this copy of the row
  bool is_second = false;
  std::int64_t written = bytes_to_line;
  for (; written + line <= bytes_written; written += line) {
    if (row == rows_with_seam) {
      rows_with_seam = row + seams_at_once < d.rows ? row + seams_at_once : d.rows;
      for (std::int64_t i = row; i < rows_with_seam; ++i) {
        copy_elements(seams[i - row], rows + (i + 1) * row_bytes - line, line);
        copy_elements(seams[i - row] + line, rows + i * row_bytes, line);
      }
    }
    const std::int64_t left = row_bytes - at;
    const bool is_seam = left < line && !is_second;
    stream_byte_line(out + written, is_seam ? seams[row % seams_at_once] + line - left : rows + row * row_bytes + at);
    at += line;
    if (left <= line) {
      at -= row_bytes;
      row += is_second ? 1 : 0;
      is_second = !is_second;
    }
  }
  copy_elements(out + written, rows + d.rows * row_bytes - (bytes_written - written), bytes_written - written);
}

void duplicate(const Duplication& d) {
  constexpr std::int64_t line = byte_line;
  const std::int64_t beyond_line = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(d.out) % line);
  if (has_wide_vectors && d.streaming && d.row_bytes >= line) {
    return stream_duplicates(d, beyond_line == 0 ? 0 : line - beyond_line);
  }
  for (std::int64_t row = 0; row < d.rows; ++row) {
    const char* const from = d.from + row * d.row_bytes;
    copy_elements(d.out + 2 * row * d.row_bytes, from, d.row_bytes);
    copy_elements(d.out + (2 * row + 1) * d.row_bytes, from, d.row_bytes);
  }
}

}  // namespace
}  // namespace fastpe
