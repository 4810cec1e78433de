// SPDX-License-Identifier: BSD-3-Clause
// Which rows of a job are valid, and at which positions they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "job.h"

namespace fastpe {

inline bool is_valid_row(const Validity& v, std::int64_t batch, std::int64_t l) {
  return v.mask == nullptr || v.mask[batch * v.mask_batch_stride_bytes + l * v.mask_seq_stride_bytes] != 0;
}

// Calls on_valid(l, count) and on_invalid(l, count) over the rows [begin, end) of one batch item.
template <class OnValid, class OnInvalid>
void for_each_validity(const Job& job, std::int64_t batch, std::int64_t begin, std::int64_t end,
                       const OnValid& on_valid, const OnInvalid& on_invalid) {
  const Validity& v = job.validity;
  const std::int64_t row = job.positions.row_of(batch);
  if (v.lengths.data != nullptr) {
    const std::int64_t length = std::clamp(v.lengths.integer_at(row, 0), begin, end);
    if (length > begin) on_valid(begin, length - begin);
    if (end > length) on_invalid(length, end - length);
    return;
  }
  if (v.mask == nullptr) {
    if (end > begin) on_valid(begin, end - begin);
    return;
  }
  for (std::int64_t l = begin; l < end;) {
    const bool valid = is_valid_row(v, row, l);
    std::int64_t stop = l + 1;
    while (stop < end && is_valid_row(v, row, stop) == valid) ++stop;
    valid ? on_valid(l, stop - l) : on_invalid(l, stop - l);
    l = stop;
  }
}

inline std::int64_t first_position(const Positions& p, std::int64_t row) {
  if (p.offsets.data == nullptr) return p.first;
  // Far beyond max_position is far enough to be refused, and cannot overflow.
  return p.first + std::clamp(p.offsets.integer_at(row, 0), -2 * max_position, 2 * max_position);
}

inline std::int64_t valid_rows_before(const Job& job, std::int64_t batch, std::int64_t l) {
  std::int64_t count = 0;
  for_each_validity(
      job, batch, 0, l, [&count](std::int64_t, std::int64_t n) { count += n; }, [](std::int64_t, std::int64_t) {});
  return count;
}

inline std::int64_t sequence_of(const Positions& p, std::int64_t l) {
  std::int64_t low = 0, high = p.sequence_count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (p.sequence_starts.integer_at(0, middle) <= l ? low : high) = middle;
  }
  return low;
}

// `count` rows from l on, at consecutive integer positions; or one row at a fractional one.
struct Run {
  std::int64_t l;
  std::int64_t count;
  Number position;
};

inline Number integer_position(std::int64_t position) { return {true, position, static_cast<double>(position)}; }

// Whether the position is one that the encoder, or the learned table, has a row for.
inline bool has_encoding(const Job& job, const Number& number) {
  if (job.encoder == nullptr) return number.is_integer && number.integer >= 0 && number.integer < job.learned.rows;
  return number.is_integer ? number.integer <= max_position && number.integer >= -max_position
                           : std::fabs(number.value) <= static_cast<double>(max_position);
}

// Calls on_run over the rows [l, l + count), all of them valid, the first being the valid_before-th valid one.
template <class OnRun>
void for_each_run(const Job& job, std::int64_t batch, std::int64_t l, std::int64_t count, std::int64_t valid_before,
                  const OnRun& on_run) {
  const Positions& p = job.positions;
  const std::int64_t row = p.row_of(batch);
  if (p.values.data != nullptr) {
    const std::int64_t value_row = p.values_per_batch ? row : 0;
    const std::int64_t end = l + count;
    while (l < end) {
      const Number position = p.values.at(value_row, l);
      std::int64_t stop = l + 1;
      if (position.is_integer && position.integer <= max_position) {
        while (stop < end) {
          const Number next = p.values.at(value_row, stop);
          if (!next.is_integer || next.integer != position.integer + (stop - l)) break;
          ++stop;
        }
      }
      on_run(Run{l, stop - l, position});
      l = stop;
    }
  } else if (p.sequence_starts.data != nullptr) {
    const std::int64_t end = l + count;
    for (std::int64_t sequence = sequence_of(p, l); l < end; ++sequence) {
      // Bounded even if another thread changes the array after it was checked.
      const std::int64_t start = std::clamp<std::int64_t>(p.sequence_starts.integer_at(0, sequence), 0, l);
      const bool is_last = sequence + 1 >= p.sequence_count;
      const std::int64_t stop = is_last ? end : std::min(end, p.sequence_starts.integer_at(0, sequence + 1));
      if (stop <= l) continue;
      on_run(Run{l, stop - l, integer_position(first_position(p, sequence) + (l - start))});
      l = stop;
    }
  } else {
    on_run(Run{l, count, integer_position(first_position(p, row) + (p.count_valid_only ? valid_before : l))});
  }
}

}  // namespace fastpe
