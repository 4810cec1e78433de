// SPDX-License-Identifier: BSD-3-Clause
// What to compute, as plain data. Every convention with a width becomes a spec.
#pragma once

#include <cstdint>
#include <vector>

namespace fastpe {

// Frequencies in radians per position: frequency_scale * base^(-k / exponent_denominator), k = 0 .. frequency_count -
// 1, unless they are given.
struct FrequencySpec {
  std::int64_t frequency_count = 0;
  double base = 10000.0;
  double exponent_denominator = 1.0;
  double frequency_scale = 1.0;
  std::vector<double> given;
  const char* arguments = "base and freq_scale";  // what frequencies that are not given follow from
};

// Which column holds what. Columns beyond both sines and cosines are zero; sines or cosines beyond d_model are dropped.
struct Spec {
  std::int64_t d_model = 0;
  FrequencySpec frequencies;
  bool interleaved = true;  // sin, cos, sin, cos ..; else all of one, then all of the other
  bool cosine_first = false;
  double output_scale = 1.0;
};

}  // namespace fastpe
