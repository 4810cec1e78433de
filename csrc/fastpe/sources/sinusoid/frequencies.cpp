// SPDX-License-Identifier: BSD-3-Clause
#include "frequencies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace fastpe {
namespace {

// A non-negative fixed-point number, 64 bits before the point and 192 after it, in 32-bit limbs (least significant
// first). Multiplication and conversion truncate.
class Wide {
 public:
  static constexpr int limb_count = 8;
  static constexpr int fraction_limbs = 6;

  Wide() = default;

  static Wide of_integer(std::uint32_t value) {
    Wide result;
    result.limbs_[fraction_limbs] = value;
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

  // Takes the leading 53 bits away.
  double take_leading_double() {
    double result = 0.0;
    int bits_wanted = 53;
    for (std::size_t i = limb_count; i-- > 0 && bits_wanted > 0;) {
      std::uint32_t digit = limbs_[i];
      int bits = 32;
      if (bits_wanted == 53) {  // nothing taken yet: leading zeros do not count
        while (bits > 0 && (digit >> (bits - 1)) == 0) --bits;
      }
      if (bits > bits_wanted) digit &= ~((std::uint32_t{1} << (bits - bits_wanted)) - 1);
      bits_wanted -= bits < bits_wanted ? bits : bits_wanted;
      limbs_[i] -= digit;
      result += std::ldexp(static_cast<double>(digit), 32 * (static_cast<int>(i) - fraction_limbs));
    }
    return result;
  }

  bool bit(int position) const {  // of weight 2^position
    const int from_bottom = position + 32 * fraction_limbs;
    return ((limbs_[static_cast<std::size_t>(from_bottom / 32)] >> (from_bottom % 32)) & 1u) != 0;
  }

  void set_bit(int position) {
    const int from_bottom = position + 32 * fraction_limbs;
    limbs_[static_cast<std::size_t>(from_bottom / 32)] |= std::uint32_t{1} << (from_bottom % 32);
  }

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

  friend Wide operator+(const Wide& a, const Wide& b) {
    Wide result;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limb_count; ++i) {
      carry += std::uint64_t{a.limbs_[i]} + b.limbs_[i];
      result.limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return result;
  }

  friend Wide operator-(const Wide& a, const Wide& b) {
    Wide result;
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limb_count; ++i) {
      const std::uint64_t difference = std::uint64_t{a.limbs_[i]} - b.limbs_[i] - borrow;
      result.limbs_[i] = static_cast<std::uint32_t>(difference);
      borrow = (difference >> 32) & 1u;
    }
    return result;
  }

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

  friend Wide operator/(const Wide& a, std::uint64_t divisor) {  // divisor < 2^63
    Wide result;
    std::uint64_t remainder = 0;
    for (int position = 63; position >= -32 * fraction_limbs; --position) {
      remainder = 2 * remainder + (a.bit(position) ? 1 : 0);
      if (remainder >= divisor) {
        remainder -= divisor;
        result.set_bit(position);
      }
    }
    return result;
  }

 private:
  std::array<std::uint32_t, limb_count> limbs_{};
};

Wide inverse_tau() {
  return Wide::of_fraction({0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410});
}

Wide log_of_2() { return Wide::of_fraction({0xb17217f7, 0xd1cf79ab, 0xc9e3b398, 0x03f2f6af, 0x40f34326, 0x7298b62d}); }

// log2 of a number in [1, 2), bit by bit: squaring doubles the logarithm.
Wide log2_of_mantissa(double mantissa) {
  Wide x = Wide::of_double(mantissa);
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
    term = term * t / n;
    sum = sum + term;
  }
  for (int i = 0; i < halvings; ++i) sum = sum * sum;
  return sum;
}

// mantissa * 2^exponent, the mantissa in [1, 2) or 0. Products keep their relative error however small they are: it is
// below 2^-152 for each of 2^20 frequencies, which in a phase is 2^-54 radians at the largest, 2^-99 at those up to 1.
struct Scaled {
  Wide mantissa;
  int exponent;

  static Scaled of_double(double value) {
    int exponent = 0;
    const double mantissa = 2.0 * std::frexp(value, &exponent);
    return {Wide::of_double(mantissa), exponent - 1};
  }

  Wide value() const { return mantissa.scaled(exponent); }

  friend Scaled operator*(const Scaled& a, const Scaled& b) {
    const Scaled product{a.mantissa * b.mantissa, a.exponent + b.exponent};
    if (product.mantissa.integer_part() < 2) return product;
    return {product.mantissa.scaled(-1), product.exponent + 1};
  }
};

