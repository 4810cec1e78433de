// SPDX-License-Identifier: BSD-3-Clause
#include "rotary.h"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <vector>

#include "fastpe/checks/rotation.h"
#include "fastpe/error.h"
#include "fastpe/sources/tables.h"

namespace fastpe {
namespace {

// Rows of several coordinates have no order.
void refuse_counting(const RotaryEmbedding& embedding, const char* name) {
  if (embedding.coordinates.count == 0 || name == nullptr) return;
  refuse_value(name, {"counts rows"},
               {"the ", embedding.coordinates.count, " coordinates of each row, which are not counted"},
               {"pass positions as an array [.., ", embedding.coordinates.count, "]"});
}

void require_one_placement(const RotaryEmbedding& embedding, const PlacementArguments& placement) {
  require_one_placement(placement);
  refuse_counting(embedding, placement.offset ? "offset" : placement.offsets.name);
  refuse_counting(embedding, placement.cu_seqlens.name);
}

// The dtype of what is written, if it is written as complex numbers, of their parts.
DType dtype_of_values(const TablesRequest& request) {
  const bool is_complex = request.form.inner == TableForm::Inner::complex;
  const ArrayView& out = request.out[0];
  DType dtype = DType::float32;
  if (request.dtype) {
    dtype = *request.dtype;
  } else if (is_complex && out.dtype == DType::complex128) {
    dtype = DType::float64;
  } else if (out.is_given() && is_written(out.dtype)) {
    dtype = out.dtype;
  }
  if ((is_complex || request.form.are_angles()) && is_16_bit(dtype)) {
    refuse_type(request.dtype ? "dtype" : out.name, {"has 16 bits"},
                {"float32 or float64 for form='", request.form.name, "'"});
  }
  return dtype;
}

// The axes behind those of the rows.
Shape shape_of_row(const TableForm& form, std::int64_t pairs) {
  using Inner = TableForm::Inner;
  Shape shape;
  shape.add_axis(form.inner == Inner::columns ? form.columns_per_pair * pairs : pairs);
  if (form.inner == Inner::matrices) shape.add_axis(2);
  if (form.inner == Inner::matrices || form.inner == Inner::pairs) shape.add_axis(2);
  return shape;
}

RotationChecks::Rules rules_of(const RotaryEmbedding& embedding, const RotateRequest& request) {
  return {2 * embedding.pairs(),
          request.seq_axis,
          request.is_in_place,
          embedding.coordinates.count,
          "make the embedding with a smaller rotary_dim",
          embedding.heads.head_dim};
}

// With tables [B, L, pairs], positions number their rows; with others, the caller's arguments are as they are.
class RowNumbers {
 public:
  RowNumbers(const PlacementArguments& given, const ArrayView& table) : arguments_(given) {
    if (table.axes != 3) return;
    const char* const offset = given.offset ? "offset" : given.offsets.name;
    for (const char* const name : {offset, given.positions.name, given.cu_seqlens.name}) {
      if (name == nullptr) continue;
      refuse_value("cos", {"has a row for each row of x, and ", name, " was given"}, {"one of them"},
                   {"pass tables [rows, pairs], or leave ", name, " out"});
    }
    ArrayView& positions = arguments_.positions;
    positions.name = "cos[..., 0]";
    positions.shape = table.shape;
    positions.strides_bytes = strides_bytes_;
    positions.axes = 2;
    positions.dtype = DType::int64;
    strides_bytes_[0] = table.shape[1] * strides_bytes_[1];
  }
  RowNumbers(const RowNumbers&) = delete;
  RowNumbers& operator=(const RowNumbers&) = delete;

