// SPDX-License-Identifier: BSD-3-Clause
// The rows of an expansion, in panels of columns. expand.inl has the method.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

// Turns phasors by an angle.
template <class V>
FASTPE_ALWAYS_INLINE void turn_phasors(V& value, V& slope, V cosine, V sine) {
  const V turned = value * cosine + slope * sine;
  slope = slope * cosine - value * sine;
  value = turned;
}

// Turns `columns` columns of an anchor, from `begin` on.
void turn(const Anchor& anchor, std::int64_t begin, std::int64_t columns, double* values, double* slopes) {
  const Anchor from = anchor;  // stores could alias it
  const Doubles direction = Doubles::broadcast(from.turn.backwards ? -1.0 : 1.0);
  for (std::int64_t i = 0; i < columns; i += double_lanes) {
    Doubles value = Doubles::load(from.values + begin + i);
    Doubles slope = Doubles::load(from.slopes + begin + i);
    turn_phasors(value, slope, Doubles::load(from.turn.cosines + begin + i),
                 direction * Doubles::load(from.turn.sines + begin + i));
    value.store(values + i);
    slope.store(slopes + i);
  }
}

// Columns of an expansion and where they are written. It is never passed by value: a copy in pieces other than those
// that were written waits for all earlier stores, which costs a tenth.
struct Part {
  template <class T>
  static Part of(const Expansion& e, std::int64_t begin, std::int64_t columns);

  char* out;  // column `begin` of the first row
  std::int64_t out_row_stride_bytes;
  std::int64_t begin, columns;
  std::int64_t columns_to_jump, jump_bytes;  // columns from columns_to_jump on are written jump_bytes further
  // Columns from the first vector to the next one, which lies on a vector's boundary: 1 .. float_lanes. The second
  // field has those after the jump.
  std::int64_t first_step, first_step_after_jump;
  // The part that comes next is ahead_bytes ahead and has ahead_columns.
  std::int64_t ahead_bytes = 0, ahead_columns = 0;
};

// Conversions to 16 bits, and the arithmetic of float64, take longer than stores that straddle two cache lines.
template <class T>
constexpr bool aligns_stores = has_wide_vectors && T::dtype == DType::float32;

// How far it is from `out` to a vector's boundary, where it pays to go there: if all rows are aligned alike, are not
// too short for one vector more, and out lies on no boundary. Else it is a vector's columns.
template <class T>
inline std::int64_t first_step_from(const char* out, std::int64_t row_stride_bytes, std::int64_t columns) {
  const bool pays = aligns_stores<T> && columns >= 8 * float_lanes && row_stride_bytes % vector_bytes<T> == 0;
  const std::int64_t lead_columns = pays ? elements_to_alignment<T>(out) : 0;
  return lead_columns == 0 ? float_lanes : lead_columns;
}

// The part ends early where columns jump within a vector.
template <class T>
inline Part Part::of(const Expansion& e, std::int64_t begin, std::int64_t columns) {
  constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename T::Element));
  Part part;
  part.out = e.out + begin * element_size;
  part.out_row_stride_bytes = e.out_row_stride_bytes;
  part.begin = begin;
  part.columns = part.columns_to_jump = columns;
  part.jump_bytes = e.jump_bytes;
  const std::int64_t columns_to_jump = e.jump_column - begin;
  if (e.jump_bytes != 0 && columns_to_jump < columns) {
    if (columns_to_jump <= 0) {
      part.out += e.jump_bytes;
    } else {
      part.columns_to_jump = columns_to_jump;
      if (columns_to_jump % float_lanes != 0) part.columns = columns_to_jump;
    }
  }
  part.first_step = first_step_from<T>(part.out, e.out_row_stride_bytes, part.columns_to_jump);
  part.first_step_after_jump = first_step_from<T>(part.out + part.columns_to_jump * element_size + e.jump_bytes,
                                                  e.out_row_stride_bytes, part.columns - part.columns_to_jump);
  return part;
}

