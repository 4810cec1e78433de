// SPDX-License-Identifier: BSD-3-Clause
// Element types of the arrays that fastpe writes.
#pragma once

#include <cstdint>

namespace fastpe {

enum class DType : int { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 3 };
constexpr int dtype_count = 4;
constexpr int index_of(DType dtype) { return static_cast<int>(dtype); }

constexpr std::int64_t element_bytes(DType dtype) {
  return dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

// The dtype of rows that are made to be added to arrays of this dtype, or to rotate them.
constexpr DType row_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

constexpr bool is_16_bit(DType dtype) { return element_bytes(dtype) == 2; }

// Whether encodings are made with what rounding takes from each factor: errors near half a unit in the last place.
constexpr bool is_compensated(DType dtype) { return dtype == DType::float64; }

}  // namespace fastpe
