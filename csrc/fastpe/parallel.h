// SPDX-License-Identifier: BSD-3-Clause
// One parallel_for over OpenMP, with the promises that OpenMP itself does not make: no hang after fork(), a bounded
// number of threads whatever the number of callers, a way to stop, and no waiting for threads that get no processor.
//
// Members of a team that come late find their shares done, for whoever has nothing left to do takes the others' shares.
// But OpenMP ends a team only when all members have come, and where other programs hold the processors that takes
// milliseconds. So each team is compared with the processor time that its calling thread alone would have needed; after
// one that took longer, calls use one thread for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "interruption.h"

namespace fastpe {

// Decides from the teams so far whether a call opens one. After a team that took longer than its calling thread alone
// would have, calls do without for four times what was lost, so that teams never cost more than a quarter. A loss that
// waking a thread explains ends there. A longer one means that other programs hold the processors: the pauses double
// from one such loss to the next, and halve with each team between.
class TeamPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int pause_per_loss = 4;
  static constexpr Clock::duration longest_wake_up = std::chrono::microseconds(500);  // below a scheduler's slice
  static constexpr Clock::duration longest_pause = std::chrono::seconds(1);

  // From any thread, at any time.
  bool wants_team(Clock::time_point now) const {
    return now.time_since_epoch().count() >= pause_ends_.load(std::memory_order_relaxed);
  }

  // What a team took that ended now, and what its calling thread alone would have taken. By one thread at a time.
  void record(Clock::time_point now, Clock::duration team, Clock::duration alone);

 private:
  void pause_until(Clock::time_point end) {
    pause_ends_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
  }

  std::atomic<Clock::rep> pause_ends_{Clock::time_point::min().time_since_epoch().count()};
  Clock::duration next_pause_{0};
};

// FASTPE_NUM_THREADS, or else that of threads_of_openmp(); 1 without OpenMP. Throws an Error for a value that is not a
// positive integer.
int default_thread_count();

bool has_openmp();

// How many threads a call that touches this many bytes asks for.
int threads_for(std::int64_t bytes, int max_threads);

// Does body(context, begin, end, thread) over [0, count) in steps of at most `step`, with 0 <= thread < threads and one
// step at a time for each thread; returns false if interrupted. There are as many contiguous shares as `threads` says,
// done by at most as many threads as there are processors; those who have done theirs help the others. It throws
// nothing, and bodies must not throw.
bool parallel_for(std::int64_t count, std::int64_t step, int threads, Interruption* interruption,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context);

template <class Body>
bool parallel_for(std::int64_t count, std::int64_t step, int threads, Interruption* interruption, Body&& body) {
  return parallel_for(
      count, step, threads, interruption,
      [](void* context, std::int64_t begin, std::int64_t end, int thread) {
        (*static_cast<Body*>(context))(begin, end, thread);
      },
      &body);
}

}  // namespace fastpe