// An expansion's anchors for a part's columns, at most a panel. They are turned just before they are used, so they stay
// in the first-level cache, and earlier streaming stores drain meanwhile.
struct TurnedAnchors {
  TurnedAnchors(const Expansion& e, const Part& part) {
    const std::int64_t padded = (part.columns + column_padding - 1) / column_padding * column_padding;
    // Columns that are stored on a vector's boundary are loaded from one, too.
    const std::int64_t lead = float_lanes - part.first_step;
    const int count = e.last_row > block_radius ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      turn(e.anchors[i], part.begin, padded, values[i] + lead, slopes[i] + lead);
      anchors[i] = {values[i] + lead, slopes[i] + lead, {}};
    }
  }

  // A panel, the columns before its first boundary, padding and the lead.
  static constexpr std::int64_t room = panel_columns + 3 * column_padding;
  alignas(64) double values[blocks_at_once][room];
  alignas(64) double slopes[blocks_at_once][room];
  Anchor anchors[blocks_at_once] = {};
};

enum class Mode { write, add, scale_and_add };

// The rows at one distance from two adjacent anchors, in the order of their positions. The rows that are wanted are
// next to each other in this order.
enum RowSet : int { before_first = 1, after_first = 2, before_second = 4, after_second = 8 };
constexpr int around_first = before_first | after_first;
constexpr int around_second = before_second | after_second;
constexpr int anchors_alone = after_first | after_second;  // row 0

constexpr int row_bit(int anchor, int side) { return 1 << (2 * anchor + side); }

// From each row of an expansion to the next one.
struct Strides {
  explicit Strides(const Expansion& e)
      : table(e.fine.stride), out_bytes(e.out_row_stride_bytes), x_bytes(e.x_row_stride_bytes) {}

  const std::int64_t table;  // in columns
  const std::int64_t out_bytes, x_bytes;
};

// What the loop over a part's columns needs, in locals, since a store could alias the Expansion's own fields. When all
// is inlined, it is in registers. `row` is the distance from the anchors, `first_anchor` the first one's number; all
// pointers are to the part's first column. Rows outside of row_set may lie outside of the array and have no pointers.
template <class T, int row_set>
struct RowsAt {
  using Element = typename T::Element;
  static constexpr bool compensated = sizeof(Element) == sizeof(double);

