// SPDX-License-Identifier: BSD-3-Clause
// combine: adds the rows of an addend to rows, out[row] = x[row] * scale + addend[row] * alpha.
//
// Method: each operation is rounded as NumPy rounds it, in float32 for the 16-bit dtypes. Stores start on a vector's
// boundary, if not told otherwise; the vectors at both ends of a row overlap those between and are summed before x is
// written.
// It reads and writes exactly the rows' columns, with any alignment; out may be x. If the addend's row stride is 0, one
// row is added to all rows. Rows of x or of the addend may have offsets of their own, if they are gathered.
// Error: only the rounding of each operation.
//
// Streamed rows that have no gap between them are joined to one long row, so that they share no cache line. Sums of
// NumPy's arrays, which start 16 bytes behind a line, then take 0.67 to 0.9 of the time (Intel). Rows that are gathered
// cannot be joined: what two of them put into one line is kept until both are there. With that, and without a fence
// after each row, embed takes 0.6 to 0.75 of the time (Intel, both instruction sets, one thread and two). The row that
// is gathered next is fetched: 0.86 to 0.9 of the time with AVX-512, 0.96 to 0.99 with AVX2 (Zen 4, one thread; the
// same time with two).
//
// Rows of out that are not x are fetched with it, where they are not streamed: 16-bit sums into another array take 0.6
// to 0.9 of the time (Intel).
//
// AVX2 adds four vectors in each step: on an Intel server this is 5 to 10 % faster than one, and 11 to 23 % for float16
// from memory. AVX-512 gains nothing by it there, and bfloat16 from memory loses 7 to 14 %. It adds a whole line in
// each step, which is two vectors of 16 bits: beside one, and a branch for each line, bfloat16 takes 0.7 to 0.9 of the
// time (Zen 4).
//
// Every line of the next row is fetched. Without the last one or two, which vectors on their boundaries do not reach,
// float32 from memory takes 1.15 to 1.2 of the time (AVX-512, Zen 4; no difference on Intel).
//
// One sequence and its ready rows, which come from the last level, are added in halves of AVX-512's vectors on Zen 4:
// 0.84 to 0.9 of the time at 6 to 12 MiB (one thread; two: 0.91 to 1). So are ready rows at offsets of their own, which
// one token of each sequence reads: 0.92 to 0.96 for 64 to 1000 rows. Batches take 1.01 to 1.1 so.
//
// These were no better on the whole (on Zen 4, if nothing else is said):
// * fetching the tile ahead; x of an item while the tile is made: 0.97 to 1.03 of the time; x of another item into the
//   first level: up to twice the time, with 24 or with 12 KiB of its 32 in use;
// * 16-bit sums in halves of AVX-512's vectors: 0.94 to 1.14;
// * stores without boundaries in the cache: 1.1 to 1.4, and no less for 16 bits;
// * in the cache, segments of a quarter or half of the first level: 1.03 to 1.06 of the time of three eighths (Zen 5);
// * from memory, segments of 8 or 16 KiB instead of 12; x fetched two or four segments ahead: 1.05 to 1.15;
// * joined rows that are fetched: no difference on Intel, up to 1.1 on Zen 5.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

template <class T, class Addend, bool scaled>
struct CombinedRow {
  using Element = typename T::Element;
  using Vector = typename T::Vector;

  FASTPE_ALWAYS_INLINE CombinedRow(const Combination& c, std::int64_t row)
      : out(reinterpret_cast<Element*>(c.out + row * c.out_row_stride_bytes)),
        x(reinterpret_cast<const Element*>(
            c.x + (c.x_offsets_bytes == nullptr ? row * c.x_row_stride_bytes : c.x_offsets_bytes[row]))),
        addend(reinterpret_cast<const typename Addend::Element*>(c.addend + (c.addend_offsets_bytes == nullptr
                                                                                 ? row * c.addend_row_stride_bytes
                                                                                 : c.addend_offsets_bytes[row]))),
        next_x(c.x_offsets_bytes == nullptr ? (c.next_x == nullptr ? c.x : c.next_x) + row * c.x_row_stride_bytes
                                            : c.x + c.x_offsets_bytes[row + 1]),
        next_out(c.next_out == nullptr ? next_x : c.next_out + row * c.out_row_stride_bytes),
        is_gathered(c.x_offsets_bytes != nullptr),
        scale(T::broadcast(c.scale)),
        alpha(T::broadcast(c.alpha)) {}

