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
  const std::int64_t step_rows = std::max<std::int64_t>(2 * block_rows, step_bytes / row_bytes);
  if (!plan.shares_positions) {
    return parallel_for(out.batch_count * out.seq_len, step_rows, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_rows(begin, end);
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
