// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows and columns that lie anywhere in memory.
#pragma once

#include <cstdint>

#include "fastpe/arrays.h"

namespace fastpe {

// Elements of 2, 4 or 8 bytes.
void zero_block(const Block<char>& block, std::int64_t rows, std::int64_t columns, std::int64_t element_bytes);
void copy_block(const Block<char>& to, const Block<const char>& from, std::int64_t rows, std::int64_t columns,
                std::int64_t element_bytes);

}  // namespace fastpe
