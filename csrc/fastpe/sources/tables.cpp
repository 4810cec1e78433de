// SPDX-License-Identifier: BSD-3-Clause
#include "tables.h"

#include <cassert>
#include <cstring>

#include "fastpe/kernels/half_floats.inl"

namespace fastpe {
namespace {

template <class From, class To, class Convert>
void convert_all(const char* from, std::int64_t stride_bytes, char* to, std::int64_t count, const Convert& convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * stride_bytes, sizeof value);
    const To converted = convert(value);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof converted), &converted, sizeof converted);
  }
}

// To float32 or float64, never to fewer bits.
void convert_row(const ConstRows& from, std::int64_t row, char* to, DType to_dtype) {
  const char* const data = row_of(from, row);
  const std::int64_t count = from.columns, stride_bytes = from.column_stride_bytes;
  if (from.dtype == to_dtype && from.order() == Order::rows) {
    std::memcpy(to, data, static_cast<std::size_t>(count * element_bytes(to_dtype)));
  } else if (from.dtype == DType::float64) {
    convert_all<double, double>(data, stride_bytes, to, count, [](double value) { return value; });
  } else if (to_dtype == DType::float64) {
    convert_all<float, double>(data, stride_bytes, to, count, [](float value) { return static_cast<double>(value); });
  } else if (from.dtype == DType::float32) {
    convert_all<float, float>(data, stride_bytes, to, count, [](float value) { return value; });
  } else if (from.dtype == DType::float16) {
    convert_all<std::uint16_t, float>(data, stride_bytes, to, count, float32_of_float16);
  } else {
    assert(from.dtype == DType::bfloat16);
    convert_all<std::uint16_t, float>(data, stride_bytes, to, count, float32_of_bfloat16);
  }
}

}  // namespace

void RotaryTables::write_rows(const Span& span, const Target& target, char* /*scratch*/) const {
  const std::int64_t pairs = cosines_.columns;
  assert(target.columns.first == 0 && target.columns.count == 2 * pairs && target.x == nullptr);
  for (std::int64_t i = 0; i < span.count; ++i) {
    char* const row = target.out + i * target.out_row_stride_bytes;
    const std::int64_t position = span.position.integer + i;
    convert_row(cosines_, position, row, target.dtype);
    convert_row(sines_, position, row + pairs * element_bytes(target.dtype), target.dtype);
  }
}

}  // namespace fastpe
