// SPDX-License-Identifier: BSD-3-Clause
#include "positions.h"

#include "error.h"

namespace fastpe {

void refuse_sequence_start(const NumbersView& starts, std::int64_t i, std::int64_t seq_len) {
  refuse_value("cu_seqlens", {place_of({}, 0, i), " is ", starts.at(0, i)},
               {"0, then values that never fall, then the number of rows along the sequence axis, ", seq_len},
               {"of lengths, pass np.cumsum([0, *lengths])"});
}

std::int64_t Placement::sequence_of(std::int64_t l) const {
  std::int64_t low = 0, high = sequence_count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (sequence_starts.integer_at(0, middle) <= l ? low : high) = middle;
  }
  return low;
}

Range Validity::run_from(std::int64_t l, std::int64_t end, const Range& batch_rows, bool& are_valid) const {
  assert(valid == nullptr || !lengths.is_given());
  are_valid = true;
  if (are_all_valid()) return {l, end - l};
  const std::int64_t end_row =
      differs_in_batch() ? batch_rows.end() : batch_rows.first + std::min<std::int64_t>(batch_rows.count, 1);
  if (lengths.is_given()) {
    std::int64_t longest = l;
    for (std::int64_t row = batch_rows.first; row < end_row && longest < end; ++row) {
      longest = std::clamp(lengths.integer_at(row, 0), longest, end);
    }
    are_valid = l < longest;
    return {l, (are_valid ? longest : end) - l};
  }
  std::int64_t last_found = batch_rows.first;  // most likely, the next row is valid in the same batch row
  const auto is_valid = [&](std::int64_t at) {
    if (last_found < end_row && has(last_found, at)) return true;
    for (std::int64_t row = batch_rows.first; row < end_row; ++row) {
      if (!has(row, at)) continue;
      last_found = row;
      return true;
    }
    return false;
  };
  are_valid = is_valid(l);
  std::int64_t stop = l + 1;
  while (stop < end && is_valid(stop) == are_valid) ++stop;
  return {l, stop - l};
}

void Spans::extend_span_of_values(std::int64_t next, std::int64_t step) {
  const std::int64_t end = run_.end();
  std::int64_t stop = span_.l + 1;
  do {
    next += step;
  } while (++stop < end && values_.integer_at(0, stop) == next);
  span_.count = stop - span_.l;
  if (step < 0) span_.step = Span::Step::descending;
}

void Spans::make_span_of_sequence(std::int64_t l) {
  const NumbersView& starts = placement_.sequence_starts;
  const std::int64_t end = run_.end();
  std::int64_t start = l, stop = end;
  if (sequence_ < 0) {
    sequence_ = placement_.sequence_of(l);
    // The clamp holds even if another thread changes the array after it was checked.
    start = std::clamp<std::int64_t>(starts.integer_at(0, sequence_), 0, l);
  } else {
    ++sequence_;
  }
  for (; sequence_ + 1 < placement_.sequence_count; ++sequence_) {
    const std::int64_t next = starts.integer_at(0, sequence_ + 1);
    if (next <= l) continue;
    stop = std::min(end, next);
    break;
  }
  span_ = {l, stop - l, number_of(placement_.first_at(sequence_) + (l - start))};
}

void Spans::make_span(std::int64_t l) {
  const Placement& p = placement_;
  const std::int64_t count = run_.end() - l;
  if (!p.values.is_given()) {
    const std::int64_t rows_before = p.count_valid_only ? valid_before_ : l;
    span_ = {l, count, number_of(p.first_at(batch_rows_.first) + rows_before)};
  } else if (p.coordinate_count == 0) {  // a move of all rows, or a broadcast array
    span_ = {l, count, p.position_of(values_.at(0, l)), Span::Step::none};
  } else {
    NumbersView coordinate = values_;
    for (int i = 0; i < p.coordinate_count; ++i) {
      coordinates_[i] = coordinate.at(0, l);
      coordinate.data += p.coordinate_stride_bytes;
    }
    span_ = {l, 1, coordinates_[0], Span::Step::none, coordinates_, p.coordinate_count};
  }
}

}  // namespace fastpe
