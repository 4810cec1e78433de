// SPDX-License-Identifier: BSD-3-Clause
// Arrays as the core sees them: pointers, shapes and strides that somebody else has checked.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace fastpe {

constexpr std::int64_t element_bytes(DType dtype) {
  return dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

constexpr int max_batch_axes = 8;

// Rows of columns, counted by (batch, sequence); the batch may have several axes.
struct RowsView {
  char* data = nullptr;
  DType dtype = DType::float32;
  int batch_axes = 0;
  std::int64_t batch_shape[max_batch_axes] = {};
  std::int64_t batch_strides_bytes[max_batch_axes] = {};
  std::int64_t batch_count = 1;
  std::int64_t seq_len = 0;
  std::int64_t seq_stride_bytes = 0;
  std::int64_t columns = 0;
  std::int64_t column_stride_bytes = 0;

  char* row(std::int64_t batch, std::int64_t l) const {
    char* p = data + l * seq_stride_bytes;
    for (int axis = batch_axes - 1; axis > 0; --axis) {
      p += batch % batch_shape[axis] * batch_strides_bytes[axis];
      batch /= batch_shape[axis];
    }
    return batch_axes > 0 ? p + batch * batch_strides_bytes[0] : p;
  }
  bool has_contiguous_rows() const { return column_stride_bytes == element_bytes(dtype) || columns <= 1; }
  std::int64_t bytes() const { return batch_count * seq_len * columns * element_bytes(dtype); }
};

enum class NumberType { int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64 };

// A position, before it is checked: an integer, or a fractional number.
struct Number {
  bool is_integer;
  std::int64_t integer;  // saturated where the array's own number does not fit
  double value;
};

// Numbers counted by (batch, sequence), or by one index alone.
struct NumbersView {
  const char* data = nullptr;
  NumberType type = NumberType::int64;
  std::int64_t batch_stride_bytes = 0;
  std::int64_t seq_stride_bytes = 0;

  Number at(std::int64_t batch, std::int64_t l) const;
  std::int64_t integer_at(std::int64_t batch, std::int64_t l) const {
    if (type != NumberType::int64) return at(batch, l).integer;
    std::int64_t value;
    std::memcpy(&value, data + batch * batch_stride_bytes + l * seq_stride_bytes, sizeof value);
    return value;
  }
};

}  // namespace fastpe
