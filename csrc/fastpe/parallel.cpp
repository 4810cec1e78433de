// SPDX-License-Identifier: BSD-3-Clause
#include "parallel.h"

#include <algorithm>

#include "lazy.h"
#include "machine.h"
#if defined(_OPENMP)
#include "team.h"
#endif

namespace fastpe {
namespace {

constexpr std::int64_t bytes_per_thread = 512 * 1024;
// More threads than these, or than the default, gain nothing, and each has scratch memory of its own.
constexpr int most_useful_threads = 16;

// 0 where nothing is said. Read once: a server's environment does not change under it.
LazyNumber threads_from_environment;

std::int64_t read_threads_from_environment() {
  return number_in_environment("FASTPE_NUM_THREADS", 1, 1 << 16, 0, "a positive integer");
}

}  // namespace

void TeamPolicy::record(Clock::time_point now, Clock::duration team, Clock::duration alone) {
  const Clock::duration lost = team - alone;
  const Clock::duration proportional = pause_per_loss * lost;
  if (lost <= longest_wake_up) {
    next_pause_ /= 2;
    if (lost > Clock::duration(0)) pause_until(now + proportional);
    return;
  }
  const Clock::duration pause = std::min(std::max(proportional, next_pause_), longest_pause);
  next_pause_ = 2 * pause;
  pause_until(now + pause);
}

bool has_openmp() {
#if defined(_OPENMP)
  return true;
#else
  return false;
#endif
}

int default_thread_count() {
  [[maybe_unused]] const std::int64_t threads = threads_from_environment.get(read_threads_from_environment);
#if defined(_OPENMP)
  return threads > 0 ? static_cast<int>(threads) : threads_of_openmp();
#else
  return 1;
#endif
}

int threads_for(std::int64_t bytes, int max_threads) {
  if (bytes < 2 * bytes_per_thread) return 1;
  const int limit = std::max(most_useful_threads, default_thread_count());
  return static_cast<int>(std::min<std::int64_t>({bytes / bytes_per_thread, max_threads, limit}));
}

bool parallel_for(std::int64_t count, std::int64_t step, [[maybe_unused]] int threads, Interruption* interruption,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context) {
#if defined(_OPENMP)
  const TeamRun run =
      threads > 1 ? run_by_team(count, step, threads, interruption, body, context) : TeamRun::not_opened;
  if (run != TeamRun::not_opened) return run == TeamRun::done;
#endif
  for (std::int64_t at = 0; at < count; at += step) {
    body(context, at, std::min(at + step, count), 0);
    if (interruption != nullptr && at + step < count && interruption->poll()) return false;
  }
  return true;
}

}  // namespace fastpe
