// SPDX-License-Identifier: BSD-3-Clause
// Scaled rotary frequencies against values computed with 300 bits, and the arithmetic that they need.
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "fastpe/error.h"
#include "fastpe/sources/sinusoid/rotary_frequencies.h"
#include "fastpe/sources/sinusoid/wide.h"

namespace {

using namespace fastpe;

YarnScaling yarn(double factor) {
  YarnScaling scaling;
  scaling.factor = factor;
  scaling.trained_length = 4096.0;
  scaling.beta_fast = 32.0;
  scaling.beta_slow = 1.0;
  scaling.truncate = true;
  scaling.mscale = 0.0;
  scaling.mscale_all_dim = 0.0;
  return scaling;
}

// Frequencies 0, in the middle, and the last one.
struct Known {
  std::int64_t rotary_dim;
  double base;
  RotaryScaling scaling;
  double first, middle, last, attention_factor;
};

std::vector<Known> known_values() {
  YarnScaling gpt_oss = yarn(32.0);
  gpt_oss.truncate = false;
  YarnScaling unequal = yarn(40.0);
  unequal.mscale = 0.5;
  unequal.mscale_all_dim = 1.25;
  return {
      {128, 500000.0, Unscaled{}, 1.0, 0x1.72ba43fff3717p-10, 0x1.4985fec80a8cbp-19, 1.0},
      {256, 1e6, LinearScaling{8.0}, 0.125, 0x1.0624dd2f1a9fcp-13, 0x1.2b07b364c5e79p-23, 1.0},
      {128, 10000.0, BaseScaling{8.0}, 1.0, 0x1.c7d30ab4cd122p-9, 0x1.e459c57e28a47p-17, 1.0},
      {128, 10000.0, DynamicScaling{2.0, 2049.0, 2048.0}, 1.0, 0x1.4784801dbc263p-7, 0x1.e3e0cd4ad5eefp-14, 1.0},
      {64, 150000.0, gpt_oss, 1.0, 0x1.dea8781142687p-12, 0x1.44a5a6386947dp-22, 0x1.58b90bfbe8e7cp+0},
      {64, 10000.0, unequal, 1.0, 0x1.6872b020c49bap-8, 0x1.bf749e693a057p-19, 0x1.9f0d1637ea1b3p-1},
      {4, 10000.0, LongRopeScaling{{3.0, 7.0}, 32.0, 4096.0}, 0x1.5555555555555p-2, 0x1.767dce434a9b1p-10,
       0x1.767dce434a9b1p-10, 0x1.30b3713738289p+0},
      {128, 500000.0, Llama3Scaling{8.0, 8192.0, 1.0, 4.0}, 1.0, 0x1.132ba8c6715a6p-11, 0x1.4985fec80a8cbp-22, 1.0},
      {128, 1e6, ProportionalScaling{8.0, 44}, 0.125, 0x1.0624dd2f1a9fcp-13, 0.0, 1.0},
  };
}

void every_number_is_its_formulas_rounded_once() {
  for (const Known& expected : known_values()) {
    const RotaryFrequencies found = rotary_frequencies(expected.rotary_dim, expected.base, expected.scaling);
    const auto count = static_cast<std::size_t>(expected.rotary_dim / 2);
    CHECK_EQUAL(found.radians.size(), count);
    CHECK_EQUAL(found.radians[0], expected.first);
    CHECK_EQUAL(found.radians[count / 2], expected.middle);
    CHECK_EQUAL(found.radians[count - 1], expected.last);
    CHECK_EQUAL(found.attention_factor, expected.attention_factor);
  }
}

void the_widest_ranges_stay_in_bounds() {
  constexpr double least = 1.0 / largest_scaling_number;
  // Two columns: there is one frequency, whatever the base is.
  CHECK_EQUAL(rotary_frequencies(2, 10000.0, BaseScaling{largest_scaling_number}).radians[0], 1.0);
  CHECK_EQUAL(rotary_frequencies(4, 1.0, BaseScaling{least}).radians[1], largest_scaling_number);
  CHECK_EQUAL(rotary_frequencies(4, 1.0, BaseScaling{largest_scaling_number}).radians[1], least);
  CHECK_EQUAL(rotary_frequencies(4, 1.0, LinearScaling{least}).radians[1], largest_scaling_number);
  CHECK_EQUAL(rotary_frequencies(4, 1.0, LongRopeScaling{{1.0, least}, 1.0, 2.0}).radians[1], largest_scaling_number);
  const DynamicScaling longest{largest_scaling_number, largest_scaling_number, 1.0};
  // 1 / (2^31 * (2^31 - 1) + 1)
  CHECK_EQUAL(rotary_frequencies(4, 1.0, longest).radians[1], 0x1.00000002p-62);
  for (const double turns : {least, largest_scaling_number}) {
    for (const double length : {1.0, largest_scaling_number}) {
      YarnScaling scaling = yarn(largest_scaling_number);
      scaling.trained_length = length;
      scaling.beta_fast = scaling.beta_slow = turns;
      scaling.mscale = largest_scaling_number;
      scaling.mscale_all_dim = least;
      const RotaryFrequencies found = rotary_frequencies(std::int64_t{1} << 20, 2.0, scaling);
      // The ramp ends before all frequencies, or begins behind them: as in transformers, that divides all or none.
      CHECK_EQUAL(found.radians[0], turns == least ? least : 1.0);
      CHECK(found.attention_factor > 0x1p31 && found.attention_factor < 0x1p33);
    }
  }
}

void frequencies_that_no_encoder_can_use_are_refused() {
  for (const double base : {1e30, 1e300, 0x1.fffffffffffffp+1023}) {
    CHECK_THROWS(Error, rotary_frequencies(64, base, Unscaled{}), "base");
  }
  CHECK_THROWS(Error, rotary_frequencies(64, 1e28, LinearScaling{1e6}), "27");
  CHECK_THROWS(Error, rotary_frequencies(64, 1e28, BaseScaling{1e6}), "31");
}

void scalings_of_another_number_of_frequencies_are_refused() {
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{5}, INT64_MIN, INT64_MAX}) {
    CHECK_THROWS(Error, rotary_frequencies(8, 1e4, ProportionalScaling{1.0, count}), "4");
  }
  for (const std::size_t count : {0u, 3u, 5u}) {
    const LongRopeScaling scaling{std::vector<double>(count, 2.0), 1.0, 4096.0};
    CHECK_THROWS(Error, rotary_frequencies(8, 1e4, scaling), "4");
  }
}

