// SPDX-License-Identifier: BSD-3-Clause
// What users keep: an encoder, and the rows of it that later calls read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "encoder.h"
#include "fastpe/buffer.h"
#include "fastpe/lazy.h"
#include "fastpe/positions.h"

namespace fastpe {

// The bytes of all rows that this process keeps now.
std::int64_t kept_row_bytes();

// Only calls that would have read rows count (`Plan::wants_rows`).
//
// With max_len, rows of positions 0 .. max_len - 1 are kept: after a call whose positions are all among them, keep()
// fills chunks from its lowest position's to its highest's, one more than the bytes that the call wrote at most, and
// warm_up() fills all. Without max_len, an encoder's first call notes only that the encoder was used; later ones
// mark the chunks between their bounds, and each fills one chunk that was marked before, as long as the budgets of the
// encoder and of the process allow. So a small call stays a small call, and rows that are used once take no room.
//
// No thread waits for another: while one fills a chunk, the others make its rows themselves. A child that is forked
// meanwhile never finds the chunk filled, and makes rows itself.
class Encoding {
 public:
  // Throws an Error where the rows of max_len cannot be counted, or are more than the machine's memory.
  explicit Encoding(Spec spec, std::optional<std::int64_t> max_len, std::int64_t first_position_ = 0,
                    double embedding_scale_ = 1.0, std::optional<std::int64_t> padding_idx_ = {});
  ~Encoding();
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  const Encoder encoder;
  const std::int64_t first_position;  // of rows that are counted
  // What `embed` does where its call says nothing of it. Rows of this id are not valid.
  const double embedding_scale;
  const std::optional<std::int64_t> padding_idx;

  // Rows of the positions from 0 on, if those within the bounds are filled; or none. It allocates nothing.
  Tile kept_rows(DType dtype, const PositionBounds& bounds) const;

  // Takes the memory for the rows that max_len promises. Throws std::bad_alloc.
  void reserve(DType dtype, const PositionBounds& bounds) const;
  // Fills chunks that lie between the bounds, or does not where there is no memory. The encoder is prepared. Throws
  // Interrupted.
  void keep(DType dtype, const PositionBounds& bounds, std::int64_t bytes_written, int max_threads,
            Interruption* interruption) const;
  // Makes what calls that write this dtype need, and fills all rows that max_len promises. Throws Interrupted or
  // std::bad_alloc.
  void warm_up(DType dtype, int max_threads, Interruption* interruption) const;

 private:
  enum class State : std::uint8_t { empty, used_once, filling, full };
  struct Memory {
    AlignedBuffer<char> bytes;
    std::unique_ptr<std::atomic<State>[]> states;  // of each chunk
  };
  // Rows of one dtype.
  struct KeptRows {
    KeptRows(DType dtype_, const Encoder& encoder, std::optional<std::int64_t> max_len);

    const DType dtype;
    const std::int64_t row_bytes;
    const std::int64_t limit;  // how many may be kept
    Lazy<Memory> memory;
  };
  // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
  bool can_keep(DType dtype, const PositionBounds& bounds) const {
    return !is_16_bit(dtype) && bounds.are_all_integers && 0 <= bounds.lowest && bounds.lowest <= bounds.highest &&
           bounds.highest < rows_of(dtype).limit;
  }
  const KeptRows& rows_of(DType dtype) const { return dtype == DType::float64 ? float64_ : float32_; }
  const Memory& memory_of(const KeptRows& rows) const;
  Range chunks_of(const PositionBounds& bounds) const {
    const std::int64_t first = bounds.lowest >> chunk_shift_;
    return {first, (bounds.highest >> chunk_shift_) - first + 1};
  }
  // The first of these chunks that is to be filled now; or -1. Without max_len, it marks all of them as used.
  std::int64_t first_to_fill(const Memory& memory, const Range& chunks) const;
  void fill(const KeptRows& rows, const Range& chunks, int max_threads, Interruption* interruption) const;
  void fill_chunk(const KeptRows& rows, const Memory& memory, std::int64_t chunk, char* scratch) const;

  const bool is_automatic_;
  const KeptRows float32_, float64_;
  const int chunk_shift_;  // a chunk has 2^chunk_shift_ rows
  mutable std::atomic<bool> was_used_{false};
  mutable std::atomic<std::int64_t> filled_bytes_{0};
};

}  // namespace fastpe
