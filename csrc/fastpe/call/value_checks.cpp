// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <utility>

#include "fastpe/error.h"
#include "plan.h"

namespace fastpe {
namespace {

// What gave a position: an argument, and the beginning of what an Error says was found in it.
struct Origin {
  const char* argument;
  std::string found;
};

Origin origin_of(const Placement& p, std::int64_t row, const Span& span, std::int64_t l) {
  if (p.is_batch_sequence) std::swap(row, l);
  if (p.values.is_given() && p.offset_name == nullptr)
    return {p.values_name, joined({place_of(p.value_axes, row, l), " is "})};
  if (p.offset_name == nullptr) return {"", joined({"the position of row ", l, " is "})};
  const std::int64_t index = p.sequence_starts.is_given() ? p.sequence_of(span.l) : row;
  const std::string place = p.offsets.is_given() || p.is_batch_sequence ? place_of({}, 0, index) : "";
  return {p.offset_name, joined({place, place.empty() ? "" : " ", "makes the position of row ", l, " "})};
}

[[noreturn]] void refuse_position(const Source& source, const Number& position, const Origin& origin) {
  if (source.has_fractions) {
    refuse_value(origin.argument, {origin.found, position}, {"a finite position of ", position_limit}, {why_limited});
  }
  refuse(ErrorKind::index, origin.argument, {origin.found, position},
         {"an integer from 0 to ", source.highest, ", the last row of the table"},
         {"pass positions that the table has, or a longer table"});
}

// Throws an Error about the first row of a span, or its first coordinate, that is out of the source.
void require_positions(const Source& source, const Placement& p, std::int64_t row, const Span& span) {
  if (source.has(span)) return;
  for (int i = 0; i < span.coordinate_count; ++i) {
    if (source.has(span.coordinates[i])) continue;
    const std::string place =
        p.is_batch_sequence ? place_of(p.value_axes, span.l, row) : place_of(p.value_axes, row, span.l);
    refuse_position(source, span.coordinates[i], {p.values_name, joined({place, "[", i, "] is "})});
  }
  const auto refuse_row = [&](std::int64_t i, const Number& position) {
    refuse_position(source, position, origin_of(p, row, span, span.l + i));
  };
  if (!source.has(span.position)) refuse_row(0, span.position);
  if (span.lowest() < source.lowest) {
    refuse_row(span.position.integer - source.lowest + 1, number_of(source.lowest - 1));
  }
  refuse_row(source.highest - span.position.integer + 1, number_of(source.highest + 1));
}

// Calls on_span(row, span) for every span of the call, once for batch rows that share their positions.
template <class OnSpan>
void for_each_span_of(const Call& call, Interruption* interruption, const OnSpan& on_span) {
  const OperationShape& shape = call.operation.shape();
  const Placement& placement = call.placement;
  const bool are_shared = placement.are_shared();
  const bool reads_batch = are_shared && placement.validity.differs_in_batch();
  const std::int64_t elements_per_row = reads_batch ? shape.batch_rows + 1 : 1;
  std::int64_t rows_at_once = std::max<std::int64_t>(1, Interruption::elements_at_once / elements_per_row);
  if (!placement.values.is_given() && placement.validity.valid == nullptr) {  // no row is looked at
    rows_at_once = std::max<std::int64_t>(1, shape.seq_len);
  }
  for (std::int64_t row = 0; row < (are_shared ? 1 : shape.batch_rows); ++row) {
    const Range batch_rows{row, are_shared ? shape.batch_rows : 1};
    std::int64_t valid_before = 0;
    for (std::int64_t begin = 0; begin < shape.seq_len; begin += rows_at_once) {
      const std::int64_t end = std::min(begin + rows_at_once, shape.seq_len);
      Spans spans(placement, batch_rows, {begin, end - begin}, valid_before);
      while (spans.next()) {
        if (spans.is_valid()) on_span(row, spans.span());
      }
      valid_before = spans.valid_before();
      throw_if_interrupted(interruption, (end - begin) * elements_per_row);
    }
  }
}

PositionBounds check_positions(const Call& call, Interruption* interruption) {
  PositionBounds bounds;
  for_each_span_of(call, interruption, [&](std::int64_t, const Span& span) { bounds.add(span); });
  const Source& source = call.source;
  if (!bounds.are_all_integers || bounds.lowest < source.lowest || bounds.highest > source.highest) {
    for_each_span_of(call, interruption,
                     [&](std::int64_t row, const Span& span) { require_positions(source, call.placement, row, span); });
  }
  return bounds;
}

void check_sequences(const Call& call, Interruption* interruption) {
  const Placement& p = call.placement;
  if (!p.sequence_starts.is_given()) return;
  const std::int64_t seq_len = call.operation.shape().seq_len;
  std::int64_t previous = 0;
  for (std::int64_t i = 0; i <= p.sequence_count; ++i) {
    const std::int64_t start = p.sequence_starts.integer_at(0, i);
    const bool is_wrong_end = (i == 0 && start != 0) || (i == p.sequence_count && start != seq_len);
    if (is_wrong_end || start < previous || start > seq_len) refuse_sequence_start(p.sequence_starts, i, seq_len);
    previous = start;
    throw_if_interrupted(interruption, 1);
  }
}

void check_lengths(const Call& call, Interruption* interruption) {
  const NumbersView& lengths = call.placement.validity.lengths;
  if (!lengths.is_given()) return;
  const OperationShape& shape = call.operation.shape();
  for (std::int64_t row = 0; row < shape.batch_rows; ++row) {
    const std::int64_t length = lengths.integer_at(row, 0);
    if (length < 0 || length > shape.seq_len) {
      const std::string place = lengths.row_stride_bytes == 0 ? "" : place_of({}, 0, row) + " ";
      refuse_value("lengths", {place, "is ", lengths.at(row, 0)}, {"0 to the sequence length, ", shape.seq_len});
    }
    throw_if_interrupted(interruption, 1);
  }
}

}  // namespace

PositionBounds check_values(const Call& call, Interruption* interruption) {
  check_sequences(call, interruption);
  check_lengths(call, interruption);
  call.operation.check(interruption);
  return check_positions(call, interruption);
}

}  // namespace fastpe