  FASTPE_ALWAYS_INLINE Vector sum(Vector embedding, typename Addend::Vector other) const {
    return scaled ? embedding * scale + other * alpha : embedding + other;
  }
  FASTPE_ALWAYS_INLINE Vector at(std::int64_t column) const {
    return sum(T::load(x + column), Addend::load(addend + column));
  }
  // Fetches the lines of the next row between two distances from its first byte.
  template <Access access>
  FASTPE_ALWAYS_INLINE void prefetch(std::int64_t begin_bytes, std::int64_t end_bytes) const {
    if constexpr (access == Access::plain) return;
    // The processor itself fetches rows that follow each other before they are streamed elsewhere.
    if (access == Access::streaming && !is_gathered) return;
    for (std::int64_t at = begin_bytes; at < end_bytes; at += cache_line_bytes) {
      prefetch_line<access>(next_x + at);
      if constexpr (access == Access::fetching) prefetch_line<access>(next_out + at);
    }
  }
  // Puts the whole vectors between two columns, and fetches the next row meanwhile.
  template <Access access>
  FASTPE_ALWAYS_INLINE void put_vectors(std::int64_t begin, std::int64_t end, std::int64_t columns) const {
    constexpr auto element_size = static_cast<std::int64_t>(sizeof(Element));
    constexpr std::int64_t vectors_in_line =
        vector_bytes<T> < cache_line_bytes ? cache_line_bytes / vector_bytes<T> : 1;
    // Narrow vectors would need much code.
    constexpr std::int64_t vectors_at_once = !has_wide_vectors ? 1 : float_lanes == 8 ? 4 : vectors_in_line;
    constexpr std::int64_t at_once = vectors_at_once * float_lanes, bytes_at_once = at_once * element_size;
    std::int64_t column = begin;
    for (; column + at_once <= end; column += at_once) {
      const std::int64_t done_bytes = (column - begin) * element_size;
      const bool is_line_done = bytes_at_once < cache_line_bytes && done_bytes % cache_line_bytes >= bytes_at_once;
      if (!is_line_done) prefetch<access>(done_bytes, done_bytes + bytes_at_once);
      for (std::int64_t i = column; i < column + at_once; i += float_lanes) put<T, access>(out + i, at(i));
    }
    prefetch<access>((column - begin) * element_size, columns * element_size);
    // Rows begin anywhere in a line, so the last byte may be in one more.
    prefetch<access>(columns * element_size - 1, columns * element_size);
    for (; column + float_lanes <= end; column += float_lanes) put<T, access>(out + column, at(column));
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
  bool is_gathered;
  Vector scale, alpha;
};

// Streams whole cache lines. A line that two rows share is put together in `seam`, and streamed once both are there:
// streamed rows whose first and last lines are stored otherwise take a quarter longer than plain stores.
template <class T, class Addend, bool scaled>
void stream_rows(const Combination& c, std::int64_t rows, std::int64_t columns) {
  using Element = typename T::Element;
  constexpr std::int64_t line = line_columns<T>;
  const bool have_no_gap = c.out_row_stride_bytes == columns * static_cast<std::int64_t>(sizeof(Element));
  const bool have_seams = have_no_gap && columns >= 2 * line;
  // The vectors at a row's ends reach beyond its part of the seam.
  Element buffer[3 * line];
  Element* const seam = buffer + line;
  std::int64_t filled = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const CombinedRow<T, Addend, scaled> r(c, row);
    const std::int64_t aligned = elements_to_alignment<T, line_bytes<T>>(r.out);
    const std::int64_t lead_columns = aligned < columns ? aligned : columns;
    if (filled > 0) {
      for (std::int64_t i = 0; i < lead_columns; i += float_lanes) T::store(seam + filled + i, r.at(i));
      for (std::int64_t i = 0; i < line; i += float_lanes) {
        T::stream(r.out + lead_columns - line + i, T::load(seam + i));
      }
    } else {
      r.put_partials(0, lead_columns);
    }
    const std::int64_t end = lead_columns + (columns - lead_columns) / line * line;
    r.template put_vectors<Access::streaming>(lead_columns, end, columns);
    filled = have_seams && row + 1 < rows ? columns - end : 0;
    if (filled > 0) {
      for (std::int64_t i = 0; i + float_lanes <= filled; i += float_lanes) T::store(seam + i, r.at(end + i));
      T::store(seam + filled - float_lanes, r.at(columns - float_lanes));
    } else {
      r.put_partials(end, columns);
    }
  }
}

