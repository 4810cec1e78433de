// SPDX-License-Identifier: BSD-3-Clause
// combine: adds the rows of a tile to rows, out[row] = x[row] * scale + tile[row] * alpha.
//
// Method: each operation is rounded as NumPy rounds it, in float32 for the 16-bit dtypes. Regular stores start on a
// vector's boundary, and the vectors at both ends of a row overlap those between.
// Range: any numbers. It reads and writes exactly the rows' columns, with any alignment; out may be x. If the tile's
// row stride is 0, one row is added to all rows. Rows of x, or of the tile, may lie at given offsets instead of a
// stride apart. Error: only the rounding of each operation.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

template <class T, class Addend, bool scaled>
struct CombinedRow {
  using Element = typename T::Element;
  using Vector = typename T::Vector;
  static constexpr auto element_size = static_cast<std::int64_t>(sizeof(Element));

  FASTPE_ALWAYS_INLINE CombinedRow(const Combination& c, std::int64_t row)
      : out(reinterpret_cast<Element*>(c.out + row * c.out_row_stride_bytes)),
        x(reinterpret_cast<const Element*>(
            c.x + (c.x_offsets_bytes == nullptr ? row * c.x_row_stride_bytes : c.x_offsets_bytes[row]))),
        addend(reinterpret_cast<const typename Addend::Element*>(
            c.tile + (c.tile_offsets_bytes == nullptr ? row * c.tile_row_stride_bytes : c.tile_offsets_bytes[row]))),
        next_x(c.x_offsets_bytes != nullptr ? c.x + c.x_offsets_bytes[row + 1]
               : c.next_x != nullptr        ? c.next_x + row * c.x_row_stride_bytes
                                            : nullptr),
        next_out(c.next_out == nullptr ? nullptr : c.next_out + row * c.out_row_stride_bytes),
        scale(T::broadcast(c.scale)),
        alpha(T::broadcast(c.alpha)) {}

  FASTPE_ALWAYS_INLINE Vector sum(Vector x_columns, typename Addend::Vector addend_columns) const {
    return scaled ? x_columns * scale + addend_columns * alpha : x_columns + addend_columns;
  }
  FASTPE_ALWAYS_INLINE Vector at(std::int64_t column) const {
    return sum(T::load(x + column), Addend::load(addend + column));
  }
  FASTPE_ALWAYS_INLINE void prefetch(std::int64_t at_byte) const {
    if (next_x != nullptr) FASTPE_PREFETCH_TO_READ(next_x + at_byte);
    if (next_out != nullptr) FASTPE_PREFETCH_TO_WRITE(next_out + at_byte);
  }
  // Stores the whole vectors between two columns, and prefetches the next row meanwhile.
  template <bool non_temporal>
  FASTPE_ALWAYS_INLINE void put_vectors(std::int64_t begin, std::int64_t end, std::int64_t columns) const {
    constexpr std::int64_t at_once = line_columns<T>;
    std::int64_t column = begin, at_byte = 0;
    for (; column + at_once <= end; column += at_once, at_byte += line_bytes<T>) {
      for (std::int64_t line = 0; line < line_bytes<T>; line += cache_line_bytes) prefetch(at_byte + line);
      for (std::int64_t i = column; i < column + at_once; i += float_lanes) {
        if constexpr (non_temporal) {
          T::stream(out + i, at(i));
        } else {
          T::store(out + i, at(i));
        }
      }
    }
    if (next_x != nullptr) {
      for (const std::int64_t last = columns * element_size - 1; at_byte <= last; at_byte += cache_line_bytes) {
        prefetch(at_byte);
      }
      prefetch(columns * element_size - 1);  // rows begin anywhere in a line, so the last byte may be in one more
    }
    for (; column + float_lanes <= end; column += float_lanes) T::store(out + column, at(column));
  }
  // Any number of columns, none of which may be read or written beyond `end`.
  FASTPE_ALWAYS_INLINE void put_partials(std::int64_t begin, std::int64_t end) const {
    for (; begin < end; begin += float_lanes) {
      const std::int64_t count = end - begin < float_lanes ? end - begin : float_lanes;
      store_partial<T>(out + begin, sum(load_partial<T>(x + begin, count), load_partial<Addend>(addend + begin, count)),
                       count);
    }
  }