  FASTPE_ALWAYS_INLINE RowsAt(const Expansion& e, const Anchor* anchors, const Part& part, std::int64_t first_anchor,
                              std::int64_t row)
      : cosines(e.fine.cosines + row * e.fine.stride + part.begin),
        sines(e.fine.sines + row * e.fine.stride + part.begin),
        scale(T::broadcast(e.scale)),
        alpha(T::broadcast(e.alpha)),
        bound(Doubles::broadcast(e.bound)),
        turn(anchors[first_anchor].turn),
        turn_direction(Doubles::broadcast(turn.backwards ? -1.0 : 1.0)) {
    if constexpr (compensated) {
      cosine_lows = e.fine.cosine_lows + row * e.fine.stride + part.begin;
      sine_lows = e.fine.sine_lows + row * e.fine.stride + part.begin;
    }
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      const Anchor& at = anchors[first_anchor == 0 ? anchor : 1];
      values[anchor] = at.values;
      slopes[anchor] = at.slopes;
    }
    const std::int64_t centre = first_anchor * block_rows - e.first_row;
    set_rows(out, part.out, part.out_row_stride_bytes, centre, row);
    if (e.x != nullptr) {
      set_rows(x, e.x + part.begin * static_cast<std::int64_t>(sizeof(Element)), e.x_row_stride_bytes, centre, row);
    }
  }

  template <class AnyElement, class Byte>
  static FASTPE_ALWAYS_INLINE void set_rows(AnyElement* (&rows)[blocks_at_once][2], Byte* first_row,
                                            std::int64_t row_stride_bytes, std::int64_t centre, std::int64_t row) {
    const std::int64_t from_centre = row * row_stride_bytes;
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      const std::int64_t at = (centre + anchor * block_rows) * row_stride_bytes;
      if ((row_set & row_bit(anchor, 0)) != 0) {
        rows[anchor][0] = reinterpret_cast<AnyElement*>(first_row + (at - from_centre));
      }
      if ((row_set & row_bit(anchor, 1)) != 0) {
        rows[anchor][1] = reinterpret_cast<AnyElement*>(first_row + (at + from_centre));
      }
    }
  }

  // Goes on to the rows that are one row farther from the anchors, which takes less time than to set them anew.
  template <Mode mode>
  FASTPE_ALWAYS_INLINE void go_farther(const Strides& strides) {
    cosines += strides.table;
    sines += strides.table;
    if constexpr (compensated) {
      cosine_lows += strides.table;
      sine_lows += strides.table;
    }
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      out[anchor][0] = advance(out[anchor][0], -strides.out_bytes);
      out[anchor][1] = advance(out[anchor][1], strides.out_bytes);
      if constexpr (mode != Mode::write) {
        x[anchor][0] = advance(x[anchor][0], -strides.x_bytes);
        x[anchor][1] = advance(x[anchor][1], strides.x_bytes);
      }
    }
  }

  FASTPE_ALWAYS_INLINE void jump(std::int64_t bytes) {
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      for (int side = 0; side < 2; ++side) {
        if ((row_set & row_bit(anchor, side)) != 0) out[anchor][side] = advance(out[anchor][side], bytes);
      }
    }
  }

  const double* values[blocks_at_once];
  const double* slopes[blocks_at_once];
  const double* cosines;
  const double* sines;
  const double* cosine_lows = nullptr;
  const double* sine_lows = nullptr;
  Element* out[blocks_at_once][2] = {};  // before and after each anchor
  const Element* x[blocks_at_once][2] = {};
  typename T::Vector scale, alpha;
  Doubles bound;
  AnchorTurn turn;
  Doubles turn_direction;
};

// Whether the phasors are the anchor's, or its group's centre's and turned as they are read.
enum class From { anchor, centre };

// The encoding of one row, from its two products (and, in float64, what rounding took from them).
template <class T, Mode mode>
inline typename T::Vector sum_of_products(DoublePair even, DoublePair odd, DoublePair even_low, DoublePair odd_low,
                                          bool plus, Doubles bound) {
  Doubles first = plus ? even.first + odd.first : even.first - odd.first;
  Doubles second = plus ? even.second + odd.second : even.second - odd.second;
  if constexpr (sizeof(typename T::Element) == sizeof(double)) {
    first = first + (plus ? even_low.first + odd_low.first : even_low.first - odd_low.first);
    second = second + (plus ? even_low.second + odd_low.second : even_low.second - odd_low.second);
    first = first.clamped(bound);  // the last addition may leave 1 + ulp
    second = second.clamped(bound);
  }
  return mode == Mode::write ? T::once(first, second) : T::addend(first, second);
}

// What is written of an embedding and its encoding.
template <class T, Mode mode>
FASTPE_ALWAYS_INLINE typename T::Vector sum(typename T::Vector embedding, typename T::Vector encoding,
                                            typename T::Vector scale, typename T::Vector alpha) {
  return mode == Mode::add ? embedding + encoding : embedding * scale + encoding * alpha;
}

