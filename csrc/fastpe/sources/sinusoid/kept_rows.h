// SPDX-License-Identifier: BSD-3-Clause
// Finished rows that an encoder keeps, made when they are asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "encoder.h"
#include "fastpe/buffer.h"
#include "fastpe/lazy.h"
#include "fastpe/positions.h"

namespace fastpe {

// The bytes of all rows that this process keeps now.
std::int64_t kept_row_bytes();

// An encoder with max_len keeps the rows of positions 0 .. max_len - 1 from the first call on that needs them. One
// without keeps a block of rows when it is asked for again, as long as the budgets of the encoder and of the process
// allow; each call fills one block at most.
//
// No thread waits for another: while one fills a block, the others expand its rows themselves. A child that is forked
// meanwhile never finds the block finished, and expands rows, too.
class KeptRows {
 public:
  // Throws std::invalid_argument where the rows of max_len cannot be counted, or are more than the machine's memory.
  KeptRows(const Encoder& encoder, std::optional<std::int64_t> max_len);
  ~KeptRows();
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;

  // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
  bool keeps(DType dtype, const PositionBounds& bounds) const {
    return dtype == row_dtype(dtype) && bounds.are_all_integers && bounds.lowest >= 0 &&
           bounds.highest < row_limit(dtype);
  }
  // Whether max_len promises rows.
  bool has_promised_rows() const { return !is_automatic_ && row_limit(DType::float32) > 0; }

  // Rows from position 0 on, of which those within the bounds are filled. If some of them are not, because another
  // thread is filling them or because they were not asked for before, data is null. Throws Interrupted.
  TableView rows(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const;

  // Fills all rows that max_len promises. Throws Interrupted.
  void fill_promised(DType dtype, int max_threads, Interruption* interruption) const;

  // The row of one position; null where it is not kept, or not filled yet. It allocates nothing.
  const char* row_if_full(DType dtype, const Number& position) const;

 private:
  enum class State : std::uint8_t { empty, asked_for, filling, full };
  struct Memory {
    AlignedBuffer<char> bytes;
    std::unique_ptr<std::atomic<State>[]> states;  // of each block
  };
  struct Blocks {
    std::int64_t first, last;
  };
  std::int64_t row_limit(DType dtype) const { return dtype == DType::float64 ? float64_rows_ : float32_rows_; }
  const Memory& memory(DType dtype) const;
  bool are_full(const Memory& memory, const Blocks& blocks) const;
  void fill_all(const Memory& memory, DType dtype, const Blocks& blocks, int max_threads,
                Interruption* interruption) const;
  void fill_one_asked_again(const Memory& memory, DType dtype, const Blocks& blocks, Interruption* interruption) const;
  std::int64_t block_bytes(DType dtype, std::int64_t block) const;
  void fill(const Memory& memory, DType dtype, std::int64_t block, char* scratch) const;

  const Encoder& encoder_;
  const bool is_automatic_;
  const std::int64_t float32_rows_, float64_rows_;
  const int block_shift_;  // a block has 2^block_shift_ rows
  Lazy<Memory> float32_, float64_;
  mutable std::atomic<bool> was_asked_{false};
  mutable std::atomic<std::int64_t> filled_bytes_{0};
};

}  // namespace fastpe
