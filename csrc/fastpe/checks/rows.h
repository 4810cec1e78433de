// SPDX-License-Identifier: BSD-3-Clause
// What places a call's rows and says which of them are valid: offsets, positions, masks, lengths, packed sequences.
#pragma once

#include <cstdint>
#include <optional>

#include "array_view.h"
#include "fastpe/positions.h"

namespace fastpe {

// Each may be missing.
struct RowArguments {
  std::optional<std::int64_t> offset;  // one for all rows
  ArrayView offsets, positions, mask, lengths, cu_seqlens;
};

// Of two that exclude each other.
[[noreturn]] void refuse_both(const char* a_name, const char* b_name);

struct Placement {
  Positions positions;
  Validity validity;
};

// What these arguments are given for: the first axis of a batch, or 1 without one, and the sequence.
struct Extent {
  std::int64_t rows = 1;
  std::int64_t seq_len = 1;
  bool has_batch = false;
  const char* remedy = "";  // for shapes that do not fit
};
inline constexpr const char* name_seq_axis = "give seq_axis= if the sequence is another axis";

Extent extent_of(const ArrayView& array, int seq_axis);
// The shape of counted rows: a batch axis comes from the arguments that have one.
Shape counted_shape(const RowArguments& arguments, std::int64_t count);

enum class Numbers { integers, integers_or_floats };
NumberType number_type_of(const ArrayView& array, Numbers numbers);
// Of any shape with up to 8 axes, in C order.
NumbersView numbers_view(const ArrayView& array, Numbers numbers);

// Counted or explicit positions, and validity.
void set_rows(Placement& placement, const RowArguments& arguments, const Extent& extent);

// Positions that are given, one for each row; with several coordinates, the array has one more axis at the end.
void set_explicit_positions(Positions& positions, const ArrayView& array, const Extent& extent,
                            int coordinate_count = 0);
// The same, and also one for all rows, or one for each sequence.
void set_moves(Positions& positions, const ArrayView& array, const Extent& extent, int coordinate_count);
// The same of any shape, which is the result's too, but for its columns.
void set_any_positions(Positions& positions, const ArrayView& array, int coordinate_count = 0);

void set_validity(Placement& placement, const RowArguments& arguments, const Extent& extent);

// A ValueError where `out` shares memory with one of the arguments.
inline void require_disjoint(const ArrayView& out, const RowArguments& arguments) {
  require_disjoint(out, arguments.offsets);
  require_disjoint(out, arguments.positions);
  require_disjoint(out, arguments.mask);
  require_disjoint(out, arguments.lengths);
  require_disjoint(out, arguments.cu_seqlens);
}

// Columns [first, end) of an encoding.
struct Channels {
  std::int64_t first = 0, end = 0;
};
// The first of the encoding's columns that the array's are.
std::int64_t checked_first_column(const ArrayView& array, const std::optional<Channels>& channels,
                                  std::int64_t d_model);
inline std::int64_t first_column_of(const ArrayView& array, const std::optional<Channels>& channels,
                                    std::int64_t d_model) {
  return !channels && array.last() == d_model ? 0 : checked_first_column(array, channels, d_model);
}

}  // namespace fastpe
