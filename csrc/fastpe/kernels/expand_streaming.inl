// SPDX-License-Identifier: BSD-3-Clause
// Expansions that are streamed: past the caches, so that no line is read from memory before it is written.
//
// Method: whole cache lines are stored. NumPy's large arrays begin 16 bytes behind a line, so that rows without a gap
// share the lines at their ends. Such a seam is put together in registers when both of its rows are made, and streamed
// before their other lines. The columns that a row has in seams are as many as a line has, and are made as one line:
// the fine tables' first columns follow their last ones, so that one load has the turns of both.
//
// With AVX-512 and one thread, Zen 4 waits for the arithmetic of streamed rows, not for memory, so whatever seams take
// counts. Rows of 256 bytes take 1.02 to 1.08 of the time of rows that share no lines, of 512 bytes 1.01 to 1.05, and
// wider ones 1.01 to 1.03. Two loads and a blend for each vector of the ends' turns, and addresses that each distance
// from the anchors computes anew, take 1.2 to 1.3, 1.07 to 1.1 and 1.02 to 1.05 instead. It does not matter whether
// ends go from one distance to the next in registers or through the cache.
//
// On an Intel server, seams that are streamed next to their rows' other lines take less time than those that are made
// in a pass of their own and streamed at the end: rows of 256 bytes 0.78 to 0.80, of 512 bytes 0.81 to 0.84, of 1024
// bytes 0.88 to 0.94, of 3072 bytes 0.97 to 0.98.
//
// A pair of blocks leaves the ends of its last row to the next pair, which streams that seam, too. At the end of all
// rows, the part of a line is stored plainly, and the line is fetched before the pair is made: else all later stores
// wait for it. If each pair stored its parts of lines so, tables of two arrays would take up to 4 % longer with
// AVX-512, and up to 5 % with AVX2 (Zen 4, one thread).
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
// These were no better on Zen 4 (one thread):
// - all rows' ends made in a pass of their own before the rows (AVX-512, 5 to 16 % slower, since nothing drains
//   meanwhile).
// - panels of 64 or 128 columns, whose fine tables stay in the first-level cache (4 to 19 % and 0 to 9 % slower).
// - the rows of one anchor, then those of the other (AVX2, rows that are a multiple of 4 KiB apart 5 to 9 % faster and
//   others 0 to 4 % slower; AVX-512, from 3 % faster to 5 % slower).
#pragma once

#include "expand_rows.inl"

namespace fastpe {
namespace {

// The seams of a whole pair of blocks, whose rows' first whole lines begin at column `lead_columns`. Seam k lies before
// row k.
//
// Those of a row's columns that are in seams are its ends. They are as many as a line has, and are made as one line, in
// the order in which seams have them: first the row's last columns, then its first ones. A seam is put together of the
// ends of two rows.
template <class T>
class Seams {
 public:
  using Element = typename T::Element;
  using Vector = typename T::Vector;
  using Rows = RowsAt<T, around_first | around_second>;
  static constexpr std::int64_t line = line_columns<T>;
  static constexpr int vectors = static_cast<int>(line / float_lanes);
  static_assert(line_bytes<T> <= most_line_bytes);
  static constexpr std::int64_t row_count = blocks_at_once * block_rows;

  FASTPE_NEVER_INLINE Seams(const Expansion& e, std::int64_t lead_columns)
      : e_(e), tail_(line - lead_columns), ends_(Part::of<T>(e, e.columns - tail_, line)) {
    for (int i = 0; i < blocks_at_once; ++i) {
      const Anchor& row = e.anchors[i];
      double *const values = ends_of_anchors_[i][0], *const slopes = ends_of_anchors_[i][1];
      for (std::int64_t c = 0; c < line; c += double_lanes) {
        ends_of(row.values, c).store(values + c);
        ends_of(row.slopes, c).store(slopes + c);
      }
      anchors_[i] = {values, slopes, {}};
      if (row.turn.cosines != nullptr) {
        Anchor ends{values, slopes, row.turn};
        ends.turn.cosines += ends_.begin;
        ends.turn.sines += ends_.begin;
        turn(ends, 0, line, values, slopes);
      }
    }
  }

  // A line of each row at one distance from the anchors, before and after each anchor.
  struct Lines {
    Vector at[blocks_at_once][2][vectors];
  };

