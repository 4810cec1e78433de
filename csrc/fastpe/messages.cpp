// SPDX-License-Identifier: BSD-3-Clause
#include "messages.h"

#include <cstdio>

namespace fastpe {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string text_of(const Number& number) {
  const bool is_exact = number.is_integer && number.integer != INT64_MAX;
  return is_exact ? std::to_string(number.integer) : text_of(number.value);
}

std::string gigabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

std::string place(const char* name, const Axes& axes, std::int64_t index, std::int64_t l) {
  std::string indices = std::to_string(l);
  for (int axis = axes.count - 1; axis >= 0; --axis) {
    const std::int64_t at = axis > 0 ? index % axes.shape[axis] : index;
    indices = std::to_string(at) + ", " + indices;
    index /= axes.shape[axis];
  }
  return std::string(name) + "[" + indices + "]";
}

}  // namespace fastpe
