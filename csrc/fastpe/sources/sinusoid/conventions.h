// SPDX-License-Identifier: BSD-3-Clause
// The named formulas of sinusoidal encodings, which the package and the C library read. With n frequencies,
// w_k = freq_scale * base^(-k / (n - denominator_offset)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace fastpe {

// What is done with an odd width, and what the encoding is multiplied by.
enum class OddWidth { natural, pad, round_up, error };
inline constexpr const char* odd_widths[] = {"natural", "pad", "round_up", "error"};
enum class Alpha { one, one_over_root, root_of_two_over };
inline constexpr const char* alphas[] = {nullptr, "1/sqrt(d)", "sqrt(2/d)"};
static_assert(std::size(odd_widths) == static_cast<std::size_t>(OddWidth::error) + 1);
static_assert(std::size(alphas) == static_cast<std::size_t>(Alpha::root_of_two_over) + 1);

struct Convention {
  const char* name;
  bool interleaved, cosine_first;
  OddWidth odd;
  double denominator_offset, denominator;  // denominator 0: the number of frequencies less the offset
  double base, freq_scale;
  std::int64_t first_position;
  Alpha alpha;
};

inline constexpr double pi = 3.141592653589793;

// In the order of the C library's numbers.
inline constexpr Convention conventions[] = {
    {"vaswani", true, false, OddWidth::natural, 0, 0, 1e4, 1, 0, Alpha::one},
    {"concat", false, false, OddWidth::natural, 0, 0, 1e4, 1, 0, Alpha::one},
    {"x_transformers", false, false, OddWidth::error, 0, 0, 1e4, 1, 0, Alpha::one_over_root},
    {"tensor2tensor", false, false, OddWidth::pad, 1, 0, 1e4, 1, 0, Alpha::one},
    {"fairseq", false, false, OddWidth::pad, 1, 0, 1e4, 1, 2, Alpha::one},
    {"opennmt_tf", false, false, OddWidth::error, 1, 0, 1e4, 1, 1, Alpha::one},
    {"musicgen", false, true, OddWidth::pad, 1, 0, 1e4, 1, 0, Alpha::one},
    {"ddpm", false, false, OddWidth::pad, 1, 0, 1e4, 1, 0, Alpha::one},
    {"timestep", false, true, OddWidth::pad, 0, 0, 1e4, 1, 0, Alpha::one},
    {"mlx", false, false, OddWidth::error, 1, 0, 1e4, 1, 0, Alpha::root_of_two_over},
    {"depthcharge", false, false, OddWidth::error, 1, 0, 1e7, 2.0 * pi / 0.001, 0, Alpha::one},
    {"positional_encodings", true, false, OddWidth::round_up, 0, 0, 1e4, 1, 0, Alpha::one},
    {"nerf", true, false, OddWidth::error, 0, 1, 0.5, 1, 0, Alpha::one},
    {"doubled_exponent", true, false, OddWidth::natural, 0, 0, 1e8, 1, 0, Alpha::one},
    {"stable_audio3", false, true, OddWidth::error, 1, 0, 0.5 / 1e4, pi, 0, Alpha::one},
};

// What a convention says of encodings of one width. A ValueError for an odd width that it does not define.
struct ConventionNumbers {
  std::int64_t frequency_count;
  double exponent_denominator;
  double output_scale;
};
ConventionNumbers numbers_of(const Convention& convention, std::int64_t d_model);

}  // namespace fastpe
