// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "fastpe/error.h"
#include "frequencies.h"
#include "wide.h"

namespace fastpe {
namespace {

using Type = RotaryScaling::Type;

Wide one() { return Wide::of_integer(1); }
Wide of_index(std::int64_t value) { return Wide::of_integer(value); }

SignedWide floor_of(const SignedWide& value) {
  const Wide fraction = value.magnitude.fraction();
  const Wide whole = value.magnitude - fraction;
  return {value.negative && !fraction.is_zero() ? whole + one() : whole, value.negative};
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
  require_representable(std::ldexp(last.mantissa.nearest_double(), last.exponent), rotary_dim / 2 - 1, arguments,
                        false);
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
  if (scaling.type == Type::ntk || scaling.type == Type::alpha) return Wide::of_double(*scaling.factor);
  if (scaling.type != Type::dynamic) return one();
  const double trained = *scaling.original_max_position_embeddings;
  const Wide excess = Wide::of_double(*scaling.seq_len - trained) / Wide::of_double(trained);
  return one() + Wide::of_double(*scaling.factor) * excess;
}

// Where yarn's ramp begins and ends.
struct Ramp {
  Wide low;
  SignedWide width;

  Ramp(const RotaryScaling& scaling, std::int64_t rotary_dim, double base) {
    // The k that turns `turns` times within the trained length.
    const auto index_that_turns = [&](double turns) {
      const SignedWide log2_of_wavelength =
          log2_of(*scaling.original_max_position_embeddings) + log2_of(inverse_tau()) - log2_of(turns);
      return log2_of_wavelength * of_index(rotary_dim) / (log2_of(base).magnitude * of_index(2));
    };
    SignedWide first = index_that_turns(*scaling.beta_fast);
    SignedWide last = index_that_turns(*scaling.beta_slow);
    if (*scaling.truncate) {
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
  const Wide trained_length = Wide::of_double(*scaling.original_max_position_embeddings);
  const Wide low_turns = Wide::of_double(*scaling.low_freq_factor),
             high_turns = Wide::of_double(*scaling.high_freq_factor);
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
  const Wide inverse_factor = one() / Wide::of_double(*scaling.factor);
  switch (scaling.type) {
    case Type::none:
    case Type::ntk:
    case Type::alpha:
    case Type::dynamic: break;
    case Type::linear:
    case Type::proportional:
      for (Wide& frequency : radians) frequency = frequency * inverse_factor;
      if (scaling.type == Type::linear) break;
      std::fill(radians.begin() + static_cast<std::ptrdiff_t>(*scaling.rotated_count), radians.end(), Wide());
      break;
    case Type::yarn: interpolate_by_ramp(radians, Ramp(scaling, rotary_dim, base), inverse_factor); break;
    case Type::longrope:
    case Type::divisors:
      for (std::size_t k = 0; k < radians.size(); ++k)
        radians[k] = radians[k] / Wide::of_double((*scaling.divisors)[k]);
      break;
    case Type::llama3: interpolate_by_turns(radians, scaling, inverse_factor); break;
  }
  return radians;
}

Wide attention_factor_of(const RotaryScaling& scaling) {
  if (*scaling.factor <= 1.0) return one();
  if (scaling.type == Type::yarn) {
    const Wide log = log2_of(*scaling.factor).magnitude * log_of_2() / of_index(10);
    const auto grown = [&](double mscale) { return one() + log * Wide::of_double(mscale); };
    const bool is_quotient = *scaling.mscale != 0.0 && *scaling.mscale_all_dim != 0.0;
    return is_quotient ? grown(*scaling.mscale) / grown(*scaling.mscale_all_dim) : grown(1.0);
  }
  if (scaling.type == Type::longrope) {
    const Wide square =
        one() + log2_of(*scaling.factor).magnitude / log2_of(*scaling.original_max_position_embeddings).magnitude;
    return exp2_of(log2_of(square) / of_index(2)).value();
  }
  return one();
}

constexpr unsigned bit_of(Type type) { return 1U << static_cast<unsigned>(type); }
constexpr unsigned yarn = bit_of(Type::yarn), llama3 = bit_of(Type::llama3), dynamic = bit_of(Type::dynamic),
                   proportional = bit_of(Type::proportional),
                   has_trained_length = dynamic | yarn | bit_of(Type::longrope) | llama3,
                   has_factor = bit_of(Type::linear) | bit_of(Type::ntk) | bit_of(Type::alpha) | has_trained_length,
                   has_divisors = bit_of(Type::longrope) | bit_of(Type::divisors);

constexpr ScalingNumber numbers[] = {
    {"factor", &RotaryScaling::factor, has_factor, proportional, 1.0},
    {"original_max_position_embeddings", &RotaryScaling::original_max_position_embeddings, has_trained_length, 0, 0.0},
    {"seq_len", &RotaryScaling::seq_len, dynamic, 0, 0.0},
    {"beta_fast", &RotaryScaling::beta_fast, 0, yarn, 32.0},
    {"beta_slow", &RotaryScaling::beta_slow, 0, yarn, 1.0},
    {"mscale", &RotaryScaling::mscale, 0, yarn, 0.0},
    {"mscale_all_dim", &RotaryScaling::mscale_all_dim, 0, yarn, 0.0},
    {"low_freq_factor", &RotaryScaling::low_freq_factor, llama3, 0, 0.0},
    {"high_freq_factor", &RotaryScaling::high_freq_factor, llama3, 0, 0.0},
    {"rotated_count", &RotaryScaling::rotated_count, proportional, proportional, 0.0},
};

void require_in_range(const char* name, double number, Text place = {}) {
  if (1.0 / largest_scaling_number <= number && number <= largest_scaling_number) return;
  refuse_value(name, {joined(place), "is ", number}, {"a number from 2**-31 to 2**31"});
}

// The scaling with all its numbers. Those of other types do not count.
RotaryScaling checked(const RotaryScaling& given, std::int64_t rotary_dim, double base) {
  RotaryScaling scaling = given;
  const Type type = given.type;
  const char* const type_name = scaling_types[static_cast<int>(type)];
  const auto require_given = [&](const char* name, bool is_given, unsigned needed_by, unsigned optional_for) {
    const bool is_needed = (needed_by & bit_of(type)) != 0, is_known = ((needed_by | optional_for) & bit_of(type)) != 0;
    if (is_given && !is_known) refuse_value(name, {"was given"}, {"none: \"", type_name, "\" does not use it"});
    if (!is_given && is_needed) refuse_value(name, {"is missing"}, {"what \"", type_name, "\" needs"});
  };
  if (type == Type::longrope && given.has_attention_factor) scaling.factor = given.factor.value_or(1.0);
  for (const auto& [name, member, needed_by, optional_for, otherwise] : numbers) {
    std::optional<double>& number = scaling.*member;
    require_given(name, number.has_value(), needed_by, optional_for);
    const bool may_be_otherwise = (optional_for & bit_of(type)) != 0;
    if (number && !(may_be_otherwise && *number == otherwise)) require_in_range(name, *number);
    number = number.value_or(otherwise);
  }
  require_given("truncate", given.truncate.has_value(), 0, yarn);
  scaling.truncate = given.truncate.value_or(true);
  const std::int64_t count = rotary_dim / 2;
  const auto check_divisors = [&](const char* name, const std::optional<std::vector<double>>& divisors, unsigned needed,
                                  unsigned optional) {
    require_given(name, divisors.has_value(), needed, optional);
    const auto size = divisors ? static_cast<std::int64_t>(divisors->size()) : count;
    if (size != count) refuse_value(name, {"has ", size, " numbers"}, {count, ": one per frequency, rotary_dim / 2"});
    for (std::int64_t k = 0; divisors && k < size; ++k) {
      require_in_range(name, (*divisors)[static_cast<std::size_t>(k)], {"[", k, "] "});
    }
  };
  check_divisors("divisors", given.divisors, has_divisors, 0);
  check_divisors("other_divisors", given.other_divisors, 0, has_divisors);

  const auto require = [](bool holds, const char* name, double number, Text expected, Text remedy = {}) {
    if (!holds) refuse_value(name, {"is ", number}, expected, remedy);
  };
  const double factor = *scaling.factor, trained = *scaling.original_max_position_embeddings;
  require(factor >= 1.0 || type == Type::alpha, "factor", factor, {"at least 1"},
          {"give ", 1.0 / factor, " if lengths are multiplied by that number: it is the factor's inverse"});
  require(trained >= 2.0 || type != Type::longrope, "original_max_position_embeddings", trained, {"at least 2"});
  require(*scaling.beta_fast >= *scaling.beta_slow, "beta_fast", *scaling.beta_fast,
          {"at least beta_slow, ", *scaling.beta_slow}, {"swap them"});
  require(*scaling.low_freq_factor <= *scaling.high_freq_factor, "low_freq_factor", *scaling.low_freq_factor,
          {"at most high_freq_factor, ", *scaling.high_freq_factor}, {"swap them"});
  require(*scaling.rotated_count <= static_cast<double>(count), "rotated_count", *scaling.rotated_count,
          {"0 to ", count, ", the number of frequencies"});
  require(base >= 2.0 || type != Type::yarn, "base", base, {"at least 2 for \"yarn\", which divides by its logarithm"});
  scaling.seq_len = std::max(*scaling.seq_len, trained);
  return scaling;
}

}  // namespace

View<ScalingNumber> scaling_numbers() { return {numbers, std::size(numbers)}; }

void require_base(double base) {
  if (!(1.0 <= base && std::isfinite(base))) refuse_value("base", {"is ", base}, {"a finite number, at least 1"});
}

RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& given) {
  require_base(base);
  const RotaryScaling scaling = checked(given, rotary_dim, base);
  RotaryFrequencies result;
  for (const Wide& frequency : scaled_frequencies(rotary_dim, base, scaling)) {
    require_representable(frequency.nearest_double(), static_cast<std::int64_t>(result.radians.size()), arguments);
    result.radians.push_back(frequency.nearest_double());
  }
  result.attention_factor = attention_factor_of(scaling).nearest_double();
  return result;
}

}  // namespace fastpe
