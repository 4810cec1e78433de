// SPDX-License-Identifier: BSD-3-Clause
// One call: an operation, the source of the rows that it uses, and where these rows are.
#pragma once

#include "fastpe/operations/operation.h"
#include "fastpe/positions.h"
#include "fastpe/sources/source.h"

namespace fastpe {

// It refers to objects that outlive it, and is not copied to where they may not.
struct Call {
  const Source& source;
  const Operation& operation;
  const Placement& placement;
  int max_threads = 1;

  Call(const Call&) = delete;
};

// The entry of the core: every call goes through it. Throws an Error or std::bad_alloc before anything is written.
// Where it throws Interrupted, the output may be written in part, or whole.
void run(const Call& call, Interruption* interruption);

}  // namespace fastpe
