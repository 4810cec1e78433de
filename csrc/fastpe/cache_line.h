// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace fastpe {

constexpr std::int64_t cache_line_bytes = 64;

constexpr std::int64_t whole_cache_lines(std::int64_t bytes) {
  return (bytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

}  // namespace fastpe
