// SPDX-License-Identifier: BSD-3-Clause
// angles: out[row][k] = (position + row) * radians[k], radians per position given as high + low.
//
// Method: the product is exact but for the last bits of low, and is summed to a double before it is rounded. In
// float32, the product with high alone is rounded, and made anew, with what it lacks, near a tie between two floats. It
// writes exactly the rows' columns, with any alignment, and may read column_padding radians more. Positions' magnitudes
// are at most 2^53, and those of the radians are 0 or from 2^-96 to 2^45. A position so small that the product's last
// bits would be lost below the least double is made larger meanwhile, since instruction sets would lose different bits.
// Error: half an ulp and, from rounding twice in float32, 2^-53 of the value; less than an ulp where the value is no
// normal double.
//
// Rows that are streamed take 0.63 to 0.78 of the time of plain stores on an Intel server, for [131072, 64]: a seam
// is made at once. Rows that are made in the cache and then streamed took 1.2 to 1.3 times as long as plain stores,
// since nothing drains while they are made.
//
// On Zen 4, float32 rows take 0.74 to 0.79 of the time of rows that are always made in full with AVX-512, and 0.83 to
// 0.87 with AVX2. Ties are looked for in two vectors at once, which are stored before if stores are plain: rows in the
// cache take 0.82 to 0.88 of the time of one vector at a time with AVX-512, and 0.76 to 0.78 with AVX2. Four at once
// gain no more, and take up to 1.24 where each row has a tie. To stream both before, too, and again behind a fence if a
// tie is near, takes 0.97 of the time with AVX2 and 1.01 with AVX-512, but 5 times as long where each row has a tie.
//
// On Zen 4, plain stores take 0.85 to 1.05 of the time of streamed rows with one thread, up to 16 MiB. With two they
// take 0.55 to 0.95 for 16 to 32 MiB, by how much of it the last level holds, and 0.8 to 1.1 for 64 MiB. Fetching their
// lines ahead gains nothing.
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
template <class T, Access access, int vectors, class Pair>  // so that narrow vectors need no `near_ties`
FASTPE_ALWAYS_INLINE void put_angles(typename T::Element* out, Pair position, const double* high, const double* low) {
  if constexpr (T::dtype == DType::float32 && has_wide_vectors) {
    // The product plus 0, which is no negative zero, in one instruction.
    const Doubles minus_zero = Doubles::broadcast(-0.0);
    Pair rounded[vectors];
    for (int i = 0; i < vectors; ++i) {
      const DoublePair radians = Float64::load(high + i * float_lanes);
      rounded[i] = {two_product_error(position.first, radians.first, minus_zero),
                    two_product_error(position.second, radians.second, minus_zero)};
      // Compilers would keep the products until it is known that no tie is near.
      if constexpr (access == Access::plain) {
        T::store(out + i * float_lanes, T::once(rounded[i].first, rounded[i].second));
      }
    }
    auto ties = near_ties(rounded[0].first, rounded[0].second);
    for (int i = 1; i < vectors; ++i) ties = ties | near_ties(rounded[i].first, rounded[i].second);
    if (!ties.any()) {
      if constexpr (access != Access::plain) {
        for (int i = 0; i < vectors; ++i) {
          put<T, access>(out + i * float_lanes, T::once(rounded[i].first, rounded[i].second));
        }
      }
      return;
    }
  }
  for (int i = 0; i < vectors; ++i) {
    const DoublePair radians = Float64::load(high + i * float_lanes), rest = Float64::load(low + i * float_lanes);
    put<T, access>(out + i * float_lanes, T::once(angles_at(position.first, radians.first, rest.first),
                                                  angles_at(position.second, radians.second, rest.second)));
  }
}

// The columns [begin, end) of a row at a position below 1 in magnitude.
template <class T>
FASTPE_NEVER_INLINE void write_small_angles(const Angles& a, double position, typename T::Element* out,
                                            std::int64_t begin, std::int64_t end) {
  const bool is_tiny = position < 0x1p-700 && position > -0x1p-700;
  const Doubles factor = Doubles::broadcast(is_tiny ? position * 0x1p600 : position);
  const Doubles unit = Doubles::broadcast(is_tiny ? 0x1p-600 : 1.0);
  for (std::int64_t k = begin; k < end; k += float_lanes) {
    const DoublePair radians = Float64::load(a.radians_high + k), rest = Float64::load(a.radians_low + k);
    const auto v = T::once(angles_at(factor, radians.first, rest.first) * unit,
                           angles_at(factor, radians.second, rest.second) * unit);
    k + float_lanes <= end ? T::store(out + k, v) : store_partial<T>(out + k, v, end - k);
  }
}

