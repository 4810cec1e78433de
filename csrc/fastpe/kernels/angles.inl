// SPDX-License-Identifier: BSD-3-Clause
// angles: products of positions and frequencies, out[row][c] = (position + row) * (high[c] + low[c]) * unit.
//
// Method: the product with `high` and its error, which is exact, plus the product with `low`, rounded once more to the
// dtype. `unit` is a power of two, by which the caller has divided a position whose products would be too small.
// Range: where products, and their errors, are normal numbers or 0. Tables are padded: see column_padding. It writes
// exactly the rows' columns. Error: 2^-53 of the angle before it is rounded.
#pragma once

#include "elements.inl"

namespace fastpe {
namespace {

FASTPE_ALWAYS_INLINE Doubles angle_at(Doubles position, const double* high, const double* low, Doubles unit) {
  const Doubles frequency = Doubles::load(high);
  const Doubles product = position * frequency;
  return (product + (two_product_error(position, frequency, product) + position * Doubles::load(low))) * unit;
}

template <class T>
void angles(const AngleArguments& a) {
  const Doubles unit = Doubles::broadcast(a.unit);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    auto* const out = reinterpret_cast<typename T::Element*>(a.out + row * a.out_row_stride_bytes);
    const Doubles position = Doubles::broadcast(a.position + static_cast<double>(row));
    for (std::int64_t c = 0; c < a.columns; c += float_lanes) {
      const double *const high = a.high + c, *const low = a.low + c;
      const auto made = T::rounded_once(angle_at(position, high, low, unit),
                                        angle_at(position, high + double_lanes, low + double_lanes, unit));
      if (a.columns - c >= float_lanes) {
        T::store(out + c, made);
      } else {
        store_partial<T>(out + c, made, a.columns - c);
      }
    }
  }
}

}  // namespace
}  // namespace fastpe
