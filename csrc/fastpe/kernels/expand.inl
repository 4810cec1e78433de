// SPDX-License-Identifier: BSD-3-Clause
// expand: the rows around one or two anchors, from the anchors' phasors.
//
// Method: the angle addition theorem gives first the anchor from its group's centre, then the rows around it. The rows
// at +distance and -distance come from the same two products. The arithmetic is plain multiplication and addition in
// one fixed order, whichever rows are made together.
// Range: rows -block_radius to block_rows + block_radius. It reads the fine tables and anchors, which are padded, and
// x. It writes exactly the rows' columns, with any alignment. Rows may have any stride, and out may be x.
// Error: docs/accuracy.md has the bounds, and the largest errors that tests/oracles/weak_spots.py finds.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

enum class Mode { write, add, scale_and_add };

// Columns of an expansion that are made at once, so that what all rows read stays in L1.
constexpr std::int64_t panel_columns = 256;

inline bool is_two_blocks(const Expansion& e) {
  return e.first_row == -block_radius && e.last_row == block_rows + block_radius;
}

// Some columns of an expansion, and its anchors' phasors for them. There are at most panel_columns, and less than a
// vector more where stores are aligned.
template <class T>
struct Panel {
  static constexpr bool compensated = is_compensated(T::dtype);

  Panel(const Expansion& expansion, std::int64_t first_column, std::int64_t column_count)
      : e(expansion), begin(first_column), columns(column_count) {
    const int anchor_count = e.last_row > block_radius ? blocks_at_once : 1;
    for (int i = 0; i < anchor_count; ++i) {
      const AnchorPhasors at = e.anchors[i];
      values[i] = at.values + begin;
      slopes[i] = at.slopes + begin;
      if (!compensated && at.cosines != nullptr) rotate_from_centre(at, i);
    }
  }
  Panel(const Panel&) = delete;

  const Expansion& e;
  const std::int64_t begin, columns;
  // From this panel's columns of x, or of out where nothing is read, to those that come next. 0 prefetches columns that
  // are used at once, which costs less than to ask whether to prefetch.
  std::int64_t prefetch_bytes = 0;
  const double* values[blocks_at_once] = {};
  const double* slopes[blocks_at_once] = {};

 private:
  void rotate_from_centre(const AnchorPhasors& centre, int i) {
    const Doubles sign = Doubles::broadcast(centre.angle_sign);
    const std::int64_t padded_columns = (columns + float_lanes - 1) / float_lanes * float_lanes;
    for (std::int64_t column = 0; column < padded_columns; column += double_lanes) {
      const Doubles value = Doubles::load(values[i] + column), slope = Doubles::load(slopes[i] + column);
      const Doubles cosine = Doubles::load(centre.cosines + begin + column);
      const Doubles sine = sign * Doubles::load(centre.sines + begin + column);
      (value * cosine + slope * sine).store(rotated_[i][0] + column);
      (slope * cosine - value * sine).store(rotated_[i][1] + column);
    }
    values[i] = rotated_[i][0];
    slopes[i] = rotated_[i][1];
  }

  static_assert(panel_columns % float_lanes == 0 && float_lanes <= column_padding);
  alignas(cache_line_bytes) double rotated_[compensated ? 1 : blocks_at_once][2]
                                           [compensated ? 1 : panel_columns + column_padding];
};

// The rows of a panel that are made together: those at one distance from one or two anchors, on both sides of each, or
// on one. All is in locals, since stores could alias an Expansion.
template <class T, int anchor_count, int sides>
struct RowSet {
  using Element = typename T::Element;
  using Vector = typename T::Vector;
  static constexpr bool compensated = is_compensated(T::dtype);

  // With one side, the distance has its sign.
  FASTPE_ALWAYS_INLINE RowSet(const Panel<T>& p, int first_anchor, std::int64_t distance)
      : distance_sign(Doubles::broadcast(distance < 0 ? -1.0 : 1.0)),
        scale(T::broadcast(p.e.scale)),
        alpha(T::broadcast(p.e.alpha)),
        bound(Doubles::broadcast(p.e.bound)) {
    const std::int64_t table = (distance < 0 ? -distance : distance) * p.e.fine.stride + p.begin;
    cosines = p.e.fine.cosines + table;
    sines = p.e.fine.sines + table;
    if constexpr (compensated) {
      cosine_lows = p.e.fine.cosine_lows + table;
      sine_lows = p.e.fine.sine_lows + table;
    }
    constexpr auto element_size = static_cast<std::int64_t>(sizeof(Element));
    for (int a = 0; a < anchor_count; ++a) {
      values[a] = p.values[first_anchor + a];
      slopes[a] = p.slopes[first_anchor + a];
      for (int side = 0; side < sides; ++side) {
        const std::int64_t row = (first_anchor + a) * block_rows + (sides == 2 && side == 0 ? -distance : distance);
        const std::int64_t number = row - p.e.first_row;
        out[a][side] = reinterpret_cast<Element*>(p.e.out + number * p.e.out_row_stride_bytes + p.begin * element_size);
        if (p.e.x != nullptr) x[a][side] = p.e.x + number * p.e.x_row_stride_bytes + p.begin * element_size;
      }
    }
  }

