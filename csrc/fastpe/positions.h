// SPDX-License-Identifier: BSD-3-Clause
// Which rows of a call are valid, and at which positions they are. `row` is a batch row: one index of the first axis
// of a batch, or of all axes but the last of positions of any shape. `l` counts rows along the sequence.
#pragma once

#include <algorithm>
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
  std::int64_t first = 0;  // with the offset, where it is one for all
  NumbersView offsets;     // per row, or per sequence in a packed batch
  bool is_offset_given = false;
  NumbersView values;  // explicit
  const char* values_name = nullptr;
  bool values_per_batch_row = false;
  int coordinate_count = 0;  // of each explicit position; 0: it is one number
  std::int64_t coordinate_stride_bytes = 0;
  Axes value_axes;              // of `values` before its last axis, for messages
  NumbersView sequence_starts;  // of a packed batch
  std::int64_t sequence_count = 0;
  bool count_valid_only = false;

  // Whether all rows have the same positions.
  bool are_shared() const { return !values_per_batch_row && !offsets.is_given() && !count_valid_only; }
  // Whether each batch row counts from an offset of its own.
  bool has_row_offsets() const { return offsets.is_given() && !values.is_given() && !sequence_starts.is_given(); }
  // Whether earlier positions may come again, so that a source had better remember what it made for them.
  bool may_revisit() const { return values.is_given() || offsets.is_given(); }
};

// Which rows are valid. An operation skips the others.
struct Validity {
  const char* mask = nullptr;  // bytes; not 0: valid
  std::int64_t mask_batch_row_stride_bytes = 0, mask_seq_stride_bytes = 0;
  NumbersView lengths;  // per row: how many are valid

  bool are_all_valid() const { return mask == nullptr && !lengths.is_given(); }
  // Of a mask.
  bool has(std::int64_t row, std::int64_t l) const {
    return mask[row * mask_batch_row_stride_bytes + l * mask_seq_stride_bytes] != 0;
  }
};

struct Placement {
  Positions positions;
  Validity validity;
};

// Calls on_valid(l, count) and on_invalid(l, count) over [begin, end) of one row.
template <class OnValid, class OnInvalid>
void for_each_validity(const Validity& validity, std::int64_t row, std::int64_t begin, std::int64_t end,
                       const OnValid& on_valid, const OnInvalid& on_invalid) {
  if (validity.lengths.is_given()) {
    const std::int64_t length = std::clamp(validity.lengths.integer_at(row, 0), begin, end);
    if (length > begin) on_valid(begin, length - begin);
    if (end > length) on_invalid(length, end - length);
    return;
  }
  if (validity.mask == nullptr) {
    if (end > begin) on_valid(begin, end - begin);
    return;
  }
  for (std::int64_t l = begin; l < end;) {
    const bool is_valid = validity.has(row, l);
    std::int64_t stop = l + 1;
    while (stop < end && validity.has(row, stop) == is_valid) ++stop;
    is_valid ? on_valid(l, stop - l) : on_invalid(l, stop - l);
    l = stop;
  }
}

inline std::int64_t valid_rows_before(const Validity& validity, std::int64_t row, std::int64_t l) {
  std::int64_t count = 0;
  for_each_validity(
      validity, row, 0, l, [&count](std::int64_t, std::int64_t n) { count += n; }, [](std::int64_t, std::int64_t) {});
  return count;
}

inline std::int64_t first_position(const Positions& p, std::int64_t row) {
  if (!p.offsets.is_given()) return p.first;
  // This is far enough beyond max_position to be refused, and cannot overflow.
  return p.first + std::clamp(p.offsets.integer_at(row, 0), -2 * max_position, 2 * max_position);
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
  const Number* coordinates = nullptr;  // valid during the call that passes the span

  // Not of a single row at an integer position, which counts as ascending.
  bool is_one_position() const { return step == Step::none; }
  // Of integer positions.
  std::int64_t lowest() const { return step == Step::descending ? position.integer - (count - 1) : position.integer; }
  std::int64_t highest() const { return step == Step::ascending ? position.integer + (count - 1) : position.integer; }
};

// Calls on_span over [l, l + count) of one row, all of them valid, the first being the valid_before-th valid one.
template <class OnSpan>
void for_each_span(const Positions& p, std::int64_t row, std::int64_t l, std::int64_t count, std::int64_t valid_before,
                   const OnSpan& on_span) {
  if (p.values.is_given()) {
    const std::int64_t value_row = p.values_per_batch_row ? row : 0;
    const std::int64_t end = l + count;
    if (p.coordinate_count > 0) {
      for (; l < end; ++l) {
        Number coordinates[max_coordinates];
        for (int i = 0; i < p.coordinate_count; ++i) {
          NumbersView coordinate = p.values;
          coordinate.data += i * p.coordinate_stride_bytes;
          coordinates[i] = coordinate.at(value_row, l);
        }
        on_span(Span{l, 1, coordinates[0], Span::Step::none, coordinates});
      }
      return;
    }
    if (p.values.seq_stride_bytes == 0 && count > 0) {  // a move of all rows, or a broadcast array
      on_span(Span{l, count, p.values.at(value_row, l), Span::Step::none});
      return;
    }
    while (l < end) {
      const Number position = p.values.at(value_row, l);
      std::int64_t stop = l + 1, step = 0;
      if (position.is_integer && -max_position <= position.integer && position.integer <= max_position) {
        for (; stop < end; ++stop) {
          const Number next = p.values.at(value_row, stop);
          if (step == 0) step = next.integer < position.integer ? -1 : 1;
          if (!next.is_integer || next.integer != position.integer + step * (stop - l)) break;
        }
      }
      const bool is_descending = step < 0 && stop > l + 1;
      on_span(Span{l, stop - l, position,
                   !position.is_integer ? Span::Step::none
                   : is_descending      ? Span::Step::descending
                                        : Span::Step::ascending});
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

// The bounds of the valid rows' positions, which were checked.
struct PositionBounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;  // of the integer ones
  bool are_all_integers = true;
  std::int64_t rows = 0, spans = 0;  // of all batch rows, or of one, whose positions the others share

  void add(const Span& span) {
    are_all_integers = are_all_integers && span.position.is_integer;
    if (!span.position.is_integer) return;
    lowest = std::min(lowest, span.lowest());
    highest = std::max(highest, span.highest());
  }
  void add(const Number& position) { add(Span{0, 1, position}); }
};

}  // namespace fastpe
