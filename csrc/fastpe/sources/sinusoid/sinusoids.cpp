// SPDX-License-Identifier: BSD-3-Clause
#include "sinusoids.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <new>

#include "fastpe/cache_line.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"

namespace fastpe {

FrequencyCoordinates::FrequencyCoordinates(const std::vector<double>& given, std::int64_t frequency_count) {
  const auto size = static_cast<std::int64_t>(given.size());
  if (size != 0 && size != frequency_count) {
    refuse_value("frequency_axes", {"has ", size, " coordinates"}, {frequency_count, ", one for each frequency"});
  }
  for (const double coordinate : given) {
    if (!(0 <= coordinate && coordinate < max_coordinates)) {
      refuse_value("frequency_axes", {"has ", coordinate}, {"0 to ", max_coordinates - 1});
    }
    of_frequency.push_back(static_cast<int>(coordinate));
    count = std::max(count, of_frequency.back() + 1);
  }
}

Sinusoids::Sinusoids(const Encoding& encoding, std::int64_t first_column, const FrequencyCoordinates* coordinates)
    : Source(-max_position, max_position, true, coordinates == nullptr ? fastpe::block_rows : 1,
             coordinates == nullptr ? fastpe::blocks_at_once : 1, -block_radius),
      encoding_(encoding),
      encoder_(encoding.encoder),
      first_column_(first_column),
      coordinates_(coordinates) {}

Tile Sinusoids::kept_rows(DType dtype, const PositionBounds& bounds) const {
  Tile rows = coordinates_ == nullptr ? encoding_.kept_rows(dtype, bounds) : Tile{};
  if (rows.is_there()) {
    rows.block = rows.block.from(0, first_column_);
    rows.columns.count -= first_column_;
  }
  return rows;
}

void Sinusoids::keep(DType dtype, const PositionBounds& bounds, std::int64_t bytes_written, int max_threads,
                     Interruption* interruption) const {
  encoding_.keep(dtype, bounds, bytes_written, max_threads, interruption);
}

void Sinusoids::prepare(DType dtype, const PositionBounds& bounds, bool will_keep, Interruption* interruption) const {
  encoder_.prepare(dtype, interruption);
  if (will_keep) encoding_.reserve(dtype, bounds);
}

// At the head of a thread's scratch memory: whether the last row of each coordinate is there, and of which position.
// Neighbours on a grid share most of theirs. The rows follow.
struct alignas(cache_line_bytes) Sinusoids::LastRows {
  bool are_made[max_coordinates];
  double positions[max_coordinates];
};

std::int64_t Sinusoids::offset_of_row(int coordinate) const {
  // A row takes whole cache lines, in the widest dtype.
  const std::int64_t row_bytes = whole_cache_lines(encoder_.spec().d_model * element_bytes(DType::float64));
  return static_cast<std::int64_t>(sizeof(LastRows)) + coordinate * row_bytes;
}

std::int64_t Sinusoids::scratch_bytes(DType dtype, bool may_revisit) const {
  const std::int64_t own_bytes = coordinates_ == nullptr ? 0 : offset_of_row(coordinates_->count);
  return own_bytes + encoder_.scratch_bytes(dtype, may_revisit);
}

void Sinusoids::start(char* scratch, DType dtype, bool may_revisit) const {
  if (coordinates_ == nullptr) return encoder_.start(scratch, dtype, may_revisit);
  new (scratch) LastRows{};
  encoder_.start(scratch + offset_of_row(coordinates_->count), dtype, may_revisit);
}

void Sinusoids::write_rows(const Span& span, const Target& target, char* scratch) const {
  if (coordinates_ == nullptr) return encoder_.write_rows(span, target, first_column_, scratch);
  join_rows(span, target, scratch);
}

const char* Sinusoids::row_at(const Number& position, int coordinate, DType dtype, char* scratch) const {
  PositionBounds bounds;
  bounds.add(position);
  if (const Tile kept = encoding_.kept_rows(dtype, bounds); kept.is_there()) return kept.row(position.integer);
  LastRows& last = *std::launder(reinterpret_cast<LastRows*>(scratch));
  char* const row = scratch + offset_of_row(coordinate);
  if (!last.are_made[coordinate] || last.positions[coordinate] != position.value) {
    encoder_.write_rows({0, 1, position}, {{row, 0}, dtype, {0, encoder_.spec().d_model}}, 0,
                        scratch + offset_of_row(coordinates_->count));
    last.are_made[coordinate] = true;
    last.positions[coordinate] = position.value;
  }
  return row;
}

void Sinusoids::join_rows(const Span& span, const Target& target, char* scratch) const {
  assert(target.x == nullptr);
  const char* rows[max_coordinates];
  for (int i = 0; i < coordinates_->count; ++i) {
    rows[i] = row_at(span.coordinates[i], i, target.dtype, scratch);
  }
  const std::vector<int>& of_frequency = coordinates_->of_frequency;
  const auto frequencies = static_cast<std::int64_t>(of_frequency.size());
  const std::int64_t bytes = element_bytes(target.dtype);
  const auto coordinate_of = [&](std::int64_t column) {
    return of_frequency[static_cast<std::size_t>(column < frequencies ? column : column - frequencies)];
  };
  // Adjacent columns of one coordinate are copied together.
  const std::int64_t end_column = target.columns.first + target.columns.count;
  for (std::int64_t begin = target.columns.first; begin < end_column;) {
    const int coordinate = coordinate_of(begin);
    std::int64_t end = begin + 1;
    while (end < end_column && coordinate_of(end) == coordinate) ++end;
    std::memcpy(target.out + (begin - target.columns.first) * bytes, rows[coordinate] + begin * bytes,
                static_cast<std::size_t>((end - begin) * bytes));
    begin = end;
  }
}

void AngleRows::write_rows(const Span& span, const Target& target, char* /*scratch*/) const {
  const DoubleDoubles& radians = encoder_.frequencies().radians;
  assert(!is_16_bit(target.dtype) && target.x == nullptr);
  AngleArguments a{};
  a.out_row_stride_bytes = target.out_row_stride_bytes;
  a.rows = span.count;
  const auto coordinate_of = [&](std::int64_t k) {
    return span.coordinates == nullptr ? 0 : coordinates_.of_frequency[static_cast<std::size_t>(k)];
  };
  // Adjacent columns of one coordinate are made together.
  for (std::int64_t first = target.columns.first; first < target.columns.end(); first += a.columns) {
    const int coordinate = coordinate_of(first);
    a.columns = 1;
    while (first + a.columns < target.columns.end() && coordinate_of(first + a.columns) == coordinate) ++a.columns;
    const double position = (span.coordinates == nullptr ? span.position : span.coordinates[coordinate]).value;
    // The product's error would be lost below the least double.
    const bool is_tiny = position != 0.0 && std::fabs(position) < 0x1p-700;
    a.position = is_tiny ? position * 0x1p600 : position;
    a.unit = is_tiny ? 0x1p-600 : 1.0;
    a.out = target.out + (first - target.columns.first) * element_bytes(target.dtype);
    a.high = radians.high.data() + first;
    a.low = radians.low.data() + first;
    active_kernels().angles[index_of(target.dtype)](a);
  }
}

}  // namespace fastpe
