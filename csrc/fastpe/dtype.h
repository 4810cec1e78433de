// SPDX-License-Identifier: BSD-3-Clause
// Types of elements that arrays have. Kernels exist for the first ones, which fastpe writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace fastpe {

enum class DType : unsigned char {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  complex64,
  complex128
};
constexpr int index_of(DType dtype) { return static_cast<int>(dtype); }

// In the order of DType.
struct DTypeFacts {
  const char* name;
  std::int64_t element_bytes;
  std::int32_t c_number;     // in fastpe.h; 0: C has no arrays of it
  std::uint8_t dlpack_code;  // its DLDataTypeCode
};
constexpr DTypeFacts dtype_facts[] = {
    {"float32", 4, 1, 2}, {"float64", 8, 2, 2}, {"float16", 2, 3, 2}, {"bfloat16", 2, 4, 4},  {"int8", 1, 5, 0},
    {"int16", 2, 6, 0},   {"int32", 4, 7, 0},   {"int64", 8, 8, 0},   {"uint8", 1, 9, 1},     {"uint16", 2, 10, 1},
    {"uint32", 4, 11, 1}, {"uint64", 8, 12, 1}, {"bool", 1, 13, 6},   {"complex64", 8, 0, 5}, {"complex128", 16, 0, 5},
};
static_assert(std::size(dtype_facts) == static_cast<std::size_t>(DType::complex128) + 1);
constexpr const char* name_of(DType dtype) { return dtype_facts[index_of(dtype)].name; }
constexpr std::int64_t element_bytes(DType dtype) { return dtype_facts[index_of(dtype)].element_bytes; }

constexpr int written_dtype_count = 4;
constexpr bool is_written(DType dtype) { return index_of(dtype) < written_dtype_count; }
inline constexpr const char* written_dtypes = "float32, float64, float16 or bfloat16";

constexpr bool is_integer(DType dtype) { return DType::int8 <= dtype && dtype <= DType::uint64; }
constexpr bool is_complex(DType dtype) { return dtype >= DType::complex64; }
constexpr bool is_16_bit(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The dtype of rows that are made to be added to arrays of this dtype, or to rotate them.
constexpr DType row_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// Whether encodings are made with what rounding takes from each factor: errors near half a unit in the last place.
constexpr bool is_compensated(DType dtype) { return dtype == DType::float64; }

}  // namespace fastpe