// The columns [begin, end) of a row.
template <class T>
FASTPE_ALWAYS_INLINE void write_angles(const Angles& a, double position, typename T::Element* out, std::int64_t begin,
                                       std::int64_t end) {
  if (position < 1.0 && position > -1.0) return write_small_angles<T>(a, position, out, begin, end);
  const Doubles factor = Doubles::broadcast(position);
  const DoublePair positions{factor, factor};
  constexpr int vectors = 2;
  std::int64_t k = begin;
  for (; k + vectors * float_lanes <= end; k += vectors * float_lanes) {
    put_angles<T, Access::plain, vectors>(out + k, positions, a.radians_high + k, a.radians_low + k);
  }
  for (; k + float_lanes <= end; k += float_lanes) {
    put_angles<T, Access::plain, 1>(out + k, positions, a.radians_high + k, a.radians_low + k);
  }
  if (k == end) return;
  typename T::Element last[float_lanes];
  put_angles<T, Access::plain, 1>(last, positions, a.radians_high + k, a.radians_low + k);
  copy_elements(out + k, last, end - k);
}

// The columns of the seam behind a row, or of its last line where rows share none.
template <class T>
struct Seam {
  static constexpr std::int64_t line = line_columns<T>;

  Seam(const Angles& a, std::int64_t columns_of_next) {
    for (std::int64_t i = 0; i < line; ++i) {
      const bool is_next = i >= line - columns_of_next;
      const std::int64_t k = i + columns_of_next - line + (is_next ? 0 : a.columns);
      high[i] = a.radians_high[k];
      low[i] = a.radians_low[k];
      position_step[i] = is_next ? 1.0 : 0.0;
    }
  }

  alignas(64) double high[line];
  alignas(64) double low[line];
  alignas(64) double position_step[line];  // from the row to the one that a column belongs to
};

// Streams rows without a gap that are aligned alike, at positions that are integers.
template <class T>
void stream_angles(const Angles& a) {
  constexpr std::int64_t line = line_columns<T>;
  auto* out = reinterpret_cast<typename T::Element*>(a.out);
  const std::int64_t lead_columns = elements_to_alignment<T, line_bytes<T>>(out);
  const Seam<T> seam(a, lead_columns);
  write_angles<T>(a, a.position, out, 0, lead_columns);
  for (std::int64_t row = 0; row < a.rows; ++row, out += a.columns) {
    const double position = a.position + static_cast<double>(row);
    const Doubles factor = Doubles::broadcast(position);
    const DoublePair positions{factor, factor};
    std::int64_t k = lead_columns;
    for (; k + line < a.columns; k += line) {
      put_angles<T, Access::streaming, line / float_lanes>(out + k, positions, a.radians_high + k, a.radians_low + k);
    }
    if (row == a.rows - 1) return write_angles<T>(a, position, out, k, a.columns);
    for (std::int64_t i = 0; i < line; i += float_lanes) {
      put_angles<T, Access::streaming, 1>(out + k + i, positions + Float64::load(seam.position_step + i), seam.high + i,
                                          seam.low + i);
    }
  }
}

template <class T>
void angles(const Angles& a) {
  const Angles rows = a;  // stores could alias it
  const std::int64_t row_bytes = rows.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const bool has_gaps = rows.out_row_stride_bytes != row_bytes;
  // A row alone is mostly its two ends.
  const bool pays = rows.rows > 1 && !has_gaps && row_bytes % line_bytes<T> == 0;
  if (rows.streaming && pays) return stream_angles<T>(rows);
  auto* const out = reinterpret_cast<typename T::Element*>(rows.out);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    write_angles<T>(rows, rows.position + static_cast<double>(row), advance(out, row * rows.out_row_stride_bytes), 0,
                    rows.columns);
  }
}

}  // namespace
}  // namespace fastpe
