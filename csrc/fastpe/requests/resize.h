// SPDX-License-Identifier: BSD-3-Clause
// Learned grids of another size: each new row is a sum of rows of a table with weights, along one axis of the grid
// after the other.
#pragma once

#include <cstdint>

#include "fastpe/checks/array_view.h"
#include "fastpe/interruption.h"

namespace fastpe {

// Of one axis of a grid.
struct ResizedAxis {
  std::int64_t side;           // learned cells
  ArrayView indices, weights;  // int64 and float64 [new cells, taps]: the learned cells of each new one
};

struct ResizeRequest {
  ArrayView table;            // [class_tokens + learned cells, D], behind axes of length 1
  ArrayView out;              // [class_tokens + new cells, D], behind axes of length 1
  ResizedAxis rows, columns;  // of the grid
  std::int64_t class_tokens;  // rows in front that are copied
  std::int64_t merge_size;    // new cells lie in blocks of this many rows and columns
  int max_threads;
};

// Throws an Error or std::bad_alloc before anything is written. Where it throws Interrupted, `out` may be written in
// part.
void resize_rows(const ResizeRequest& request, Interruption* interruption);

}  // namespace fastpe
