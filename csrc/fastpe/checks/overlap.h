// SPDX-License-Identifier: BSD-3-Clause
// Whether arrays share memory, told only from their pointers, shapes and strides.
#pragma once

#include "array_view.h"

namespace fastpe {

// An array's strides are nested if each is at least as large as what all axes of smaller strides cover together. No two
// of its elements share memory then.
bool is_nested(const ArrayView& array);

enum class Overlap { none, some, unknown };

// The answer is exact for slices of one buffer with nested strides and up to ten axes. For other arrays it is exact
// unless the search exceeds its bound, which is well below a millisecond. Arrays far apart take some nanoseconds.
Overlap overlap_of(const ArrayView& a, const ArrayView& b);

}  // namespace fastpe
