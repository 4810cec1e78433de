// SPDX-License-Identifier: BSD-3-Clause
// Which rows of a call are valid, and at which positions they are. `row` is a batch row: one index of the first axis
// of a batch, or of all axes but the last of positions of any shape. `l` counts rows along the sequence.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "arrays.h"

namespace fastpe {

constexpr std::int64_t max_position = std::int64_t{1} << 53;
inline constexpr const char* position_limit = "magnitude at most 2**53";
inline constexpr const char* why_limited = "beyond it not every integer has a float64 of its own";

// Row (row, l) is at
//   first + offsets[row] + l                               by default,
//   first + offsets[row] + valid rows before l             when only valid rows count,
//   first + offsets[sequence] + l - its sequence's start   in a packed batch,
//   values[row, l]                                         when explicit, or its coordinates if there are several.
struct Positions {
  std::int64_t first = 0;             // with the offset, where it is one for all
  NumbersView offsets;                // per row, or per sequence in a packed batch
  const char* offset_name = nullptr;  // of either; null where neither was given
  NumbersView values;                 // explicit
  const char* values_name = nullptr;
  bool values_per_batch_row = false;
  int coordinate_count = 0;  // of each explicit position; 0: it is one number
  std::int64_t coordinate_stride_bytes = 0;
  Axes value_axes;              // of `values` before its last axis, for messages
  NumbersView sequence_starts;  // of a packed batch
  std::int64_t sequence_count = 0;
  bool count_valid_only = false;
  bool is_batch_sequence = false;  // the rows of the sequence are those of a batch, each the first of its own

  // Whether all batch rows are known to have the same positions: not where valid rows are counted, even by one mask.
  bool are_shared() const { return !values_per_batch_row && !offsets.is_given() && !count_valid_only; }
  // Of explicit positions. Where a batch is one sequence, its offsets stand in `values`.
  Number value_at(std::int64_t row, std::int64_t l) const {
    return offset_name == nullptr ? values.at(row, l) : number_of(first + clamped_offset(values.integer_at(row, l)));
  }
  // Far enough beyond max_position to be refused, and no more, so that it cannot overflow.
  static std::int64_t clamped_offset(std::int64_t offset) {
    return std::clamp(offset, -2 * max_position, 2 * max_position);
  }
  // Whether earlier positions may come again, so that a source had better remember what it made for them.
  bool may_revisit() const { return values.is_given() || offsets.is_given(); }
};

// Which rows are valid: by a mask, by lengths, or all of them. Nobody looks at the positions of the others, which an
// operation leaves, copies or makes zero.
struct Validity {
  const char* valid = nullptr;  // bytes; not 0: valid
  std::int64_t valid_batch_row_stride_bytes = 0, valid_seq_stride_bytes = 0;
  NumbersView lengths;  // per row: how many are valid

  bool are_all_valid() const { return valid == nullptr && !lengths.is_given(); }
  bool differs_in_batch() const { return valid_batch_row_stride_bytes != 0 || lengths.row_stride_bytes != 0; }
  // These only for a mask.
  bool has(std::int64_t row, std::int64_t l) const {
    return valid[row * valid_batch_row_stride_bytes + l * valid_seq_stride_bytes] != 0;
  }
  std::int64_t count_before(std::int64_t row, std::int64_t l) const {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < l; ++i) count += has(row, i) ? 1 : 0;
    return count;
  }
};

struct Placement {
  Positions positions;
  Validity validity;
};

// Calls on_valid(l, count) for what is valid in any of the batch rows, and on_invalid(l, count) for the rest of
// [begin, end), in order.
template <class OnValid, class OnInvalid>
void for_each_validity(const Validity& validity, const Range& batch_rows, std::int64_t begin, std::int64_t end,
                       const OnValid& on_valid, const OnInvalid& on_invalid) {
  assert(validity.valid == nullptr || !validity.lengths.is_given());
  if (validity.are_all_valid()) {
    if (begin < end) on_valid(begin, end - begin);
    return;
  }
  const std::int64_t first_row = batch_rows.first;
  const std::int64_t rows_end =
      validity.differs_in_batch() ? batch_rows.end() : std::min(batch_rows.end(), first_row + 1);
  if (validity.lengths.is_given()) {
    std::int64_t longest = begin;
    for (std::int64_t row = first_row; row < rows_end && longest < end; ++row) {
      longest = std::clamp(validity.lengths.integer_at(row, 0), longest, end);
    }
    if (begin < longest) on_valid(begin, longest - begin);
    if (longest < end) on_invalid(longest, end - longest);
    return;
  }
  std::int64_t last_found = first_row;  // most likely, the next l is valid in the same row
  const auto is_valid = [&](std::int64_t l) {
    if (last_found < rows_end && validity.has(last_found, l)) return true;
    for (std::int64_t row = first_row; row < rows_end; ++row) {
      if (!validity.has(row, l)) continue;
      last_found = row;
      return true;
    }
    return false;
  };
  while (begin < end) {
    const std::int64_t l = begin;
    const bool are_valid = is_valid(l);
    do ++begin;
    while (begin < end && is_valid(begin) == are_valid);
    are_valid ? on_valid(l, begin - l) : on_invalid(l, begin - l);
  }
}

inline std::int64_t first_position(const Positions& p, std::int64_t row) {
  return p.offsets.is_given() ? p.first + Positions::clamped_offset(p.offsets.integer_at(row, 0)) : p.first;
}