// Calls on_row(anchor, side, result) for float_lanes columns, or the first `count` of them, of each row of a set. The
// rows share each load of the fine tables.
template <class T, Mode mode, From from, int row_set, bool partial, class OnRow>
FASTPE_ALWAYS_INLINE void for_each_row(const RowsAt<T, row_set>& rows, std::int64_t column, std::int64_t count,
                                       const OnRow& on_row) {
  constexpr bool compensated = sizeof(typename T::Element) == sizeof(double);
  const DoublePair c = Float64::load(rows.cosines + column);
  const DoublePair s = Float64::load(rows.sines + column);
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    if ((row_set & (anchor == 0 ? around_first : around_second)) == 0) continue;
    DoublePair value = Float64::load(rows.values[anchor] + column);
    DoublePair slope = Float64::load(rows.slopes[anchor] + column);
    if constexpr (from == From::centre) {
      const DoublePair direction{rows.turn_direction, rows.turn_direction};
      turn_phasors(value, slope, Float64::load(rows.turn.cosines + column),
                   direction * Float64::load(rows.turn.sines + column));
    }
    const DoublePair even = value * c;
    const DoublePair odd = slope * s;
    DoublePair even_low = even, odd_low = odd;
    if constexpr (compensated) {
      even_low = value * Float64::load(rows.cosine_lows + column);
      odd_low = slope * Float64::load(rows.sine_lows + column);
    }
    for (int side = 0; side < 2; ++side) {
      if ((row_set & row_bit(anchor, side)) == 0) continue;
      auto result = sum_of_products<T, mode>(even, odd, even_low, odd_low, side == 1, rows.bound);
      if constexpr (mode != Mode::write) {
        const auto* x = rows.x[anchor][side] + column;
        const auto embedding = partial ? load_partial<T>(x, count) : T::load(x);
        result = sum<T, mode>(embedding, result, rows.scale, rows.alpha);
      }
      on_row(anchor, side, result);
    }
  }
}

template <class T, Mode mode, Access access, From from, int row_set, bool partial>
FASTPE_ALWAYS_INLINE void expand_columns(const RowsAt<T, row_set>& rows, std::int64_t column, std::int64_t count,
                                         std::int64_t ahead_bytes) {
  for_each_row<T, mode, from, row_set, partial>(
      rows, column, count, [&](int anchor, int side, const typename T::Vector& result) {
        auto* out = rows.out[anchor][side] + column;
        if constexpr (access == Access::fetching) {
          const auto* read = mode == Mode::write ? rows.out[anchor][side] : rows.x[anchor][side];
          prefetch_columns<T, access>(reinterpret_cast<const char*>(read) + ahead_bytes, column);
        }
        if constexpr (partial) {
          store_partial<T>(out, result, count);
        } else {
          put<T, access>(out, result);
        }
      });
}

// Fetches the bytes [begin, end) of each row of a set: of what the next part has, and no vector of this part fetches.
// `centre` is how many rows behind `first_row` the first anchor is.
FASTPE_NEVER_INLINE void prefetch_rest(const char* first_row, std::int64_t row_stride_bytes, std::int64_t centre,
                                       std::int64_t row, int row_set, std::int64_t begin, std::int64_t end) {
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    for (int side = 0; side < 2; ++side) {
      if ((row_set & row_bit(anchor, side)) == 0) continue;
      const std::int64_t at = centre + anchor * block_rows + (side == 0 ? -row : row);
      const char* const bytes = first_row + at * row_stride_bytes;
      for (std::int64_t byte = begin; byte < end; byte += cache_line_bytes)
        prefetch_line<Access::fetching>(bytes + byte);
    }
  }
}

