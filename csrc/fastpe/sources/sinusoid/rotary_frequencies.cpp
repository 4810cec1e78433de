// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "fastpe/error.h"
#include "frequencies.h"
#include "wide.h"

namespace fastpe {
namespace {

using Type = RotaryScaling::Type;

Wide one() { return Wide::of_integer(1); }
Wide of_index(std::int64_t value) { return Wide::of_integer(static_cast<std::uint32_t>(value)); }

SignedWide floor_of(const SignedWide& value) {
  const Wide fraction = value.magnitude.fraction();
  const Wide whole = value.magnitude - fraction;
  return {value.negative && !fraction.is_zero() ? whole + one() : whole, value.negative};
}

void require_count(const char* name, std::int64_t count, std::int64_t least, std::int64_t frequencies) {
  if (least <= count && count <= frequencies) return;
  const std::string lowest = least < frequencies ? joined({least, " to "}) : "";
  refuse_value(name, {"is ", count}, {lowest, frequencies, ", the number of frequencies"});
}

constexpr const char* arguments = "base and scaling";

// base^(-2k / rotary_dim), where base is multiplied by stretch^(rotary_dim / (rotary_dim - 2)).
std::vector<Wide> powers(std::int64_t rotary_dim, double base, const Wide& stretch) {
  SignedWide log2_of_ratio = -(log2_of(base) * of_index(2) / of_index(rotary_dim));
  // With two columns there is one frequency, which is 1 whatever the base is.
  if (rotary_dim > 2) log2_of_ratio = log2_of_ratio - log2_of(stretch) * of_index(2) / of_index(rotary_dim - 2);
  const ScaledWide ratio = exp2_of(log2_of_ratio);
  // Frequencies fall or rise with k, so the others are between this one and 1.
  const ScaledWide last = exp2_of(log2_of_ratio * of_index(rotary_dim / 2 - 1));
  require_power(std::ldexp(last.mantissa.nearest_double(), last.exponent), rotary_dim / 2 - 1, arguments);
  std::vector<Wide> result(static_cast<std::size_t>(rotary_dim / 2));
  ScaledWide radians = ScaledWide::of_double(1.0);
  for (Wide& frequency : result) {
    frequency = radians.value();
    radians = radians * ratio;
  }
  return result;
}

// What divides the lowest frequency, because the base is multiplied by a power of it.
Wide stretch_of(const RotaryScaling& scaling) {
  if (scaling.type == Type::ntk) return Wide::of_double(scaling.factor);
  if (scaling.type != Type::dynamic) return one();
  const Wide excess =
      Wide::of_double(scaling.length - scaling.trained_length) / Wide::of_double(scaling.trained_length);
  return one() + Wide::of_double(scaling.factor) * excess;
}

// Where yarn's ramp begins and ends.
struct Ramp {
  Wide low;
  SignedWide width;

  Ramp(const RotaryScaling& scaling, std::int64_t rotary_dim, double base) {
    // The k that turns `turns` times within the trained length.
    const auto index_that_turns = [&](double turns) {
      const SignedWide log2_of_wavelength = log2_of(scaling.trained_length) + log2_of(inverse_tau()) - log2_of(turns);
      return log2_of_wavelength * of_index(rotary_dim) / (log2_of(base).magnitude * of_index(2));
    };
    SignedWide first = index_that_turns(scaling.beta_fast);
    SignedWide last = index_that_turns(scaling.beta_slow);
    if (scaling.truncate) {
      first = floor_of(first);
      last = -floor_of(-last);
    }
    if (!first.negative) low = first.magnitude;
    const Wide greatest = of_index(rotary_dim - 1);
    if (!last.negative && greatest < last.magnitude) last = {greatest, false};
    width = last - SignedWide{low, false};
    if (width.magnitude.is_zero()) width = {one() / of_index(1000), false};
  }

