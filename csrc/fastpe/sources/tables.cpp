// SPDX-License-Identifier: BSD-3-Clause
#include "tables.h"

#include <cassert>
#include <cstring>

#include "fastpe/kernels/half_floats.inl"

namespace fastpe {
namespace {

template <class From, class To, class Convert>
void convert_all(const char* from, char* to, std::int64_t count, const Convert& convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    const To converted = convert(value);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof converted), &converted, sizeof converted);
  }
}

// To float32 or float64, never to fewer bits.
void convert_row(const char* from, DType from_dtype, char* to, DType to_dtype, std::int64_t count) {
  if (from_dtype == to_dtype) {
    std::memcpy(to, from, static_cast<std::size_t>(count * element_bytes(to_dtype)));
  } else if (from_dtype == DType::float32) {
    convert_all<float, double>(from, to, count, [](float value) { return static_cast<double>(value); });
  } else if (from_dtype == DType::float16) {
    convert_all<std::uint16_t, float>(from, to, count, float32_of_float16);
  } else {
    assert(from_dtype == DType::bfloat16);
    convert_all<std::uint16_t, float>(from, to, count, float32_of_bfloat16);
  }
}

}  // namespace

void RotaryTables::write_rows(const Span& span, const Target& target, char* /*scratch*/) const {
  const std::int64_t pairs = cosines_.columns;
  assert(target.columns.first == 0 && target.columns.count == 2 * pairs && target.x == nullptr);
  for (std::int64_t i = 0; i < span.count; ++i) {
    char* const row = target.out + i * target.out_row_stride_bytes;
    const std::int64_t position = span.position.integer + i;
    convert_row(row_of(cosines_, position), cosines_.dtype, row, target.dtype, pairs);
    convert_row(row_of(sines_, position), sines_.dtype, row + pairs * element_bytes(target.dtype), target.dtype, pairs);
  }
}

}  // namespace fastpe
