// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "call.h"

namespace fastpe {

// Checks everything that depends on values rather than shapes, before the first write: throws an Error, naming the
// argument, the place and the value; or Interrupted.
PositionBounds check_values(const Call& call, Interruption* interruption);

}  // namespace fastpe
