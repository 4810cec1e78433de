// SPDX-License-Identifier: BSD-3-Clause
// The entry of the core: every call goes through run().
#pragma once

#include "call.h"

namespace fastpe {

// Throws an Error or std::bad_alloc before anything is written, and Interrupted with an output that is partly written,
// or, if the interruption came while rows were kept, whole.
void run(const Call& call, Interruption* interruption);

}  // namespace fastpe