inline std::int64_t sequence_of(const Positions& p, std::int64_t l) {
  std::int64_t low = 0, high = p.sequence_count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (p.sequence_starts.integer_at(0, middle) <= l ? low : high) = middle;
  }
  return low;
}

constexpr int max_coordinates = 16;

// `count` rows from l on: at consecutive integer positions, ascending or descending, or all at one position; or one row
// at a fractional position or at several coordinates.
struct Span {
  std::int64_t l;
  std::int64_t count;
  Number position;  // of the first row; its first coordinate where there are several
  enum class Step { ascending, descending, none } step = Step::ascending;
  Slice<Number> coordinates = {};  // of a row that has several; valid during the call that passes the span

  bool is_one_position() const { return step == Step::none; }
  // Only for integer positions.
  std::int64_t lowest() const { return step == Step::descending ? position.integer - (count - 1) : position.integer; }
  std::int64_t highest() const { return step == Step::ascending ? position.integer + (count - 1) : position.integer; }
};

// Over [l, l + count) of rows whose positions are those of `row`. All are valid, and valid_before others come before.
template <class OnSpan>
void for_each_span_of_valid(const Positions& p, std::int64_t row, std::int64_t l, std::int64_t count,
                            std::int64_t valid_before, const OnSpan& on_span) {
  if (p.values.is_given()) {
    const std::int64_t value_row = p.values_per_batch_row ? row : 0;
    const std::int64_t end = l + count;
    if (p.coordinate_count > 0) {
      for (; l < end; ++l) {
        Number coordinates[max_coordinates];
        NumbersView coordinate = p.values;
        int i = 0;
        do {
          coordinates[i] = coordinate.at(value_row, l);
          coordinate.data += p.coordinate_stride_bytes;
        } while (++i < p.coordinate_count);
        const auto coordinate_count = static_cast<std::size_t>(p.coordinate_count);
        on_span(Span{l, 1, coordinates[0], Span::Step::none, {coordinates, coordinate_count}});
      }
      return;
    }
    if (p.values.seq_stride_bytes == 0) {  // a move of all rows, or a broadcast array
      on_span(Span{l, count, p.value_at(value_row, l), Span::Step::none});
      return;
    }
    while (l < end) {
      Span span{l, 1, p.value_at(value_row, l)};
      const Number& position = span.position;
      std::int64_t stop = l + 1, step = 0;
      if (position.is_integer && -max_position <= position.integer && position.integer <= max_position) {
        for (; stop < end; ++stop) {
          const Number next = p.value_at(value_row, stop);
          if (step == 0) step = next.integer < position.integer ? -1 : 1;
          if (!next.is_integer || next.integer != position.integer + step * (stop - l)) break;
        }
      }
      span.count = stop - l;
      if (step < 0 && span.count > 1) span.step = Span::Step::descending;
      if (!position.is_integer) span.step = Span::Step::none;
      on_span(span);
      l = stop;
    }
  } else if (p.sequence_starts.is_given()) {
    const std::int64_t end = l + count;
    for (std::int64_t sequence = sequence_of(p, l); l < end; ++sequence) {
      // The clamp holds even if another thread changes the array after it was checked.
      const std::int64_t start = std::clamp<std::int64_t>(p.sequence_starts.integer_at(0, sequence), 0, l);
      const bool is_last = sequence + 1 >= p.sequence_count;
      const std::int64_t stop = is_last ? end : std::min(end, p.sequence_starts.integer_at(0, sequence + 1));
      if (stop <= l) continue;
      on_span(Span{l, stop - l, number_of(first_position(p, sequence) + (l - start))});
      l = stop;
    }
  } else {
    on_span(Span{l, count, number_of(first_position(p, row) + (p.count_valid_only ? valid_before : l))});
  }
}

// Calls on_span for what is valid in any of the batch rows, which share their positions, and on_invalid(l, count) for
// the rest of [begin, end), in order. Before `begin`, valid_before rows are valid, if only these count.
template <class OnSpan, class OnInvalid>
void for_each_span(const Placement& placement, const Range& batch_rows, std::int64_t begin, std::int64_t end,
                   std::int64_t valid_before, const OnSpan& on_span, const OnInvalid& on_invalid) {
  for_each_validity(
      placement.validity, batch_rows, begin, end,
      [&](std::int64_t l, std::int64_t count) {
        for_each_span_of_valid(placement.positions, batch_rows.first, l, count, valid_before, on_span);
        valid_before += count;
      },
      on_invalid);
}

// Of the valid rows' positions, or of all their coordinates.
struct PositionBounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;  // of the integer ones
  bool are_all_integers = true;
  std::int64_t rows = 0, spans = 0;  // of all batch rows, or of one, whose positions the others share

  void add(const Span& span) {
    ++spans;
    rows += span.count;
    for (const Number& coordinate : span.coordinates) add(coordinate);
    if (span.coordinates.count > 0) return;
    add(span.position);
    if (span.is_one_position()) return;
    add(number_of(span.step == Span::Step::descending ? span.lowest() : span.highest()));
  }
  void add(const Number& position) {
    are_all_integers = are_all_integers && position.is_integer;
    if (!position.is_integer) return;
    lowest = std::min(lowest, position.integer);
    highest = std::max(highest, position.integer);
  }
};

}  // namespace fastpe
