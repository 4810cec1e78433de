// SPDX-License-Identifier: BSD-3-Clause
// The one entry of the core.
#pragma once

#include "call.h"

namespace fastpe {

// Throws std::invalid_argument or std::out_of_range, naming the argument, before anything is written; or Interrupted,
// out being partly written.
void run(const Call& call, Interruption* interruption);

}  // namespace fastpe
