// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.h"

#include <cmath>
#include <cstdlib>

namespace fastpe {
namespace {

template <class T>
T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

Number of_double(double value) {
  const bool is_integer = std::fabs(value) < 0x1p62 && std::floor(value) == value;
  return {is_integer ? static_cast<std::int64_t>(value) : INT64_MIN, value};
}

}  // namespace

Number NumbersView::converted_at(std::int64_t row, std::int64_t l) const {
  const char* p = data + row * row_stride_bytes + l * seq_stride_bytes;
  switch (dtype) {
    case DType::int8: return number_of(load<std::int8_t>(p));
    case DType::int16: return number_of(load<std::int16_t>(p));
    case DType::int32: return number_of(load<std::int32_t>(p));
    case DType::int64: return number_of(load<std::int64_t>(p));
    case DType::uint8: return number_of(load<std::uint8_t>(p));
    case DType::uint16: return number_of(load<std::uint16_t>(p));
    case DType::uint32: return number_of(load<std::uint32_t>(p));
    case DType::uint64: {
      const auto value = load<std::uint64_t>(p);
      return {value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value), static_cast<double>(value)};
    }
    case DType::float32: return of_double(static_cast<double>(load<float>(p)));
    case DType::float64: return of_double(load<double>(p));
    default: return number_of(0);
  }
}

void RowsLayout::add_items(std::int64_t length, std::int64_t stride_bytes) {
  item_count *= length;
  if (length == 1) return;
  // An axis that continues the one before it is one with it: fewer divisions to find an item.
  const int last = outer.count - 1;
  if (last >= 0 && outer.strides_bytes[last] == length * stride_bytes) {
    outer.shape[last] *= length;
    outer.strides_bytes[last] = stride_bytes;
  } else {
    outer.add(length, stride_bytes);
  }
}

void RowsLayout::walk_inside() {
  const int last = outer.count - 1;
  if (last < 0 || (seq_len > 1 && std::abs(outer.strides_bytes[last]) >= std::abs(seq_stride_bytes))) return;
  inner_count = outer.shape[last];
  inner_stride_bytes = outer.strides_bytes[last];
  --outer.count;
}

}  // namespace fastpe
