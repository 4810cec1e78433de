// SPDX-License-Identifier: BSD-3-Clause
// What comes before a call's first write: its values are checked, and how it is done is decided, once, from the call,
// the bounds of its positions, the machine, and the rows that the source has.
#pragma once

#include <cstdint>

#include "call.h"

namespace fastpe {

enum class Strategy {
  read_rows,       // rows that the source has are the tiles
  make_in_target,  // rows are made at their place in the output, without a tile
  make_in_tile,    // each tile serves all items that share its positions
};

// Rows of spans shorter than this are read rather than made, and are put together before an operation takes them.
constexpr std::int64_t short_span_rows = 8;

struct Plan {
  Strategy strategy = Strategy::make_in_tile;
  Tile rows_found = {};                    // of read_rows
  bool wants_rows = false;                 // reads rows if the source has them, or else has them kept
  bool all_items_share_positions = false;  // of an operation that reads its items: never of a Write
  int threads = 1;
  Access access;
  std::int64_t tile_rows = 0, tile_row_stride_bytes = 0;  // of make_in_tile
  std::int64_t segment_rows = 1;                          // of a tile, which are combined with one item after another
  // Where a thread's scratch memory has the tile, and the operation's part; the source's comes first. Each begins on a
  // cache line's boundary.
  std::int64_t tile_offset_bytes = 0, operation_offset_bytes = 0, scratch_bytes = 0;
  // How the work is divided: into parts of the columns, and each into slices of `slice_items` items. A row of a slice
  // is one row of all its items, and rows are counted through one slice after the other, and one part after the other.
  // A work unit is up to `unit_rows` of them. So [6, 100, d] in slices of 2 items has 300 rows in each part, and number
  // 250 is row 50 of the items 4 and 5.
  std::int64_t part_columns = 1, part_rows = 1, parts = 1;
  std::int64_t slice_items = 1, unit_rows = 1;
};

// Checks everything that depends on values rather than shapes, before the first write: throws an Error, naming the
// argument, the place and the value; or Interrupted. It is in value_checks.cpp.
PositionBounds check_values(const Call& call, Interruption* interruption);

Plan make_plan(const Call& call, const PositionBounds& bounds);

}  // namespace fastpe
