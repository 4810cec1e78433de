// SPDX-License-Identifier: BSD-3-Clause
// Converts float32 to and from the half types where an instruction set cannot, or where float64 is rounded to them
// once; the bits are those of the hardware.
#pragma once

#include <cstdint>
#include <cstring>

namespace fastpe {
namespace {

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float float32_of_float16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000u : 0u;
    return float_of(sign | 0x7f800000u | quiet | (fraction << 13));
  }
  if (exponent == 0) {  // a multiple of 2^-24, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
  }
  return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline std::uint16_t float16_of_float32(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves the multiple of 2^-24, rounded, in the low bits
    half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Rounded to odd: rounding it again, to at most 22 bits, gives what one rounding would, however small the value is.
inline float float32_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto widened = static_cast<double>(nearest);
  std::uint64_t before, after;
  std::memcpy(&before, &value, sizeof before);
  std::memcpy(&after, &widened, sizeof after);
  // Both have the same sign. Without branches, which no processor could foresee.
  const std::uint32_t is_beyond = after > before, is_inexact = after != before;
  return float_of((bits_of(nearest) - is_beyond) | is_inexact);
}

inline float float32_of_bfloat16(std::uint16_t half) { return float_of(static_cast<std::uint32_t>(half) << 16); }

inline std::uint16_t bfloat16_of_float32(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace fastpe