  // The numbers are not there yet.
  const PlacementArguments& arguments() const { return arguments_; }
  // A table of another shape than the arrays' rows is refused before a number is read.
  const PlacementArguments& counted(const Extent& extent) {
    if (arguments_.positions.strides_bytes != strides_bytes_) return arguments_;
    numbers_.resize(static_cast<std::size_t>(std::max<std::int64_t>(extent.batch_rows * extent.seq_len, 1)));
    std::iota(numbers_.begin(), numbers_.end(), 0);
    arguments_.positions.data = reinterpret_cast<char*>(numbers_.data());
    return arguments_;
  }

 private:
  PlacementArguments arguments_;
  std::ptrdiff_t strides_bytes_[2] = {0, sizeof(std::int64_t)};
  std::vector<std::int64_t> numbers_;
};

// Head arrays, without an allocation unless there are many.
class HeadArrays {
 public:
  explicit HeadArrays(std::size_t count) : count_(count) {
    if (count > most_here) many_.resize(count);
  }
  void set(std::size_t index, const ConstRows& x, const Rows& out) {
    if (count_ > most_here) {
      many_[index] = {x, out};
    } else {
      new (here_ + index * sizeof(HeadArray)) HeadArray{x, out};
    }
  }
  Slice<HeadArray> slice() const {
    return {count_ > most_here ? many_.data() : reinterpret_cast<const HeadArray*>(here_), count_};
  }

