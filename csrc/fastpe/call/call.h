// SPDX-License-Identifier: BSD-3-Clause
// One call, described: an operation on rows, and the rows that a source has for their positions.
#pragma once

#include "fastpe/operations/operation.h"
#include "fastpe/positions.h"
#include "fastpe/sources/source.h"

namespace fastpe {

struct Call {
  const Source& source;
  const Operation& operation;
  const Positions& positions;
  const Validity& validity;
  int max_threads = 1;
};

}  // namespace fastpe
