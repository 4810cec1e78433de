// SPDX-License-Identifier: BSD-3-Clause
#include "apply.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "buffer.h"
#include "checks.h"
#include "rows.h"
#include "worker.h"

namespace fastpe {
namespace {

// Between two steps of this size a call looks whether it was interrupted.
constexpr std::int64_t step_bytes = 4 * 1024 * 1024;
constexpr std::int64_t strided_step_bytes = 128 * 1024;  // every element may be a cache miss, or a new page
// Rows of elements that lie far apart are done in parts of this span: a part's cache lines serve the next rows too.
constexpr std::int64_t strided_span_bytes = 8 * 1024 * 1024;
constexpr std::int64_t least_strided_columns = 2048;

// The rows of a sequence in blocks as its anchors lie: threads and steps that meet between two blocks make no anchor
// twice, and no block by halves. Where that would leave a thread much less to do than another, row by row.
class Blocks {
 public:
  Blocks(const Job& job, int threads) : seq_len_(job.out.seq_len) {
    const Positions& p = job.positions;
    const bool is_range = p.values.data == nullptr && p.sequence_starts.data == nullptr;
    const std::int64_t first_row = is_range ? block_position(first_position(p, 0)).row : -block_radius;
    rows_of_first_ = std::min(seq_len_, block_radius - first_row + 1);
    if (threads > 1 && count() < blocks_per_thread * threads) rows_ = rows_of_first_ = 1;
  }
  std::int64_t rows() const { return rows_; }  // of one, but for the first and the last
  std::int64_t count() const { return 1 + (seq_len_ - rows_of_first_ + rows_ - 1) / rows_; }
  std::int64_t row(std::int64_t block) const {
    return block == 0 ? 0 : std::min(seq_len_, rows_of_first_ + (block - 1) * rows_);
  }

 private:
  static constexpr std::int64_t blocks_per_thread = 4;
  std::int64_t seq_len_;
  std::int64_t rows_of_first_;
  std::int64_t rows_ = block_rows;
};

// What small calls need lies on the stack: an aligned allocation would be a tenth of their time.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) {
    if (bytes > static_cast<std::int64_t>(sizeof small_)) large_ = AlignedBuffer<char>::uninitialized(bytes);
  }
  char* data() { return large_.data() != nullptr ? large_.data() : small_; }

 private:
  alignas(64) char small_[32 * 1024];
  AlignedBuffer<char> large_;
};

bool has_contiguous_rows(const Job& job) {
  return job.out.has_contiguous_rows() && (job.x == nullptr || job.x->has_contiguous_rows());
}

std::int64_t columns_at_once(const Job& job) {
  if (has_contiguous_rows(job)) return job.out.columns;
  const std::int64_t x_stride = job.x == nullptr ? 0 : std::abs(job.x->column_stride_bytes);
  const std::int64_t stride = std::max(std::abs(job.out.column_stride_bytes), x_stride);
  return std::max(strided_span_bytes / stride, least_strided_columns);
}

bool run_checked(const Job& job, const PositionBounds& bounds, Interruption* interruption) {
  const RowsView& out = job.out;
  const Plan plan = make_plan(job, bounds);
  const CachedRows cached = plan.all_cached ? job.encoder->cached_rows(out.dtype, interruption) : CachedRows{};
  const std::int64_t bytes = out.bytes() * (job.x != nullptr || job.ids.data != nullptr ? 2 : 1);
  const int threads = threads_for(bytes, job.max_threads);
  if (job.encoder != nullptr) job.encoder->prepare(out.dtype, interruption);
  Scratch scratch(threads * plan.scratch_bytes);
  const auto scratch_of = [&](int thread) {
    return plan.scratch_bytes > 0 ? scratch.data() + thread * plan.scratch_bytes : nullptr;
  };

  const std::int64_t row_bytes = std::max<std::int64_t>(1, out.columns * element_bytes(out.dtype));
  const bool contiguous = has_contiguous_rows(job);
  const std::int64_t step_rows = contiguous ? std::max<std::int64_t>(2 * block_rows, step_bytes / row_bytes)
                                            : std::max<std::int64_t>(1, strided_step_bytes / row_bytes);
  if (!plan.shares_positions) {
    const bool by_blocks = out.batch_count == 1 && contiguous;
    const Blocks blocks(job, threads);
    const std::int64_t items = by_blocks ? blocks.count() : out.batch_count * out.seq_len;
    const std::int64_t step = by_blocks ? step_rows / blocks.rows() : step_rows;
    return parallel_for(items, step, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
      Worker worker(job, plan, cached, scratch_of(thread));
      by_blocks ? worker.process_rows(blocks.row(begin), blocks.row(end)) : worker.process_rows(begin, end);
    });
  }
  if (out.seq_len < block_rows * threads) {
    const std::int64_t step = std::max<std::int64_t>(1, step_rows / out.seq_len);
    return parallel_for(out.batch_count, step, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_shared(0, out.seq_len, begin, end);
                        });
  }
  // Batches of which one block of rows is far more than a step are done in parts; each part makes its own encoding.
  const std::int64_t step_batches = std::max<std::int64_t>(1, step_rows / block_rows);
  const bool in_parts = out.batch_count > 8 * step_batches;
  const std::int64_t part_batches = in_parts ? step_batches : out.batch_count;
  const Blocks blocks(job, in_parts ? 1 : threads);
  const std::int64_t parts = (out.batch_count + part_batches - 1) / part_batches;
  const std::int64_t step = in_parts ? 1 : std::max<std::int64_t>(1, step_rows / out.batch_count / blocks.rows());
  return parallel_for(blocks.count() * parts, step, threads, interruption,
                      [&](std::int64_t begin, std::int64_t end, int thread) {
                        const std::int64_t block = begin % blocks.count();
                        const std::int64_t batch = begin / blocks.count() * part_batches;
                        Worker(job, plan, cached, scratch_of(thread))
                            .process_shared(blocks.row(block), blocks.row(block + (end - begin)), batch,
                                            std::min(batch + part_batches, out.batch_count));
                      });
}

bool run_columns(const Job& job, const PositionBounds& bounds, std::int64_t first, std::int64_t count,
                 Interruption* interruption) {
  Job part = job;
  RowsView x;
  const auto narrow = [&](RowsView& rows) {
    rows.data += first * rows.column_stride_bytes;
    rows.columns = count;
  };
  narrow(part.out);
  if (job.x != nullptr) {
    x = *job.x;
    narrow(x);
    part.x = &x;
  }
  part.first_column += first;
  const std::int64_t offset_bytes = first * element_bytes(job.out.dtype);
  if (part.learned.data != nullptr) part.learned.data += offset_bytes;
  if (part.vocabulary.data != nullptr) part.vocabulary.data += offset_bytes;
  return run_checked(part, bounds, interruption);
}

}  // namespace

bool run(const Job& job, Interruption* interruption) try {
  const RowsView& out = job.out;
  const PositionBounds bounds = check(job, interruption);
  if (out.batch_count == 0 || out.seq_len == 0 || out.columns == 0) return true;

  const std::int64_t step = columns_at_once(job);
  if (step >= out.columns) return run_checked(job, bounds, interruption);
  for (std::int64_t first = 0; first < out.columns; first += step) {
    if (!run_columns(job, bounds, first, std::min(step, out.columns - first), interruption)) return false;
  }
  return true;
} catch (const Interrupted&) {
  return false;
}

}  // namespace fastpe
