// SPDX-License-Identifier: BSD-3-Clause
#include "placement.h"

#include <algorithm>

#include "fastpe/error.h"

namespace fastpe {
namespace {

int batch_axis(int seq_axis) { return seq_axis == 0 ? 1 : 0; }

// One integer for all rows, or one per row: [rows] or [rows, 1]. An array of one entry does not stand for several
// rows: it may be a list that lacks the others, and an int says the same.
NumbersView per_row_integers(const ArrayView& array, std::int64_t rows, const char* each) {
  require_numbers(array, Numbers::integers);
  const bool is_one = array.axes == 0;
  if (!is_one && (array.shape[0] != rows || array.axes > 2 || (array.axes == 2 && array.shape[1] != 1))) {
    refuse_shape(array, {"one integer, or shape [", rows, "]: one per ", each});
  }
  return {array.data, array.dtype, is_one ? 0 : array.stride_bytes(0), 0};
}

// For coordinates that come first, as graphs take them.
std::string coordinates_remedy(const ArrayView& array, int coordinate_count) {
  const bool come_first = coordinate_count > 0 && array.axes > 1 && array.shape[0] == coordinate_count;
  return come_first ? joined({"pass np.moveaxis(", array.name, ", 0, -1)"}) : "";
}

// What to make of an array of another shape than [L] or [B, L].
std::string entries_remedy(const ArrayView& array, const Extent& extent) {
  if (array.axes == 0)
    return joined({"to count from one position, pass ", array.name, " + np.arange(", extent.seq_len, ")"});
  const bool has_batch = array.axes > 1 && (array.shape[0] == 1 || array.shape[0] == extent.batch_rows);
  const bool is_one_of_all = array.axes > 2 && std::all_of(array.shape + 1, array.shape + array.axes - 1,
                                                           [](std::ptrdiff_t length) { return length == 1; });
  if (has_batch && is_one_of_all && array.last() == extent.seq_len) {
    return joined({"pass ", array.name, "[:, 0", array.axes == 4 ? ", 0" : "", "]"});
  }
  if (array.axes > 1 && array.shape[array.axes - 2] == extent.seq_len && array.last() <= 4) {
    return "of several coordinates, RotaryEmbedding takes them with frequency_axes=, and from_config with mrope=True";
  }
  if ((array.axes == 1 || (array.axes == 2 && has_batch)) && array.last() > extent.seq_len && extent.seq_len > 0) {
    const std::string rows = joined({array.name, array.axes == 1 ? "[" : "[:, "}), name = array.name;
    const std::string before = joined({" with offset=", rows, ":-", extent.seq_len, "].sum(axis=-1)"});
    return joined({"pass ", rows, "-", extent.seq_len, ":]", name == "valid" ? before : "", " if ", name,
                   " also has the rows before these"});
  }
  return array.axes > 2 ? "" : extent.remedy;
}

// Refuses other shapes than [L], [1, L] and [B, L]. Of an array of one entry per row: whether entries differ from one
// sequence of the batch to the next. An axis of length 1 is the same for all.
bool checked_differs_in_batch(const ArrayView& array, const Extent& extent, int coordinate_count = 0) {
  const int axes = array.axes - (coordinate_count > 0 ? 1 : 0);
  const bool fits = (axes == 1 || (axes == 2 && (array.shape[0] == 1 || array.shape[0] == extent.batch_rows))) &&
                    array.shape[axes - 1] == extent.seq_len &&
                    (coordinate_count == 0 || array.last() == coordinate_count);
  if (fits) return axes == 2 && array.shape[0] != 1;
  const std::string columns = coordinate_count > 0 ? joined({", ", coordinate_count}) : "";
  const std::string remedy = coordinates_remedy(array, coordinate_count);
  refuse_shape(array,
               {"[", extent.seq_len, columns, "]",
                extent.has_batch ? joined({" or [", extent.batch_rows, ", ", extent.seq_len, columns, "]"}) : "",
                coordinate_count > 0 ? ": the coordinates of each row" : ": one per row"},
               {!remedy.empty()         ? remedy
                : coordinate_count == 0 ? entries_remedy(array, extent)
                                        : extent.remedy});
}

void set_offset(Placement& placement, const Request& request, std::int64_t rows, const char* each) {
  placement.first += request.offset.value_or(0);
  if (request.offset) placement.offset_name = "offset";
  if (!request.offsets.is_given()) return;
  placement.offset_name = request.offsets.name;
  placement.offsets = per_row_integers(request.offsets, rows, each);
}

void set_sequences(Placement& placement, const ArrayView& array, const Extent& extent) {
  if (extent.has_batch) {
    refuse_value(array.name, {"was given for a batch"}, {"packed rows: one axis of rows, and none before it"},
                 {extent.batch_rows == 1 ? "take out the axis of length 1, as x[0] does" : ""});
  }
  require_numbers(array, Numbers::integers);
  if (array.axes != 1 || array.shape[0] < 1) {
    refuse_shape(array, {"[number of sequences + 1]: 0, then the running sum of lengths"});
  }
  placement.sequence_starts = {array.data, array.dtype, 0, array.stride_bytes(0)};
  placement.sequence_count = array.shape[0] - 1;
}

void require_coordinates(const ArrayView& array, int coordinate_count) {
  if (array.axes > 0 && array.last() == coordinate_count) return;
  refuse_shape(array, {"a last axis of ", coordinate_count, ", the coordinates that frequency_axes= counts"},
               {coordinates_remedy(array, coordinate_count)});
}

// One position for each row; of moves, also one for all rows, or one for each sequence.
void set_values(Placement& p, const ArrayView& array, const Extent& extent, int coordinate_count, bool are_moves) {
  const int axes = array.axes - (coordinate_count > 0 ? 1 : 0);
  const bool is_per_sequence =
      are_moves && axes == 2 && array.shape[1] == 1 && extent.seq_len != 1 && array.shape[0] == extent.batch_rows;
  const bool is_same_along_sequence = is_per_sequence || (are_moves && axes == 0);
  if (is_same_along_sequence) {
    if (coordinate_count > 0) require_coordinates(array, coordinate_count);
    p.values_per_batch_row = is_per_sequence;
  } else {
    p.values_per_batch_row = checked_differs_in_batch(array, extent, coordinate_count);
  }
  require_numbers(array, Numbers::integers_or_floats);
  p.values_name = array.name;
  p.values = {array.data, array.dtype, p.values_per_batch_row ? array.stride_bytes(0) : 0,
              is_same_along_sequence ? 0 : array.stride_bytes(axes - 1)};
  if (axes == 2) p.value_axes.add(array.shape[0], array.stride_bytes(0));
  p.coordinate_count = coordinate_count;
  if (coordinate_count > 0) p.coordinate_stride_bytes = array.last_stride_bytes();
}

// Comes after the positions.
void set_validity(Placement& placement, const Request& request, const Extent& extent) {
  Validity& validity = placement.validity;
  if (const ArrayView& valid = request.valid; valid.is_given()) {
    // An additive mask has 0 where the row is valid: converted to bool, it would mean the contrary.
    require_dtype(valid, DType::boolean, "pass valid != 0; or valid == 0, if it is added to scores");
    validity.valid = valid.data;
    validity.valid_batch_row_stride_bytes = checked_differs_in_batch(valid, extent) ? valid.stride_bytes(0) : 0;
    validity.valid_seq_stride_bytes = valid.last_stride_bytes();
    placement.count_valid_only = !placement.values.is_given();
  }
  if (request.lengths.is_given()) {
    validity.lengths = per_row_integers(request.lengths, extent.batch_rows, "batch row");
  }
}

}  // namespace

void refuse_both(const char* a_name, const char* b_name) {
  refuse_value(a_name, {"and ", b_name, " were both given"}, {"one of them"}, {"leave ", b_name, " out"});
}

void require_one_placement(const Request& a) {
  const char* const one_offset = a.offset ? "offset" : nullptr;
  // Positions already say where each sequence starts.
  const char* const excluding[][2] = {{a.positions.name, a.cu_seqlens.name}, {a.cu_seqlens.name, a.valid.name},
                                      {a.cu_seqlens.name, a.lengths.name},   {one_offset, a.offsets.name},
                                      {a.positions.name, one_offset},        {a.positions.name, a.offsets.name},
                                      {a.valid.name, a.lengths.name}};
  for (const auto& [one, other] : excluding) {
    if (one != nullptr && other != nullptr) refuse_both(one, other);
  }
  if (a.offset && (*a.offset > max_position || *a.offset < -max_position)) {
    const Number offset = number_of(*a.offset);
    refuse_value("offset", {"is ", offset, offset.is_exact_integer() ? "" : " or beyond"}, {position_limit},
                 {why_limited});
  }
}

Extent extent_of(const ArrayView& array, int seq_axis, const char* remedy) {
  const bool has_batch = array.axes > (seq_axis < 0 ? 1 : 2);
  return {has_batch ? array.shape[batch_axis(seq_axis)] : 1, seq_axis < 0 ? 1 : array.shape[seq_axis], has_batch,
          remedy};
}

void require_numbers(const ArrayView& array, Numbers numbers) {
  const bool is_float = array.dtype == DType::float32 || array.dtype == DType::float64;
  if (!is_integer(array.dtype) && !(is_float && numbers == Numbers::integers_or_floats)) {
    const bool is_integer_only = numbers == Numbers::integers;
    refuse_dtype(array, {is_integer_only ? "integers" : "integers, float32 or float64"},
                 {conversion(array, is_integer_only ? "int64" : "float64")});
  }
  require_native_order(array);
}

NumbersView numbers_view(const ArrayView& array, Numbers numbers) {
  require_numbers(array, numbers);
  require_axes(array, max_item_axes);
  if (array.axes > 1 && !array.is_contiguous) {
    refuse_value(array.name, {"got other strides while the arguments were read"}, {"an array that stays as it is"},
                 {"pass ", in_code(array.name), ".copy()"});
  }
  // An array without gaps is read by its shape: the stride of an axis of one element can be anything.
  const std::int64_t bytes = element_bytes(array.dtype);
  if (array.axes > 1) return {array.data, array.dtype, array.last() * bytes, bytes};
  return {array.data, array.dtype, 0, array.axes == 1 ? array.last_stride_bytes() : 0};
}

void require_zeros_and_ones(const ArrayView& mask) {
  if (mask.dtype == DType::boolean) return;
  require_numbers(mask, Numbers::integers);
  const Axes axes = axes_of(mask);
  for (std::int64_t i = 0; i < mask.element_count(); ++i) {
    const Number number = NumbersView{mask.data + axes.offset_of(i), mask.dtype}.at(0, 0);
    if (number.integer == 0 || number.integer == 1) continue;
    refuse_value(mask.name, {"holds ", number}, {"bool, or 1 where the row is valid and 0 elsewhere"},
                 {"pass a condition, such as ", mask.name, " != 0"});
  }
}

Placement placement_of(const Request& request, const Extent& extent, std::int64_t first, int coordinate_count,
                       bool are_moves) {
  Placement placement;
  placement.first = first;
  if (request.cu_seqlens.is_given()) {
    set_sequences(placement, request.cu_seqlens, extent);
    // Lengths in its place are one too few for the offsets, which would be found wrong instead.
    if (request.offsets.is_given() && placement.sequence_starts.integer_at(0, 0) != 0) {
      refuse_sequence_start(placement.sequence_starts, 0, extent.seq_len);
    }
    set_offset(placement, request, placement.sequence_count, "sequence");
    return placement;
  }
  if (coordinate_count > 0 && !request.positions.is_given()) {
    refuse_value("positions", {"is missing"}, {"an array [.., ", coordinate_count, "], the coordinates of each row"});
  }
  set_offset(placement, request, extent.batch_rows, "batch row");
  if (request.positions.is_given()) {
    set_values(placement, request.positions, extent, coordinate_count, are_moves);
  }
  set_validity(placement, request, extent);
  return placement;
}

void make_batch_the_sequence(Placement& p, Extent& extent) {
  const bool have_own = p.offsets.is_given() || p.values_per_batch_row;
  if (extent.seq_len != 1 || !extent.has_batch || !have_own || !p.validity.are_all_valid()) return;
  const NumbersView& each = p.offsets.is_given() ? p.offsets : p.values;
  p.values = {each.data, each.dtype, 0, each.row_stride_bytes};
  p.offsets = {};
  p.values_per_batch_row = false;
  p.is_batch_sequence = true;
  extent.seq_len = extent.batch_rows;
  extent.batch_rows = 1;
}

int row_axis_of(const Placement& placement, int seq_axis) {
  return placement.is_batch_sequence ? batch_axis(seq_axis) : seq_axis;
}

Placement placement_at(const Request& request, const Extent& extent, int coordinate_count) {
  const ArrayView& array = request.positions;
  Placement p;
  p.values_name = array.name;
  p.values = numbers_view(array, Numbers::integers_or_floats);
  int axes = array.axes;
  if (coordinate_count > 0) {
    require_coordinates(array, coordinate_count);
    --axes;
    p.coordinate_count = coordinate_count;
    p.coordinate_stride_bytes = array.stride_bytes(axes);  // a single position need not be contiguous
    p.values.seq_stride_bytes = coordinate_count * element_bytes(array.dtype);
    p.values.row_stride_bytes = axes > 1 ? array.shape[axes - 1] * p.values.seq_stride_bytes : 0;
  }
  p.values_per_batch_row = axes > 1;
  for (int axis = 0; axis + 1 < axes; ++axis) p.value_axes.add(array.shape[axis], array.stride_bytes(axis));
  const bool has_validity = request.valid.is_given() || request.lengths.is_given();
  if (has_validity && axes > 2) {
    refuse_value("positions", {"has ", axes, " axes"}, {"[L] or [B, L] with valid= and lengths="}, {"reshape it"});
  }
  set_validity(p, request, extent);
  return p;
}

}  // namespace fastpe
