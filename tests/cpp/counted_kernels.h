// SPDX-License-Identifier: BSD-3-Clause
// How many streaming stores the counted kernels did, and how many of these no fence followed yet.
#pragma once

namespace fastpe::testing {

struct Stores {
  int all, unfenced;
};
extern Stores stores;

void count_store();
void count_fence();

}  // namespace fastpe::testing