// Streams a line of each row, one whole line after the other: else the halves of a line leave the processor apart.
template <class T, Mode mode, From from, int row_set>
FASTPE_ALWAYS_INLINE void stream_line(const RowsAt<T, row_set>& rows, std::int64_t column) {
  constexpr int vectors = static_cast<int>(line_columns<T> / float_lanes);
  if constexpr (vectors == 1) {
    expand_columns<T, mode, Access::streaming, from, row_set, false>(rows, column, float_lanes, 0);
  } else {
    typename T::Vector lines[blocks_at_once][2][vectors];
    for (int i = 0; i < vectors; ++i) {
      for_each_row<T, mode, from, row_set, false>(
          rows, column + i * float_lanes, float_lanes,
          [&](int anchor, int side, const typename T::Vector& result) { lines[anchor][side][i] = result; });
    }
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      for (int side = 0; side < 2; ++side) {
        if ((row_set & row_bit(anchor, side)) == 0) continue;
        for (int i = 0; i < vectors; ++i) {
          T::stream(rows.out[anchor][side] + column + i * float_lanes, lines[anchor][side][i]);
        }
      }
    }
  }
}

// Stores the line at `column` of each row to to[anchor][side].
template <class T, Mode mode, From from, int row_set>
FASTPE_ALWAYS_INLINE void put_lines(const RowsAt<T, row_set>& rows, std::int64_t column,
                                    typename T::Element* const (&to)[blocks_at_once][2]) {
  for (std::int64_t i = 0; i < line_columns<T>; i += float_lanes) {
    for_each_row<T, mode, from, row_set, false>(
        rows, column + i, float_lanes,
        [&](int anchor, int side, const typename T::Vector& result) { T::store(to[anchor][side] + i, result); });
  }
}

// Only AVX2 is the best instruction set of some processor that streams best row by row.
template <class T>
constexpr bool may_stream_row_by_row = float_lanes == 8 && T::dtype == DType::float32;

// Makes `columns` columns of each row, whole lines, in the cache, and streams one row after the other. Calls
// before(anchor, side) and after(anchor, side) before and after each.
template <class T, Mode mode, From from, int row_set, class Before, class After>
inline void stream_row_by_row(const RowsAt<T, row_set>& rows, std::int64_t column, std::int64_t columns,
                              const Before& before, const After& after) {
  alignas(64) typename T::Element made[blocks_at_once][2][panel_columns];
  for (std::int64_t i = 0; i < columns; i += line_columns<T>) {
    put_lines<T, mode, from>(rows, column + i, {{made[0][0] + i, made[0][1] + i}, {made[1][0] + i, made[1][1] + i}});
  }
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    for (int side = 0; side < 2; ++side) {
      if ((row_set & row_bit(anchor, side)) == 0) continue;
      before(anchor, side);
      auto* const out = rows.out[anchor][side] + column;
      for (std::int64_t i = 0; i < columns; i += float_lanes) T::stream(out + i, T::load(made[anchor][side] + i));
      after(anchor, side);
    }
  }
}

// Streams the whole lines from `column` to `end`. Returns the first column that is left.
template <class T, Mode mode, From from, int row_set>
FASTPE_ALWAYS_INLINE std::int64_t stream_lines(const RowsAt<T, row_set>& rows, std::int64_t column, std::int64_t end,
                                               bool row_by_row) {
  constexpr std::int64_t line = line_columns<T>;
  if constexpr (may_stream_row_by_row<T>) {
    while (row_by_row && column + line <= end) {
      const std::int64_t whole_lines = (end - column) / line * line;
      const std::int64_t columns = whole_lines < panel_columns ? whole_lines : panel_columns;
      const auto nothing = [](int, int) {};
      stream_row_by_row<T, mode, from>(rows, column, columns, nothing, nothing);
      column += columns;
    }
  }
  for (; column + line <= end; column += line) stream_line<T, mode, from, row_set>(rows, column);
  return column;
}

// Writes the columns from `column` on, fewer than a vector's, a row at a time, so that there is little code.
template <class T, Mode mode, From from, int row_set>
FASTPE_NEVER_INLINE void expand_tail(const Expansion& e, const Anchor* anchors, const Part& part,
                                     std::int64_t first_anchor, std::int64_t row, std::int64_t column) {
  RowsAt<T, row_set> rows(e, anchors, part, first_anchor, row);
  if (part.columns_to_jump < part.columns) rows.jump(part.jump_bytes);
  expand_columns<T, mode, Access::plain, from, row_set, true>(rows, column, part.columns - column, 0);
}

