// SPDX-License-Identifier: BSD-3-Clause
#include "positions.h"

namespace fastpe {

std::int64_t Positions::sequence_of(std::int64_t l) const {
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

void Spans::make_span(std::int64_t l) {
  const Positions& p = positions_;
  const std::int64_t end = runs_.rows().end();
  Span& span = span_;
  span.l = l;
  span.count = end - l;
  span.step = Span::Step::ascending;
  if (p.values.is_given()) {
    const std::int64_t row = p.values_per_batch_row ? batch_row_ : 0;
    if (p.coordinate_count > 0) {
      NumbersView coordinate = p.values;
      for (int i = 0; i < p.coordinate_count; ++i) {
        coordinates_[i] = coordinate.at(row, l);
        coordinate.data += p.coordinate_stride_bytes;
      }
      const auto count = static_cast<std::size_t>(p.coordinate_count);
      span = {l, 1, coordinates_[0], Span::Step::none, {coordinates_, count}};
    } else if (p.values.seq_stride_bytes == 0) {  // a move of all rows, or a broadcast array
      span.position = p.value_at(row, l);
      span.step = Span::Step::none;
    } else {
      const Number position = p.value_at(row, l);
      std::int64_t stop = l + 1, step = 0;
      if (position.is_integer && -max_position <= position.integer && position.integer <= max_position) {
        for (; stop < end; ++stop) {
          const Number next = p.value_at(row, stop);
          if (step == 0) step = next.integer < position.integer ? -1 : 1;
          if (!next.is_integer || next.integer != position.integer + step * (stop - l)) break;
        }
      }
      span.position = position;
      span.count = stop - l;
      if (step < 0 && span.count > 1) span.step = Span::Step::descending;
      if (!position.is_integer) span.step = Span::Step::none;
    }
  } else if (p.sequence_starts.is_given()) {
    if (sequence_ < 0) sequence_ = p.sequence_of(l);
    for (;; ++sequence_) {
      const bool is_last = sequence_ + 1 >= p.sequence_count;
      const std::int64_t stop = is_last ? end : std::min(end, p.sequence_starts.integer_at(0, sequence_ + 1));
      if (stop <= l) continue;
      // The clamp holds even if another thread changes the array after it was checked.
      const std::int64_t start = std::clamp<std::int64_t>(p.sequence_starts.integer_at(0, sequence_), 0, l);
      span.position = number_of(p.first_at(sequence_) + (l - start));
      span.count = stop - l;
      break;
    }
  } else {
    span.position = number_of(p.first_at(batch_row_) + (p.count_valid_only ? valid_before_ : l));
  }
  valid_before_ += span.count;
}

}  // namespace fastpe
