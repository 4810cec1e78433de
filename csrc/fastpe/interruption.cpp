// SPDX-License-Identifier: BSD-3-Clause
#include "interruption.h"

namespace fastpe {
namespace {

constexpr auto interruption_interval = std::chrono::milliseconds(50);

}  // namespace

bool Interruption::poll() {
  if (is_seen()) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_asked_ < interruption_interval) return false;
  last_asked_ = now;
  if (requested()) is_seen_.store(true, std::memory_order_relaxed);
  return is_seen();
}

}  // namespace fastpe
