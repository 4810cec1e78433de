// SPDX-License-Identifier: BSD-3-Clause
// Frequencies in quarter turns per position, so that whole turns of a phase drop out exactly at any position.
#pragma once

#include <cstdint>
#include <vector>

#include "fastpe/kernels/kernels.h"

namespace fastpe {

// In radians per position: frequency_scale * base^(-k / exponent_denominator), k = 0 .. frequency_count - 1, unless
// they are given.
struct WantedFrequencies {
  std::int64_t frequency_count = 0;
  double base = 10000.0;
  double exponent_denominator = 1.0;
  double frequency_scale = 1.0;
  std::vector<double> given;
  const char* arguments = "base and freq_scale";  // what frequencies that are not given follow from, for messages
};

// high + low.
struct DoubleDoubles {
  std::vector<double> high, low;
};

// Padded with zeros.
struct Frequencies {
  DoubleDoubles radians;          // per position; high is rounded to nearest
  DoubleDoubles quarters;         // quarter turns per position
  double largest_quarters = 0.0;  // of quarters.high, in magnitude
  DoubleDoubles anchor_quarters;  // per block_rows positions, less whole turns: in [-2, 2]
};

// The length of a table of so many columns, at any of which a kernel's load may begin.
constexpr std::int64_t padded(std::int64_t columns) {
  return (columns + column_padding - 1) / column_padding * column_padding + column_padding;
}

// Throws an Error about these arguments where the magnitude of frequency k is neither 0 nor in [2^-96, 2^45). One that
// is a power may not be 0: it was rounded to it.
void require_representable(double frequency, std::int64_t k, const char* arguments, bool may_be_zero = true);

// Throws an Error where a frequency is not representable, or the exponents' denominator is below 2^-10.
Frequencies make_frequencies(const WantedFrequencies& wanted);

}  // namespace fastpe
