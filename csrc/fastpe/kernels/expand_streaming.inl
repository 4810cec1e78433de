// SPDX-License-Identifier: BSD-3-Clause
// Expansions that are streamed: past the caches, so that no line is read from memory before it is written.
//
// Method: whole cache lines are stored. NumPy's large arrays begin 16 bytes behind a line, so that rows without a gap
// share the lines at their ends. Such a seam is put together in the cache and streamed soon after both rows are made,
// next to their other lines. On an Intel server with one thread and with two, beside seams that are made in a pass of
// their own and streamed at the end, rows of 256 bytes take 0.78 to 0.80 of the time, of 512 bytes 0.81 to 0.84, of
// 1024 bytes 0.88 to 0.94, of 3072 bytes 0.97 to 0.98. Rows of float64 take the same time.
//
// The part of a line at the end of a pair of blocks is stored plainly, and the line is fetched before the pair is made:
// else all later stores wait for it. With one thread, tables of two arrays then take 0.87 to 0.92 of the time (Zen 4).
//
// On Zen 3, a line of each of four rows in turn is slow, most of all if rows are a multiple of 2 KiB apart. There, rows
// are made in the cache, a panel wide, and streamed one after the other (float32, AVX2, one thread and two): rows of 1
// KiB or more take 0.38 to 0.74 of the time of lines in turn, and 0.5 to 0.8 of that of plain stores that are fetched
// ahead. Of rows of 256 bytes, a pair of blocks is made at once: 0.8 and 0.6. A seam is streamed with the row next to
// it: rows of 512 to 1024 bytes take 0.82 to 0.93 of the time that they take with seams one distance later. Wide rows
// of float64 are not streamed there: plain stores take 0.60 to 0.86 of the time, and rows one after the other as long
// as lines in turn. Not better there: pieces of 256 bytes (up to 70 % slower) or 512; rows streamed while the next ones
// are made; a block of rows of 512 bytes made at once (up to 23 % slower).
//
// On Zen 4, narrow rows are not streamed, but stored plainly and fetched ahead. With AVX-512, rows of up to 256 bytes
// take 0.62 to 0.93 of the time so (64 MiB, one thread; two: 0.77 to 0.87), of 384 to 1024 bytes 0.92 to 1.13. With
// AVX2, rows of up to 1024 bytes take 0.61 to 0.93 (two threads: 0.67 to 0.88), of 1536 bytes 1.3.
//
// Narrow vectors are streamed only where rows are made in the cache. In wide rows, a vector of each row in turn takes 3
// times as long as plain stores (Zen 3).
//
// These were no better on the Intel server:
// - halves of a line apart from each other (AVX2, 4.7 GB/s, not 12.5); pieces of 16 bytes, so as not to peel (half the
//   speed); a row's ends by plain stores (a sixth slower than whole seams); rows that are aligned differently, one by
//   one (a third slower than fetching ahead).
// - seams put together in registers (AVX-512, rows of up to 256 bytes 9 to 12 % faster, others 1 to 4 %; AVX2, the same
//   time). Beside these, all lines of a row shifted in registers, so that tables are loaded from lines' boundaries
//   (AVX-512, rows of up to 1024 bytes 3 to 8 % faster; AVX2, rows of 256 bytes 9 % faster, of 3072 bytes 4 % slower,
//   float64 6 % slower). Both need code for each instruction set. On Zen 4, shifted rows of up to 1024 bytes took 1.15
//   of the time in the cache and 1.1 to 1.3 streamed (AVX-512).
// - seams on lines' boundaries, so that stores of rows' ends straddle two lines, and not loads of seams (from 3 %
//   faster to 9 % slower).
// - seams streamed two or four distances after they are made, not one (0 to 6 % slower).
// - seams expanded as rows are, from fine tables that hold their columns (AVX-512, rows of 256 to 1024 bytes 6 to 38 %
//   slower, AVX2 5 to 15 %; with tables that a thread keeps from one call to the next, AVX-512 0 to 18 % slower, AVX2
//   from 8 % faster to 3 % slower).
#pragma once

#include "expand_rows.inl"

namespace fastpe {
namespace {

// Seam k lies before row k. It is loaded from two whole lines: the last one of row k - 1 and the first one of row k.
template <class T>
struct Seams {
  using Element = typename T::Element;
  static constexpr std::int64_t line = line_columns<T>;
  static constexpr std::int64_t stride = 2 * line;
  static constexpr std::int64_t rows = blocks_at_once * block_rows;

