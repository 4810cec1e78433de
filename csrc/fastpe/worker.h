// SPDX-License-Identifier: BSD-3-Clause
// How a job is done, and one thread's share of it.
#pragma once

#include <cstdint>

#include "checks.h"
#include "encoder.h"
#include "job.h"
#include "kernels/kernels.h"
#include "rows.h"

namespace fastpe {

constexpr std::int64_t max_phasor_slots = 8;

struct Plan {
  bool all_cached = false;        // every position has a cached row
  bool shares_positions = false;  // one tile of rows serves all batch items
  bool streaming = false;
  bool fetches_ahead = false;     // x comes from memory: the processor's own prefetching is too late
  bool fetches_close = false;     // into the first-level cache: it has room
  bool fits_in_cache = false;     // with room to spare for cached rows
  std::int64_t segment_rows = 1;  // that are added at a time, as many as the first-level cache holds
  std::int64_t tile_rows = 1;
  std::int64_t tile_row_bytes = 0;
  std::int64_t tile_lead_bytes = 0;  // before the first row
  std::int64_t tile_bytes = 0;       // whole cache lines, as all scratch is
  std::int64_t phasor_slots = 0;     // anchors of which phasors are held
  std::int64_t scratch_bytes_of_phasors = 0;
  std::int64_t scratch_bytes = 0;  // per thread
};

Plan make_plan(const Job& job, const PositionBounds& bounds);

// One thread's share of a job.
class Worker {
 public:
  Worker(const Job& job, const Plan& plan, const CachedRows& cached, char* scratch);

  // Rows counted through all batch items.
  void process_rows(std::int64_t begin, std::int64_t end);

  // The same positions for all batch items: each tile of the encoding is made once.
  void process_shared(std::int64_t l_begin, std::int64_t l_end, std::int64_t batch_begin, std::int64_t batch_end);

 private:
  void process_run(std::int64_t batch, const Run& run);

  // How many of the run's rows, from its first on, there is an encoding for. Another thread may have changed positions,
  // offsets, lengths or ids since they were checked: results are then undefined, but nothing outside the arrays is
  // read.
  std::int64_t rows_with_encoding(const Run& run) const;

  bool reads_cached(const Run& run) const;

  bool has_contiguous_rows() const;

  bool is_compensated() const { return dtype_ == DType::float64; }

  const char* cached_row(std::int64_t position) const;

  void encode_rows(std::int64_t batch, const Run& run);

  // Calls on_tile(l, count, tile, row stride) with rows of the run's encoding (or of the learned table).
  template <class OnTile>
  void for_each_tile(const Run& run, const OnTile& on_tile);

  // Where a run's encoding goes, and what it is added to (null: nothing).
  struct Target {
    DType dtype;
    char* out;
    std::int64_t out_row_stride_bytes;
    const char* x;
    std::int64_t x_row_stride_bytes;
    bool streaming;
    bool fetches_ahead;

    Target from_row(std::int64_t row) const;
  };

  void write_run(const Run& run, const Target& target);

  void rotate(Rotation& rotation, std::int64_t first_row, std::int64_t last_row, const Target& target);

  // The phasors of an anchor. Those of two anchors stay held together if their numbers, any count of what is held,
  // differ by one.
  Anchor held(std::int64_t anchor, std::int64_t number);

  Anchor anchor_at(std::int64_t anchor);

  // x * scale + alpha * addend for rows of one batch item. Those at (next_batch, next_l) come soon after.
  void combine_rows(std::int64_t batch, std::int64_t l, std::int64_t count, const char* addend,
                    std::int64_t addend_stride, std::int64_t next_batch, std::int64_t next_l);

  // The row of x, or of the vocabulary, that is read for (batch, l); null beyond the last. Never outside the
  // vocabulary, whatever became of the id since it was checked.
  const char* x_row(std::int64_t batch, std::int64_t l) const;

  // Rows that are not valid: as they are, copied where out is another array, or zero.
  void leave_rows(std::int64_t batch, std::int64_t l, std::int64_t count);

  static constexpr std::int64_t no_anchor = INT64_MIN;

  const Job& job_;
  const Plan& plan_;
  const CachedRows& cached_;
  const Kernels& kernels_;
  const DType dtype_;
  double* values_ = nullptr;  // of the anchors held
  double* slopes_ = nullptr;
  std::int64_t held_[max_phasor_slots];
  char* tile_ = nullptr;
  char* row_ = nullptr;
};

}  // namespace fastpe
