// SPDX-License-Identifier: BSD-3-Clause
// Finished rows that later calls read: made after a call that used them, or by warm_up.
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

// With max_len, the rows of positions 0 .. max_len - 1 that calls use are kept. Without, a chunk of rows is kept when
// it is used again, as long as the budgets of the encoder and of the process allow; each call fills one chunk at most.
//
// No thread waits for another: while one fills a chunk, the others make its rows themselves. A child that is forked
// meanwhile never finds the chunk filled, and makes rows itself.
class RowCache {
 public:
  // Throws an Error where the rows of max_len cannot be counted, or are more than the machine's memory.
  RowCache(const Encoder& encoder, std::optional<std::int64_t> max_len);
  ~RowCache();
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  // Whether max_len promises rows.

  // Rows from position 0 on, if those within the bounds are filled. It allocates nothing.
  TableView find(DType dtype, const PositionBounds& bounds) const;
  // The row of one position; null where it is not filled.
  const char* find_row(DType dtype, const Number& position) const;

  // Takes the memory for the rows that max_len promises. Throws std::bad_alloc.
  void reserve(DType dtype, const PositionBounds& bounds) const;
  // Fills rows within the bounds, or does not. The encoder is prepared.
  void keep(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const noexcept;
  // Fills all rows that max_len promises. Throws Interrupted or std::bad_alloc.
  void fill_promised(DType dtype, int max_threads, Interruption* interruption) const;

 private:
  enum class State : std::uint8_t { empty, used_once, filling, full };
  struct Memory {
    AlignedBuffer<char> bytes;
    std::unique_ptr<std::atomic<State>[]> states;  // of each chunk
  };
  struct Chunks {
    std::int64_t first, last;
  };
  // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
  bool can_keep(DType dtype, const PositionBounds& bounds) const {
    return !is_16_bit(dtype) && bounds.are_all_integers && 0 <= bounds.lowest && bounds.lowest <= bounds.highest &&
           bounds.highest < row_limit(dtype);
  }
  std::int64_t row_limit(DType dtype) const { return dtype == DType::float64 ? float64_rows_ : float32_rows_; }
  const Lazy<Memory>& lazy_memory(DType dtype) const { return dtype == DType::float64 ? float64_ : float32_; }
  const Memory& memory(DType dtype) const;
  Chunks chunks_of(const PositionBounds& bounds) const {
    return {bounds.lowest >> chunk_shift_, bounds.highest >> chunk_shift_};
  }
  void fill_all(const Memory& memory, DType dtype, const Chunks& chunks, int max_threads,
                Interruption* interruption) const;
  void fill_one_used_again(const Memory& memory, DType dtype, const Chunks& chunks) const;
  std::int64_t chunk_bytes(DType dtype, std::int64_t chunk) const;
  void fill(const Memory& memory, DType dtype, std::int64_t chunk, char* scratch) const;

  const Encoder& encoder_;
  const bool is_automatic_;
  const std::int64_t float32_rows_, float64_rows_;
  const int chunk_shift_;  // a chunk has 2^chunk_shift_ rows
  Lazy<Memory> float32_, float64_;
  mutable std::atomic<bool> was_used_{false};
  mutable std::atomic<std::int64_t> filled_bytes_{0};
};

}  // namespace fastpe
