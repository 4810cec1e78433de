// SPDX-License-Identifier: BSD-3-Clause
// How many non-temporal stores the counted kernels did, and how many threads did some that no fence followed yet.
#pragma once

#include <atomic>

namespace fastpe::testing {

struct Stores {
  std::atomic<int> all{0}, unfenced_threads{0};
};
extern Stores stores;

void count_store();
void count_fence();

}  // namespace fastpe::testing
