// SPDX-License-Identifier: BSD-3-Clause
// The description of one call: an operation, the source of the rows that it uses, and the positions of these rows.
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