// The factor from one frequency to the next, base^(-1 / denominator).
Scaled ratio_of(double base, double denominator) {
  int exponent = 0;
  const double mantissa = 2.0 * std::frexp(base, &exponent);
  --exponent;
  // |log2(base)| and its sign, without a subtraction of nearly equal numbers.
  const bool negative = exponent < 0;
  const Wide fraction = log2_of_mantissa(mantissa);
  const Wide magnitude = negative ? Wide::of_integer(static_cast<std::uint32_t>(-exponent)) - fraction
                                  : Wide::of_integer(static_cast<std::uint32_t>(exponent)) + fraction;
  // The denominator as integer * 2^-shift.
  int denominator_exponent = 0;
  auto integer = static_cast<std::uint64_t>(std::ldexp(std::frexp(denominator, &denominator_exponent), 53));
  int shift = 53 - denominator_exponent;
  while (integer % 2 == 0 && shift > 0) {
    integer /= 2;
    --shift;
  }
  // log2(ratio) = -step, or +step for a base below 1. Below 2^8: the first and the last frequency are representable.
  const Wide step = (magnitude.scaled(std::max(shift, 0)) / integer).scaled(std::min(shift, 0));
  if (negative) {
    return {exp2_of_fraction(step.fraction()), static_cast<int>(step.integer_part())};
  }
  const Wide rest = Wide::of_integer(1) - step.fraction();  // in (0, 1]
  if (rest.integer_part() == 1) return {Wide::of_integer(1), -static_cast<int>(step.integer_part())};
  return {exp2_of_fraction(rest), -static_cast<int>(step.integer_part()) - 1};
}

void push(DoubleDoubles& to, Wide value, double factor) {  // a power of 2, either sign
  const double high = value.take_leading_double();
  to.high.push_back(factor * high);
  to.low.push_back(factor * value.take_leading_double());
}

// One frequency, given in radians per position.
void push_frequency(Frequencies& to, const Wide& radians, double sign, std::int64_t block_rows) {
  Wide rest = radians;
  const double leading = rest.take_leading_double();
  to.radians.push_back(sign * (leading + rest.take_leading_double()));
  const Wide turns = radians * inverse_tau();
  push(to.quarters, turns, 4.0 * sign);
  to.largest_quarters = std::max(to.largest_quarters, std::fabs(to.quarters.high.back()));
  const Wide anchor_turns = (turns.fraction() * Wide::of_integer(static_cast<std::uint32_t>(block_rows))).fraction();
  const bool beyond_half = anchor_turns.bit(-1);
  push(to.anchor_quarters, beyond_half ? Wide::of_integer(1) - anchor_turns : anchor_turns,
       beyond_half ? -4.0 * sign : 4.0 * sign);
}

// The logarithm of a base near 1, right to 2^-191, is divided by it.
void require_divisor(double exponent_denominator) {
  if (exponent_denominator >= 0x1p-10) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", exponent_denominator);
  throw std::invalid_argument(std::string("exponent_denominator is ") + text +
                              ", expected at least 2**-10; check the convention's shift and denominator");
}

void require_representable(double frequency, std::int64_t k) {
  const double magnitude = std::fabs(frequency);
  if (!(magnitude < 0x1p45) || (magnitude != 0.0 && magnitude < 0x1p-96)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", frequency);
    throw std::invalid_argument("frequency " + std::to_string(k) + " is " + text +
                                " radians per position, expected 0 or a magnitude from 2**-96 to 2**45; check base, "
                                "freq_scale and freqs");
  }
}

void pad(DoubleDoubles& values, std::size_t padding) {
  const std::size_t size = (values.high.size() + padding - 1) / padding * padding;
  values.high.resize(size, 0.0);
  values.low.resize(size, 0.0);
}

}  // namespace

Frequencies make_frequencies(const FrequencySpec& spec, std::int64_t block_rows, std::int64_t padding) {
  Frequencies result;
  if (!spec.given.empty()) {
    std::int64_t k = 0;
    for (const double frequency : spec.given) {
      require_representable(frequency, k++);
      push_frequency(result, Wide::of_double(std::fabs(frequency)), frequency < 0 ? -1.0 : 1.0, block_rows);
    }
  } else if (spec.frequency_count > 0) {
    require_representable(spec.frequency_scale, 0);
    const bool varies = spec.frequency_count > 1 && spec.frequency_scale != 0.0;
    const double exponent = varies ? static_cast<double>(spec.frequency_count - 1) / spec.exponent_denominator : 0.0;
    if (varies) require_divisor(spec.exponent_denominator);
    require_representable(spec.frequency_scale * std::pow(spec.base, -exponent), spec.frequency_count - 1);
    const Scaled ratio = varies ? ratio_of(spec.base, spec.exponent_denominator) : Scaled::of_double(1.0);
    const double sign = spec.frequency_scale < 0 ? -1.0 : 1.0;
    Scaled radians = Scaled::of_double(std::fabs(spec.frequency_scale));
    for (std::int64_t k = 0; k < spec.frequency_count; ++k) {
      push_frequency(result, radians.value(), sign, block_rows);
      radians = radians * ratio;
    }
  }
  pad(result.quarters, static_cast<std::size_t>(padding));
  pad(result.anchor_quarters, static_cast<std::size_t>(padding));
  return result;
}

}  // namespace fastpe
