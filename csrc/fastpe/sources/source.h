// SPDX-License-Identifier: BSD-3-Clause
// A source yields rows for positions: rows that are ready, or rows that it expands where they are wanted.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "fastpe/interruption.h"
#include "fastpe/positions.h"
#include "fastpe/tile.h"

namespace fastpe {

// Positions that a source has rows for.
struct PositionRange {
  std::int64_t lowest, highest;
  bool has_fractions;

  bool has(const Number& position) const {
    if (position.is_integer) return lowest <= position.integer && position.integer <= highest;
    return has_fractions && std::fabs(position.value) <= static_cast<double>(highest);
  }
};

// Blocks of positions whose rows share work. A thread's share of a sequence should therefore end where a block ends.
struct BlockShape {
  std::int64_t rows;
  std::int64_t at_once;  // adjacent blocks that are made together
};

class Source {
 public:
  const PositionRange range;
  const BlockShape blocks;

  // Throws an error that says why a position is not in the range.
  [[noreturn]] virtual void refuse(const std::string& where, const Number& position) const = 0;

  // Whether rows of this dtype are ready for all positions within the bounds, or should be made ready.
  virtual bool has_ready_rows(DType dtype, const PositionBounds& bounds) const = 0;
  // The rows from position 0 on, of which those within the bounds are ready. If data is null, they cannot be had now
  // and have to be expanded. Throws Interrupted.
  virtual TableView ready_rows(DType dtype, const PositionBounds& bounds, int max_threads,
                               Interruption* interruption) const = 0;

  // The rest is for sources that can expand rows.
  virtual bool expands() const { return false; }
  // How many positions there are from this one to the end of its block.
  virtual std::int64_t rows_to_block_end(std::int64_t /*position*/) const { return 1; }
  // Makes what expand() needs for positions within the bounds, so that it allocates nothing. Throws Interrupted.
  virtual void prepare(DType /*dtype*/, const PositionBounds& /*bounds*/, int /*max_threads*/,
                       Interruption* /*interruption*/) const {}
  virtual bool is_prepared(DType /*dtype*/) const { return true; }
  // Of one thread, on a cache line's boundary: what it keeps from one expansion to the next.
  virtual std::int64_t scratch_bytes(DType /*dtype*/, bool /*in_any_order*/) const { return 0; }
  virtual void start(char* /*scratch*/, DType /*dtype*/, bool /*in_any_order*/) const {}
  // Writes the run's rows into the sink.
  virtual void expand(const Run& /*run*/, const Sink& /*sink*/, char* /*scratch*/) const {}

  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

 protected:
  Source(PositionRange range_, BlockShape blocks_) : range(range_), blocks(blocks_) {}
  ~Source() = default;
};

}  // namespace fastpe