template <class T, class Addend, bool scaled, Access access>
void combine_rows(const Combination& c, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const CombinedRow<T, Addend, scaled> r(c, row);
    const bool is_unaligned = access != Access::plain && c.unaligned;
    const std::int64_t aligned = is_unaligned ? 0 : elements_to_alignment<T>(r.out);
    const std::int64_t lead_columns = aligned < columns ? aligned : columns;
    if (columns < float_lanes) {
      r.put_partials(0, columns);
    } else {
      // The vectors at both ends may overlap the aligned ones between them, so they are summed before x is written.
      const auto first = r.at(0);
      const auto last = r.at(columns - float_lanes);
      r.template put_vectors<access>(lead_columns, columns, columns);
      T::store(r.out, first);
      T::store(r.out + columns - float_lanes, last);
    }
  }
}

template <class T, class Addend, bool scaled>
void combine_scaled(const Combination& c) {
  // If rows have no gap between them, they are one long row.
  const std::int64_t row_bytes = c.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const std::int64_t addend_row_bytes = c.columns * static_cast<std::int64_t>(sizeof(typename Addend::Element));
  const bool is_one_row = c.out_row_stride_bytes == row_bytes && c.x_row_stride_bytes == row_bytes &&
                          c.addend_row_stride_bytes == addend_row_bytes && c.addend_offsets_bytes == nullptr &&
                          c.x_offsets_bytes == nullptr;
  const std::int64_t joined_rows = is_one_row ? 1 : c.rows;
  const std::int64_t joined_columns = is_one_row ? c.rows * c.columns : c.columns;
  if constexpr (can_stream(T::dtype)) {
    if (c.streaming) return stream_rows<T, Addend, scaled>(c, joined_rows, joined_columns);
  }
  using X = typename InHalves<T, Addend>::X;
  using Other = typename InHalves<T, Addend>::Other;
  if (c.next_x != nullptr || c.x_offsets_bytes != nullptr) {
    const bool fetches_close = c.fetches_close && c.next_out == nullptr;
    fetches_close ? combine_rows<X, Other, scaled, Access::fetching_close>(c, c.rows, c.columns)
                  : combine_rows<X, Other, scaled, Access::fetching>(c, c.rows, c.columns);
    return;
  }
  if constexpr (has_vectors_of_lines) {
    if (c.in_halves) return combine_rows<X, Other, scaled, Access::plain>(c, joined_rows, joined_columns);
  }
  combine_rows<T, Addend, scaled, Access::plain>(c, joined_rows, joined_columns);
}

template <class T, class Addend>
void combine(const Combination& c) {
  c.scale == 1.0 && c.alpha == 1.0 ? combine_scaled<T, Addend, false>(c) : combine_scaled<T, Addend, true>(c);
}

}  // namespace
}  // namespace fastpe