template <class T, Mode mode, From from>
FASTPE_NEVER_INLINE void expand_tails(const Expansion& e, const Anchor* anchors, const Part& part,
                                      std::int64_t first_anchor, std::int64_t row, std::int64_t column, int row_set) {
  for (int anchor = 0; anchor < blocks_at_once; ++anchor, row_set >>= 2) {
    const std::int64_t at = first_anchor + anchor;
    if ((row_set & before_first) != 0) expand_tail<T, mode, from, before_first>(e, anchors, part, at, row, column);
    if ((row_set & after_first) != 0) expand_tail<T, mode, from, after_first>(e, anchors, part, at, row, column);
  }
}

// Writes a part's columns of `rows`, which leaves them where columns that jump are written.
template <class T, Mode mode, Access access, From from, int row_set>
FASTPE_ALWAYS_INLINE void expand_columns_of(RowsAt<T, row_set>& rows, const Expansion& e, const Anchor* anchors,
                                            const Part& part, std::int64_t first_anchor, std::int64_t row) {
  const std::int64_t ahead_bytes = part.ahead_bytes;
  // The vectors at both ends may overlap those between, which lie on their boundaries. A row alone would take a
  // tenth longer so.
  constexpr bool may_overlap =
      mode == Mode::write && access != Access::streaming && from == From::anchor && aligns_stores<T>;
  std::int64_t column = 0;
  std::int64_t step = part.first_step;
  for (std::int64_t end = part.columns_to_jump;; end = part.columns) {
    const bool overlaps = may_overlap && step < float_lanes;
    if (overlaps) {
      expand_columns<T, mode, access, from, row_set, false>(rows, column, float_lanes, ahead_bytes);
      column += step;
    }
    if constexpr (access == Access::streaming) {
      column = stream_lines<T, mode, from, row_set>(rows, column, end, e.streams_row_by_row);
    }
    for (; column + float_lanes <= end; column += float_lanes) {
      expand_columns<T, mode, access, from, row_set, false>(rows, column, float_lanes, ahead_bytes);
    }
    if (overlaps && column < end) {
      expand_columns<T, mode, access, from, row_set, false>(rows, end - float_lanes, float_lanes, ahead_bytes);
      column = end;
    }
    if (end == part.columns) break;
    rows.jump(part.jump_bytes);
    step = part.first_step_after_jump;
  }
  if constexpr (access == Access::fetching) {
    if (column < part.ahead_columns) {
      constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename T::Element));
      const char* const read = mode == Mode::write ? part.out : e.x + part.begin * element_size;
      prefetch_rest(read + part.ahead_bytes, mode == Mode::write ? part.out_row_stride_bytes : e.x_row_stride_bytes,
                    first_anchor * block_rows - e.first_row, row, row_set, column * element_size,
                    part.ahead_columns * element_size);
    }
  }
  if (column < part.columns) expand_tails<T, mode, from>(e, anchors, part, first_anchor, row, column, row_set);
}

template <class T, Mode mode, Access access, From from, int row_set>
inline void expand_rows_at(const Expansion& e, const Anchor* anchors, const Part& part, std::int64_t first_anchor,
                           std::int64_t row) {
  RowsAt<T, row_set> rows(e, anchors, part, first_anchor, row);
  expand_columns_of<T, mode, access, from>(rows, e, anchors, part, first_anchor, row);
}

// A row alone, turned as it is written.
template <class T, Mode mode>
inline void expand_one_row(const Expansion& e, const Anchor* anchors, const Part& part) {
  if (e.first_row >= 0) {
    expand_rows_at<T, mode, Access::plain, From::centre, after_first>(e, anchors, part, 0, e.first_row);
  } else {
    expand_rows_at<T, mode, Access::plain, From::centre, before_first>(e, anchors, part, 0, -e.first_row);
  }
}

