// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace fastpe {

// Outputs of at least this many bytes bypass the cache: half the last-level cache, or FASTPE_STREAMING_BYTES.
std::int64_t streaming_threshold_bytes();

}  // namespace fastpe
