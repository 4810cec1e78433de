// SPDX-License-Identifier: BSD-3-Clause
#include "conventions.h"

#include <cmath>

#include "fastpe/error.h"

namespace fastpe {
ConventionNumbers numbers_of(const Convention& convention, std::int64_t d_model) {
  if (d_model % 2 != 0 && convention.odd == OddWidth::error) {
    refuse_value("d_model", {"is ", d_model},
                 {"an even number: convention '", convention.name, "' defines no odd width"},
                 {"choose an even width or another convention"});
  }
  const auto width = static_cast<double>(d_model);
  const std::int64_t count = d_model / 2 + (convention.odd == OddWidth::pad ? 0 : d_model % 2);
  const double n = convention.odd == OddWidth::natural ? width / 2 : static_cast<double>(count);
  // A single frequency has exponent 0, whatever it is divided by.
  const double denominator = count < 2 ? 1.0 : n - convention.denominator_offset;
  const double output_scale = convention.alpha == Alpha::one_over_root      ? 1.0 / std::sqrt(width)
                              : convention.alpha == Alpha::root_of_two_over ? std::sqrt(2.0 / width)
                                                                            : 1.0;
  return {count, convention.denominator != 0.0 ? convention.denominator : denominator, output_scale};
}

}  // namespace fastpe
