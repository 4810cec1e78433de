// SPDX-License-Identifier: BSD-3-Clause
// Frequencies, in radians and in quarter turns, and their phasors, against values computed with 400 bits.
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/error.h"

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
    CHECK_EQUAL(f.radians.high[expected.k], expected.radians);
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

struct KnownFrequency {
  double scale, base, exponent_denominator;
  std::size_t k;
  double radians, quarters_high, quarters_low;
};

// From the smallest frequency up, and hardly down at all.
constexpr KnownFrequency known_extremes[] = {
    {1e-28, 1e-40, 8, 1, 0x1.82db34012b251p-77, 0x1.ec8f89765d061p-78, 0x1.159164db1c4edp-132},
    {1e-28, 1e-40, 8, 7, 0x1.312d000000000p+23, 0x1.848fd6e50b45cp+22, 0x1.fc47a4dc25ac4p-34},
    {0x1p-96, 0x1p-141, 8, 1, 0x1.8ace5422aa0dbp-79, 0x1.f6aebd3eef7bbp-80, -0x1.55c79a7540b36p-134},
    {0x1p-96, 0x1p-141, 8, 7, 0x1.4bfdad5362a27p+27, 0x1.a6b437bc6d6efp+26, -0x1.05c61ab81d6acp-29},
    {1.0, 1e4, 1e20, 1, 0x1.0000000000000p+0, 0x1.45f306dc9c883p-1, -0x1.6b8c5eeb54a43p-55},
    {3.0, 1e8, 0x1p60, 3, 0x1.8000000000000p+1, 0x1.e8ec8a4aeacc4p+0, -0x1.c6aea2eb790c5p-54},
};

void extreme_bases_and_denominators_lose_nothing() {
  for (const KnownFrequency& expected : known_extremes) {
    FrequencySpec spec;
    spec.frequency_count = 8;
    spec.frequency_scale = expected.scale;
    spec.base = expected.base;
    spec.exponent_denominator = expected.exponent_denominator;
    const Frequencies f = make_frequencies(spec, block_rows, column_padding);
    CHECK_EQUAL(f.radians.high[expected.k], expected.radians);
    const double error =
        (f.quarters.high[expected.k] - expected.quarters_high) + (f.quarters.low[expected.k] - expected.quarters_low);
    CHECK(std::fabs(error) <= std::ldexp(expected.quarters_high, -103));
  }
}

struct KnownPhasor {
  double radians;
  std::int64_t anchor;
  double residual;
  double sine, cosine;
};

// Beyond 2^51.9, and close to a tie: fraction and rest are up to 0.588 quarter turns.
constexpr KnownPhasor known_phasors[] = {
    {0.01, 290550214856320, 0.0, -0x1.702ebab03bedfp-1, -0x1.63c9ea2e33013p-1},
    {0.01, 288108935105836, 0.0, 0x1.70253bc8a062ep-1, 0x1.63d3bd80b24d3p-1},
    {0.1, 290488144616085, 0.0, 0x1.9861a66493c30p-1, 0x1.34d16c7d53f59p-1},
    {0.1, 290178280093506, 0.0, -0x1.9860c82885e79p-1, -0x1.34d2925e9a587p-1},
    {0x1.0000000000080p+44, 286476231448548, 0.0, -0x1.820123708d1f8p-1, -0x1.505ea3dc660ebp-1},
    {0x1.0000000000080p+44, 140459121265258, 14.0, -0x1.839a1eaa31655p-1, -0x1.4e870bfaf9781p-1},
    {0x1.0000000000080p+44, 144424471284853, 14.0, -0x1.80f71426ea736p-1, -0x1.518f02ba9c47fp-1},
    {0x1.8000000000300p+44, 140505916666400, 14.0, -0x1.4c8313d570fcbp-1, 0x1.85551b5c19f41p-1},
    {0x1.8000000000300p+44, 140898169538614, 14.0, 0x1.85540adf7031bp-1, 0x1.4c8452e14050ep-1},
    {0x1.fffffffffffffp+44, 144204739136919, 15.0, 0x1.70aa2953b65d6p-1, -0x1.634a0268ee643p-1},
};

void phasors_near_a_tie_are_right() {
  for (const KnownPhasor& expected : known_phasors) {
    Spec spec;
    spec.d_model = 2;
    spec.frequencies.frequency_count = 1;
    spec.frequencies.given = {expected.radians};
    const Encoder encoder(spec);
    for (const bool compensated : {false, true}) {
      std::vector<double> values(static_cast<std::size_t>(encoder.table_stride())), slopes(values);
      encoder.write_phasors(expected.anchor, expected.residual, compensated, values.data(), slopes.data());
      const double allowed = compensated ? 1.5e-16 : 4e-16;
      CHECK(std::fabs(values[0] - expected.sine) <= allowed);
      CHECK(std::fabs(values[1] - expected.cosine) <= allowed);
      CHECK_EQUAL(slopes[0], values[1]);
      CHECK_EQUAL(slopes[1], -values[0]);
    }
  }
}

void given_frequencies_are_kept() {
  FrequencySpec spec;
  spec.frequency_count = 3;
  spec.given = {0.0, -1.0, 0x1p44};
  const Frequencies f = make_frequencies(spec, block_rows, column_padding);
  CHECK_EQUAL(f.radians.high[0], 0.0);
  CHECK_EQUAL(f.radians.high[1], -1.0);
  CHECK_EQUAL(f.radians.high[2], 0x1p44);
  CHECK_EQUAL(f.quarters.high[0], 0.0);
  CHECK(f.quarters.high[1] < 0.0);
  CHECK_EQUAL(f.quarters.high.size() % static_cast<std::size_t>(column_padding), std::size_t{0});
}

void unrepresentable_frequencies_are_refused() {
  for (const double bad :
       {0x1p45, -0x1p45, 0x1p-97, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    FrequencySpec spec;
    spec.frequency_count = 1;
    spec.given = {bad};
    CHECK_THROWS(Error, make_frequencies(spec, block_rows, column_padding), "0");
  }
  FrequencySpec steep = spec_of(64).frequencies;
  steep.base = 1e300;
  CHECK_THROWS(Error, make_frequencies(steep, block_rows, column_padding), "base");
  FrequencySpec divided = spec_of(64).frequencies;
  divided.base = 1.0 + 0x1p-52;
  divided.exponent_denominator = 0x1p-11;
  CHECK_THROWS(Error, make_frequencies(divided, block_rows, column_padding), "denominator");
}

void one_frequency_needs_no_ratio() {
  FrequencySpec spec;
  spec.frequency_count = 1;
  spec.base = 1e300;
  spec.exponent_denominator = 0x1p-22;
  CHECK_EQUAL(make_frequencies(spec, block_rows, column_padding).radians.high[0], 1.0);
  spec.frequency_count = 3;
  spec.frequency_scale = 0.0;
  CHECK_EQUAL(make_frequencies(spec, block_rows, column_padding).radians.high[2], 0.0);
}

}  // namespace

int main() {
  quarter_turns_are_right_to_2_to_the_minus_104();
  anchor_turns_are_block_rows_times_turns_without_whole_turns();
  extreme_bases_and_denominators_lose_nothing();
  phasors_near_a_tie_are_right();
  given_frequencies_are_kept();
  unrepresentable_frequencies_are_refused();
  one_frequency_needs_no_ratio();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
