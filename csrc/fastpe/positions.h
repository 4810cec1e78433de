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

// Which rows are valid: by a mask, by lengths, or all of them. Nobody looks at the positions of the others, which an
// operation leaves, copies or makes zero.
struct Validity {
  const char* valid = nullptr;  // bytes; not 0: valid
  std::int64_t valid_batch_row_stride_bytes = 0, valid_seq_stride_bytes = 0;
  NumbersView lengths;  // per row: how many are valid

  bool are_all_valid() const { return valid == nullptr && !lengths.is_given(); }
  bool differs_in_batch() const { return valid_batch_row_stride_bytes != 0 || lengths.row_stride_bytes != 0; }
  // The rows from l on that are all valid in any of these batch rows, or in none of them.
  Range run_from(std::int64_t l, std::int64_t end, const Range& batch_rows, bool& are_valid) const;
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

// Where rows are, and which are valid. Row (row, l) is at
//   first + offsets[row] + l                               by default,
//   first + offsets[row] + valid rows before l             when only valid rows count,
//   first + offsets[sequence] + l - its sequence's start   in a packed batch,
//   values[row, l]                                         when explicit, or its coordinates if there are several.
struct Placement {
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
  Validity validity;

  // Whether all batch rows are known to have the same positions: not where valid rows are counted, even by one mask.
  bool are_shared() const { return !values_per_batch_row && !offsets.is_given() && !count_valid_only; }
  // Of the first row of a batch row, or of a sequence of a packed batch.
  std::int64_t first_at(std::int64_t row) const {
    return offsets.is_given() ? first + clamped_offset(offsets.integer_at(row, 0)) : first;
  }
  // The sequence of a packed batch that has this row.
  std::int64_t sequence_of(std::int64_t l) const;
  bool has_value_of_each_row() const { return values.seq_stride_bytes != 0 && coordinate_count == 0; }
  // Where such a value says that its row is. Where a batch is one sequence, its offsets stand in `values`.
  Number position_of(const Number& value) const {
    return offset_name == nullptr ? value : number_of(first + clamped_offset(value.integer));
  }
  // Far enough beyond max_position to be refused wherever counting begins, and no more, so that it cannot overflow.
  static std::int64_t clamped_offset(std::int64_t offset) {
    return std::clamp(offset, -4 * max_position, 4 * max_position);
  }
  // Whether earlier positions may come again, so that a source had better remember what it made for them.
  bool may_revisit() const { return values.is_given() || offsets.is_given(); }
};

// Of the start of a packed sequence that is out of order, or not the first or last row.
[[noreturn]] void refuse_sequence_start(const NumbersView& starts, std::int64_t i, std::int64_t seq_len);

constexpr int max_coordinates = 16;

// `count` rows from l on: at consecutive integer positions, ascending or descending, or all at one position; or one row
// at a fractional position or at several coordinates.
struct Span {
  std::int64_t l;
  std::int64_t count;
  Number position;  // of the first row; its first coordinate where there are several
  enum class Step { ascending, descending, none } step = Step::ascending;
  const Number* coordinates = nullptr;  // of a row that has several; valid until the next span
  int coordinate_count = 0;

  bool is_one_position() const { return step == Step::none; }
  // Only for integer positions.
  std::int64_t lowest() const { return step == Step::descending ? position.integer - (count - 1) : position.integer; }
  std::int64_t highest() const { return step == Step::ascending ? position.integer + (count - 1) : position.integer; }
};

// Goes over rows of batch rows that share their positions, in spans: of what is valid in any of them, and
// of the rest, where only `l` and `count` say something.
class Spans {
 public:
  // Before the first one, valid_before rows are valid, if only these count.
  Spans(const Placement& placement, const Range& batch_rows, const Range& rows, std::int64_t valid_before)
      : placement_(placement),
        batch_rows_(batch_rows),
        end_(rows.end()),
        values_(placement.values),
        valid_before_(valid_before),
        run_{rows.first, 0},
        span_{rows.first, 0, {}, Span::Step::none} {
    if (placement_.values_per_batch_row) values_.data += batch_rows_.first * values_.row_stride_bytes;
  }

  // Goes on to the next span; false behind the last one.
  bool next() {
    const std::int64_t l = span_.l + span_.count;
    if (l >= run_.end()) {
      if (l >= end_) return false;
      run_ = placement_.validity.run_from(l, end_, batch_rows_, is_valid_);
    }
    span_.l = l;
    if (!is_valid_) {
      span_.count = run_.count;
      return true;
    }
    if (placement_.has_value_of_each_row()) {
      make_span_of_values(l);
    } else if (placement_.sequence_starts.is_given()) {
      make_span_of_sequence(l);
    } else {
      make_span(l);
    }
    valid_before_ += span_.count;
    return true;
  }
  const Span& span() const { return span_; }
  bool is_valid() const { return is_valid_; }
  std::int64_t valid_before() const { return valid_before_; }

 private:
  // Each from l to the end of the run, or less.
  void make_span(std::int64_t l);
  void make_span_of_sequence(std::int64_t l);
  void make_span_of_values(std::int64_t l) {
    const Number value = values_.at(0, l), position = placement_.position_of(value);
    span_.count = 1;
    span_.position = position;
    span_.step = position.is_integer() ? Span::Step::ascending : Span::Step::none;
    if (l + 1 == run_.end() || position.integer < -max_position || position.integer > max_position) return;
    const std::int64_t next = values_.integer_at(0, l + 1);
    if (next == value.integer + 1) extend_span_of_values(next, 1);
    if (next == value.integer - 1) extend_span_of_values(next, -1);
  }
  void extend_span_of_values(std::int64_t next, std::int64_t step);

  const Placement& placement_;
  Range batch_rows_;
  std::int64_t end_;
  NumbersView values_;  // of the first of these batch rows
  std::int64_t valid_before_;
  std::int64_t sequence_ = -1;
  Range run_;  // of rows that are all valid, or all not
  bool is_valid_ = true;
  Span span_;
  Number coordinates_[max_coordinates];
};

// Of the valid rows' positions, or of all their coordinates.
struct PositionBounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;  // of the integer ones
  bool are_all_integers = true;
  std::int64_t rows = 0, spans = 0;  // of all batch rows, or of one, whose positions the others share

  void add(const Span& span) {
    ++spans;
    rows += span.count;
    for (int i = 0; i < span.coordinate_count; ++i) add(span.coordinates[i]);
    if (span.coordinate_count > 0) return;
    if (!span.position.is_integer()) return add(span.position);
    lowest = std::min(lowest, span.lowest());
    highest = std::max(highest, span.highest());
  }
  void add(const Number& position) {
    are_all_integers = are_all_integers && position.is_integer();
    if (!position.is_integer()) return;
    lowest = std::min(lowest, position.integer);
    highest = std::max(highest, position.integer);
  }
};

}  // namespace fastpe
