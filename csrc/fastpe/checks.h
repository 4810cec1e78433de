// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "job.h"
#include "parallel.h"

namespace fastpe {

// Of the integer positions of a job's valid rows.
struct PositionBounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  bool all_integers = true;
};

// Checks everything that depends on values rather than shapes: throws std::invalid_argument or std::out_of_range,
// naming the argument, the place and the value; or Interrupted.
PositionBounds check(const Job& job, Interruption* interruption);

}  // namespace fastpe
