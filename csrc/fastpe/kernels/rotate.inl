// SPDX-License-Identifier: BSD-3-Clause
// rotate: turns pairs of columns, (out1, out2) = (x1 * cosine - x2 * sine, x2 * cosine + x1 * sine); backwards with the
// sines' signs changed.
//
// Method: each operation is rounded as NumPy rounds it, in float32 for the 16-bit dtypes; the vectors at a row's end
// overlap those before, and are turned before x is written. Pairs that lie side by side are split in the order of pairs
// that takes the fewest shuffles, into which the cosines and sines are brought instead. Where pairs are (k, k + half),
// (x1, x2) is turned backwards as (x2, x1) is turned forwards, and no sign is changed.
// It reads and writes exactly the pairs' columns, with any alignment; out may be x. If the tables' row stride is 0, one
// row of cosines and sines turns all rows.
// Error: only the rounding of each operation.
//
// If out is not x, its rows are fetched with those of x: from memory, this takes 0.6 to 0.8 of the time (Intel). Or
// they are made in the cache and streamed. On Zen 4, from 16 MiB on, float32 then takes 0.55 to 0.91 of the time and
// float64 0.53 to 0.77, but 16 bits 0.86 to 1.16, and arrays that the last level holds up to 1.6. The bytes made at
// once may be 1 to 3 KiB; with 8, half of the gain is lost, with 16 all of it.
//
// If one row of cosines and sines turns several rows of 32 or 64 pairs, as it does the heads of one token, it stays in
// registers (of which AVX2 has too few for 64 pairs). On Zen 4, with AVX-512, float32 in the cache then takes 0.67 to
// 0.73 of the time of whole vectors and 0.74 to 0.8 of that of halves, and from memory 0.8 to 0.9 of the latter; one
// token's queries and keys 0.89 to 0.94. With AVX2, these are 0.79 to 0.87, 0.74 to 0.98 and 0.97. float64 takes 0.73
// to 0.79 in the cache and 0.97 to 1.06 from memory, float16 0.96 and 0.86.
//
// Other rows of float32 are turned in halves of AVX-512's vectors on Zen 4, in the cache, too: rows of 128 columns take
// 0.89 to 0.95 of the time and of 64 columns 0.79, wherever rows begin; large arrays 0.99.
//
// With AVX2, rows of 32 or 64 pairs (k, k + half) have code that knows their length, where each row has its own cosines
// and sines, too. On Zen 4, rows of 128 float32 then take 0.9 to 0.93 of the time in the cache and 0.89 to 0.91 from
// memory, of 64 float32 0.89 and 0.84, of 128 float16 0.95 from memory. It gains little where pairs lie side by side
// (0.96 to 1.01), or with AVX-512 (0.94 to 1.02).
//
// These were no better on the whole: stores that begin on a vector's boundary, with vectors at both ends that
// overlap them (rows of 128 float32: on Zen 5, in the cache, 4 % faster with AVX-512 and 1 to 18 % slower with AVX2;
// on Zen 4, with AVX2, 0.97 to 1.02 of the time in the cache and 1.01 to 1.14 from memory); a table row in registers
// for wider rows, whose columns are then turned in several passes (Zen 4, 1.02 to 1.24), or for two to eight rows at
// a time (Zen 4, 0.9 to 1.03 with AVX-512, 1.02 to 1.2 with AVX2); rows streamed from 8 KiB (Intel, 0.75 to 1.5 of
// the time, by whether the last level holds both arrays; less was not tried there).
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

// The columns of float_lanes pairs: the pairs' first columns in one vector and their second ones in another.
template <class T, bool interleaved>
struct PairColumns {
  using Element = typename T::Element;
  using Vector = typename T::Vector;

  Vector firsts, seconds;