  explicit Seams(std::int64_t first_columns) : head(first_columns) {}

  Element* seam(std::int64_t row) { return lines + row * stride + head; }
  Element* first_line(std::int64_t row) { return lines + row * stride + line; }
  Element* last_line(std::int64_t row) { return lines + (row + 1) * stride; }

  const std::int64_t head;  // how many columns of each row belong to the seam before it
  alignas(64) Element lines[(rows + 1) * stride];
};

constexpr std::int64_t row_number(int anchor, int side, std::int64_t row) {
  return block_radius + anchor * block_rows + (side == 0 ? -row : row);
}

// Whether each seam is streamed with the row next to it, when that is made: where rows are streamed one by one, and
// have one panel.
template <class T>
inline bool streams_seams_with_rows(const Expansion& e, const Part& part) {
  return may_stream_row_by_row<T> && e.streams_row_by_row && part.columns == e.columns;
}

// The rows at one distance from both anchors: their whole lines are streamed, and those at their ends put into seams.
template <class T, Mode mode, int row_set, class StreamSeam>
FASTPE_ALWAYS_INLINE void stream_rows_at(const Expansion& e, const Anchor* anchors, const Part& part, Seams<T>& seams,
                                         std::int64_t row, const StreamSeam& stream_seam) {
  constexpr std::int64_t line = line_columns<T>;
  const RowsAt<T, row_set> rows(e, anchors, part, 0, row);
  typename T::Element* first_lines[blocks_at_once][2];
  typename T::Element* last_lines[blocks_at_once][2];
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    for (int side = 0; side < 2; ++side) {
      first_lines[anchor][side] = seams.first_line(row_number(anchor, side, row));
      last_lines[anchor][side] = seams.last_line(row_number(anchor, side, row));
    }
  }
  std::int64_t column = 0;
  if (part.begin == 0) {
    put_lines<T, mode, From::anchor>(rows, 0, first_lines);
    column = seams.head;
  }
  if constexpr (may_stream_row_by_row<T>) {
    if (streams_seams_with_rows<T>(e, part)) {
      put_lines<T, mode, From::anchor>(rows, part.columns - line, last_lines);
      // The other row of each seam is one distance closer to the anchor.
      stream_row_by_row<T, mode, From::anchor>(
          rows, column, (part.columns - column) / line * line,
          [&](int anchor, int side) {
            if (side == 1 && row > 0) stream_seam(row_number(anchor, side, row));
          },
          [&](int anchor, int side) {
            if (side == 0) stream_seam(row_number(anchor, side, row) + 1);
          });
      return;
    }
  }
  column = stream_lines<T, mode, From::anchor, row_set>(rows, column, part.columns, e.streams_row_by_row);
  if (column < part.columns) put_lines<T, mode, From::anchor>(rows, part.columns - line, last_lines);
}

// Rows of a whole pair of blocks, without a gap between them.
template <class T, Mode mode>
void expand_with_seams(const Expansion& e, std::int64_t head) {
  using Element = typename T::Element;
  constexpr std::int64_t line = line_columns<T>;
  constexpr std::int64_t row_count = Seams<T>::rows;
  Seams<T> seams(head);
  const auto start_of_seam = [&e, head](std::int64_t row) {
    return advance(reinterpret_cast<Element*>(e.out), row * e.out_row_stride_bytes) + head - line;
  };
  const auto stream_seam = [&](std::int64_t row) {
    for (std::int64_t i = 0; i < line; i += float_lanes) {
      T::stream(start_of_seam(row) + i, T::load(seams.seam(row) + i));
    }
  };
  // Both rows of these seams are made once those at distance `row` are.
  const auto stream_seams_at = [&](std::int64_t row) {
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      stream_seam(row_number(anchor, 0, row) + 1);
      stream_seam(row_number(anchor, 1, row));
    }
  };
  // The last line is stored to in part, which would wait for it to come from memory.
  FASTPE_PREFETCH_FIRST_LEVEL(start_of_seam(row_count));
  std::int64_t columns = panel_columns + head;
  bool is_last = false;
  for (std::int64_t begin = 0; !is_last; begin += columns, columns = panel_columns) {
    // The last panel has a whole line, of which it puts the end into a seam. TurnedAnchors has room for so much.
    is_last = e.columns - begin < columns + line;
    Part part = Part::of<T>(e, begin, is_last ? e.columns - begin : columns);
    if (begin == 0 && head % float_lanes != 0) part.first_step = head % float_lanes;
    with_anchors<T>(e, part, [&](const Anchor* anchors) {
      const bool has_seams_left = is_last && !streams_seams_with_rows<T>(e, part);
      stream_rows_at<T, mode, anchors_alone>(e, anchors, part, seams, 0, stream_seam);
      for (std::int64_t row = 1; row <= block_radius; ++row) {
        stream_rows_at<T, mode, around_first | around_second>(e, anchors, part, seams, row, stream_seam);
        // A load right after the two stores that make a seam would wait for them: these seams are one distance older.
        if (has_seams_left && row > 1) stream_seams_at(row - 1);
      }
      if (has_seams_left) stream_seams_at(block_radius);
    });
  }
  stream_seam(block_rows);
  copy_elements(reinterpret_cast<Element*>(e.out), seams.first_line(0), head);
  copy_elements(start_of_seam(row_count), seams.seam(row_count), line - head);
}

