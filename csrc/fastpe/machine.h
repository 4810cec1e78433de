// SPDX-License-Identifier: BSD-3-Clause
// The sizes of this machine's caches and memory, or guesses where the system does not tell.
#pragma once

#include <cstdint>
#include <string>

namespace fastpe {

// Of one processor: at least 32 KiB and 512 KiB.
std::int64_t l1_cache_bytes();
std::int64_t l2_cache_bytes();

// Whether the last-level cache answers in much less time than memory: a large one is spread over a mesh of many cores.
bool is_last_level_cache_near();

// Outputs larger than this may be stored past the caches: the part of the last-level cache that one call may use, or
// FASTPE_STREAMING_BYTES. Throws an Error for a wrong value of that variable.
std::int64_t streaming_threshold_bytes();

// 0 if it is unknown.
std::int64_t memory_bytes();

// A variable of the environment; `otherwise` where it is not set or empty. Throws an Error for a value that is no
// integer from `least` to `most`.
std::int64_t number_in_environment(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise,
                                   const char* expected);

// The integer at the beginning of a file of the system; 0 if there is none.
std::int64_t number_in(const std::string& path);

}  // namespace fastpe
