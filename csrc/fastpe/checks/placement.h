// SPDX-License-Identifier: BSD-3-Clause
// What places a call's rows and says which of them are valid: offsets, positions, masks, lengths, packed sequences.
#pragma once

#include <cstdint>
#include <optional>

#include "array_view.h"
#include "fastpe/positions.h"

namespace fastpe {

// What every call has, as its caller gives it: where rows are and which are valid, each of which may be missing, and
// how many threads may do it. What it means is a Placement.
struct Request {
  std::optional<std::int64_t> offset;  // one for all rows
  ArrayView offsets, positions, valid, lengths, cu_seqlens;
  // Of rows that are only written: how many there are, or that they are those of the output, [L] or [B, L]. Otherwise
  // they are those of the positions.
  std::optional<std::int64_t> count;
  bool are_those_of_out = false;
  int max_threads = 1;
};

// Of two that exclude each other.
[[noreturn]] void refuse_both(const char* a_name, const char* b_name);
// Refuses arguments that exclude each other, and an offset that no position has.
void require_one_placement(const Request& request);

// What these arguments are given for: the first axis of a batch, or 1 without one, and the sequence.
struct Extent {
  std::int64_t batch_rows = 1;
  std::int64_t seq_len = 1;
  bool has_batch = false;
  const char* remedy = "";  // for shapes that do not fit
};
inline constexpr const char* seq_axis_remedy = "give seq_axis= if the sequence is another axis";

Extent extent_of(const ArrayView& array, int seq_axis, const char* remedy = "");

// ---- Numbers

enum class Numbers { integers, integers_or_floats };
// A TypeError for other elements, or another byte order.
void require_numbers(const ArrayView& array, Numbers numbers);
// Of any shape with up to 8 axes, in C order.
NumbersView numbers_view(const ArrayView& array, Numbers numbers);
// A ValueError for any other number.
void require_zeros_and_ones(const ArrayView& mask);

// ---- Placements. Positions have several coordinates, on one more axis at the end, where coordinate_count is not 0.

// Rows that are counted from `first` and the offset, or have explicit positions, one for each row. Rows of several
// coordinates are not counted. Positions that are distances to move by may also be one for all rows, or one for each
// sequence.
Placement placement_of(const Request& request, const Extent& extent, std::int64_t first = 0, int coordinate_count = 0,
                       bool are_moves = false);
// Positions of any shape, which is also that of the result, but for its columns.
Placement placement_at(const Request& request, const Extent& extent, int coordinate_count);

// Where each batch row is a single row, all are valid and each has a position of its own, as while tokens are decoded:
// makes the batch the sequence, so that its rows are done as those of one sequence are.
void make_batch_the_sequence(Placement& placement, Extent& extent);
// The axis along which an array has the rows of a sequence then: its sequence, or its batch.
int row_axis_of(const Placement& placement, int seq_axis);

// A ValueError where `out` shares memory with one of these arguments.
inline void require_disjoint(const ArrayView& out, const Request& request) {
  for (const ArrayView* const each :
       {&request.offsets, &request.positions, &request.valid, &request.lengths, &request.cu_seqlens}) {
    require_disjoint(out, *each);
  }
}

}  // namespace fastpe