  FASTPE_ALWAYS_INLINE static PairColumns load(const Element* x, std::int64_t pair, std::int64_t half) {
    if constexpr (interleaved) {
      PairColumns c{T::load(x + 2 * pair), T::load(x + 2 * pair + float_lanes)};
      split_pairs(c.firsts, c.seconds);
      return c;
    } else {
      return {T::load(x + pair), T::load(x + half + pair)};
    }
  }
  FASTPE_ALWAYS_INLINE static PairColumns load_partial(const Element* x, std::int64_t pairs, std::int64_t half) {
    Element buffer[2 * float_lanes] = {};
    copy_elements(buffer, x, interleaved ? 2 * pairs : pairs);
    if constexpr (!interleaved) copy_elements(buffer + float_lanes, x + half, pairs);
    return load(buffer, 0, float_lanes);
  }
  template <class Factor>
  FASTPE_ALWAYS_INLINE PairColumns turned(Factor cosine, Factor sine) const {
    return {firsts * cosine - seconds * sine, seconds * cosine + firsts * sine};
  }
  FASTPE_ALWAYS_INLINE void store(Element* out, std::int64_t pair, std::int64_t half) const {
    if constexpr (interleaved) {
      PairColumns c = *this;
      join_pairs(c.firsts, c.seconds);
      T::store(out + 2 * pair, c.firsts);
      T::store(out + 2 * pair + float_lanes, c.seconds);
    } else {
      T::store(out + pair, firsts);
      T::store(out + half + pair, seconds);
    }
  }
  FASTPE_ALWAYS_INLINE void store_partial(Element* out, std::int64_t pairs, std::int64_t half) const {
    Element buffer[2 * float_lanes];
    store(buffer, 0, float_lanes);
    copy_elements(out, buffer, interleaved ? 2 * pairs : pairs);
    if constexpr (!interleaved) copy_elements(out + half, buffer + float_lanes, pairs);
  }
};

template <class T, class Table, bool interleaved>
struct RotatedRow {
  using Element = typename T::Element;
  using TableElement = typename Table::Element;
  using Columns = PairColumns<T, interleaved>;

  FASTPE_ALWAYS_INLINE RotatedRow(const Rotation& r, std::int64_t row)
      : out(reinterpret_cast<Element*>(r.out + row * r.out_row_stride_bytes)),
        x(reinterpret_cast<const Element*>(r.x + row * r.x_row_stride_bytes)),
        next_x((r.next_x == nullptr ? r.x : r.next_x) + row * r.x_row_stride_bytes),
        next_out(r.next_out == nullptr ? next_x : r.next_out + row * r.out_row_stride_bytes),
        cosines(reinterpret_cast<const TableElement*>(r.cosines + row * r.table_row_stride_bytes)),
        sines(reinterpret_cast<const TableElement*>(r.sines + row * r.table_row_stride_bytes)),
        half(r.half),
        // Exact, so that x - (-1 * sine) * y is x + sine * y to the bit.
        direction(Table::broadcast(r.backwards ? -1.0 : 1.0)) {}

  // The cosines and sines in the order of pairs that PairColumns has, and the sines with the direction's sign.
  FASTPE_ALWAYS_INLINE auto ordered_cosine(typename Table::Vector cosine) const {
    if constexpr (interleaved) cosine = in_pair_order(cosine);
    return cosine;
  }
  FASTPE_ALWAYS_INLINE auto ordered_sine(typename Table::Vector sine) const {
    if constexpr (interleaved) sine = in_pair_order(sine * direction);
    return sine;
  }
  FASTPE_ALWAYS_INLINE auto cosine_at(std::int64_t pair) const { return ordered_cosine(Table::load(cosines + pair)); }
  FASTPE_ALWAYS_INLINE auto sine_at(std::int64_t pair) const { return ordered_sine(Table::load(sines + pair)); }
  FASTPE_ALWAYS_INLINE Columns columns_at(std::int64_t pair) const { return Columns::load(x, pair, half); }
  FASTPE_ALWAYS_INLINE Columns at(std::int64_t pair) const {
    return columns_at(pair).turned(cosine_at(pair), sine_at(pair));
  }
  FASTPE_ALWAYS_INLINE void put_partial(std::int64_t pairs) const {
    Columns::load_partial(x, pairs, half)
        .turned(ordered_cosine(load_partial<Table>(cosines, pairs)), ordered_sine(load_partial<Table>(sines, pairs)))
        .store_partial(out, pairs, half);
  }
  template <Access access>
  FASTPE_ALWAYS_INLINE void prefetch(std::int64_t pair) const {
    const std::int64_t first = interleaved ? 2 * pair : pair;
    const std::int64_t second = interleaved ? first + float_lanes : first + half;
    if constexpr (access != Access::plain) {
      prefetch_columns<T, access>(next_x, first);
      prefetch_columns<T, access>(next_x, second);
    }
    if constexpr (access == Access::fetching) {
      prefetch_columns<T, access>(next_out, first);
      prefetch_columns<T, access>(next_out, second);
    }
  }