 private:
  static constexpr std::size_t most_here = 8;
  std::size_t count_;
  alignas(HeadArray) char here_[most_here * sizeof(HeadArray)];
  std::vector<HeadArray> many_;
};

// Calls use(operation), which rotates the arrays in place or into others. What is written shares no memory with what is
// read, `tables` included.
template <class Use>
void with_rotation(const RotateRequest& request, const RotationChecks& checks, Slice<ArrayView> tables,
                   const Pairing& pairing, FrontEnd& front_end, const Use& use) {
  const Slice<ArrayView>& arrays = request.arrays;
  HeadArrays rotated(arrays.count);
  for (std::size_t i = 0; i < arrays.count; ++i) {
    const ArrayView& x = arrays[i];
    const bool is_new = !request.is_in_place && request.outs.count == 0;
    ArrayView made;
    if (!request.is_in_place) {
      made = output_of({is_new ? made : request.outs[i], checks.dtype()}, Shape(x), front_end);
    }
    const ArrayView& out = request.is_in_place ? x : made;
    if (!request.is_in_place && !is_new) {
      if (!is_same_memory(out, x)) require_disjoint(out, x, " (out may be x itself)");
      for (std::size_t other = 0; other < arrays.count; ++other) {
        if (other != i) require_disjoint(out, arrays[other]);
        if (other < i) require_disjoint(out, request.outs[other]);
      }
    }
    require_disjoint(out, request.placement);
    for (const ArrayView& table : tables) require_disjoint(out, table);
    const int seq_axis = checks.seq_axis_of(x);
    const Rows written = writable_rows_of(out, checks.dtype(), seq_axis);
    rotated.set(i, request.is_in_place ? read_only(written) : rows_of(x, checks.dtype(), seq_axis), written);
  }
  use(Rotate(rotated.slice(), checks.extent().batch_rows, pairing));
}

void rotate_by(double row_factor, const RotaryEmbedding& embedding, const RotateRequest& request,
               const RotationChecks& checks, const Placement& placement, FrontEnd& front_end) {
  const Pairing& pairing = embedding.pairing(row_factor, request.is_inverse);
  with_rotation(request, checks, {}, pairing, front_end, [&](const Rotate& rotate) {
    embedding.with_source(
        row_factor, [&](const Source& source) { front_end.run({source, rotate, placement, request.max_threads}); });
  });
}

}  // namespace

void write_tables(const RotaryEmbedding& embedding, const TablesRequest& request, FrontEnd& front_end) {
  const TableForm& form = request.form;
  const PlacementArguments& placement = request.placement;
  require_one_placement(embedding, placement);
  refuse_counting(embedding, placement.count ? "positions" : nullptr);
  for (const ArrayView* const validity : {&placement.valid, &placement.lengths}) {
    if (validity->is_given()) refuse_value(validity->name, {"was given"}, {"no padding: tables have none"});
  }
  const DType dtype = dtype_of_values(request);
  const std::optional<DType> of_array = form.inner != TableForm::Inner::complex ? request.dtype
                                        : dtype == DType::float64               ? DType::complex128
                                                                                : DType::complex64;
  const Shape columns = shape_of_row(form, embedding.pairs());
  const PlacedRows rows = placed_rows(placement, request.out[0], columns, 0, embedding.coordinates.count);
  const int row_axes = rows.shape.axes();
  Shape shape = rows.shape;
  for (const std::ptrdiff_t length : columns) shape.add_axis(length);
  ArrayView out[2];
  std::array<Rows, 2> written;
  for (std::size_t i = 0; i < form.array_count; ++i) {
    const ArrayView& given = request.out[i];
    out[i] = output_of({given, of_array, given.is_given() ? given.name : "out", true}, shape, front_end);
    require_disjoint(out[i], placement);
    written[i] = form.inner == TableForm::Inner::columns ? writable_rows_of(out[i], dtype, row_axes - 1)
                                                         : writable_rows_of_values(out[i], dtype, row_axes);
  }
  if (form.array_count == 2) {
    require_same_dtype(out[1], out[0]);
    require_disjoint(out[0], out[1]);
  }
  const bool is_new = !request.out[0].is_given();
  const auto run = [&](const Source& source, const Write& write) {
    front_end.run({source, write, rows.placement, request.max_threads});
  };
  if (form.are_angles()) return run(AngleRows(embedding.encoder, embedding.coordinates), Write(written[0], is_new));
  const Write write(written, form, embedding.pairs(), is_new);
  embedding.with_source(embedding.row_factor(false), [&](const Source& source) { run(source, write); });
}

void rotate(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end) {
  require_one_placement(embedding, request.placement);
  const RotationChecks checks(request.arrays, request.placement, rules_of(embedding, request));
  const Placement placement = placement_of(request.placement, checks.extent(), 0, embedding.coordinates.count);
  rotate_by(embedding.row_factor(request.is_inverse), embedding, request, checks, placement, front_end);
}

void shift(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end) {
  require_one_placement(request.placement);
  const RotationChecks checks(request.arrays, request.placement, rules_of(embedding, request));
  const Placement placement = placement_of_moves(request.placement, checks.extent(), embedding.coordinates.count);
  constexpr double row_factor = 1.0;  // the keys contain the embedding's factor
  rotate_by(row_factor, embedding, request, checks, placement, front_end);
}

void rotate_by_tables(const GivenTables& tables, const RotateRequest& request, FrontEnd& front_end) {
  const ArrayView cos_and_sin[] = {tables.cos, tables.sin};
  require_one_placement(request.placement);
  const CheckedTables checked = checked_tables(tables.cos, tables.sin, request.arrays[0], tables.head_dim);
  RowNumbers numbers(request.placement, tables.cos);
  const std::int64_t columns = 2 * checked.pairs;
  const RotationChecks checks(
      request.arrays, numbers.arguments(),
      {columns, request.seq_axis, request.is_in_place, 0, "tables of fewer columns, such as cos[..., :d // 2]",
       tables.head_dim != 0 ? tables.head_dim : columns});
  require_table_dtype(tables.cos, checks.x());
  const Placement placement = placement_of(numbers.counted(checks.extent()), checks.extent());
  const Pairing pairing{checked.pairs, tables.interleaved, request.is_inverse, {{0, checked.pairs}}};
  with_rotation(request, checks, {cos_and_sin, 2}, pairing, front_end, [&](const Rotate& rotate) {
    const RotaryTables source(checked.cosines, checked.sines, checked.pairs);
    front_end.run({source, rotate, placement, request.max_threads});
  });
}

}  // namespace fastpe
