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

Wide one() { return Wide::of_integer(1); }
Wide of_index(std::int64_t value) { return Wide::of_integer(static_cast<std::uint32_t>(value)); }
Wide reciprocal(double value) { return one() / Wide::of_double(value); }

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

void require_usable(double frequency, std::int64_t k) { require_representable(frequency, k, "base and scaling"); }

// The frequencies and the factor before they are rounded.
struct WideFrequencies {
  std::vector<Wide> radians;
  Wide attention_factor = one();
};

// base^(-2k / rotary_dim), where base is multiplied by stretch^(rotary_dim / (rotary_dim - 2)).
WideFrequencies powers(std::int64_t rotary_dim, double base, const Wide& stretch) {
  const auto dim = static_cast<std::uint64_t>(rotary_dim);
  SignedWide log2_of_ratio = -(log2_of(base) * of_index(2) / dim);
  // With two columns there is one frequency, which is 1 whatever the base is.
  if (dim > 2) log2_of_ratio = log2_of_ratio - log2_of(stretch) * of_index(2) / (dim - 2);
  const ScaledWide ratio = exp2_of(log2_of_ratio);
  // Frequencies fall or rise with k, so the others are between this one and 1.
  const ScaledWide last = exp2_of(log2_of_ratio * of_index(rotary_dim / 2 - 1));
  require_usable(std::ldexp(last.mantissa.nearest_double(), last.exponent), rotary_dim / 2 - 1);
  WideFrequencies result;
  result.radians.resize(static_cast<std::size_t>(rotary_dim / 2));
  ScaledWide radians = ScaledWide::of_double(1.0);
  for (Wide& frequency : result.radians) {
    frequency = radians.value();
    radians = radians * ratio;
  }
  return result;
}

// Where a YarnScaling's ramp begins and ends.
struct Ramp {
  Wide low;
  SignedWide width;

  Ramp(const YarnScaling& scaling, std::int64_t rotary_dim, double base) {
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
    if (width.magnitude.is_zero()) width = {one() / 1000, false};
  }

  Wide at(std::int64_t k) const {
    const SignedWide distance = SignedWide{of_index(k), false} - SignedWide{low, false};
    if (distance.negative != width.negative) return Wide();
    if (!(distance.magnitude < width.magnitude)) return one();
    return distance.magnitude / width.magnitude;
  }
};

struct Scale {
  std::int64_t rotary_dim;
  double base;

  WideFrequencies ideal() const { return powers(rotary_dim, base, one()); }

  WideFrequencies operator()(const Unscaled&) const { return ideal(); }

  WideFrequencies operator()(const LinearScaling& scaling) const {
    WideFrequencies result = ideal();
    const Wide inverse_factor = reciprocal(scaling.factor);
    for (Wide& frequency : result.radians) frequency = frequency * inverse_factor;
    return result;
  }

  WideFrequencies operator()(const BaseScaling& scaling) const {
    return powers(rotary_dim, base, Wide::of_double(scaling.stretch));
  }

  WideFrequencies operator()(const DynamicScaling& scaling) const {
    const Wide excess =
        Wide::of_double(scaling.length - scaling.trained_length) / Wide::of_double(scaling.trained_length);
    return powers(rotary_dim, base, one() + Wide::of_double(scaling.factor) * excess);
  }

  WideFrequencies operator()(const YarnScaling& scaling) const {
    WideFrequencies result = ideal();
    const Wide inverse_factor = reciprocal(scaling.factor);
    const Ramp ramp(scaling, rotary_dim, base);
    for (std::size_t k = 0; k < result.radians.size(); ++k) {
      const Wide interpolated = ramp.at(static_cast<std::int64_t>(k));
      result.radians[k] = result.radians[k] * (interpolated * inverse_factor + (one() - interpolated));
    }
    if (scaling.factor > 1.0) {
      const Wide log = log2_of(scaling.factor).magnitude * log_of_2() / 10;
      const auto grown = [&](double mscale) { return one() + log * Wide::of_double(mscale); };
      const bool is_quotient = scaling.mscale != 0.0 && scaling.mscale_all_dim != 0.0;
      result.attention_factor = is_quotient ? grown(scaling.mscale) / grown(scaling.mscale_all_dim) : grown(1.0);
    }
    return result;
  }

  WideFrequencies operator()(const LongRopeScaling& scaling) const {
    WideFrequencies result = ideal();
    require_count("the number of divisors", static_cast<std::int64_t>(scaling.divisors.size()), rotary_dim / 2,
                  rotary_dim / 2);
    for (std::size_t k = 0; k < result.radians.size(); ++k) {
      result.radians[k] = result.radians[k] / Wide::of_double(scaling.divisors[k]);
    }
    if (scaling.factor > 1.0) {
      const Wide square = one() + log2_of(scaling.factor).magnitude / log2_of(scaling.trained_length).magnitude;
      result.attention_factor = exp2_of(log2_of(square) / 2).value();
    }
    return result;
  }

  WideFrequencies operator()(const Llama3Scaling& scaling) const {
    WideFrequencies result = ideal();
    const Wide inverse_factor = reciprocal(scaling.factor);
    const Wide trained_length = Wide::of_double(scaling.trained_length);
    const Wide low_turns = Wide::of_double(scaling.low_turns);
    const Wide high_turns = Wide::of_double(scaling.high_turns);
    for (Wide& frequency : result.radians) {
      const Wide turns = frequency * inverse_tau() * trained_length;
      if (turns < low_turns) {
        frequency = frequency * inverse_factor;
      } else if (turns < high_turns) {
        const Wide kept = (turns - low_turns) / (high_turns - low_turns);
        frequency = frequency * ((one() - kept) * inverse_factor + kept);
      }
    }
    return result;
  }

  WideFrequencies operator()(const ProportionalScaling& scaling) const {
    WideFrequencies result = (*this)(LinearScaling{scaling.factor});
    require_count("rotated_count", scaling.rotated_count, 0, rotary_dim / 2);
    std::fill(result.radians.begin() + static_cast<std::ptrdiff_t>(scaling.rotated_count), result.radians.end(),
              Wide());
    return result;
  }
};

}  // namespace

RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling) {
  const WideFrequencies wide = std::visit(Scale{rotary_dim, base}, scaling);
  RotaryFrequencies result;
  result.radians.reserve(wide.radians.size());
  for (const Wide& frequency : wide.radians) {
    require_usable(frequency.nearest_double(), static_cast<std::int64_t>(result.radians.size()));
    result.radians.push_back(frequency.nearest_double());
  }
  result.attention_factor = wide.attention_factor.nearest_double();
  return result;
}

}  // namespace fastpe
