// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_tables.h"

#include <cstring>
#include <stdexcept>

#include "fastpe/kernels/half_floats.inl"
#include "fastpe/messages.h"

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
    convert_all<std::uint16_t, float>(from, to, count, float32_of_bfloat16);
  }
}

}  // namespace

void RotaryTables::refuse(const std::string& where, const Number& position) const {
  throw std::out_of_range(where + " is " + text_of(position) + ", expected an integer from 0 to " +
                          std::to_string(cosines_.rows - 1) + ": cos and sin have " + std::to_string(cosines_.rows) +
                          " rows; pass longer tables or smaller positions");
}

void RotaryTables::expand(const Run& run, const Sink& sink, char* /*scratch*/) const {
  for (std::int64_t i = 0; i < run.count; ++i) {
    char* const row = sink.out + i * sink.out_row_stride_bytes;
    const std::int64_t position = run.position.integer + i;
    convert_row(cosines_.row(position), cosines_.dtype, row, sink.dtype, pairs_);
    convert_row(sines_.row(position), sines_.dtype, row + pairs_ * element_bytes(sink.dtype), sink.dtype, pairs_);
  }
}

}  // namespace fastpe
