// SPDX-License-Identifier: BSD-3-Clause
// The entry of the core: every call goes through run().
#pragma once

#include "call.h"

namespace fastpe {

// Throws std::invalid_argument or std::out_of_range, which name the argument, before anything is written. Throws
// Interrupted with a partly written output.
void run(const Call& call, Interruption* interruption);

}  // namespace fastpe
