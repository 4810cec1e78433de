// SPDX-License-Identifier: BSD-3-Clause
// What sources and operations exchange: rows of an encoding that are there, or the place where rows are to be written.
#pragma once

#include <cassert>
#include <cstdint>

#include "arrays.h"
#include "kernels/kernels.h"

namespace fastpe {

// How a call uses memory. The plan decides it.
struct Access {
  bool non_temporal = false;  // store past the caches
  bool prefetch = false;      // arrays are in memory: the processor's own prefetches are too late
};

// These rows and columns of an encoding, the first of which stands first in the block. Rows are counted along the
// sequence, or where a source has kept them, by their positions.
struct Tile {
  Block<const char> block;
  DType dtype;
  Range rows, columns;

  bool is_there() const { return block.data != nullptr; }
  const char* row(std::int64_t l) const {
    assert(rows.first <= l && l < rows.end());
    return block.row(l - rows.first);
  }
  Tile part(const Range& of_rows) const {
    assert(rows.first <= of_rows.first && of_rows.count > 0 && of_rows.end() <= rows.end());
    return {block.from(of_rows.first - rows.first, 0), dtype, of_rows, columns};
  }
};

// Where a source writes these columns of its rows as it makes them: out = PE, or the sum that `Add` would make.
struct Target : SumRows {
  DType dtype;
  Range columns;
  Access access = {};

  // The same rows in reverse order, of which this one's first is the last of `count`.
  Target reversed(std::int64_t count) const {
    Target t = *this;
    static_cast<SumRows&>(t) = from_row(count - 1);
    t.out_row_stride_bytes = -out_row_stride_bytes;
    t.x_row_stride_bytes = -x_row_stride_bytes;
    return t;
  }
};

}  // namespace fastpe
