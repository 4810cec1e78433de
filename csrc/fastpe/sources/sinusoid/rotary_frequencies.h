// SPDX-License-Identifier: BSD-3-Clause
// Frequencies of rotary embeddings, in radians per position, and what the cosines and sines are multiplied by. Every
// value is the exact value of its formula, rounded to float64 once.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace fastpe {

// The scalings below change w_k = base^(-2k / rotary_dim). Their numbers, where not said otherwise, are positive and
// from 1 / largest_scaling_number to largest_scaling_number.
constexpr double largest_scaling_number = 0x1p31;

struct Unscaled {};

// w_k / factor
struct LinearScaling {
  double factor;
};

// w_k of base * stretch^(rotary_dim / (rotary_dim - 2)), which divides the lowest frequency by the stretch.
struct BaseScaling {
  double stretch;
};

// BaseScaling with stretch = factor * length / trained_length - (factor - 1)
struct DynamicScaling {
  double factor;
  double length;  // at least trained_length
  double trained_length;
};

// w_k * ramp_k / factor + w_k * (1 - ramp_k), with ramp_k = (k - low) / (high - low) kept between 0 and 1: low and high
// are the k that turn beta_fast and beta_slow times within the trained length, kept between 0 and rotary_dim - 1.
struct YarnScaling {
  double factor;
  double trained_length;
  double beta_fast, beta_slow;
  bool truncate;                  // low and high to integers: outwards
  double mscale, mscale_all_dim;  // not negative; 0 where they do not count
};

// w_k / divisors[k]
struct LongRopeScaling {
  std::vector<double> divisors;
  double factor;
  double trained_length;  // at least 2
};

// w_k / factor where a frequency turns less than low_turns times within the trained length, w_k where it turns more
// than high_turns times, and a blend of both between them.
struct Llama3Scaling {
  double factor;
  double trained_length;
  double low_turns, high_turns;  // low_turns <= high_turns
};

// w_k / factor for k < rotated_count, then 0
struct ProportionalScaling {
  double factor;
  std::int64_t rotated_count;
};

using RotaryScaling = std::variant<Unscaled, LinearScaling, BaseScaling, DynamicScaling, YarnScaling, LongRopeScaling,
                                   Llama3Scaling, ProportionalScaling>;

struct RotaryFrequencies {
  std::vector<double> radians;  // [rotary_dim / 2]
  double attention_factor;
};

// base is at least 1, with a YarnScaling at least 2. Throws an Error where an encoder could not use a
// frequency, and where a scaling does not fit their number.
RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling);

}  // namespace fastpe
