// SPDX-License-Identifier: BSD-3-Clause
// Frequencies, in radians and in quarter turns, against values computed with 400 bits.
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "check.h"
#include "encode.h"

namespace {

using namespace fastpe;
using fastpe::testing::spec_of;

struct Known {
  std::int64_t d_model;
  std::size_t k;
  double radians, quarters_high, quarters_low;
};

constexpr Known known[] = {
    {8, 0, 0x1.0000000000000p+0, 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55},
    {8, 1, 0x1.999999999999ap-4, 0x1.04c26be3b06cfp-4, -0x1.566c8dd9e3448p-60},
    {8, 3, 0x1.0624dd2f1a9fcp-10, 0x1.4dc5a8d185aa2p-11, 0x1.cfdd433f655acp-65},
    {512, 255, 0x1.b2cb9cf6bccd1p-14, 0x1.14cca0995934dp-14, -0x1.37d375cb4f23dp-68},
    {6, 1, 0x1.7c3d2c4d63ff5p-5, 0x1.e422a18069848p-6, -0x1.d0df87eb92088p-60},
};

void quarter_turns_are_right_to_2_to_the_minus_104() {
  for (const Known& expected : known) {
    const Frequencies f = make_frequencies(spec_of(expected.d_model).frequencies, block_rows, column_padding);
    CHECK_EQUAL(f.radians[expected.k], expected.radians);
    // Both differences are exact: the parts are close to each other.
    const double error =
        (f.quarters.high[expected.k] - expected.quarters_high) + (f.quarters.low[expected.k] - expected.quarters_low);
    CHECK(std::fabs(error) <= std::ldexp(expected.quarters_high, -104));
  }
}

void anchor_turns_are_block_rows_times_turns_without_whole_turns() {
  constexpr auto rows = static_cast<double>(block_rows);
  const Frequencies f = make_frequencies(spec_of(64).frequencies, block_rows, column_padding);
  for (std::size_t k = 0; k < 32; ++k) {
    const double product = rows * f.quarters.high[k];
    const double rest_of_product = std::fma(rows, f.quarters.high[k], -product) + rows * f.quarters.low[k];
    const double without_turns = product - 4 * std::nearbyint(product / 4);
    const double error = (f.anchor_quarters.high[k] - without_turns) + (f.anchor_quarters.low[k] - rest_of_product);
    CHECK(std::fabs(f.anchor_quarters.high[k]) <= 2.0);
    CHECK(std::fabs(error) <= 0x1p-100);
  }
}

void given_frequencies_are_kept() {
  FrequencySpec spec;
  spec.frequency_count = 3;
  spec.given = {0.0, -1.0, 0x1p44};
  const Frequencies f = make_frequencies(spec, block_rows, column_padding);
  CHECK_EQUAL(f.radians[0], 0.0);
  CHECK_EQUAL(f.radians[1], -1.0);
  CHECK_EQUAL(f.radians[2], 0x1p44);
  CHECK_EQUAL(f.quarters.high[0], 0.0);
  CHECK(f.quarters.high[1] < 0.0);
  CHECK_EQUAL(f.quarters.high.size() % static_cast<std::size_t>(column_padding), std::size_t{0});
}

void unrepresentable_frequencies_are_refused() {
  for (const double bad :
       {0x1p62, -0x1p62, 0x1p-97, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    FrequencySpec spec;
    spec.frequency_count = 1;
    spec.given = {bad};
    CHECK_THROWS(std::invalid_argument, make_frequencies(spec, block_rows, column_padding), "frequency 0 is");
  }
  FrequencySpec steep = spec_of(64).frequencies;
  steep.base = 1e300;
  CHECK_THROWS(std::invalid_argument, make_frequencies(steep, block_rows, column_padding), "check base");
}

}  // namespace

int main() {
  quarter_turns_are_right_to_2_to_the_minus_104();
  anchor_turns_are_block_rows_times_turns_without_whole_turns();
  given_frequencies_are_kept();
  unrepresentable_frequencies_are_refused();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