// The rows at this distance from the anchors that are wanted.
inline int row_set_at(const Expansion& e, std::int64_t row) {
  const auto wanted = [&e](std::int64_t at, int bit) { return e.first_row <= at && at <= e.last_row ? bit : 0; };
  const int after = wanted(row, after_first) | wanted(block_rows + row, after_second);
  return row == 0 ? after : after | wanted(-row, before_first) | wanted(block_rows - row, before_second);
}

inline bool has_whole_pair(const Expansion& e) {
  return e.first_row == -block_radius && e.last_row == block_radius + block_rows;
}

// Pointers step from row to row, which takes code of its own. It saves 6 to 10 % in rows of 64 columns and 2 to 5 % in
// wider ones, in the cache and from memory (Zen 4, one thread). Streamed rows gain nothing by it, but with seams.
template <Access access>
constexpr bool steps_from_row_to_row = has_wide_vectors && access != Access::streaming;

template <class T, Mode mode, Access access>
inline void expand_whole_pair(const Expansion& e, const Anchor* anchors, const Part& part) {
  constexpr From from = From::anchor;
  constexpr int all_rows = around_first | around_second;
  expand_rows_at<T, mode, access, from, anchors_alone>(e, anchors, part, 0, 0);
  if constexpr (steps_from_row_to_row<access>) {
    const Strides strides(e);
    const std::int64_t jumped_bytes = part.columns_to_jump < part.columns ? part.jump_bytes : 0;
    RowsAt<T, all_rows> rows(e, anchors, part, 0, 1);
    for (std::int64_t row = 1;; ++row) {
      expand_columns_of<T, mode, access, from>(rows, e, anchors, part, 0, row);
      if (row == block_radius) break;
      rows.jump(-jumped_bytes);
      rows.template go_farther<mode>(strides);
    }
  } else {
    for (std::int64_t row = 1; row <= block_radius; ++row) {
      expand_rows_at<T, mode, access, from, all_rows>(e, anchors, part, 0, row);
    }
  }
}

// Writes those rows of a pair of blocks that are wanted.
template <class T, Mode mode>
FASTPE_NEVER_INLINE void expand_rows_of_pair(const Expansion& e, const Anchor* anchors, const Part& part) {
  constexpr From from = From::anchor;
  constexpr Access access = Access::plain;
  for (std::int64_t row = 0; row <= block_radius; ++row) {
    const int row_set = row_set_at(e, row);
    // Rows of the second block alone are done as those of a first one.
    const bool is_second = (row_set & around_first) == 0;
    const std::int64_t first_anchor = is_second ? 1 : 0;
    switch (is_second ? row_set >> 2 : row_set) {
      case before_first:
        expand_rows_at<T, mode, access, from, before_first>(e, anchors, part, first_anchor, row);
        break;
      case after_first: expand_rows_at<T, mode, access, from, after_first>(e, anchors, part, first_anchor, row); break;
      case around_first:
        expand_rows_at<T, mode, access, from, around_first>(e, anchors, part, first_anchor, row);
        break;
      case after_first | before_second:
        expand_rows_at<T, mode, access, from, after_first | before_second>(e, anchors, part, 0, row);
        break;
      case around_first | before_second:
        expand_rows_at<T, mode, access, from, around_first | before_second>(e, anchors, part, 0, row);
        break;
      case after_first | around_second:
        expand_rows_at<T, mode, access, from, after_first | around_second>(e, anchors, part, 0, row);
        break;
      case anchors_alone: expand_rows_at<T, mode, access, from, anchors_alone>(e, anchors, part, 0, row); break;
      case around_first | around_second:
        expand_rows_at<T, mode, access, from, around_first | around_second>(e, anchors, part, 0, row);
        break;
      default: break;
    }
  }
}

