// SPDX-License-Identifier: BSD-3-Clause
// What decides how calls use this machine's caches and memory.
#pragma once

#include <cstdint>

namespace fastpe {

// The sizes of one processor's first-level data cache and of its second-level cache.
std::int64_t first_level_cache_bytes();
std::int64_t second_level_cache_bytes();

// Outputs larger than this bypass the cache: what a call may expect of the last level, which processors share, also
// those of other virtual machines; or FASTPE_STREAMING_BYTES.
std::int64_t streaming_threshold_bytes();

// Arrays up to this size are expected to stay in the cache from one call to the next.
std::int64_t cached_array_bytes();

// Whether this is one of AMD's processors without AVX-512, of which Zen 3 was measured. Streaming stores that go to
// several rows in turn are slow there, and the last level is fast: it gives rows in half of the time that it takes to
// make them, and holds an array of 12 MiB of its 32.
bool is_amd_without_avx512();

// The size of this machine's memory; 0 if it is unknown.
std::int64_t memory_bytes();

}  // namespace fastpe