  Wide at(std::size_t k) const {
    const SignedWide distance = SignedWide{of_index(static_cast<std::int64_t>(k)), false} - SignedWide{low, false};
    if (distance.negative != width.negative) return Wide();
    if (!(distance.magnitude < width.magnitude)) return one();
    return distance.magnitude / width.magnitude;
  }
};

void interpolate_by_ramp(std::vector<Wide>& radians, const Ramp& ramp, const Wide& inverse_factor) {
  for (std::size_t k = 0; k < radians.size(); ++k) {
    const Wide interpolated = ramp.at(k);
    radians[k] = radians[k] * (interpolated * inverse_factor + (one() - interpolated));
  }
}

void interpolate_by_turns(std::vector<Wide>& radians, const RotaryScaling& scaling, const Wide& inverse_factor) {
  const Wide trained_length = Wide::of_double(scaling.trained_length);
  const Wide low_turns = Wide::of_double(scaling.low_turns), high_turns = Wide::of_double(scaling.high_turns);
  for (Wide& frequency : radians) {
    const Wide turns = frequency * inverse_tau() * trained_length;
    if (turns < low_turns) {
      frequency = frequency * inverse_factor;
    } else if (turns < high_turns) {
      const Wide kept = (turns - low_turns) / (high_turns - low_turns);
      frequency = frequency * ((one() - kept) * inverse_factor + kept);
    }
  }
}

std::vector<Wide> scaled_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling) {
  std::vector<Wide> radians = powers(rotary_dim, base, stretch_of(scaling));
  const std::int64_t count = rotary_dim / 2;
  const Wide inverse_factor = one() / Wide::of_double(scaling.factor);
  switch (scaling.type) {
    case Type::none:
    case Type::ntk:
    case Type::dynamic: break;
    case Type::linear:
    case Type::proportional:
      for (Wide& frequency : radians) frequency = frequency * inverse_factor;
      if (scaling.type == Type::linear) break;
      require_count("rotated_count", static_cast<std::int64_t>(scaling.rotated_count), 0, count);
      std::fill(radians.begin() + static_cast<std::ptrdiff_t>(scaling.rotated_count), radians.end(), Wide());
      break;
    case Type::yarn: interpolate_by_ramp(radians, Ramp(scaling, rotary_dim, base), inverse_factor); break;
    case Type::longrope:
      require_count("the number of divisors", static_cast<std::int64_t>(scaling.divisors.size()), count, count);
      for (std::size_t k = 0; k < radians.size(); ++k) radians[k] = radians[k] / Wide::of_double(scaling.divisors[k]);
      break;
    case Type::llama3: interpolate_by_turns(radians, scaling, inverse_factor); break;
  }
  return radians;
}

Wide attention_factor_of(const RotaryScaling& scaling) {
  if (scaling.factor <= 1.0) return one();
  if (scaling.type == Type::yarn) {
    const Wide log = log2_of(scaling.factor).magnitude * log_of_2() / of_index(10);
    const auto grown = [&](double mscale) { return one() + log * Wide::of_double(mscale); };
    const bool is_quotient = scaling.mscale != 0.0 && scaling.mscale_all_dim != 0.0;
    return is_quotient ? grown(scaling.mscale) / grown(scaling.mscale_all_dim) : grown(1.0);
  }
  if (scaling.type == Type::longrope) {
    const Wide square = one() + log2_of(scaling.factor).magnitude / log2_of(scaling.trained_length).magnitude;
    return exp2_of(log2_of(square) / of_index(2)).value();
  }
  return one();
}

}  // namespace

RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling) {
  RotaryFrequencies result;
  for (const Wide& frequency : scaled_frequencies(rotary_dim, base, scaling)) {
    require_representable(frequency.nearest_double(), static_cast<std::int64_t>(result.radians.size()), arguments);
    result.radians.push_back(frequency.nearest_double());
  }
  result.attention_factor = attention_factor_of(scaling).nearest_double();
  return result;
}

}  // namespace fastpe
