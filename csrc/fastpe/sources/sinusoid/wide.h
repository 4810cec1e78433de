// SPDX-License-Identifier: BSD-3-Clause
// Numbers in more than double precision, with logarithms and powers of their own: integer arithmetic alone, which gives
// the same bits on every machine.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fastpe/arithmetic_checks.h"

namespace fastpe {

// A non-negative fixed-point number, 64 bits before the point and 192 after it, in 32-bit limbs (least significant
// first). Multiplication and conversion truncate.
class Wide {
 public:
  static constexpr int limb_count = 8;
  static constexpr int fraction_limbs = 6;

  static Wide of_integer(std::int64_t value) {  // 0 <= value < 2^32
    Wide result;
    result.limbs_[fraction_limbs] = static_cast<std::uint32_t>(value);
    return result;
  }

  // From the fraction's 32-bit digits, most significant first.
  static Wide of_fraction(const std::array<std::uint32_t, fraction_limbs>& digits) {
    Wide result;
    for (std::size_t i = 0; i < fraction_limbs; ++i) result.limbs_[fraction_limbs - 1 - i] = digits[i];
    return result;
  }

  static Wide of_double(double value) {  // 0 <= value < 2^64
    Wide result;
    for (std::size_t i = limb_count; i-- > 0;) {
      const int exponent = 32 * (static_cast<int>(i) - fraction_limbs);
      const double digit = std::floor(std::ldexp(value, -exponent));
      result.limbs_[i] = static_cast<std::uint32_t>(digit);
      value -= std::ldexp(digit, exponent);
    }
    return result;
  }

  // Removes the leading 53 bits and returns them.
  double take_leading_double() {
    double result = 0.0;
    int bits_wanted = 53;
    for (std::size_t i = limb_count; i-- > 0 && bits_wanted > 0;) {
      std::uint32_t digit = limbs_[i];
      int bits = 32;
      if (bits_wanted == 53) {  // leading zeros are no part of the 53 bits
        while (bits > 0 && (digit >> (bits - 1)) == 0) --bits;
      }
      if (bits > bits_wanted) digit &= ~((std::uint32_t{1} << (bits - bits_wanted)) - 1);
      bits_wanted -= bits < bits_wanted ? bits : bits_wanted;
      limbs_[i] -= digit;
      result += std::ldexp(static_cast<double>(digit), 32 * (static_cast<int>(i) - fraction_limbs));
    }
    return result;
  }

  // Rounds to the nearest double, ties to even.
  double nearest_double() const {
    Wide rest = *this;
    const double leading = rest.take_leading_double();
    double next = rest.take_leading_double();
    if (!rest.is_zero()) next = made_odd(next);
    return leading + next;
  }

  // With its last bit set, a double that lacks a rest of its number is rounded as that number is: where it looks like a
  // tie, it is even, and the rest decides; else nothing changes.
  static double made_odd(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits |= 1;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  bool bit(int position) const {  // of weight 2^position
    const int from_bottom = position + 32 * fraction_limbs;
    return ((limbs_[static_cast<std::size_t>(from_bottom / 32)] >> (from_bottom % 32)) & 1u) != 0;
  }

  void set_bit(int position) {
    const int from_bottom = position + 32 * fraction_limbs;
    limbs_[static_cast<std::size_t>(from_bottom / 32)] |= std::uint32_t{1} << (from_bottom % 32);
  }

  bool is_zero() const { return !(Wide() < *this); }

  std::uint32_t integer_part() const { return limbs_[fraction_limbs]; }

  Wide fraction() const {
    Wide result = *this;
    result.limbs_[fraction_limbs] = result.limbs_[fraction_limbs + 1] = 0;
    return result;
  }

  // Times 2^exponent; bits beyond either end are lost.
  Wide scaled(int exponent) const {
    const int limbs = (exponent >= 0 ? exponent : exponent - 31) / 32;
    const int bits = exponent - 32 * limbs;
    const auto limb = [&](int i) {
      return i < 0 || i >= limb_count ? std::uint64_t{0} : std::uint64_t{limbs_[static_cast<std::size_t>(i)]};
    };
    Wide result;
    for (int i = 0; i < limb_count; ++i) {
      const std::uint64_t both = (limb(i - limbs) << 32) | limb(i - limbs - 1);
      result.limbs_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(both >> (32 - bits));
    }
    return result;
  }

  friend bool operator<(const Wide& a, const Wide& b) {
    for (std::size_t i = limb_count; i-- > 0;) {
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i];
    }
    return false;
  }