  Element* out;
  const Element* x;
  const char* next_x;
  const char* next_out;
  const TableElement* cosines;
  const TableElement* sines;
  std::int64_t half;
  typename Table::Vector direction;
};

template <class T, class Table, bool interleaved, Access access>
void rotate_rows(const Rotation& r) {
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const RotatedRow<T, Table, interleaved> here(r, row);
    if (r.pairs < float_lanes) {
      here.put_partial(r.pairs);
      continue;
    }
    const std::int64_t last_pair = r.pairs - float_lanes;
    const auto last = here.at(last_pair);
    for (std::int64_t pair = 0; pair < last_pair; pair += float_lanes) {
      here.template prefetch<access>(pair);
      here.at(pair).store(here.out, pair, here.half);
    }
    here.template prefetch<access>(last_pair);
    last.store(here.out, last_pair, here.half);
  }
}

// Turns rows that are a known number of whole vectors. If they are alike, one row of cosines and sines turns them all,
// and stays in registers.
template <class T, class Table, bool interleaved, int vectors, bool are_alike, Access access>
void rotate_whole_rows(const Rotation& r) {
  using Row = RotatedRow<T, Table, interleaved>;
  typename Table::Vector cosines[vectors], sines[vectors];
  if constexpr (are_alike) {
    const Row first(r, 0);
    for (int i = 0; i < vectors; ++i) {
      cosines[i] = first.cosine_at(i * float_lanes);
      sines[i] = first.sine_at(i * float_lanes);
    }
  }
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Row here(r, row);
    for (int i = 0; i < vectors; ++i) {
      const std::int64_t pair = i * float_lanes;
      here.template prefetch<access>(pair);
      if constexpr (are_alike) {
        here.columns_at(pair).turned(cosines[i], sines[i]).store(here.out, pair, here.half);
      } else {
        here.at(pair).store(here.out, pair, here.half);
      }
    }
  }
}

inline Access access_of(const Rotation& r) {
  if (r.next_x == nullptr) return Access::plain;
  return r.fetches_close && r.next_out == nullptr ? Access::fetching_close : Access::fetching;
}

template <class T, class Table, bool interleaved, int vectors, bool are_alike>
void rotate_whole(const Rotation& r) {
  switch (access_of(r)) {
    case Access::plain: return rotate_whole_rows<T, Table, interleaved, vectors, are_alike, Access::plain>(r);
    case Access::fetching_close:
      return rotate_whole_rows<T, Table, interleaved, vectors, are_alike, Access::fetching_close>(r);
    default: return rotate_whole_rows<T, Table, interleaved, vectors, are_alike, Access::fetching>(r);
  }
}

