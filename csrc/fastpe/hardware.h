// SPDX-License-Identifier: BSD-3-Clause
// Sizes of this machine's caches.
#pragma once

#include <cstdint>

namespace fastpe {

// The size of one processor's first-level data cache.
std::int64_t first_level_cache_bytes();

// Outputs larger than this bypass the cache: what a call may expect of the last level, which processors share, also
// those of other virtual machines; or FASTPE_STREAMING_BYTES.
std::int64_t streaming_threshold_bytes();

}  // namespace fastpe
