// SPDX-License-Identifier: BSD-3-Clause
// Frequencies of rotary embeddings, in radians per position, and what the cosines and sines are multiplied by. Every
// value is the exact value of its formula, rounded to float64 once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "fastpe/arrays.h"

namespace fastpe {

constexpr double largest_scaling_number = 0x1p31;

// How w_k = base^(-2k / rotary_dim) is changed: a type, and its numbers by the names that a config.json has.
struct RotaryScaling {
  enum class Type {
    none,
    linear,  // w_k / factor
    // w_k of base * factor^(rotary_dim / (rotary_dim - 2)), which divides the lowest frequency by the factor
    ntk,
    dynamic,  // as ntk with the factor: factor * seq_len / trained - (factor - 1), seq_len at least trained
    // w_k * ramp_k / factor + w_k * (1 - ramp_k), with ramp_k = (k - low) / (high - low) kept between 0 and 1: low and
    // high are the k that turn beta_fast and beta_slow times within the trained length, kept between 0 and rotary_dim -
    // 1, and if `truncate`, rounded outwards to integers
    yarn,
    longrope,  // w_k / divisors[k]
    // w_k / factor where a frequency turns less than low_freq_factor times within the trained length, w_k where it
    // turns more than high_freq_factor times, and a blend of both between them
    llama3,
    proportional,  // w_k / factor for k < rotated_count, then 0
    divisors,      // as longrope, but cosines and sines are multiplied by 1
    alpha,         // as ntk, with a factor that may be below 1
  };

  Type type = Type::none;
  std::optional<double> factor, original_max_position_embeddings, seq_len, beta_fast, beta_slow, mscale, mscale_all_dim,
      low_freq_factor, high_freq_factor, rotated_count;
  std::optional<bool> truncate;
  std::optional<std::vector<double>> divisors, other_divisors;  // the others, of other lengths, are only checked
  bool has_attention_factor = false;                            // of its own: longrope then needs no factor
};

// The types by name, in their order.
inline constexpr const char* scaling_types[] = {"default",  "linear", "ntk",          "dynamic",  "yarn",
                                                "longrope", "llama3", "proportional", "divisors", "alpha"};
static_assert(std::size(scaling_types) == static_cast<std::size_t>(RotaryScaling::Type::alpha) + 1);

struct ScalingNumber {
  const char* name;
  std::optional<double> RotaryScaling::* number;
  unsigned needed_by, optional_for;  // types, a bit for each
  double otherwise;                  // what it is, or may be, where it is optional
};
View<ScalingNumber> scaling_numbers();

struct RotaryFrequencies {
  std::vector<double> radians;  // [rotary_dim / 2]
  double attention_factor;
};

void require_base(double base);
// Throws an Error about the base, or about a number by its name, where one is missing, belongs to another type or is
// out of its range, and where an encoder could not use a frequency.
RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base, const RotaryScaling& scaling);

}  // namespace fastpe
