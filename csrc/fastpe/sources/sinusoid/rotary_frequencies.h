// SPDX-License-Identifier: BSD-3-Clause
// Frequencies of rotary embeddings, in radians per position, and what the cosines and sines are multiplied by. Every
// value is the exact value of its formula, rounded to float64 once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace fastpe {

constexpr double largest_scaling_number = 0x1p31;

// How w_k = base^(-2k / rotary_dim) is changed. A type uses the numbers that its formula names; these are positive and
// from 1 / largest_scaling_number to largest_scaling_number, where not said otherwise.
struct RotaryScaling {
  enum class Type {
    none,
    linear,  // w_k / factor
    // w_k of base * factor^(rotary_dim / (rotary_dim - 2)), which divides the lowest frequency by the factor
    ntk,
    dynamic,  // as ntk with the factor: factor * length / trained_length - (factor - 1)
    // w_k * ramp_k / factor + w_k * (1 - ramp_k), with ramp_k = (k - low) / (high - low) kept between 0 and 1: low and
    // high are the k that turn beta_fast and beta_slow times within the trained length, kept between 0 and rotary_dim -
    // 1, and if `truncate`, rounded outwards to integers
    yarn,
    longrope,  // w_k / divisors[k]
    // w_k / factor where a frequency turns less than low_turns times within the trained length, w_k where it turns
    // more than high_turns times, and a blend of both between them
    llama3,
    proportional,  // w_k / factor for k < rotated_count, then 0
  };

  Type type = Type::none;
  double factor = 1.0;
  double length = 0.0;          // at least trained_length
  double trained_length = 0.0;  // with longrope at least 2
  double beta_fast = 0.0, beta_slow = 0.0;
  double mscale = 0.0, mscale_all_dim = 0.0;  // not negative; 0 where they do not count
  double low_turns = 0.0, high_turns = 0.0;   // low_turns <= high_turns
  bool truncate = true;
  double rotated_count = 0.0;  // an integer
  std::vector<double> divisors;
};

// The types by name, in their order, and the numbers.
inline constexpr const char* scaling_types[] = {"default", "linear",   "ntk",    "dynamic",
                                                "yarn",    "longrope", "llama3", "proportional"};
static_assert(std::size(scaling_types) == static_cast<std::size_t>(RotaryScaling::Type::proportional) + 1);
struct ScalingNumber {
  const char* name;
  double RotaryScaling::* number;
};
inline constexpr ScalingNumber scaling_numbers[] = {
    {"factor", &RotaryScaling::factor},
    {"length", &RotaryScaling::length},
    {"trained_length", &RotaryScaling::trained_length},
    {"beta_fast", &RotaryScaling::beta_fast},
    {"beta_slow", &RotaryScaling::beta_slow},
    {"mscale", &RotaryScaling::mscale},
    {"mscale_all_dim", &RotaryScaling::mscale_all_dim},
    {"low_turns", &RotaryScaling::low_turns},
    {"high_turns", &RotaryScaling::high_turns},
    {"rotated_count", &RotaryScaling::rotated_count},
};

struct RotaryFrequencies {
  std::vector<double> radians;  // [rotary_dim / 2]
  double attention_factor;
};

// base is at least 1, with yarn at least 2. Throws an Error where an encoder could not use a frequency, and where a
// scaling does not fit their number.
RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling);

}  // namespace fastpe
