// SPDX-License-Identifier: BSD-3-Clause
// Expansions that are streamed: past the caches, so that no line is read from memory before it is written.
//
// Method: whole cache lines are stored. NumPy's large arrays begin 16 bytes behind a line, so that rows without a gap
// share the lines at their ends. Such a seam is put together in registers when both of its rows are made, and streamed
// before their other lines. The columns that a row has in seams are as many as a line has, and are made as one line.
// On Zen 4 with AVX-512 and one thread, beside two lines more for the ends of each row and seams that are put together
// in the cache, tables of two arrays of rows of 512 bytes take 0.85 to 0.96 of the time, encodings in such rows 0.92 to
// 0.94, in rows of 1024 bytes 0.93 to 0.99, wider ones 0.96 to 1, of float64 0.97 to 1.07. With two threads, which wait
// for memory, or with AVX2, they take 0.94 to 1.02.
//
// On an Intel server, seams that are streamed next to their rows' other lines take less time than those that are made
// in a pass of their own and streamed at the end: rows of 256 bytes 0.78 to 0.80, of 512 bytes 0.81 to 0.84, of 1024
// bytes 0.88 to 0.94, of 3072 bytes 0.97 to 0.98.
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
// - all lines of a row shifted in registers, so that tables are loaded from lines' boundaries (AVX-512, rows of up to
//   1024 bytes 3 to 8 % faster; AVX2, rows of 256 bytes 9 % faster, of 3072 bytes 4 % slower, float64 6 % slower). On
//   Zen 4, such rows of up to 1024 bytes took 1.15 of the time in the cache and 1.1 to 1.3 streamed (AVX-512).
// - of seams that two stores put together in the cache: on lines' boundaries, so that these stores straddle two lines,
//   and not the load (from 3 % faster to 9 % slower); streamed two or four distances after they are made, not one (0 to
//   6 % slower).
// - seams expanded as rows are, from fine tables that hold their columns (AVX-512, rows of 256 to 1024 bytes 6 to 38 %
//   slower, AVX2 5 to 15 %; with tables that a thread keeps from one call to the next, AVX-512 0 to 18 % slower, AVX2
//   from 8 % faster to 3 % slower).
// This was no better on Zen 4: all rows' ends made in a pass of their own before the rows (AVX-512, 5 to 16 % slower,
// since nothing drains meanwhile).
#pragma once

#include "expand_rows.inl"

namespace fastpe {
namespace {

// The seams of a whole pair of blocks, whose rows' first whole lines begin at column `head`. Seam k lies before row k.
//
// Those of a row's columns that are in seams are its ends. They are as many as a line has, and are made as one line, in
// the order in which seams have them: first the row's last columns, then its first ones. A seam is put together of the
// ends of two rows.
template <class T>
class Seams {
 public:
  using Element = typename T::Element;
  using Vector = typename T::Vector;
  static constexpr std::int64_t line = line_columns<T>;
  static constexpr std::int64_t rows = blocks_at_once * block_rows;

  Seams(const Expansion& e, std::int64_t head) : e_(e), tail_(line - head) {
    for (std::int64_t i = 0; i < line; ++i) {
      choice_[i] = i < tail_ ? 1.0 : -1.0;
      element_choice_[i] = static_cast<Element>(choice_[i]);
    }
    for (int i = 0; i < blocks_at_once; ++i) {
      double *const values = ends_of_anchors_[i][0], *const slopes = ends_of_anchors_[i][1];
      const Doubles direction = Doubles::broadcast(e.anchors[i].turn.backwards ? -1.0 : 1.0);
      for (std::int64_t c = 0; c < line; c += double_lanes) {
        const auto ends_of = [this, c](const double* row) { return ends_at(row + c - tail_, c); };
        Doubles value = ends_of(e.anchors[i].values), slope = ends_of(e.anchors[i].slopes);
        if (e.anchors[i].turn.cosines != nullptr) {
          turn_phasors(value, slope, ends_of(e.anchors[i].turn.cosines), direction * ends_of(e.anchors[i].turn.sines));
        }
        value.store(values + c);
        slope.store(slopes + c);
      }
      // As they lie in a row.
      anchors_[i] = {values + tail_, slopes + tail_, {}};
    }
  }