  // Makes the ends of the rows at one distance from the anchors, and returns the seams between them and the rows that
  // are one row closer, whose ends are given. Between two distances, ends stay in registers if there are enough.
  FASTPE_ALWAYS_INLINE Lines make(const Rows& rows, Lines& ends) const {
    Lines seams;
    each_end(rows, [&](int anchor, int side, int v, const Vector& made) {
      const Vector closer = ends.at[anchor][side][v];
      seams.at[anchor][side][v] = side == 0 ? seam(made, closer, v) : seam(closer, made, v);
      ends.at[anchor][side][v] = made;
    });
    return seams;
  }
  // The columns of the ends, in the rows next to the anchors.
  Rows first_rows() const { return Rows(e_, anchors_, ends_, 0, 1); }
  // The ends of the anchors' own rows.
  FASTPE_ALWAYS_INLINE Lines first_ends() const {
    Lines ends;
    each_end(RowsAt<T, anchors_alone>(e_, anchors_, ends_, 0, 0), [&ends](int anchor, int, int v, const Vector& made) {
      ends.at[anchor][0][v] = ends.at[anchor][1][v] = made;
    });
    return ends;
  }

  // Streams the seam of a row with the one that is a row closer to the anchor. The row's whole lines begin where `rows`
  // says.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE void stream(int anchor, int side, const Rows& rows, const Lines& seams) const {
    Element* const out = advance(rows.out[anchor][side], side == 0 ? e_.out_row_stride_bytes : 0);
    const Element* x = nullptr;
    if constexpr (mode != Mode::write) {
      x = advance(rows.x[anchor][side], side == 0 ? e_.x_row_stride_bytes : 0) - line;
    }
    stream_line<mode>(out - line, x, seams.at[anchor][side]);
  }

  // Streams the seam between the blocks, and the one before them if its other row was made before. Stores what is in
  // the first and last row's other seams. The ends are those of the rows that are farthest from the anchors.
  template <Mode mode>
  void finish(const Lines& ends) const {
    Vector made_seam[vectors];
    for (int v = 0; v < vectors; ++v) made_seam[v] = seam(ends.at[0][1][v], ends.at[1][0][v], v);
    stream_line<mode>(place_of(block_rows), x_of<mode>(block_rows), made_seam);
    auto* const ends_between = reinterpret_cast<Element*>(e_.ends_between);
    Element made[line], joined[line];
    const auto store_sum = [&](std::int64_t number, const Vector(&vectors_of_row)[vectors]) {
      if constexpr (mode != Mode::write) join_x(x_of<mode>(number), number > 0, number < row_count, joined);
      for (int v = 0; v < vectors; ++v) T::store(made + v * float_lanes, with_x<mode>(vectors_of_row[v], joined, v));
    };
    if (e_.takes_ends) {
      for (int v = 0; v < vectors; ++v) {
        made_seam[v] = seam(T::load(ends_between + v * float_lanes), ends.at[0][0][v], v);
      }
      stream_line<mode>(place_of(0), x_of<mode>(0), made_seam);
    } else {
      store_sum(0, ends.at[0][0]);
      copy_elements(place_of(0) + tail_, made + tail_, line - tail_);
    }
    if (e_.leaves_ends) {
      for (int v = 0; v < vectors; ++v) T::store(ends_between + v * float_lanes, ends.at[1][1][v]);
    } else {
      store_sum(row_count, ends.at[1][1]);
      copy_elements(place_of(row_count), made, tail_);
    }
  }

  Element* place_of(std::int64_t number) const {
    return advance(reinterpret_cast<Element*>(e_.out), number * e_.out_row_stride_bytes) - tail_;
  }

 private:
  // Calls on_end(anchor, side, v, made) for each vector of the ends of a set of rows.
  template <int row_set, class OnEnd>
  static FASTPE_ALWAYS_INLINE void each_end(const RowsAt<T, row_set>& rows, const OnEnd& on_end) {
    for (int v = 0; v < vectors; ++v) {
      for_each_row<T, Mode::write, From::anchor, row_set, false>(
          rows, v * float_lanes, float_lanes,
          [&](int anchor, int side, const Vector& made) { on_end(anchor, side, v, made); });
    }
  }

  // What `blended` chooses by: of the ends' columns, `tail_` last columns of the row, then its first ones. A constant,
  // since a vector that is loaded just after its elements were stored one by one waits for all earlier stores.
  template <class Value>
  struct Choices {
    constexpr Choices() {
      for (std::int64_t i = 0; i < line; ++i) {
        at[i] = 1;
        at[line + i] = -1;
      }
    }
    alignas(64) Value at[2 * line] = {};
  };
  template <class Value>
  FASTPE_ALWAYS_INLINE const Value* choice_of() const {
    static constexpr Choices<Value> all_choices;
    return all_choices.at + line - tail_;
  }

