// SPDX-License-Identifier: BSD-3-Clause
// How a call is done, decided once: from the call, the bounds of its positions, the machine, and the rows that the
// source has.
#pragma once

#include <cstdint>

#include "call.h"

namespace fastpe {

enum class Strategy {
  read_rows,           // rows that the source has are the tiles
  expand_into_target,  // rows are made at their place in the output, without a tile
  expand_into_tile,    // each tile serves all items that share its positions
};

// One tile that rows are expanded into.
struct TileShape {
  std::int64_t rows = 0;
  std::int64_t row_stride_bytes = 0;
};

// The memory that one thread works in. Each part begins on a cache line's boundary.
struct ScratchLayout {
  std::int64_t tile = 0, operation = 0, bytes = 0;  // the source's part comes first
};

// The rows of a sequence, cut where the source's blocks end: threads and work units that meet there make nothing
// twice. If some thread would have much less to do than another, there is a cut after every row.
struct RowCuts {
  std::int64_t rows_of_first = 1;
  std::int64_t rows = 1;  // of one, but for the first and the last
  std::int64_t count = 1;

  std::int64_t row(std::int64_t cut, std::int64_t seq_len) const;
};

// How the work is divided: into slices of `slice_items` items, and each slice into the cuts of its rows. A work unit is
// up to `cuts_per_unit` of them.
struct WorkUnits {
  std::int64_t slice_items = 1;
  std::int64_t slices = 1;
  RowCuts cuts;
  std::int64_t cuts_per_unit = 1;

  std::int64_t cut_count() const { return slices * cuts.count; }
};

struct Plan {
  Strategy strategy = Strategy::expand_into_tile;
  TableView kept_rows;                     // of read_rows
  bool wants_rows = false;                 // would have read rows, if the source had them
  bool all_items_share_positions = false;  // of an operation that reads its items: never of a Write
  bool may_revisit = false;                // see Positions
  bool reads_at_offsets = false;           // each item reads rows at an offset of its own
  int threads = 1;
  Access access;
  TileShape tile;                 // of expand_into_tile
  std::int64_t segment_rows = 1;  // of a tile: they are combined with one item after the other
  ScratchLayout scratch;
  WorkUnits work;
};

Plan make_plan(const Call& call, const PositionBounds& bounds);

}  // namespace fastpe
