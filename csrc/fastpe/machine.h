// SPDX-License-Identifier: BSD-3-Clause
// The sizes of this machine's caches and memory.
#pragma once

#include <cstdint>

namespace fastpe {

// Of one processor.
std::int64_t l1_cache_bytes();
std::int64_t l2_cache_bytes();

// Outputs larger than this may be stored past the caches: what a call may expect of the last level, which processors
// share, also those of other virtual machines; or FASTPE_STREAMING_BYTES, of which a wrong value throws
// std::invalid_argument.
std::int64_t streaming_threshold_bytes();

// 0 if it is unknown.
std::int64_t memory_bytes();

}  // namespace fastpe