  Element* out;
  const Element* x;
  const typename Addend::Element* addend;
  const char* next_x;
  const char* next_out;
  Vector scale, alpha;
};

// Stores whole cache lines past the caches. A line that two rows share is put together in `shared`, and stored once
// both of its parts are there.
template <class T, class Addend, bool scaled>
void combine_non_temporal(const Combination& c, std::int64_t rows, std::int64_t columns) {
  using Element = typename T::Element;
  constexpr std::int64_t line = line_columns<T>;
  const bool has_gaps = c.out_row_stride_bytes != columns * static_cast<std::int64_t>(sizeof(Element));
  // The vectors at a row's ends reach beyond its part of the line.
  Element buffer[3 * line];
  Element* const shared = buffer + line;
  std::int64_t filled = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const CombinedRow<T, Addend, scaled> r(c, row);
    const std::int64_t aligned = elements_to_alignment<T>(r.out, line_bytes<T>);
    const std::int64_t lead_columns = aligned < columns ? aligned : columns;
    if (filled > 0) {
      for (std::int64_t i = 0; i < lead_columns; i += float_lanes) T::store(shared + filled + i, r.at(i));
      for (std::int64_t i = 0; i < line; i += float_lanes) {
        T::stream(r.out + lead_columns - line + i, T::load(shared + i));
      }
    } else {
      r.put_partials(0, lead_columns);
    }
    const std::int64_t end = lead_columns + (columns - lead_columns) / line * line;
    r.template put_vectors<true>(lead_columns, end, columns);
    filled = !has_gaps && columns >= 2 * line && row + 1 < rows ? columns - end : 0;
    if (filled > 0) {
      for (std::int64_t i = 0; i + float_lanes <= filled; i += float_lanes) T::store(shared + i, r.at(end + i));
      T::store(shared + filled - float_lanes, r.at(columns - float_lanes));
    } else {
      r.put_partials(end, columns);
    }
  }
}

template <class T, class Addend, bool scaled>
void combine_rows(const Combination& c, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const CombinedRow<T, Addend, scaled> r(c, row);
    if (columns < float_lanes) {
      r.put_partials(0, columns);
      continue;
    }
    // Summed before x can be overwritten.
    const auto first = r.at(0);
    const auto last = r.at(columns - float_lanes);
    const std::int64_t aligned = elements_to_alignment<T>(r.out, vector_bytes<T>);
    r.template put_vectors<false>(aligned, columns, columns);
    T::store(r.out, first);
    T::store(r.out + columns - float_lanes, last);
  }
}

template <class T, class Addend, bool scaled>
void combine_scaled(const Combination& c) {
  constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename T::Element));
  constexpr auto addend_size = static_cast<std::int64_t>(sizeof(typename Addend::Element));
  // Rows without gaps between them are one long row, in which no lines are shared.
  const bool is_one_row = c.next_x == nullptr && c.x_offsets_bytes == nullptr && c.tile_offsets_bytes == nullptr &&
                          c.out_row_stride_bytes == c.columns * element_size &&
                          c.x_row_stride_bytes == c.columns * element_size &&
                          c.tile_row_stride_bytes == c.columns * addend_size;
  const std::int64_t rows = is_one_row ? 1 : c.rows, columns = is_one_row ? c.rows * c.columns : c.columns;
  if constexpr (can_stream<T>) {
    if (c.non_temporal) return combine_non_temporal<T, Addend, scaled>(c, rows, columns);
  }
  combine_rows<T, Addend, scaled>(c, rows, columns);
}

template <class T, class Addend>
void combine(const Combination& c) {
  c.scale == 1.0 && c.alpha == 1.0 ? combine_scaled<T, Addend, false>(c) : combine_scaled<T, Addend, true>(c);
}

}  // namespace
}  // namespace fastpe
