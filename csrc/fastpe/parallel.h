// SPDX-License-Identifier: BSD-3-Clause
// One parallel_for over OpenMP, with the promises that OpenMP itself does not make: no hang after fork(), a bounded
// number of threads whatever the number of callers, and a way to stop.
#pragma once

#include <cstdint>

#include "interruption.h"

namespace fastpe {

// FASTPE_NUM_THREADS, or else OpenMP's own (OMP_NUM_THREADS, or the processors this process may use, within its
// control group's quota). Throws std::invalid_argument for a value that is not a positive integer.
int default_thread_count();

bool has_openmp();

// How many threads a call that touches this many bytes gets.
int threads_for(std::int64_t bytes, int max_threads);

// Does body(context, begin, end, thread) over contiguous parts of [0, count) on at most `threads` threads, each part in
// steps of at most `step`; returns false if interrupted. Bodies must not throw.
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