// Narrow rows that are aligned differently, or streamed row by row, are made in the cache, and then streamed as one
// range of bytes.
constexpr std::int64_t most_narrow_bytes = 24 * 1024;
// Where streaming is best row by row, float64 rows of so many bytes are better not streamed.
constexpr std::int64_t fewest_wide_bytes = 1024;

template <class T>
void expand_narrow(const Expansion& e) {
  using Element = typename T::Element;
  constexpr auto element_size = static_cast<std::int64_t>(sizeof(Element));
  alignas(64) Element made[most_narrow_bytes / element_size];
  Expansion rows = e;
  rows.out = reinterpret_cast<char*>(made);
  expand_panels<T, Mode::write, Access::plain>(rows, 0, e.columns);
  const std::int64_t count = (e.last_row - e.first_row + 1) * e.columns;
  auto* const out = reinterpret_cast<Element*>(e.out);
  const std::int64_t aligned = elements_to_alignment<T, line_bytes<T>>(e.out);
  std::int64_t i = aligned < count ? aligned : count;
  copy_elements(out, made, i);
  for (; i + line_columns<T> <= count; i += line_columns<T>) {
    for (std::int64_t j = i; j < i + line_columns<T>; j += float_lanes) T::stream(out + j, T::load(made + j));
  }
  copy_elements(out + i, made + i, count - i);
}

inline bool has_whole_pair(const Expansion& e) {
  return e.first_row == -block_radius && e.last_row == block_radius + block_rows;
}

// Streams the rows if that pays, and returns whether it did. Large arrays are almost wholly whole pairs of blocks.
template <class T, Mode mode>
bool expand_streaming(const Expansion& e) {
  constexpr std::int64_t line = line_columns<T>;
  const std::int64_t rows = e.last_row - e.first_row + 1;
  const std::int64_t head = elements_to_alignment<T, line_bytes<T>>(e.out);
  const bool has_gaps = e.out_row_stride_bytes != e.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const bool same_alignment = e.out_row_stride_bytes % line_bytes<T> == 0;
  // A row alone is mostly its two ends.
  const bool is_narrow =
      mode == Mode::write && !has_gaps && rows > 1 && rows * e.out_row_stride_bytes <= most_narrow_bytes;
  const bool row_by_row = e.streams_row_by_row;
  if (row_by_row && T::dtype == DType::float64 && e.out_row_stride_bytes >= fewest_wide_bytes) return false;
  if constexpr (has_wide_vectors) {
    if (same_alignment && has_whole_pair(e) && !(row_by_row && is_narrow)) {
      if (head == 0) {
        expand_panels<T, mode, Access::streaming>(e, 0, e.columns);
        return true;
      }
      if (!has_gaps && e.columns >= 2 * line) {
        expand_with_seams<T, mode>(e, head);
        return true;
      }
      if (has_gaps && e.columns > head) {
        expand_panel<T, mode, Access::plain>(e, Part::of<T>(e, 0, head));
        expand_panels<T, mode, Access::streaming>(e, head, e.columns);
        return true;
      }
    }
  }
  if constexpr (mode == Mode::write) {
    if (is_narrow) {
      expand_narrow<T>(e);
      return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace fastpe
