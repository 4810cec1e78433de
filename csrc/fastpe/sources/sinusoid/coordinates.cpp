// SPDX-License-Identifier: BSD-3-Clause
#include "coordinates.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "fastpe/cache_line.h"

namespace fastpe {
namespace {

// A row takes whole cache lines, in the widest dtype.
std::int64_t row_bytes_of(const Encoder& encoder) {
  return whole_cache_lines(encoder.spec().d_model * element_bytes(DType::float64));
}

}  // namespace

// At the head of a thread's scratch memory: the last row of each coordinate. Neighbours on a grid share most of theirs.
struct alignas(cache_line_bytes) CoordinateSinusoids::LastRows {
  bool are_made[max_coordinates];
  double coordinates[max_coordinates];
  std::int64_t row_bytes;
  std::int64_t count;

  char* row(int axis) { return reinterpret_cast<char*>(this + 1) + axis * row_bytes; }
  char* of_encoder() { return row(static_cast<int>(count)); }
};

void CoordinateSinusoids::prepare(DType dtype, const PositionBounds& bounds, bool will_keep,
                                  Interruption* interruption) const {
  encoder_.prepare(dtype, interruption);
  if (will_keep && cache_ != nullptr) cache_->reserve(dtype, bounds);
}

std::int64_t CoordinateSinusoids::scratch_bytes(DType dtype, bool in_any_order) const {
  return static_cast<std::int64_t>(sizeof(LastRows)) + axes_.count * row_bytes_of(encoder_) +
         encoder_.scratch_bytes(dtype, in_any_order);
}

void CoordinateSinusoids::start(char* scratch, DType dtype, bool in_any_order) const {
  LastRows& last = *new (scratch) LastRows;
  std::fill(std::begin(last.are_made), std::end(last.are_made), false);
  last.row_bytes = row_bytes_of(encoder_);
  last.count = axes_.count;
  encoder_.start(last.of_encoder(), dtype, in_any_order);
}

const char* CoordinateSinusoids::row_at(const Number& coordinate, int axis, DType dtype, char* scratch) const {
  if (cache_ != nullptr) {
    if (const char* const kept = cache_->find_row(dtype, coordinate)) return kept;
  }
  LastRows& last = *std::launder(reinterpret_cast<LastRows*>(scratch));
  char* const row = last.row(axis);
  if (!last.are_made[axis] || last.coordinates[axis] != coordinate.value) {
    encoder_.expand({0, 1, coordinate}, {dtype, {0, encoder_.spec().d_model}, row, last.row_bytes}, 0,
                    last.of_encoder());
    last.are_made[axis] = true;
    last.coordinates[axis] = coordinate.value;
  }
  return row;
}

void CoordinateSinusoids::expand(const Span& span, const Target& target, char* scratch) const {
  const char* rows[max_coordinates];
  for (int axis = 0; axis < axes_.count; ++axis) {
    rows[axis] = row_at(span.coordinates[axis], axis, target.dtype, scratch);
  }
  const auto frequencies = static_cast<std::int64_t>(axes_.of_frequency.size());
  const std::int64_t bytes = element_bytes(target.dtype);
  const auto axis_of = [&](std::int64_t column) {
    return axes_.of_frequency[static_cast<std::size_t>(column < frequencies ? column : column - frequencies)];
  };
  // Adjacent columns of one coordinate are copied together.
  const std::int64_t end_column = target.columns.first + target.columns.count;
  for (std::int64_t begin = target.columns.first; begin < end_column;) {
    const int axis = axis_of(begin);
    std::int64_t end = begin + 1;
    while (end < end_column && axis_of(end) == axis) ++end;
    std::memcpy(target.out + (begin - target.columns.first) * bytes, rows[axis] + begin * bytes,
                static_cast<std::size_t>((end - begin) * bytes));
    begin = end;
  }
}

}  // namespace fastpe
