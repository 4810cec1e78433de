// SPDX-License-Identifier: BSD-3-Clause
// How a call is done: decided once, from its shapes and the bounds of its positions.
#pragma once

#include <cstdint>

#include "call.h"

namespace fastpe {

enum class Strategy {
  read_rows,         // ready rows of the source are the tiles
  expand_into_out,   // rows are made at their place in the output, without a tile
  expand_into_tile,  // each tile serves all items that share its positions
};

// One tile of an encoding, and the segments of it that are combined with one item after the other.
struct TileShape {
  std::int64_t rows = 0;
  std::int64_t row_stride_bytes = 0;
  std::int64_t parts = 1;  // of its columns, one behind the other
  std::int64_t jump_bytes = 0;
  std::int64_t lead_bytes = 0;  // before the first row
  std::int64_t segment_rows = 1;

  std::int64_t bytes() const;
};

// The memory that one thread works in, handed out by name. Each part begins on a cache line's boundary.
class ScratchLayout {
 public:
  ScratchLayout() = default;
  ScratchLayout(std::int64_t source_bytes, const TileShape& tile, std::int64_t operation_bytes);

  std::int64_t bytes() const { return bytes_; }
  char* of_source(char* scratch) const { return scratch; }
  char* tile(char* scratch) const { return scratch + tile_; }
  char* of_operation(char* scratch) const { return scratch + operation_; }

 private:
  std::int64_t tile_ = 0, operation_ = 0, bytes_ = 0;
};

// The rows of a sequence, divided into the source's blocks. If threads and steps meet between two blocks, they make
// nothing twice. If some thread would have much less to do than another, a block is one row.
struct Blocks {
  std::int64_t rows_of_first = 1;
  std::int64_t rows = 1;  // of one, but for the first and the last
  std::int64_t count = 1;

  std::int64_t row(std::int64_t block, std::int64_t seq_len) const;
};

// How the work is divided: into parts of `part_items` items, and each part into blocks of rows. A thread takes up to
// `step` blocks at a time.
struct Shares {
  std::int64_t part_items = 1;
  std::int64_t parts = 1;
  Blocks blocks;
  std::int64_t step = 1;

  std::int64_t count() const { return parts * blocks.count; }
};

struct Plan {
  Strategy strategy = Strategy::read_rows;
  TableView ready;                // of read_rows
  bool shares_rows = false;       // all items have the same positions
  bool in_any_order = false;      // positions come back to where they were
  bool reads_at_offsets = false;  // each item reads ready rows at an offset of its own
  std::int64_t columns_at_once = 0;
  int threads = 1;
  Memory memory;
  TileShape tile;
  ScratchLayout scratch;
  Shares shares;
};

// Also makes the rows that the plan reads, and prepares the source to expand others. Throws Interrupted.
Plan make_plan(const Call& call, const PositionBounds& bounds, Interruption* interruption);

}  // namespace fastpe