// Writes all rows that are wanted. Large arrays, for which fetching or streaming pays, consist almost wholly of whole
// pairs of blocks.
template <class T, Mode mode, Access access>
inline void expand_rows(const Expansion& e, const Anchor* anchors, const Part& part) {
  constexpr bool has_code_for_whole_pairs = access != Access::plain || steps_from_row_to_row<access>;
  if constexpr (has_code_for_whole_pairs) {
    if (has_whole_pair(e)) return expand_whole_pair<T, mode, access>(e, anchors, part);
  }
  expand_rows_of_pair<T, mode>(e, anchors, part);
}

inline Anchor from_column(const Anchor& anchor, std::int64_t column) {
  Anchor at = anchor;
  at.values += column;
  at.slopes += column;
  if (at.turn.cosines != nullptr) {
    at.turn.cosines += column;
    at.turn.sines += column;
  }
  return at;
}

// Calls on_anchors with the anchors for a part's columns, which are turned first if they have to be.
template <class T, class OnAnchors>
inline void with_anchors(const Expansion& e, const Part& part, const OnAnchors& on_anchors) {
  if constexpr (sizeof(typename T::Element) < sizeof(double)) {
    if (e.anchors[0].turn.cosines != nullptr && e.first_row != e.last_row) {
      const TurnedAnchors turned(e, part);
      return on_anchors(turned.anchors);
    }
  }
  const bool has_second = e.last_row > block_radius;
  const Anchor anchors[blocks_at_once] = {from_column(e.anchors[0], part.begin),
                                          from_column(e.anchors[has_second ? 1 : 0], part.begin)};
  on_anchors(anchors);
}

// Writes a part of at most panel_columns, for which TurnedAnchors has room. A row alone uses no table twice, so it is
// turned while it is written, and may have any number of columns.
template <class T, Mode mode, Access access>
inline void expand_panel(const Expansion& e, const Part& part) {
  with_anchors<T>(e, part, [&e, &part](const Anchor* anchors) {
    if constexpr (sizeof(typename T::Element) < sizeof(double)) {
      if (anchors[0].turn.cosines != nullptr) return expand_one_row<T, mode>(e, anchors, part);
    }
    expand_rows<T, mode, access>(e, anchors, part);
  });
}

template <class T, Mode mode, Access access>
void expand_panels(const Expansion& e, std::int64_t first, std::int64_t last) {
  constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename T::Element));
  const std::int64_t rows = e.last_row - e.first_row + 1;
  const std::int64_t row_stride_bytes = mode == Mode::write ? e.out_row_stride_bytes : e.x_row_stride_bytes;
  std::int64_t width = panel_columns;
  if (access == Access::fetching) {
    // Each panel fetches the next one, so they are about as wide.
    const std::int64_t panels = (last - first + panel_columns - 1) / panel_columns;
    const std::int64_t share = (last - first + panels - 1) / panels;
    width = (share + float_lanes - 1) / float_lanes * float_lanes;
  }
  std::int64_t columns = rows == 1 ? last - first : width;
  if (mode == Mode::write && access != Access::streaming) {
    // The panels after the first one begin on a vector's boundary.
    columns += first_step_from<T>(e.out, e.out_row_stride_bytes, columns) % float_lanes;
  }
  const std::int64_t first_columns = columns < last - first ? columns : last - first;
  for (std::int64_t begin = first; begin < last; columns = width) {
    Part part = Part::of<T>(e, begin, begin + columns < last ? columns : last - begin);
    const std::int64_t left = last - begin - part.columns;
    // The next call's rows begin after the last panel.
    part.ahead_bytes =
        left > 0 ? part.columns * element_size : rows * row_stride_bytes - (begin - first) * element_size;
    part.ahead_columns = left == 0 ? first_columns : width < left ? width : left;
    expand_panel<T, mode, access>(e, part);
    begin += part.columns;
  }
}

}  // namespace
}  // namespace fastpe
