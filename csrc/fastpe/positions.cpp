// SPDX-License-Identifier: BSD-3-Clause
#include "positions.h"

namespace fastpe {

std::int64_t Placement::sequence_of(std::int64_t l) const {
  std::int64_t low = 0, high = sequence_count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (sequence_starts.integer_at(0, middle) <= l ? low : high) = middle;
  }
  return low;
}

void ValidRuns::start() {
  assert(validity_.valid == nullptr || !validity_.lengths.is_given());
  if (!validity_.differs_in_batch()) batch_rows_.count = std::min<std::int64_t>(batch_rows_.count, 1);
  last_found_ = batch_rows_.first;
  if (!validity_.lengths.is_given()) return;
  longest_ = rows_.first;
  for (std::int64_t row = batch_rows_.first; row < batch_rows_.end() && longest_ < end_; ++row) {
    longest_ = std::clamp(validity_.lengths.integer_at(row, 0), longest_, end_);
  }
}

bool ValidRuns::is_valid(std::int64_t l) {
  if (last_found_ < batch_rows_.end() && validity_.has(last_found_, l)) return true;
  for (std::int64_t row = batch_rows_.first; row < batch_rows_.end(); ++row) {
    if (!validity_.has(row, l)) continue;
    last_found_ = row;
    return true;
  }
  return false;
}

void ValidRuns::find(std::int64_t l) {
  std::int64_t end = end_;
  if (validity_.lengths.is_given()) {
    are_valid_ = l < longest_;
    if (are_valid_) end = longest_;
  } else {
    are_valid_ = is_valid(l);
    end = l + 1;
    while (end < end_ && is_valid(end) == are_valid_) ++end;
  }
  rows_ = {l, end - l};
}

void Spans::extend_span_of_values(std::int64_t next, std::int64_t step) {
  const std::int64_t end = runs_.rows().end();
  std::int64_t stop = span_.l + 1;
  do {
    next += step;
  } while (++stop < end && values_.integer_at(0, stop) == next);
  span_.count = stop - span_.l;
  if (step < 0) span_.step = Span::Step::descending;
}

void Spans::make_span_of_sequence(std::int64_t l) {
  const NumbersView& starts = placement_.sequence_starts;
  const std::int64_t end = runs_.rows().end();
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
  const std::int64_t count = runs_.rows().end() - l;
  if (!p.values.is_given()) {
    const std::int64_t rows_before = p.count_valid_only ? valid_before_ : l;
    span_ = {l, count, number_of(p.first_at(batch_row_) + rows_before)};
  } else if (p.coordinate_count == 0) {  // a move of all rows, or a broadcast array
    span_ = {l, count, p.position_of(values_.at(0, l)), Span::Step::none};
  } else {
    NumbersView coordinate = values_;
    for (int i = 0; i < p.coordinate_count; ++i) {
      coordinates_[i] = coordinate.at(0, l);
      coordinate.data += p.coordinate_stride_bytes;
    }
    span_ = {l, 1, coordinates_[0], Span::Step::none, {coordinates_, static_cast<std::size_t>(p.coordinate_count)}};
  }
}

}  // namespace fastpe
