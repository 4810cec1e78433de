// SPDX-License-Identifier: BSD-3-Clause
#include "coordinates.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "fastpe/cache_line.h"

namespace fastpe {
namespace {

// A row takes whole cache lines, in the widest dtype.
std::int64_t held_row_bytes(const Encoder& encoder) {
  return whole_cache_lines(encoder.spec().d_model * element_bytes(DType::float64));
}

}  // namespace

// At the head of a thread's scratch memory: the last row of each coordinate. Neighbours on a grid share most of theirs.
struct alignas(cache_line_bytes) CoordinateSinusoids::HeldRows {
  bool is_held[max_coordinates];
  double coordinates[max_coordinates];
  std::int64_t row_bytes;
  std::int64_t count;

  char* row(int axis) { return reinterpret_cast<char*>(this + 1) + axis * row_bytes; }
  char* of_expander() { return row(static_cast<int>(count)); }
};

void CoordinateSinusoids::prepare(DType dtype, const PositionBounds& bounds, int max_threads,
                                  Interruption* interruption) const {
  expander_.encoder().prepare(dtype, interruption);
  if (kept_ != nullptr && kept_->keeps(dtype, bounds)) kept_->rows(dtype, bounds, max_threads, interruption);
}

std::int64_t CoordinateSinusoids::scratch_bytes(DType dtype, bool in_any_order) const {
  return static_cast<std::int64_t>(sizeof(HeldRows)) + axes_.count * held_row_bytes(expander_.encoder()) +
         expander_.scratch_bytes(dtype, in_any_order);
}

void CoordinateSinusoids::start(char* scratch, DType dtype, bool in_any_order) const {
  HeldRows& held = *new (scratch) HeldRows;
  std::fill(std::begin(held.is_held), std::end(held.is_held), false);
  held.row_bytes = held_row_bytes(expander_.encoder());
  held.count = axes_.count;
  expander_.start(held.of_expander(), dtype, in_any_order);
}

const char* CoordinateSinusoids::row_at(const Number& coordinate, int axis, DType dtype, char* scratch) const {
  if (kept_ != nullptr) {
    if (const char* const kept = kept_->row_if_full(dtype, coordinate)) return kept;
  }
  HeldRows& held = *std::launder(reinterpret_cast<HeldRows*>(scratch));
  char* const row = held.row(axis);
  if (!held.is_held[axis] || held.coordinates[axis] != coordinate.value) {
    Sink sink{};
    sink.dtype = dtype;
    sink.columns = {0, expander_.encoder().spec().d_model};
    sink.out = row;
    sink.out_row_stride_bytes = held.row_bytes;
    expander_.expand({0, 1, coordinate}, sink, held.of_expander());
    held.is_held[axis] = true;
    held.coordinates[axis] = coordinate.value;
  }
  return row;
}

void CoordinateSinusoids::expand(const Run& run, const Sink& sink, char* scratch) const {
  const char* rows[max_coordinates];
  for (int axis = 0; axis < axes_.count; ++axis) rows[axis] = row_at(run.coordinates[axis], axis, sink.dtype, scratch);
  const auto frequencies = static_cast<std::int64_t>(axes_.of_frequency.size());
  const std::int64_t bytes = element_bytes(sink.dtype);
  const auto axis_of = [&](std::int64_t column) {
    return axes_.of_frequency[static_cast<std::size_t>(column < frequencies ? column : column - frequencies)];
  };
  const std::int64_t end_column = sink.columns.first + sink.columns.count;
  for (std::int64_t begin = sink.columns.first; begin < end_column;) {
    const int axis = axis_of(begin);
    const std::int64_t jump_column = sink.columns.first + sink.jump_column;
    std::int64_t end = begin + 1;
    while (end < end_column && end != jump_column && axis_of(end) == axis) ++end;
    char* const out = sink.out + (begin - sink.columns.first) * bytes + (begin < jump_column ? 0 : sink.jump_bytes);
    std::memcpy(out, rows[axis] + begin * bytes, static_cast<std::size_t>((end - begin) * bytes));
    begin = end;
  }
}

}  // namespace fastpe