  // Left to V, since narrow vectors have no `blended`.
  template <class V>
  static FASTPE_ALWAYS_INLINE V blended_at(V last_columns, V first_columns, V choice) {
    return blended(last_columns, first_columns, choice);
  }
  // A vector of the ends of a row, from the c-th one on.
  Doubles ends_of(const double* row, std::int64_t c) const {
    const Doubles last = Doubles::load(row + ends_.begin + c), first = Doubles::load(row + c - tail_);
    return blended_at(last, first, Doubles::load(choice_of<double>() + c));
  }
  FASTPE_ALWAYS_INLINE Vector seam(const Vector& ends, const Vector& next_ends, int v) const {
    return blended_at(ends, next_ends, T::load(choice_of<Element>() + v * float_lanes));
  }

  // Streams a seam. If there are no gaps between rows of x, its columns of x are at `x`.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE void stream_line(Element* out, const Element* x, const Vector (&made)[vectors]) const {
    Element joined[line];
    if constexpr (mode != Mode::write) {
      if (e_.x_row_stride_bytes != e_.out_row_stride_bytes) {
        join_x(x, true, true, joined);
        x = joined;
      }
    }
    for (int v = 0; v < vectors; ++v) T::stream(out + v * float_lanes, with_x<mode>(made[v], x, v));
  }
  template <Mode mode>
  FASTPE_ALWAYS_INLINE Vector with_x(const Vector& encoding, const Element* x, int v) const {
    if constexpr (mode == Mode::write) return encoding;
    return sum<T, mode>(T::load(x + v * float_lanes), encoding, T::broadcast(e_.scale), T::broadcast(e_.alpha));
  }
  // The columns of x for the seam before a row, if there are no gaps between rows of x.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE const Element* x_of(std::int64_t number) const {
    if constexpr (mode == Mode::write) return nullptr;
    return advance(reinterpret_cast<const Element*>(e_.x), number * e_.x_row_stride_bytes) - tail_;
  }
  // Puts together x's columns of a seam from those of the rows that x has, the second of which begins at x + tail_.
  FASTPE_NEVER_INLINE void join_x(const Element* x, bool has_row, bool has_next_row, Element* joined) const {
    const Element* const next_row = x + tail_;
    if (has_row) copy_elements(joined, advance(next_row, -e_.x_row_stride_bytes) + e_.columns - tail_, tail_);
    if (has_next_row) copy_elements(joined + tail_, next_row, line - tail_);
  }

  const Expansion& e_;
  const std::int64_t tail_;  // how many columns of each row are in the seam behind it
  const Part ends_;          // the columns of the ends, in tables whose first columns follow the last ones
  Anchor anchors_[blocks_at_once] = {};
  alignas(64) double ends_of_anchors_[blocks_at_once][2][line];
};

// Calls body(i) for each i below a count, without a loop.
template <int count, class Body>
FASTPE_ALWAYS_INLINE void each_below(const Body& body) {
  if constexpr (count > 0) {
    each_below<count - 1>(body);
    body(count - 1);
  }
}