  // Makes the ends of the rows at one distance from the anchors, and the seams between them and the rows that are one
  // row closer.
  FASTPE_NEVER_INLINE void make(std::int64_t row) {
    constexpr int all = around_first | around_second;
    const RowsAt<T, all> rows_at(e_, anchors_, Part::of<T>(e_, 0, e_.columns), 0, row);
    for (std::int64_t i = 0; i < line; i += float_lanes) {
      for_each_row<T, Mode::write, From::anchor, all, false>(
          rows_at, i - tail_, float_lanes,
          [&](int anchor, int side, const Vector& made) {
            const Vector closer = T::load(ends_[anchor][side] + i);
            if (row > 0) {
              T::store(seams_[anchor][side] + i, side == 0 ? seam(made, closer, i) : seam(closer, made, i));
            } else {
              // Row 0 is that of side 1.
              T::store(ends_[anchor][0] + i, made);
            }
            T::store(ends_[anchor][side] + i, made);
          },
          [&](const double* p) { return DoublePair{ends_at(p, i), ends_at(p + double_lanes, i + double_lanes)}; });
    }
  }

  // Streams a seam that was made last, at row > 0.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE void stream(int anchor, int side, std::int64_t row) const {
    const std::int64_t behind_anchor = side == 0 ? 1 - row : row;
    stream<mode>(block_radius + anchor * block_rows + behind_anchor, seams_[anchor][side]);
  }

  // Streams the seam between the blocks, and stores what is in the first and last row's other seams.
  template <Mode mode>
  void finish() {
    for (std::int64_t i = 0; i < line; i += float_lanes) {
      T::store(seams_[0][0] + i, seam(T::load(ends_[0][1] + i), T::load(ends_[1][0] + i), i));
    }
    stream<mode>(block_rows, seams_[0][0]);
    add_x<mode>(0, ends_[0][0]);
    add_x<mode>(rows, ends_[1][1]);
    copy_elements(place_of(0) + tail_, ends_[0][0] + tail_, line - tail_);
    copy_elements(place_of(rows), ends_[1][1], tail_);
  }

  Element* place_of(std::int64_t number) const {
    return advance(reinterpret_cast<Element*>(e_.out), number * e_.out_row_stride_bytes) - tail_;
  }

 private:
  // Left to V, since narrow vectors have no `blended`.
  template <class V>
  static FASTPE_ALWAYS_INLINE V blended_at(V last_columns, V first_columns, V choice) {
    return blended(last_columns, first_columns, choice);
  }
  // A vector of a row's ends, from the i-th one on. If that is one of the row's first columns, it is at p; if it is one
  // of the last, a row behind p.
  FASTPE_ALWAYS_INLINE Doubles ends_at(const double* p, std::int64_t i) const {
    return blended_at(Doubles::load(p + e_.columns), Doubles::load(p), Doubles::load(choice_ + i));
  }
  FASTPE_ALWAYS_INLINE Vector seam(Vector ends, Vector next_ends, std::int64_t i) const {
    return blended_at(ends, next_ends, T::load(element_choice_ + i));
  }

