// SPDX-License-Identifier: BSD-3-Clause
#include "angles.h"

#include <cmath>
#include <cstring>

namespace fastpe {
namespace {

// position * (high + low), exact but for the last bits of low. In float32, rounding it again may cost 2^-53 of it.
double angle_at(double position, double high, double low) {
  // The product's error would be lost below the least double.
  const bool is_tiny = std::fabs(position) < 0x1p-700;
  const double factor = is_tiny ? position * 0x1p600 : position;
  const double product = factor * high;
  const double angle = product + (std::fma(factor, high, -product) + factor * low);
  return is_tiny ? angle * 0x1p-600 : angle;
}

}  // namespace

void AngleRows::write_rows(const Span& span, const Target& target, char* /*scratch*/) const {
  const DoubleDoubles& radians = encoder_.frequencies().radians;
  const bool is_float64 = target.dtype == DType::float64;
  for (std::int64_t row = 0; row < span.count; ++row) {
    char* out = target.out + row * target.out_row_stride_bytes;
    for (std::int64_t i = 0; i < target.columns.count; ++i, out += element_bytes(target.dtype)) {
      const auto k = static_cast<std::size_t>(target.columns.first + i);
      const Number& position =
          span.coordinates == nullptr ? span.position : span.coordinates[coordinates_.of_frequency[k]];
      const double angle = angle_at(position.value + static_cast<double>(row), radians.high[k], radians.low[k]);
      const auto narrow = static_cast<float>(angle);
      is_float64 ? std::memcpy(out, &angle, sizeof angle) : std::memcpy(out, &narrow, sizeof narrow);
    }
  }
}

}  // namespace fastpe
