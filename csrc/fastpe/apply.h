// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "job.h"
#include "parallel.h"

namespace fastpe {

// Throws std::invalid_argument or std::out_of_range, naming the argument, before anything is written. Returns false if
// it was interrupted, out being partly written.
bool run(const Job& job, Interruption* interruption);

}  // namespace fastpe
