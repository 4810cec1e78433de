// SPDX-License-Identifier: BSD-3-Clause
// Whether arrays share memory, told from their pointers, shapes and strides alone.
#pragma once

#include <cstddef>

namespace fastpe {

struct StridedArray {
  const void* data = nullptr;
  std::size_t item_bytes = 0;
  std::ptrdiff_t axes = 0;
  const std::ptrdiff_t* shape = nullptr;
  const std::ptrdiff_t* strides_bytes = nullptr;
};

// An array's strides are nested where each is at least what the axes of smaller strides cover together: no two of its
// elements share memory then.
bool is_nested(const StridedArray& array);

enum class Overlap { none, some, unknown };

// Exact for slices of one buffer, nested and of up to ten axes; exact for other arrays, too, unless that takes more
// than a bounded number of steps, of well below a millisecond together. Arrays far apart take some nanoseconds.
Overlap overlap_of(const StridedArray& a, const StridedArray& b);

}  // namespace fastpe