  friend Wide operator+(const Wide& a, const Wide& b) { return sum(a, b, 0, 0); }
  // In two's complement.
  friend Wide operator-(const Wide& a, const Wide& b) { return sum(a, b, UINT32_MAX, 1); }

  // Modulo 2^64.
  friend Wide operator*(const Wide& a, const Wide& b) {
    std::array<std::uint32_t, 2 * limb_count> product{};
    for (std::size_t i = 0; i < limb_count; ++i) {
      std::uint64_t carry = 0;
      for (std::size_t j = 0; j < limb_count; ++j) {
        carry += std::uint64_t{a.limbs_[i]} * b.limbs_[j] + product[i + j];
        product[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      product[i + limb_count] = static_cast<std::uint32_t>(carry);
    }
    Wide result;
    for (std::size_t i = 0; i < limb_count; ++i) result.limbs_[i] = product[i + fraction_limbs];
    return result;
  }

  // The divisor is not 0, and the quotient below 2^64.
  friend Wide operator/(const Wide& a, const Wide& divisor) {
    Wide result;
    Wide remainder;
    for (int position = 63; position >= -64 * fraction_limbs; --position) {
      // A remainder whose leading bit is shifted out is beyond every divisor.
      const bool is_beyond = remainder.bit(63);
      remainder = remainder + remainder;
      if (position >= -32 * fraction_limbs && a.bit(position)) remainder.set_bit(-32 * fraction_limbs);
      if (is_beyond || !(remainder < divisor)) {
        remainder = remainder - divisor;
        result.set_bit(position + 32 * fraction_limbs);
      }
    }
    return result;
  }

 private:
  // a plus b with some bits flipped.
  static Wide sum(const Wide& a, const Wide& b, std::uint32_t flipped, std::uint64_t carry) {
    Wide result;
    for (std::size_t i = 0; i < limb_count; ++i) {
      carry += std::uint64_t{a.limbs_[i]} + (b.limbs_[i] ^ flipped);
      result.limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return result;
  }

  std::array<std::uint32_t, limb_count> limbs_{};
};

struct SignedWide {
  Wide magnitude;
  bool negative = false;

  friend SignedWide operator-(const SignedWide& a) { return {a.magnitude, !a.negative}; }

  friend SignedWide operator+(const SignedWide& a, const SignedWide& b) {
    if (a.negative == b.negative) return {a.magnitude + b.magnitude, a.negative};
    if (a.magnitude < b.magnitude) return {b.magnitude - a.magnitude, b.negative};
    return {a.magnitude - b.magnitude, a.negative};
  }

  friend SignedWide operator-(const SignedWide& a, const SignedWide& b) { return a + -b; }
  friend SignedWide operator*(const SignedWide& a, const Wide& b) { return {a.magnitude * b, a.negative}; }
  friend SignedWide operator/(const SignedWide& a, const Wide& b) { return {a.magnitude / b, a.negative}; }
};

// mantissa * 2^exponent, the mantissa in [1, 2) or 0. Products keep their relative error however small they are: it is
// below 2^-152 for each of 2^20 frequencies, in a phase 2^-54 radians at the largest frequency, 2^-99 at those up to 1.
struct ScaledWide {
  Wide mantissa;
  int exponent;

  static ScaledWide of_double(double value) {
    int exponent = 0;
    const double mantissa = 2.0 * std::frexp(value, &exponent);
    return {Wide::of_double(mantissa), exponent - 1};
  }

  Wide value() const { return mantissa.scaled(exponent); }

  friend ScaledWide operator*(const ScaledWide& a, const ScaledWide& b) {
    const ScaledWide product{a.mantissa * b.mantissa, a.exponent + b.exponent};
    if (product.mantissa.integer_part() < 2) return product;
    return {product.mantissa.scaled(-1), product.exponent + 1};
  }
};

Wide inverse_tau();
Wide log_of_2();

// Of positive numbers.
SignedWide log2_of(double value);
SignedWide log2_of(const Wide& value);

ScaledWide exp2_of(const SignedWide& exponent);

}  // namespace fastpe