  // Calls on_row(anchor, side, result) with float_lanes columns of each row.
  template <Mode mode, class OnRow>
  FASTPE_ALWAYS_INLINE void each_row(std::int64_t column, const OnRow& on_row) const {
    const DoublePair cosine = Float64::load(cosines + column);
    DoublePair sine = Float64::load(sines + column);
    if constexpr (sides == 1) sine = sine * DoublePair{distance_sign, distance_sign};
    for (int a = 0; a < anchor_count; ++a) {
      const DoublePair value = Float64::load(values[a] + column), slope = Float64::load(slopes[a] + column);
      const DoublePair even = value * cosine, odd = slope * sine;
      DoublePair even_low = even, odd_low = odd;
      if constexpr (compensated) {
        DoublePair sine_low = Float64::load(sine_lows + column);
        if constexpr (sides == 1) sine_low = sine_low * DoublePair{distance_sign, distance_sign};
        even_low = value * Float64::load(cosine_lows + column);
        odd_low = slope * sine_low;
      }
      for (int side = 0; side < sides; ++side) {
        const bool is_before = sides == 2 && side == 0;
        DoublePair sum = is_before ? even - odd : even + odd;
        if constexpr (compensated) {
          sum = sum + (is_before ? even_low - odd_low : even_low + odd_low);
          sum = {sum.first.clamped(bound), sum.second.clamped(bound)};  // the last addition may leave 1 + ulp
        }
        if constexpr (mode == Mode::write) {
          on_row(a, side, T::rounded_once(sum.first, sum.second));
        } else {
          const Vector x_columns = T::load(reinterpret_cast<const Element*>(x[a][side]) + column);
          const Vector addend = T::addend(sum.first, sum.second);
          on_row(a, side, mode == Mode::add ? x_columns + addend : x_columns * scale + addend * alpha);
        }
      }
    }
  }

  const double* values[anchor_count];
  const double* slopes[anchor_count];
  const double *cosines, *sines, *cosine_lows = nullptr, *sine_lows = nullptr;
  Element* out[anchor_count][sides];
  const char* x[anchor_count][sides] = {};
  Doubles distance_sign;
  Vector scale, alpha;
  Doubles bound;
};

// Fewer columns than a vector has.
template <class T, Mode mode, int anchor_count, int sides>
FASTPE_NEVER_INLINE void expand_partial(RowSet<T, anchor_count, sides> rows, std::int64_t columns) {
  using Element = typename T::Element;
  Element x_columns[anchor_count][sides][float_lanes] = {};
  if constexpr (mode != Mode::write) {
    for (int a = 0; a < anchor_count; ++a) {
      for (int side = 0; side < sides; ++side) {
        copy_elements(x_columns[a][side], reinterpret_cast<const Element*>(rows.x[a][side]), columns);
        rows.x[a][side] = reinterpret_cast<const char*>(x_columns[a][side]);
      }
    }
  }
  rows.template each_row<mode>(0, [&](int a, int side, const typename T::Vector& result) {
    store_partial<T>(rows.out[a][side], result, columns);
  });
}

// Conversions to 16 bits, and the arithmetic of float64, take longer than stores that straddle two cache lines.
template <class T>
constexpr bool aligns_stores = has_wide_vectors && T::dtype == DType::float32;

// How many columns to make before those that are stored on a vector's boundary, if that pays.
template <class T, Mode mode>
inline std::int64_t lead_columns_of(const Expansion& e) {
  const bool pays = aligns_stores<T> && mode == Mode::write && e.columns >= 8 * float_lanes;
  const bool are_rows_alike = e.out_row_stride_bytes % vector_bytes<T> == 0;
  return pays && are_rows_alike ? elements_to_alignment<T>(e.out, vector_bytes<T>) : 0;
}

