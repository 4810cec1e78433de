// SPDX-License-Identifier: BSD-3-Clause
// resize: weighted sums of rows, out[row] = weights[0] * x[row of tap 0] + weights[1] * x[row of tap 1] + ..
//
// Method: products and sums in float64, in the order of the taps, each rounded; the sum is rounded once more, to the
// dtype of `out`. The vectors at a row's end overlap those before.
// Range: any numbers. It reads and writes exactly the rows' columns, with any alignment; out is not x. Error: the
// rounding of each operation.
#pragma once

#include "elements.inl"
#include "half_floats.inl"

namespace fastpe {
namespace {

template <class T>
FASTPE_ALWAYS_INLINE DoublePair in_float64(typename T::Vector v) {
  if constexpr (T::dtype == DType::float64) {
    return v;
  } else {
    DoublePair pair;
    widen(v, pair.first, pair.second);
    return pair;
  }
}

template <class T>
FASTPE_ALWAYS_INLINE void store_rounded(typename T::Element* p, DoublePair sum) {
  if constexpr (T::dtype == DType::bfloat16) {
    // Its numbers become as small as those of float32, of which rounded_once() would round the smallest twice.
    double values[float_lanes];
    sum.store(values);
    for (int i = 0; i < float_lanes; ++i) p[i] = bfloat16_of_float32(float32_to_odd(values[i]));
  } else {
    T::store(p, T::rounded_once(sum.first, sum.second));
  }
}

template <class In, class Out>
struct WeightedRow {
  FASTPE_ALWAYS_INLINE WeightedRow(const Resizing& r, std::int64_t row)
      : out(reinterpret_cast<typename Out::Element*>(r.out + row * r.out_row_stride_bytes)),
        x(r.x + row * r.x_row_stride_bytes),
        tap_numbers(r.tap_numbers),
        weights(r.weights),
        taps(r.taps),
        tap_stride_bytes(r.tap_stride_bytes) {}

  FASTPE_ALWAYS_INLINE const typename In::Element* row_of_tap(std::int64_t tap) const {
    return reinterpret_cast<const typename In::Element*>(x + tap_numbers[tap] * tap_stride_bytes);
  }
  FASTPE_ALWAYS_INLINE DoublePair term(std::int64_t tap, typename In::Vector v) const {
    return in_float64<In>(v) * DoublePair::broadcast(weights[tap]);
  }
  // So many vectors at once, whose sums do not wait for each other.
  template <int vectors>
  FASTPE_ALWAYS_INLINE void put(std::int64_t column) const {
    DoublePair sums[vectors];
    for (int i = 0; i < vectors; ++i) sums[i] = term(0, In::load(row_of_tap(0) + column + i * float_lanes));
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      const typename In::Element* const from = row_of_tap(tap) + column;
      for (int i = 0; i < vectors; ++i) sums[i] = sums[i] + term(tap, In::load(from + i * float_lanes));
    }
    for (int i = 0; i < vectors; ++i) store_rounded<Out>(out + column + i * float_lanes, sums[i]);
  }
  // Fewer columns than a vector has.
  FASTPE_ALWAYS_INLINE void put_partial(std::int64_t columns) const {
    DoublePair sum = term(0, load_partial<In>(row_of_tap(0), columns));
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      sum = sum + term(tap, load_partial<In>(row_of_tap(tap), columns));
    }
    typename Out::Element buffer[float_lanes];
    store_rounded<Out>(buffer, sum);
    copy_elements(out, buffer, columns);
  }

  typename Out::Element* out;
  const char* x;
  const std::int64_t* tap_numbers;
  const double* weights;
  std::int64_t taps, tap_stride_bytes;
};

template <class In, class Out>
void resize(const Resizing& r) {
  constexpr int at_once = 2;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const WeightedRow<In, Out> weighted(r, row);
    if (r.columns < float_lanes) {
      weighted.put_partial(r.columns);
      continue;
    }
    std::int64_t column = 0;
    for (; column + at_once * float_lanes <= r.columns; column += at_once * float_lanes) {
      weighted.template put<at_once>(column);
    }
    if (column + float_lanes <= r.columns) weighted.template put<1>(column);
    if (r.columns % float_lanes != 0) weighted.template put<1>(r.columns - float_lanes);
  }
}

}  // namespace
}  // namespace fastpe
