// SPDX-License-Identifier: BSD-3-Clause
// What the core takes for a cache line, and how it is prefetched. Longer lines cost speed, not correctness.
#pragma once

#include <cstdint>

// Both prefetch into L2. The address may lie outside of every array.
#if defined(__GNUC__)
#define FASTPE_PREFETCH_TO_READ(address) __builtin_prefetch((address), 0, 2)
#define FASTPE_PREFETCH_TO_WRITE(address) __builtin_prefetch((address), 1, 2)
#elif defined(_M_X64)
#include <xmmintrin.h>
#define FASTPE_PREFETCH_TO_READ(address) _mm_prefetch((address), _MM_HINT_T1)
#define FASTPE_PREFETCH_TO_WRITE(address) FASTPE_PREFETCH_TO_READ(address)
#else
#define FASTPE_PREFETCH_TO_READ(address) static_cast<void>(address)
#define FASTPE_PREFETCH_TO_WRITE(address) static_cast<void>(address)
#endif

namespace fastpe {

constexpr std::int64_t cache_line_bytes = 64;

constexpr std::int64_t whole_cache_lines(std::int64_t bytes) {
  return (bytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

}  // namespace fastpe
