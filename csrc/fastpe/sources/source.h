// SPDX-License-Identifier: BSD-3-Clause
// A source yields rows for positions: rows that are there already, or rows that it makes where they are wanted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fastpe/interruption.h"
#include "fastpe/positions.h"
#include "fastpe/tile.h"

namespace fastpe {

class Source {
 public:
  // Positions that it has rows for; a table has none for fractions.
  const std::int64_t lowest, highest;
  const bool has_fractions;
  // Rows that it makes together: those of blocks of positions, so many from a block's start on, one of which is here.
  const std::int64_t block_rows, blocks_at_once, first_block;

  bool has(const Number& position) const {
    if (position.is_integer()) return lowest <= position.integer && position.integer <= highest;
    return has_fractions && std::fabs(position.value) <= static_cast<double>(highest);
  }
  // All positions of a span, or all coordinates.
  bool has(const Span& span) const {
    if (span.coordinates != nullptr) {
      const Number* const end = span.coordinates + span.coordinate_count;
      return std::all_of(span.coordinates, end, [&](const Number& c) { return has(c); });
    }
    if (!span.position.is_integer()) return has(span.position);
    return lowest <= span.lowest() && span.highest() <= highest;
  }
  // How many rows from this position on are made together: some blocks, or the rest of one.
  std::int64_t rows_together(std::int64_t position) const {
    const std::int64_t row = (position - first_block) % block_rows;
    return row == 0 ? blocks_at_once * block_rows : row < 0 ? -row : block_rows - row;
  }

  // The rows of the positions from 0 on, of which those within the bounds are there, in this dtype or in the
  // operation's own; or none.
  virtual Tile kept_rows(DType /*dtype*/, const PositionBounds& /*bounds*/) const { return {}; }
  // After a call that would have used them: keeps rows within the bounds for later calls, or does not. No result
  // depends on it. It makes about bytes_written of them at most, so that a small call stays one. Throws Interrupted.
  virtual void keep(DType /*dtype*/, const PositionBounds& /*bounds*/, std::int64_t /*bytes_written*/,
                    int /*max_threads*/, Interruption* /*interruption*/) const {}

  // Makes what write_rows() needs for positions within the bounds, and keep() if it will be called. Throws Interrupted,
  // or std::bad_alloc.
  virtual void prepare(DType /*dtype*/, const PositionBounds& /*bounds*/, bool /*will_keep*/,
                       Interruption* /*interruption*/) const {}
  virtual bool is_prepared(DType /*dtype*/) const { return true; }
  // A thread's scratch memory begins on a cache line's boundary, and holds what the source needs from one span to the
  // next. start() initialises it before the first write_rows(). For `may_revisit` see Placement.
  virtual std::int64_t scratch_bytes(DType /*dtype*/, bool /*may_revisit*/) const { return 0; }
  virtual void start(char* /*scratch*/, DType /*dtype*/, bool /*may_revisit*/) const {}
  // Whether write_rows() makes the sums that a target with x wants.
  virtual bool can_add() const { return false; }
  // Writes the rows of an ascending span, or one row.
  virtual void write_rows(const Span& span, const Target& target, char* scratch) const = 0;

  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

 protected:
  Source(std::int64_t lowest_, std::int64_t highest_, bool has_fractions_, std::int64_t block_rows_ = 1,
         std::int64_t blocks_at_once_ = 1, std::int64_t first_block_ = 0)
      : lowest(lowest_),
        highest(highest_),
        has_fractions(has_fractions_),
        block_rows(block_rows_),
        blocks_at_once(blocks_at_once_),
        first_block(first_block_) {}
  ~Source() = default;
};

}  // namespace fastpe
