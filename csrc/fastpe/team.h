// SPDX-License-Identifier: BSD-3-Clause
// Teams of OpenMP's threads, and all that the core knows of threads. Builds without OpenMP have none of it.
#pragma once

#include <cstdint>

#include "parallel.h"

namespace fastpe {

// OpenMP's own number (OMP_NUM_THREADS, or the processors this process may use), within its control group's quota.
int threads_of_openmp();

// parallel_for by a team, where one can be opened now and there is memory for its shares.
enum class TeamRun { done, stopped, not_opened };
TeamRun run_by_team(std::int64_t count, std::int64_t step, int threads, Interruption* interruption,
                    void (*body)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context);

}  // namespace fastpe
