// SPDX-License-Identifier: BSD-3-Clause
// What the core takes for a cache line. Longer lines cost speed, not correctness.
#pragma once

#include <cstdint>

namespace fastpe {

constexpr std::int64_t cache_line_bytes = 64;

constexpr std::int64_t whole_cache_lines(std::int64_t bytes) {
  return (bytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

}  // namespace fastpe
