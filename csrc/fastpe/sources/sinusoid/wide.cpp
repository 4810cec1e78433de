// SPDX-License-Identifier: BSD-3-Clause
#include "wide.h"

namespace fastpe {
namespace {

// log2 of a number in [1, 2), bit by bit: squaring doubles the logarithm.
Wide log2_of_mantissa(const Wide& mantissa) {
  Wide x = mantissa;
  Wide result;
  for (int position = -1; position >= -32 * Wide::fraction_limbs; --position) {
    x = x * x;
    if (x.integer_part() >= 2) {
      x = x.scaled(-1);
      result.set_bit(position);
    }
  }
  return result;
}

// 2^x for x in [0, 1): Taylor's series after 16 halvings, then as many squarings.
Wide exp2_of_fraction(const Wide& x) {
  constexpr int halvings = 16;
  const Wide t = (x * log_of_2()).scaled(-halvings);
  Wide term = Wide::of_integer(1);
  Wide sum = term;
  for (std::uint32_t n = 1; n <= 13; ++n) {
    term = term * t / Wide::of_integer(n);
    sum = sum + term;
  }
  for (int i = 0; i < halvings; ++i) sum = sum * sum;
  return sum;
}

// This form subtracts no nearly equal numbers.
SignedWide log2_of(const Wide& mantissa, int exponent) {
  const Wide fraction = log2_of_mantissa(mantissa);
  if (exponent < 0) return {Wide::of_integer(-exponent) - fraction, true};
  return {Wide::of_integer(exponent) + fraction, false};
}

}  // namespace

Wide inverse_tau() {
  return Wide::of_fraction({0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410});
}

Wide log_of_2() { return Wide::of_fraction({0xb17217f7, 0xd1cf79ab, 0xc9e3b398, 0x03f2f6af, 0x40f34326, 0x7298b62d}); }

SignedWide log2_of(double value) {
  const ScaledWide scaled = ScaledWide::of_double(value);
  return log2_of(scaled.mantissa, scaled.exponent);
}

SignedWide log2_of(const Wide& value) {
  int exponent = 63;
  while (!value.bit(exponent)) --exponent;
  return log2_of(value.scaled(-exponent), exponent);
}

ScaledWide exp2_of(const SignedWide& exponent) {
  const Wide& magnitude = exponent.magnitude;
  const int integer = static_cast<int>(magnitude.integer_part());
  if (!exponent.negative) return {exp2_of_fraction(magnitude.fraction()), integer};
  const Wide rest = Wide::of_integer(1) - magnitude.fraction();  // in (0, 1]
  if (rest.integer_part() == 1) return {Wide::of_integer(1), -integer};
  return {exp2_of_fraction(rest), -integer - 1};
}

}  // namespace fastpe
