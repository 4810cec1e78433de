// SPDX-License-Identifier: BSD-3-Clause
#include "apply.h"

#include <algorithm>
#include <cstdint>

#include "buffer.h"
#include "checks.h"
#include "worker.h"

namespace fastpe {
namespace {

// Between two steps of this size a call looks whether it was interrupted.
constexpr std::int64_t step_bytes = 4 * 1024 * 1024;
constexpr std::int64_t strided_step_bytes = 128 * 1024;  // every element may be a cache miss

}  // namespace

bool run(const Job& job, Interruption* interruption) {
  const RowsView& out = job.out;
  const PositionBounds bounds = check(job);
  if (out.batch_count == 0 || out.seq_len == 0 || out.columns == 0) return true;

  const Plan plan = make_plan(job, bounds);
  const CachedRows cached = plan.all_cached ? job.encoder->cached_rows(out.dtype) : CachedRows{};
  const std::int64_t bytes = out.bytes() * (job.x != nullptr || job.ids.data != nullptr ? 2 : 1);
  const int threads = threads_for(bytes, job.max_threads);
  if (job.encoder != nullptr) job.encoder->prepare(out.dtype);
  const auto scratch =
      plan.scratch_bytes > 0 ? AlignedBuffer<char>::uninitialized(threads * plan.scratch_bytes) : AlignedBuffer<char>();
  const auto scratch_of = [&](int thread) {
    return plan.scratch_bytes > 0 ? scratch.data() + thread * plan.scratch_bytes : nullptr;
  };

  const std::int64_t row_bytes = std::max<std::int64_t>(1, out.columns * element_bytes(out.dtype));
  const bool contiguous = out.has_contiguous_rows() && (job.x == nullptr || job.x->has_contiguous_rows());
  const std::int64_t step_rows = contiguous ? std::max<std::int64_t>(2 * block_rows, step_bytes / row_bytes)
                                            : std::max<std::int64_t>(1, strided_step_bytes / row_bytes);
  if (!plan.shares_positions) {
    return parallel_for(out.batch_count * out.seq_len, step_rows, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_rows(begin, end);
                        });
  }
  // Batches of which one block of rows is more than a step are done in parts; the encoding is made anew for each part.
  const std::int64_t step_batches = std::max<std::int64_t>(1, step_rows / block_rows);
  if (out.seq_len >= block_rows * threads && out.batch_count > 8 * step_batches) {
    const std::int64_t blocks = (out.seq_len + block_rows - 1) / block_rows;
    const std::int64_t parts = (out.batch_count + step_batches - 1) / step_batches;
    return parallel_for(blocks * parts, 1, threads, interruption, [&](std::int64_t item, std::int64_t, int thread) {
      const std::int64_t l = item % blocks * block_rows;
      const std::int64_t batch = item / blocks * step_batches;
      Worker(job, plan, cached, scratch_of(thread))
          .process_shared(l, std::min(l + block_rows, out.seq_len), batch,
                          std::min(batch + step_batches, out.batch_count));
    });
  }
  if (out.seq_len >= block_rows * threads) {
    const std::int64_t step = std::max<std::int64_t>(block_rows, step_rows / out.batch_count);
    return parallel_for(out.seq_len, step, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_shared(begin, end, 0, out.batch_count);
                        });
  }
  const std::int64_t step = std::max<std::int64_t>(1, step_rows / out.seq_len);
  return parallel_for(out.batch_count, step, threads, interruption,
                      [&](std::int64_t begin, std::int64_t end, int thread) {
                        Worker(job, plan, cached, scratch_of(thread)).process_shared(0, out.seq_len, begin, end);
                      });
}

}  // namespace fastpe
