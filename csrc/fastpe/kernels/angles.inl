// SPDX-License-Identifier: BSD-3-Clause
// angles: out[row][k] = (position + row) * radians[k], radians per position given as high + low.
//
// Method: the product is exact but for the last bits of low, and is summed to a double before it is rounded. In
// float32, the product with high is rounded, and made anew, with what it lacks, near a tie between two floats. It
// writes exactly the rows' columns, with any alignment, and may read column_padding radians more. Positions' magnitudes
// are at most 2^53, and those of the radians are 0 or in [2^-96, 2^45). A position so small that the product's last
// bits would be lost below the least double is made larger meanwhile, since instruction sets would lose different bits.
// Error: half an ulp and, from rounding twice in float32, 2^-53 of the value; less than an ulp where the value is no
// normal double.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

inline Doubles angles_at(Doubles position, Doubles high, Doubles low) {
  const Doubles rounded = position * high;
  const Doubles rest = two_product_error(position, high, rounded) + position * low;
  return rounded + rest;
}

// Writes vectors of angles, at positions of 1 or more in magnitude, or 0. In float32, the product's rest, of less than
// 2 units in its last place, decides only near a tie between two floats.
// `Pair` is DoublePair: a parameter, so that near_ties() is only needed where this is instantiated.
template <class T, int vectors, class Pair>
FASTPE_ALWAYS_INLINE void put_angles(typename T::Element* out, Pair position, const double* high, const double* low) {
  if constexpr (T::dtype == DType::float32 && has_wide_vectors) {
    // two_product_error(a, b, -0.0) is a * b + 0.0 in one instruction, and never a negative zero.
    const Doubles minus_zero = Doubles::broadcast(-0.0);
    Pair rounded[vectors];
    for (int i = 0; i < vectors; ++i) {
      const DoublePair radians = Float64::load(high + i * float_lanes);
      rounded[i] = {two_product_error(position.first, radians.first, minus_zero),
                    two_product_error(position.second, radians.second, minus_zero)};
      // Stored at once: compilers would keep the products until it is known that no tie is near.
      T::store(out + i * float_lanes, T::once(rounded[i].first, rounded[i].second));
    }
    auto ties = near_ties(rounded[0].first, rounded[0].second);
    for (int i = 1; i < vectors; ++i) ties = ties | near_ties(rounded[i].first, rounded[i].second);
    if (!ties.any()) return;
  }
  for (int i = 0; i < vectors; ++i) {
    const DoublePair radians = Float64::load(high + i * float_lanes), rest = Float64::load(low + i * float_lanes);
    T::store(out + i * float_lanes, T::once(angles_at(position.first, radians.first, rest.first),
                                            angles_at(position.second, radians.second, rest.second)));
  }
}

// A row at a position below 1 in magnitude.
template <class T>
FASTPE_NEVER_INLINE void write_small_angles(const Angles& a, double position, typename T::Element* out) {
  const bool is_tiny = position < 0x1p-700 && position > -0x1p-700;
  const Doubles factor = Doubles::broadcast(is_tiny ? position * 0x1p600 : position);
  const Doubles unit = Doubles::broadcast(is_tiny ? 0x1p-600 : 1.0);
  const std::int64_t end = a.columns;
  for (std::int64_t k = 0; k < end; k += float_lanes) {
    const DoublePair radians = Float64::load(a.radians_high + k), rest = Float64::load(a.radians_low + k);
    const auto v = T::once(angles_at(factor, radians.first, rest.first) * unit,
                           angles_at(factor, radians.second, rest.second) * unit);
    k + float_lanes <= end ? T::store(out + k, v) : store_partial<T>(out + k, v, end - k);
  }
}

template <class T>
FASTPE_ALWAYS_INLINE void write_angles(const Angles& a, double position, typename T::Element* out) {
  if (position < 1.0 && position > -1.0) return write_small_angles<T>(a, position, out);
  const Doubles factor = Doubles::broadcast(position);
  const DoublePair positions{factor, factor};
  constexpr int vectors = 2;
  const std::int64_t end = a.columns;
  std::int64_t k = 0;
  for (; k + vectors * float_lanes <= end; k += vectors * float_lanes) {
    put_angles<T, vectors>(out + k, positions, a.radians_high + k, a.radians_low + k);
  }
  for (; k + float_lanes <= end; k += float_lanes) {
    put_angles<T, 1>(out + k, positions, a.radians_high + k, a.radians_low + k);
  }
  if (k == end) return;
  typename T::Element last[float_lanes];
  put_angles<T, 1>(last, positions, a.radians_high + k, a.radians_low + k);
  copy_elements(out + k, last, end - k);
}

template <class T>
void angles(const Angles& a) {
  const Angles rows = a;  // stores could alias it
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    write_angles<T>(rows, rows.position + static_cast<double>(row),
                    reinterpret_cast<typename T::Element*>(rows.out + row * rows.out_row_stride_bytes));
  }
}

}  // namespace
}  // namespace fastpe
