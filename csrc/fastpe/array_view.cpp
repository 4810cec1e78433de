// SPDX-License-Identifier: BSD-3-Clause
#include "array_view.h"

#include <cmath>
#include <cstring>

namespace fastpe {
namespace {

template <class T>
T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

Number of_integer(std::int64_t value) { return {true, value, static_cast<double>(value)}; }

Number of_double(double value) {
  const bool is_integer = std::fabs(value) < 0x1p62 && std::floor(value) == value;
  return {is_integer, is_integer ? static_cast<std::int64_t>(value) : 0, value};
}

}  // namespace

Number NumbersView::at(std::int64_t batch, std::int64_t l) const {
  const char* p = data + batch * batch_stride_bytes + l * seq_stride_bytes;
  switch (type) {
    case NumberType::int8: return of_integer(load<std::int8_t>(p));
    case NumberType::int16: return of_integer(load<std::int16_t>(p));
    case NumberType::int32: return of_integer(load<std::int32_t>(p));
    case NumberType::int64: return of_integer(load<std::int64_t>(p));
    case NumberType::uint8: return of_integer(load<std::uint8_t>(p));
    case NumberType::uint16: return of_integer(load<std::uint16_t>(p));
    case NumberType::uint32: return of_integer(load<std::uint32_t>(p));
    case NumberType::uint64: {
      const auto value = load<std::uint64_t>(p);
      return {true, value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value), static_cast<double>(value)};
    }
    case NumberType::float32: return of_double(static_cast<double>(load<float>(p)));
    case NumberType::float64: return of_double(load<double>(p));
  }
  return of_integer(0);
}

}  // namespace fastpe
