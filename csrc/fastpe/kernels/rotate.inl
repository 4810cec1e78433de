// SPDX-License-Identifier: BSD-3-Clause
// rotate: rotates pairs of columns, (out1, out2) = (x1 * cosine - x2 * sine, x2 * cosine + x1 * sine); the conjugate
// has the sines' signs changed.
//
// Method: each operation is rounded as NumPy rounds it, in float32 for the 16-bit dtypes; the vectors at a row's end
// overlap those before, and are rotated before x can be overwritten. Pairs that lie side by side are split in the order
// of pairs that takes the fewest shuffles, into which the cosines and sines are brought instead. Where pairs are
// (k, k + half), the conjugate of (x1, x2) is the rotation of (x2, x1), and no sign is changed.
// Range: any numbers. It reads and writes exactly the pairs' columns, with any alignment; out may be x. If the tile's
// row stride is 0, one row of cosines and sines rotates all rows. Error: only the rounding of each operation.
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
  template <class RowVector>
  FASTPE_ALWAYS_INLINE PairColumns rotated(RowVector cosine, RowVector sine) const {
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

template <class T, bool interleaved>
FASTPE_ALWAYS_INLINE void prefetch_pairs(const char* row, std::int64_t pair, std::int64_t half) {
  if (row == nullptr) return;
  const std::int64_t first = interleaved ? 2 * pair : pair;
  prefetch_vector<T>(row, first);
  prefetch_vector<T>(row, interleaved ? first + float_lanes : first + half);
}

template <class T, class Row, bool interleaved>
void rotate_pairs(const Rotation& rotation) {
  using Element = typename T::Element;
  using Loaded = PairColumns<T, interleaved>;
  const Rotation r = rotation;  // stores could alias it
  // Exact, so that x - (-1 * sine) * y is x + sine * y to the bit.
  const auto sign = Row::broadcast(r.conjugate ? -1.0 : 1.0);
  const auto in_order = [](auto v) {
    if constexpr (interleaved) v = in_pair_order(v);
    return v;
  };
  const auto signed_sine = [&](typename Row::Vector sine) { return in_order(interleaved ? sine * sign : sine); };
  for (std::int64_t row = 0; row < r.rows; ++row) {
    auto* const out = reinterpret_cast<Element*>(r.out + row * r.out_row_stride_bytes);
    const auto* const x = reinterpret_cast<const Element*>(r.x + row * r.x_row_stride_bytes);
    const std::int64_t tile_offset_bytes =
        r.tile_offsets_bytes == nullptr ? row * r.tile_row_stride_bytes : r.tile_offsets_bytes[row];
    const auto* const cosines = reinterpret_cast<const typename Row::Element*>(r.tile + tile_offset_bytes);
    const auto* const sines = reinterpret_cast<const typename Row::Element*>(r.sines + tile_offset_bytes);
    if (r.pairs < float_lanes) {
      const auto cosine = in_order(load_partial<Row>(cosines, r.pairs));
      const auto sine = signed_sine(load_partial<Row>(sines, r.pairs));
      Loaded::load_partial(x, r.pairs, r.half).rotated(cosine, sine).store_partial(out, r.pairs, r.half);
      continue;
    }
    const char* const next_x = r.next_x == nullptr ? nullptr : r.next_x + row * r.x_row_stride_bytes;
    const char* const next_out = r.next_out == nullptr ? nullptr : r.next_out + row * r.out_row_stride_bytes;
    const auto rotated_at = [&](std::int64_t pair) {
      const auto cosine = in_order(Row::load(cosines + pair));
      return Loaded::load(x, pair, r.half).rotated(cosine, signed_sine(Row::load(sines + pair)));
    };
    const std::int64_t last_pair = r.pairs - float_lanes;
    const Loaded last = rotated_at(last_pair);
    for (std::int64_t pair = 0; pair < last_pair; pair += float_lanes) {
      prefetch_pairs<T, interleaved>(next_x, pair, r.half);
      prefetch_pairs<T, interleaved>(next_out, pair, r.half);
      rotated_at(pair).store(out, pair, r.half);
    }
    prefetch_pairs<T, interleaved>(next_x, last_pair, r.half);
    prefetch_pairs<T, interleaved>(next_out, last_pair, r.half);
    last.store(out, last_pair, r.half);
  }
}

template <class T, class Row>
void rotate(const Rotation& rotation) {
  if (rotation.interleaved) return rotate_pairs<T, Row, true>(rotation);
  if (!rotation.conjugate) return rotate_pairs<T, Row, false>(rotation);
  Rotation swapped = rotation;
  const std::int64_t half_bytes = rotation.half * static_cast<std::int64_t>(sizeof(typename T::Element));
  swapped.out += half_bytes;
  swapped.x += half_bytes;
  if (swapped.next_x != nullptr) swapped.next_x += half_bytes;
  if (swapped.next_out != nullptr) swapped.next_out += half_bytes;
  swapped.half = -rotation.half;
  rotate_pairs<T, Row, false>(swapped);
}

}  // namespace
}  // namespace fastpe
