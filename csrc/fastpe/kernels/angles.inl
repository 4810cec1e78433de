// SPDX-License-Identifier: BSD-3-Clause
// angles: out[k] = position * radians[k], radians per position given as high + low.
//
// Method: the product is exact but for the last bits of low, and is summed to a double before it is rounded.
// It writes exactly `count` elements, with any alignment, and may read column_padding radians more. The position's
// magnitude is at most 2^53, and that of the radians is 0 or from 2^-96 to 2^45. A position so small that the product's
// last bits would be lost below the least double is made larger meanwhile, since instruction sets would lose different
// bits. Error: half an ulp and, from rounding twice in float32, 2^-53 of the value; less than an ulp where the value is
// no normal double.
#pragma once

#include "elements.inl"

namespace fastpe {
namespace {

template <class T>
void angles(const Angles& a) {
  auto* const out = reinterpret_cast<typename T::Element*>(a.out);
  const bool is_tiny = a.position < 0x1p-700 && a.position > -0x1p-700;
  const Doubles position = Doubles::broadcast(is_tiny ? a.position * 0x1p600 : a.position);
  const Doubles unit = Doubles::broadcast(is_tiny ? 0x1p-600 : 1.0);
  const auto product = [&](std::int64_t k) {
    const Doubles high = Doubles::load(a.radians_high + k);
    const Doubles rounded = position * high;
    const Doubles rest = two_product_error(position, high, rounded) + position * Doubles::load(a.radians_low + k);
    return (rounded + rest) * unit;
  };
  const auto vector = [&](std::int64_t k) { return T::once(product(k), product(k + double_lanes)); };
  std::int64_t k = 0;
  for (; k + float_lanes <= a.count; k += float_lanes) T::store(out + k, vector(k));
  if (k < a.count) store_partial<T>(out + k, vector(k), a.count - k);
}

}  // namespace
}  // namespace fastpe
