// SPDX-License-Identifier: BSD-3-Clause
#include "check.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "fastpe/messages.h"

namespace fastpe {
namespace {

void check_position(const Source& source, const Number& number, const std::string& where) {
  if (!source.range.has(number)) source.refuse(where, number);
}

// The argument that gave the position of (row, l), as messages name it.
std::string origin_of(const Positions& p, std::int64_t row, const Span& span, std::int64_t l) {
  if (p.values.is_given()) return place(p.values_name, p.value_axes, row, l);
  const std::int64_t index = p.sequence_starts.is_given() ? sequence_of(p, span.l) : row;
  const std::string offset = p.offsets.is_given() ? "offset[" + std::to_string(index) + "]: " : "offset: ";
  return (p.is_offset_given ? offset : "") + "the position of row " + std::to_string(l);
}

// The bounds of rows that all count from offsets, if they are good. In decoding, there are many such rows with one
// position each.
std::optional<PositionBounds> bounds_of_counted_rows(const Call& call, Poller& poller) {
  const Positions& p = call.positions;
  const OperationShape& shape = call.operation.shape();
  if (!p.count_from_offsets() || !call.validity.are_all_valid() || shape.seq_len == 0) return std::nullopt;
  PositionBounds bounds;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t first = first_position(p, row);
    bounds.lowest = std::min(bounds.lowest, first);
    bounds.highest = std::max(bounds.highest, first + shape.seq_len - 1);
    poller.pass(1);
  }
  bounds.spans = shape.rows;
  bounds.rows = shape.rows * shape.seq_len;
  const PositionRange& range = call.source.range;
  if (bounds.lowest < range.lowest || bounds.highest > range.highest) return std::nullopt;
  return bounds;
}

PositionBounds check_positions(const Call& call, Poller& poller) {
  if (const auto counted = bounds_of_counted_rows(call, poller)) return *counted;
  PositionBounds bounds;
  const Positions& p = call.positions;
  const Source& source = call.source;
  const OperationShape& shape = call.operation.shape();
  const bool varies = !p.are_shared() || !call.validity.are_all_valid();
  const std::int64_t rows = varies ? shape.rows : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t valid_before = 0;
    const auto on_span = [&](const Span& span) {
      ++bounds.spans;
      if (span.coordinates != nullptr) {
        for (int i = 0; i < p.coordinate_count; ++i) {
          const Number& coordinate = span.coordinates[i];
          if (!source.range.has(coordinate)) {
            source.refuse(origin_of(p, row, span, span.l) + "[" + std::to_string(i) + "]", coordinate);
          }
          bounds.add(coordinate);
        }
        return;
      }
      if (span.is_one_position() || !span.position.is_integer) {
        if (!source.range.has(span.position)) source.refuse(origin_of(p, row, span, span.l), span.position);
        bounds.add(span.position);
        return;
      }
      if (span.lowest() < source.range.lowest || span.highest() > source.range.highest) {
        // The message names the first bad row: the span's first row, or the row after the last good position.
        check_position(source, span.position, origin_of(p, row, span, span.l));
        const bool is_descending = span.step == Span::Step::descending;
        const std::int64_t first = span.position.integer;
        const std::int64_t i = is_descending ? first - source.range.lowest + 1 : source.range.highest - first + 1;
        check_position(source, number_of(is_descending ? first - i : first + i), origin_of(p, row, span, span.l + i));
      }
      bounds.add(span);
    };
    for (std::int64_t begin = 0; begin < shape.seq_len; begin += Poller::elements_at_once) {
      const std::int64_t end = std::min(begin + Poller::elements_at_once, shape.seq_len);
      for_each_validity(
          call.validity, row, begin, end,
          [&](std::int64_t l, std::int64_t count) {
            bounds.rows += count;
            for_each_span(p, row, l, count, valid_before, on_span);
            valid_before += count;
          },
          [](std::int64_t, std::int64_t) {});
      poller.pass(end - begin);
    }
  }
  return bounds;
}

void check_sequences(const Call& call, Poller& poller) {
  const Positions& p = call.positions;
  if (!p.sequence_starts.is_given()) return;
  const std::int64_t seq_len = call.operation.shape().seq_len;
  std::int64_t previous = 0;
  for (std::int64_t i = 0; i <= p.sequence_count; ++i) {
    const std::int64_t start = p.sequence_starts.integer_at(0, i);
    const bool is_wrong_end = (i == 0 && start != 0) || (i == p.sequence_count && start != seq_len);
    if (is_wrong_end || start < previous || start > seq_len) {
      throw std::invalid_argument("cu_seqlens[" + std::to_string(i) + "] is " + text_of(p.sequence_starts.at(0, i)) +
                                  ", expected 0, then values that never fall, then the number of rows, " +
                                  std::to_string(seq_len));
    }
    previous = start;
    poller.pass(1);
  }
}

void check_lengths(const Call& call, Poller& poller) {
  const NumbersView& lengths = call.validity.lengths;
  if (!lengths.is_given()) return;
  const OperationShape& shape = call.operation.shape();
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t length = lengths.integer_at(row, 0);
    if (length < 0 || length > shape.seq_len) {
      throw std::invalid_argument(place("lengths", {}, 0, row) + " is " + text_of(lengths.at(row, 0)) +
                                  ", expected 0 to the sequence length, " + std::to_string(shape.seq_len) +
                                  (length >= 0 && length <= call.validity.other_seq_len ? remedy_of_other_axis : ""));
    }
    poller.pass(1);
  }
}

}  // namespace

PositionBounds check(const Call& call, Interruption* interruption) {
  Poller poller(interruption);
  check_sequences(call, poller);
  check_lengths(call, poller);
  call.operation.check(poller);
  return check_positions(call, poller);
}

}  // namespace fastpe
