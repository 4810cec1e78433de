// SPDX-License-Identifier: BSD-3-Clause
// Frequencies in quarter turns per position, so that whole turns of a phase drop out exactly at any position.
#pragma once

#include <cstdint>
#include <vector>

#include "spec.h"

namespace fastpe {

// high + low, each component padded with zeros to a multiple of `padding`, and by `padding` more.
struct DoubleDoubles {
  std::vector<double> high, low;
};

struct Frequencies {
  DoubleDoubles radians;          // per position; high is rounded to nearest
  DoubleDoubles quarters;         // quarter turns per position
  double largest_quarters = 0.0;  // of quarters.high, in magnitude
  DoubleDoubles anchor_quarters;  // per block_rows positions, less whole turns: in [-2, 2]
};

// Throws an Error about these arguments where the magnitude of frequency k is neither 0 nor in [2^-96, 2^45).
void require_representable(double frequency, std::int64_t k, const char* arguments);

// Throws an Error where a frequency is not representable, or the exponents' denominator is below 2^-10.
Frequencies make_frequencies(const FrequencySpec& spec, std::int64_t block_rows, std::int64_t padding);

}  // namespace fastpe