// The vectors at both ends of a row overlap those between. The last one is made before x can be overwritten.
template <class T, Mode mode, int anchor_count, int sides>
FASTPE_ALWAYS_INLINE void expand_row_set(const Panel<T>& p, int first_anchor, std::int64_t distance,
                                         std::int64_t lead_columns) {
  using Vector = typename T::Vector;
  const RowSet<T, anchor_count, sides> rows(p, first_anchor, distance);
  const std::int64_t columns = p.columns, last_column = columns - float_lanes;
  if (last_column < 0) return expand_partial<T, mode>(rows, columns);
  const std::int64_t prefetch_bytes = p.prefetch_bytes;
  const auto put = [&](std::int64_t column) {
    rows.template each_row<mode>(column, [&](int a, int side, const Vector& result) {
      const std::int64_t next = column * static_cast<std::int64_t>(sizeof(typename T::Element)) + prefetch_bytes;
      for (std::int64_t line = 0; line < vector_bytes<T>; line += cache_line_bytes) {
        if constexpr (mode == Mode::write) {
          FASTPE_PREFETCH_TO_WRITE(reinterpret_cast<const char*>(rows.out[a][side]) + next + line);
        } else {
          FASTPE_PREFETCH_TO_READ(rows.x[a][side] + next + line);
        }
      }
      T::store(rows.out[a][side] + column, result);
    });
  };
  Vector last[anchor_count][sides] = {};
  const bool has_rest = (columns - lead_columns) % float_lanes != 0;
  if (has_rest) {
    rows.template each_row<mode>(last_column, [&](int a, int side, const Vector& result) { last[a][side] = result; });
  }
  if (lead_columns != 0) put(0);
  for (std::int64_t column = lead_columns; column <= last_column; column += float_lanes) put(column);
  if (has_rest) {
    for (int a = 0; a < anchor_count; ++a) {
      for (int side = 0; side < sides; ++side) T::store(rows.out[a][side] + last_column, last[a][side]);
    }
  }
}

template <class T, Mode mode>
void expand_panel(const Panel<T>& p, std::int64_t lead_columns) {
  if (is_two_blocks(p.e)) {
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) expand_row_set<T, mode, 1, 1>(p, anchor, 0, lead_columns);
    for (std::int64_t row = 1; row <= block_radius; ++row) {
      expand_row_set<T, mode, blocks_at_once, 2>(p, 0, row, lead_columns);
    }
    return;
  }
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    const std::int64_t first = p.e.first_row - anchor * block_rows, last = p.e.last_row - anchor * block_rows;
    for (std::int64_t row = 0; row <= block_radius; ++row) {
      const bool has_before = first <= -row && -row <= last, has_after = first <= row && row <= last;
      if (row > 0 && has_before && has_after) {
        expand_row_set<T, mode, 1, 2>(p, anchor, row, lead_columns);
      } else if (has_before || has_after) {
        expand_row_set<T, mode, 1, 1>(p, anchor, has_after ? row : -row, lead_columns);
      }
    }
  }
}

// Panels are about as wide as each other, since each prefetches the next one.
template <class T, Mode mode>
void expand_panels(const Expansion& e) {
  constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename T::Element));
  const std::int64_t count = (e.columns + panel_columns - 1) / panel_columns;
  const std::int64_t share = (e.columns + count - 1) / count;
  const std::int64_t width = (share + float_lanes - 1) / float_lanes * float_lanes;
  std::int64_t lead_columns = lead_columns_of<T, mode>(e);
  for (std::int64_t begin = 0; begin < e.columns;) {
    const std::int64_t left = e.columns - begin, wanted = width + lead_columns;
    Panel<T> p(e, begin, wanted < left ? wanted : left);
    if (e.prefetch) {
      const std::int64_t row_stride_bytes = mode == Mode::write ? e.out_row_stride_bytes : e.x_row_stride_bytes;
      p.prefetch_bytes = p.columns < left ? p.columns * element_size
                                          : (e.last_row - e.first_row + 1) * row_stride_bytes - begin * element_size;
    }
    expand_panel<T, mode>(p, lead_columns);
    lead_columns = 0;
    begin += p.columns;
  }
}

}  // namespace
}  // namespace fastpe

#include "expand_non_temporal.inl"

namespace fastpe {
namespace {

template <class T, Mode mode>
void expand_in_mode(const Expansion& e) {
  if constexpr (can_stream<T>) {
    if (e.non_temporal && expand_non_temporal<T, mode>(e)) return;
  }
  expand_panels<T, mode>(e);
}

template <class T>
void expand(const Expansion& e) {
  if (e.x == nullptr) return expand_in_mode<T, Mode::write>(e);
  e.scale == 1.0 && e.alpha == 1.0 ? expand_in_mode<T, Mode::add>(e) : expand_in_mode<T, Mode::scale_and_add>(e);
}

}  // namespace
}  // namespace fastpe
