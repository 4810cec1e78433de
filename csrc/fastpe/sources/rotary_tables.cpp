// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_tables.h"

#include <algorithm>
#include <cstring>
#include <limits>

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
    convert_all<std::uint16_t, float>(from, to, count, float32_of_bfloat16);
  }
}

// Whether every row has column k * step again `distance` columns further. The last row is the first that is compared:
// in a table of pairs its first column tells. Cells on the diagonal of a grid have equal halves, too, so several rows
// are needed, and rows whose columns are all alike say nothing, as those of position 0 and of padding.
bool has_twins(const TableView& cosines, const TableView& sines, std::int64_t twins, std::int64_t step,
               std::int64_t distance) {
  constexpr std::int64_t fewest_rows = 3;
  const std::int64_t bytes = element_bytes(cosines.dtype);
  std::int64_t telling_rows = 0;
  for (std::int64_t row = cosines.rows - 1; row >= 0; --row) {
    const auto are_equal = [&](std::int64_t one, std::int64_t other, std::int64_t columns) {
      const char *const cosine = cosines.row(row), *const sine = sines.row(row);
      const auto size = static_cast<std::size_t>(columns * bytes);
      return std::memcmp(cosine + one * bytes, cosine + other * bytes, size) == 0 &&
             std::memcmp(sine + one * bytes, sine + other * bytes, size) == 0;
    };
    const bool are_all_alike = are_equal(0, 1, 2 * twins - 1);
    if (are_all_alike) continue;
    for (std::int64_t k = 0; k < twins; ++k) {
      if (!are_equal(k * step, k * step + distance, 1)) return false;
    }
    ++telling_rows;
  }
  return telling_rows >= fewest_rows;
}

}  // namespace

void RotaryTables::expand(const Span& span, const Target& target, char* /*scratch*/) const {
  for (std::int64_t i = 0; i < span.count; ++i) {
    char* const row = target.out + i * target.out_row_stride_bytes;
    const std::int64_t position = span.position.integer + i;
    convert_row(cosines_.row(position), cosines_.dtype, row, target.dtype, pairs_);
    convert_row(sines_.row(position), sines_.dtype, row + pairs_ * element_bytes(target.dtype), target.dtype, pairs_);
  }
}

Twins twins_of(const TableView& cosines, const TableView& sines, std::int64_t columns) {
  const std::int64_t half = columns / 2;
  if (columns % 2 != 0) return Twins::none;
  if (has_twins(cosines, sines, half, 1, half)) return Twins::tiled;
  return has_twins(cosines, sines, half, 2, 1) ? Twins::repeated : Twins::none;
}

bool are_on_circle(const NumbersView& cosines, const NumbersView& sines, std::int64_t columns) {
  constexpr double rounding = 1e-4;  // of float32, with room to spare
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  bool are_all_same = true;
  for (std::int64_t k = 0; k < columns; ++k) {
    const double cosine = cosines.at(0, k).value, sine = sines.at(0, k).value;
    const double squared_radius = cosine * cosine + sine * sine;
    if (!(squared_radius > 0.0)) return false;
    least = std::min(least, squared_radius);
    most = std::max(most, squared_radius);
    are_all_same = are_all_same && cosine == cosines.at(0, 0).value;
  }
  return !are_all_same && most <= least * (1.0 + rounding);
}

}  // namespace fastpe