  template <Mode mode>
  FASTPE_ALWAYS_INLINE void stream(std::int64_t number, const Element* made) const {
    Element joined[line];
    Element* const out = place_of(number);
    const Element* const x = x_of<mode>(number, joined);
    for (std::int64_t i = 0; i < line; i += float_lanes) T::stream(out + i, with_x<mode>(T::load(made + i), x, i));
  }
  template <Mode mode>
  void add_x(std::int64_t number, Element* ends) const {
    Element joined[line];
    const Element* const x = x_of<mode>(number, joined);
    for (std::int64_t i = 0; i < line; i += float_lanes) T::store(ends + i, with_x<mode>(T::load(ends + i), x, i));
  }
  template <Mode mode>
  FASTPE_ALWAYS_INLINE Vector with_x(Vector encoding, const Element* x, std::int64_t i) const {
    if constexpr (mode == Mode::write) return encoding;
    return sum<T, mode>(T::load(x + i), encoding, T::broadcast(e_.scale), T::broadcast(e_.alpha));
  }
  // The columns of x for a seam.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE const Element* x_of(std::int64_t number, Element (&joined)[line]) const {
    if constexpr (mode == Mode::write) return nullptr;
    const std::int64_t stride_bytes = e_.x_row_stride_bytes;
    const Element* const next_row = advance(reinterpret_cast<const Element*>(e_.x), number * stride_bytes);
    if (stride_bytes == e_.out_row_stride_bytes && number > 0 && number < rows) return next_row - tail_;
    join_x(number, next_row, joined);
    return joined;
  }
  // Puts them together where x has gaps or ends.
  FASTPE_NEVER_INLINE void join_x(std::int64_t number, const Element* next_row, Element* joined) const {
    if (number > 0) copy_elements(joined, advance(next_row, -e_.x_row_stride_bytes) + e_.columns - tail_, tail_);
    if (number < rows) copy_elements(joined + tail_, next_row, line - tail_);
  }

  const Expansion& e_;
  const std::int64_t tail_;  // how many columns of each row are in the seam behind it
  Anchor anchors_[blocks_at_once] = {};
  alignas(64) double choice_[line];  // of the ends' columns: negative for the row's first ones
  alignas(64) Element element_choice_[line];
  alignas(64) double ends_of_anchors_[blocks_at_once][2][line];
  alignas(64) Element ends_[blocks_at_once][2][line];  // of the rows that were made last, before and after each anchor
  alignas(64) Element seams_[blocks_at_once][2][line];
};

// The rows at one distance from both anchors: their whole lines are streamed and, if `seams` is given, their seams with
// the rows that are one row closer.
template <class T, Mode mode, int row_set>
FASTPE_ALWAYS_INLINE void stream_rows_at(const Expansion& e, const Anchor* anchors, const Part& part, Seams<T>* seams,
                                         std::int64_t row) {
  const RowsAt<T, row_set> rows(e, anchors, part, 0, row);
  const auto stream_seam = [seams, row](int anchor, int side) {
    if (seams != nullptr && row > 0) seams->template stream<mode>(anchor, side, row);
  };
  if (seams != nullptr) seams->make(row);
  if constexpr (may_stream_row_by_row<T>) {
    if (e.streams_row_by_row) {
      stream_row_by_row<T, mode, From::anchor>(
          rows, 0, part.columns,
          [&](int anchor, int side) {
            if (side == 1) stream_seam(anchor, side);
          },
          [&](int anchor, int side) {
            if (side == 0) stream_seam(anchor, side);
          });
      return;
    }
  }
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    for (int side = 0; side < 2; ++side) stream_seam(anchor, side);
  }
  stream_lines<T, mode, From::anchor, row_set>(rows, 0, part.columns, false);
}

// Rows of a whole pair of blocks, without a gap between them.
template <class T, Mode mode>
void expand_with_seams(const Expansion& e, std::int64_t head) {
  Seams<T> seams(e, head);
  // The last line is stored to in part, which would wait for it to come from memory.
  FASTPE_PREFETCH_FIRST_LEVEL(seams.place_of(Seams<T>::rows));
  const std::int64_t end = head + e.columns - line_columns<T>;
  for (std::int64_t begin = head; begin < end; begin += panel_columns) {
    const Part part = Part::of<T>(e, begin, end - begin < panel_columns ? end - begin : panel_columns);
    Seams<T>* const seams_of_part = begin == head ? &seams : nullptr;
    with_anchors<T>(e, part, [&](const Anchor* anchors) {
      stream_rows_at<T, mode, anchors_alone>(e, anchors, part, seams_of_part, 0);
      for (std::int64_t row = 1; row <= block_radius; ++row) {
        stream_rows_at<T, mode, around_first | around_second>(e, anchors, part, seams_of_part, row);
      }
    });
  }
  seams.template finish<mode>();
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
