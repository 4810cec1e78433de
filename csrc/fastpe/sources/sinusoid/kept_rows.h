// SPDX-License-Identifier: BSD-3-Clause
// Finished rows that an encoder keeps, made when they are first asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "encoder.h"
#include "fastpe/buffer.h"
#include "fastpe/lazy.h"
#include "fastpe/positions.h"

namespace fastpe {

// Which rows are worth keeping: those of positions 0 .. max_len - 1.
struct RowPolicy {
  std::int64_t max_len = 0;

  bool keeps(const PositionBounds& bounds) const {
    return bounds.are_all_integers && bounds.lowest >= 0 && bounds.highest < max_len;
  }
};

// The thread that first needs a row fills its block, and no thread waits for another: while one fills a block, the
// others expand its rows themselves. A child that is forked meanwhile never finds the block finished, and expands rows,
// too.
class KeptRows {
 public:
  // Throws std::invalid_argument where the rows' bytes cannot be counted.
  KeptRows(const Encoder& encoder, RowPolicy policy);

  // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
  bool keeps(DType dtype, const PositionBounds& bounds) const {
    return keeps_any() && dtype == row_dtype(dtype) && policy_.keeps(bounds);
  }
  bool keeps_any() const { return policy_.max_len > 0; }

  // Rows from position 0 on, of which those within the bounds are filled. If another thread is filling some of them,
  // data is null. Throws Interrupted.
  TableView rows(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const;

  // The row of one position; null where it is not kept, or not filled yet. It allocates nothing.
  const char* row_if_full(DType dtype, const Number& position) const;

 private:
  enum class State : std::uint8_t { empty, filling, full };
  struct Memory {
    AlignedBuffer<char> bytes;
    std::unique_ptr<std::atomic<State>[]> states;  // of each block
  };
  const Memory& memory(DType dtype) const;
  void fill(const Memory& memory, DType dtype, std::int64_t block, char* scratch) const;

  const Encoder& encoder_;
  RowPolicy policy_;
  int block_shift_;  // a block has 2^block_shift_ rows
  Lazy<Memory> float32_, float64_;
};

}  // namespace fastpe
