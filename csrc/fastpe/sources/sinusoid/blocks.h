// SPDX-License-Identifier: BSD-3-Clause
// Where a position lies: in a block of rows around its anchor, and its anchor in a group. Both belong to positions, not
// to calls, so the bits of a row do not depend on how it was asked for.
#pragma once

#include <cstdint>

#include "fastpe/kernels/kernels.h"

namespace fastpe {

// The multiple of 2 * radius + 1 nearest to `value`, divided by it.
inline std::int64_t nearest_multiple(std::int64_t value, std::int64_t radius) {
  const std::int64_t width = 2 * radius + 1;
  const std::int64_t shifted = value + radius;
  const std::int64_t quotient = shifted / width;
  return shifted % width < 0 ? quotient - 1 : quotient;
}

// position = anchor * block_rows + row, |row| <= block_radius.
struct BlockPosition {
  std::int64_t anchor;
  std::int64_t row;

  std::int64_t rows_to_end() const { return block_radius - row + 1; }
};

inline BlockPosition block_position(std::int64_t position) {
  const std::int64_t anchor = nearest_multiple(position, block_radius);
  return {anchor, position - anchor * block_rows};
}

// anchor = centre * group_anchors + distance, |distance| <= group_radius.
struct GroupPosition {
  std::int64_t centre;
  std::int64_t distance;
};

inline GroupPosition group_position(std::int64_t anchor) {
  const std::int64_t centre = nearest_multiple(anchor, group_radius);
  return {centre, anchor - centre * group_anchors};
}

}  // namespace fastpe