void quotients_are_truncated() {
  const Wide three = Wide::of_integer(3);
  const Wide third = Wide::of_integer(1) / three;
  CHECK_EQUAL(third.nearest_double(), 1.0 / 3.0);
  CHECK(third * three < Wide::of_integer(1));
  CHECK_EQUAL((Wide::of_double(0x1p63) / Wide::of_double(0x1.8p-1)).nearest_double(), 0x1.5555555555555p+63);
  CHECK_EQUAL((Wide::of_double(0x1p-60) / Wide::of_double(0x1.8p+63)).nearest_double(), 0x1.5555555555555p-124);
  // By the same number as an integer.
  CHECK(!(third < Wide::of_integer(1) / std::uint64_t{3}) && !(Wide::of_integer(1) / std::uint64_t{3} < third));
}

void signs_are_kept() {
  const SignedWide two{Wide::of_integer(2), false};
  const SignedWide minus_three{Wide::of_integer(3), true};
  const SignedWide sum = two + minus_three;
  CHECK(sum.negative);
  CHECK_EQUAL(sum.magnitude.nearest_double(), 1.0);
  CHECK(!(two - minus_three).negative);
  CHECK_EQUAL((two - minus_three).magnitude.nearest_double(), 5.0);
  CHECK((two - two).magnitude.is_zero());
}

void logarithms_and_powers_undo_each_other() {
  for (const double value : {0x1p-31, 0.3, 0.5, 1.0, 1.5, 2.0, 10000.0, 0x1.fffffp+40}) {
    const SignedWide logarithm = log2_of(value);
    const SignedWide same = log2_of(Wide::of_double(value));
    CHECK(!(logarithm.magnitude < same.magnitude) && !(same.magnitude < logarithm.magnitude));
    CHECK_EQUAL(logarithm.negative, same.negative);
    CHECK_EQUAL(logarithm.negative, value < 1.0);
    CHECK_EQUAL(exp2_of(logarithm).value().nearest_double(), value);
  }
  CHECK_EQUAL(log2_of(3.0).magnitude.nearest_double(), 0x1.95c01a39fbd68p+0);
}

}  // namespace

int main() {
  every_number_is_its_formulas_rounded_once();
  the_widest_ranges_stay_in_bounds();
  frequencies_that_no_encoder_can_use_are_refused();
  scalings_of_another_number_of_frequencies_are_refused();
  quotients_are_truncated();
  signs_are_kept();
  logarithms_and_powers_undo_each_other();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
