// SPDX-License-Identifier: BSD-3-Clause
#include "frequencies.h"

#include <algorithm>
#include <cmath>

#include "fastpe/error.h"
#include "wide.h"

namespace fastpe {
namespace {

// The factor from one frequency to the next, base^(-1 / denominator).
ScaledWide ratio_of(double base, double denominator) {
  const SignedWide log2_of_base = log2_of(base);
  const ScaledWide divisor = ScaledWide::of_double(denominator);
  // The step is below 2^8, since the first and the last frequency are representable.
  const Wide step = (log2_of_base.magnitude.scaled(std::max(-divisor.exponent, 0)) / divisor.mantissa)
                        .scaled(std::min(-divisor.exponent, 0));
  return exp2_of({step, !log2_of_base.negative});
}

void push(DoubleDoubles& to, Wide value, double factor) {  // a power of 2, either sign
  const double high = value.take_leading_double();
  to.high.push_back(factor * high);
  to.low.push_back(factor * value.take_leading_double());
}

// One frequency, given in radians per position.
void push_frequency(Frequencies& to, const Wide& radians, double sign) {
  const double nearest = radians.nearest_double();
  const Wide rounded = Wide::of_double(nearest);
  const bool is_above = radians < rounded;
  Wide rest = is_above ? rounded - radians : radians - rounded;
  to.radians.high.push_back(sign * nearest);
  to.radians.low.push_back((is_above ? -sign : sign) * rest.take_leading_double());
  const Wide turns = radians * inverse_tau();
  push(to.quarters, turns, 4.0 * sign);
  to.largest_quarters = std::max(to.largest_quarters, std::fabs(to.quarters.high.back()));
  const Wide anchor_turns = (turns.fraction() * Wide::of_integer(block_rows)).fraction();
  const bool beyond_half = anchor_turns.bit(-1);
  push(to.anchor_quarters, beyond_half ? Wide::of_integer(1) - anchor_turns : anchor_turns,
       beyond_half ? -4.0 * sign : 4.0 * sign);
}

// Refuses small denominators: the logarithm of a base near 1, which is right to 2^-191, is divided by them.
void require_divisor(double exponent_denominator) {
  if (exponent_denominator >= 0x1p-10) return;
  refuse_value("exponent_denominator", {"is ", exponent_denominator}, {"at least 2**-10"},
               {"check the convention's denominator and denominator_offset"});
}

void pad(DoubleDoubles& values) {
  const auto size = static_cast<std::size_t>(padded(static_cast<std::int64_t>(values.high.size())));
  values.high.resize(size, 0.0);
  values.low.resize(size, 0.0);
}

}  // namespace

void require_representable(double frequency, std::int64_t k, const char* arguments, bool may_be_zero) {
  const double magnitude = std::fabs(frequency);
  if ((may_be_zero && magnitude == 0.0) || (0x1p-96 <= magnitude && magnitude < 0x1p45)) return;
  refuse_value(arguments, {"make frequency ", k, " ", frequency, " radians per position"},
               {"0 or a magnitude of at least 2**-96 and below 2**45"});
}

Frequencies make_frequencies(const WantedFrequencies& wanted) {
  Frequencies result;
  if (!wanted.given.empty()) {
    std::int64_t k = 0;
    for (const double frequency : wanted.given) {
      require_representable(frequency, k++, "frequencies");
      push_frequency(result, Wide::of_double(std::fabs(frequency)), frequency < 0 ? -1.0 : 1.0);
    }
  } else if (wanted.frequency_count > 0) {
    require_representable(wanted.frequency_scale, 0, wanted.arguments);
    ScaledWide ratio = ScaledWide::of_double(1.0);
    if (wanted.frequency_count > 1 && wanted.frequency_scale != 0.0) {
      require_divisor(wanted.exponent_denominator);
      const std::int64_t last = wanted.frequency_count - 1;
      const double exponent = static_cast<double>(last) / wanted.exponent_denominator;
      require_representable(wanted.frequency_scale * std::pow(wanted.base, -exponent), last, wanted.arguments, false);
      ratio = ratio_of(wanted.base, wanted.exponent_denominator);
    }
    const double sign = wanted.frequency_scale < 0 ? -1.0 : 1.0;
    ScaledWide radians = ScaledWide::of_double(std::fabs(wanted.frequency_scale));
    for (std::int64_t k = 0; k < wanted.frequency_count; ++k) {
      push_frequency(result, radians.value(), sign);
      radians = radians * ratio;
    }
  }
  pad(result.radians);
  pad(result.quarters);
  pad(result.anchor_quarters);
  return result;
}

}  // namespace fastpe