// Streams the first `columns` columns, whole lines, of the rows at one distance from both anchors; known_columns is 0
// or as many. Calls stream_seam(anchor, side) beside each row.
template <class T, Mode mode, std::int64_t known_columns, int row_set, class StreamSeam>
FASTPE_ALWAYS_INLINE void stream_rows_at(const RowsAt<T, row_set>& rows, std::int64_t columns, bool row_by_row,
                                         const StreamSeam& stream_seam) {
  if constexpr (may_stream_row_by_row<T>) {
    if (row_by_row) {
      stream_row_by_row<T, mode, From::anchor>(
          rows, 0, columns,
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
  if constexpr (known_columns > 0) {
    constexpr std::int64_t line = line_columns<T>;
    each_below<known_columns / line>([&rows](int i) { stream_line<T, mode, From::anchor, row_set>(rows, i * line); });
  } else {
    stream_lines<T, mode, From::anchor, row_set>(rows, 0, columns, false);
  }
}

// Rows of 32, 64 and 128 columns, as most tables of rotary embeddings have them, have code without a loop over columns.
// With AVX2, this code takes 0.89, 0.95 and 0.95 of the time of the loop (Zen 4, one thread). Such code would gain 2 %
// in rows of 256 columns, 1 to 7 % in the cache, and hardly anything with AVX-512. Loops over two or three lines at
// once take 1.05 to 1.09 of the time in rows of 64 and 128 columns.
template <class T, Mode mode>
constexpr bool has_code_for_tables = float_lanes == 8 && T::dtype == DType::float32 && mode == Mode::write;

// Streams a part's columns of a whole pair of blocks, with the seams.
template <class T, Mode mode, std::int64_t known_columns>
FASTPE_NEVER_INLINE void stream_with_seams(const Expansion& e, const Seams<T>& seams, const Part& part,
                                           const Anchor* anchors) {
  const bool row_by_row = known_columns == 0 && e.streams_row_by_row;
  const Strides strides(e);
  const RowsAt<T, anchors_alone> rows_of_anchors(e, anchors, part, 0, 0);
  stream_rows_at<T, mode, 0>(rows_of_anchors, part.columns, row_by_row, [](int, int) {});
  typename Seams<T>::Rows rows(e, anchors, part, 0, 1), rows_of_ends = seams.first_rows();
  typename Seams<T>::Lines ends = seams.first_ends();
  for (std::int64_t row = 1;; ++row) {
    const auto made = seams.make(rows_of_ends, ends);
    stream_rows_at<T, mode, known_columns>(rows, part.columns, row_by_row, [&](int anchor, int side) {
      seams.template stream<mode>(anchor, side, rows, made);
    });
    if (row == block_radius) break;
    rows.template go_farther<mode>(strides);
    rows_of_ends.template go_farther<Mode::write>(strides);
  }
  seams.template finish<mode>(ends);
}

// Rows of a whole pair of blocks, without a gap between them. The first panel is streamed with the seams.
template <class T, Mode mode>
void expand_with_seams(const Expansion& e, std::int64_t lead_columns) {
  constexpr std::int64_t line = line_columns<T>;
  const Seams<T> seams(e, lead_columns);
  // The last line is stored to in part, which would wait for it to come from memory.
  if (!e.leaves_ends) FASTPE_PREFETCH_FIRST_LEVEL(seams.place_of(Seams<T>::row_count));
  const std::int64_t columns = e.columns - line;
  const Part part = Part::of<T>(e, lead_columns, columns < panel_columns ? columns : panel_columns);
  with_anchors<T>(e, part, [&](const Anchor* anchors) {
    if constexpr (has_code_for_tables<T, mode>) {
      if (!e.streams_row_by_row) {
        if (part.columns == 32 - line) return stream_with_seams<T, mode, 32 - line>(e, seams, part, anchors);
        if (part.columns == 64 - line) return stream_with_seams<T, mode, 64 - line>(e, seams, part, anchors);
        if (part.columns == 128 - line) return stream_with_seams<T, mode, 128 - line>(e, seams, part, anchors);
      }
    }
    stream_with_seams<T, mode, 0>(e, seams, part, anchors);
  });
  if (part.columns < columns) {
    expand_panels<T, mode, Access::streaming>(e, lead_columns + part.columns, lead_columns + columns);
  }
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

// Streams the rows if that pays, and returns whether it did. Large arrays are almost wholly whole pairs of blocks.
template <class T, Mode mode>
bool expand_streaming(const Expansion& e) {
  constexpr std::int64_t line = line_columns<T>;
  const std::int64_t rows = e.last_row - e.first_row + 1;
  const std::int64_t lead_columns = elements_to_alignment<T, line_bytes<T>>(e.out);
  const bool has_gaps = e.out_row_stride_bytes != e.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const bool same_alignment = e.out_row_stride_bytes % line_bytes<T> == 0;
  // A row alone is mostly its two ends.
  const bool is_narrow =
      mode == Mode::write && !has_gaps && rows > 1 && rows * e.out_row_stride_bytes <= most_narrow_bytes;
  const bool row_by_row = e.streams_row_by_row;
  if (row_by_row && T::dtype == DType::float64 && e.out_row_stride_bytes >= fewest_wide_bytes) return false;
  if constexpr (has_wide_vectors) {
    if (same_alignment && has_whole_pair(e) && !(row_by_row && is_narrow)) {
      if (lead_columns == 0) {
        expand_panels<T, mode, Access::streaming>(e, 0, e.columns);
        return true;
      }
      if (!has_gaps && e.columns >= 2 * line && e.columns % e.fine.columns_to_repeat == 0) {
        expand_with_seams<T, mode>(e, lead_columns);
        return true;
      }
      if (has_gaps && e.columns > lead_columns) {
        expand_panel<T, mode, Access::plain>(e, Part::of<T>(e, 0, lead_columns));
        expand_panels<T, mode, Access::streaming>(e, lead_columns, e.columns);
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