template <class T, class Table, bool interleaved>
void rotate_pairs(const Rotation& r) {
  using X = typename InHalves<T, Table>::X;
  using Other = typename InHalves<T, Table>::Other;
  if constexpr (has_wide_vectors) {
    const bool are_alike = r.table_row_stride_bytes == 0 && r.rows > 1;
    if (are_alike && r.pairs == 32) return rotate_whole<T, Table, interleaved, 32 / float_lanes, true>(r);
    if (are_alike && r.pairs == 64) return rotate_whole<T, Table, interleaved, 64 / float_lanes, true>(r);
    if constexpr (!has_vectors_of_lines && !interleaved) {
      if (r.pairs == 32) return rotate_whole<T, Table, interleaved, 32 / float_lanes, false>(r);
      if (r.pairs == 64) return rotate_whole<T, Table, interleaved, 64 / float_lanes, false>(r);
    }
  }
  switch (access_of(r)) {
    case Access::plain:
      if constexpr (has_vectors_of_lines) {
        if (r.in_halves) return rotate_rows<X, Other, interleaved, Access::plain>(r);
      }
      return rotate_rows<T, Table, interleaved, Access::plain>(r);
    case Access::fetching_close: return rotate_rows<X, Other, interleaved, Access::fetching_close>(r);
    default: return rotate_rows<X, Other, interleaved, Access::fetching>(r);
  }
}

template <class T, class Table>
void rotate_in_cache(const Rotation& r) {
  if (r.interleaved) return rotate_pairs<T, Table, true>(r);
  Rotation swapped;
  const Rotation* forwards = &r;
  if (r.backwards) {
    const std::int64_t half_bytes = r.half * static_cast<std::int64_t>(sizeof(typename T::Element));
    swapped = r;
    swapped.out += half_bytes;
    swapped.x += half_bytes;
    if (r.next_x != nullptr) swapped.next_x += half_bytes;
    if (r.next_out != nullptr) swapped.next_out += half_bytes;
    swapped.half = -r.half;
    forwards = &swapped;
  }
  rotate_pairs<T, Table, false>(*forwards);
}

// Turns rows without gaps in the cache, a few at a time, and streams them from there as one range of bytes. The part of
// a line that is left stays there for the next rows; those at both ends of the range are stored plainly.
FASTPE_NEVER_INLINE void rotate_streaming(const Rotation& r, void (*rotate_part)(const Rotation&)) {
  constexpr std::int64_t line = byte_line;
  // It lies in one page. Where it reached into a second one, rows took 1.5 to 1.9 times as long (Zen 4).
  alignas(4096) char made[line + most_streamed_row_bytes + line];
  const std::int64_t row_bytes = r.out_row_stride_bytes, rows_at_once = most_streamed_row_bytes / row_bytes;
  // Later stores would wait for the lines at both ends to come from memory.
  FASTPE_PREFETCH_FIRST_LEVEL(r.out);
  FASTPE_PREFETCH_FIRST_LEVEL(r.out + r.rows * row_bytes - 1);
  const auto beyond_line = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.out) % line);
  char* out = r.out - beyond_line;  // where `made` goes
  std::int64_t filled = beyond_line;
  for (std::int64_t row = 0; row < r.rows; row += rows_at_once) {
    Rotation part = r;
    part.rows = r.rows - row < rows_at_once ? r.rows - row : rows_at_once;
    part.out = made + filled;
    part.x += row * r.x_row_stride_bytes;
    if (part.next_x != nullptr) part.next_x += row * r.x_row_stride_bytes;
    part.cosines += row * r.table_row_stride_bytes;
    part.sines += row * r.table_row_stride_bytes;
    rotate_part(part);
    filled += part.rows * row_bytes;
    std::int64_t done = 0;
    if (row == 0 && beyond_line > 0) {
      done = line;
      copy_elements(r.out, made + beyond_line, line - beyond_line);
    }
    for (; done + line <= filled; done += line) stream_byte_line(out + done, made + done);
    if (done > 0) copy_elements(made, made + done, line);
    out += done;
    filled -= done;
  }
  copy_elements(out, made, filled);
}

template <class T, class Table>
void rotate(const Rotation& r) {
  r.streaming ? rotate_streaming(r, rotate_in_cache<T, Table>) : rotate_in_cache<T, Table>(r);
}

}  // namespace
}  // namespace fastpe
