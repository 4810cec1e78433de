// SPDX-License-Identifier: BSD-3-Clause
#include "rotary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "fastpe/error.h"
#include "fastpe/sources/tables.h"

namespace fastpe {
namespace {

Spec spec_of(const WantedFrequencies& frequencies, double factor) {
  constexpr bool interleaved = false, cosine_first = true;
  return {2 * frequencies.frequency_count, frequencies, interleaved, cosine_first, factor};
}

std::vector<Range> turning_pairs(const Encoder& encoder) {
  std::vector<Range> turning;
  const std::vector<double>& radians = encoder.frequencies().radians.high;
  for (std::int64_t k = 0; k < encoder.frequency_count(); ++k) {
    if (radians[static_cast<std::size_t>(k)] == 0.0) continue;
    if (turning.empty() || turning.back().first + turning.back().count < k) turning.push_back({k, 0});
    ++turning.back().count;
  }
  return turning;
}

// Rows of several coordinates have no order.
void refuse_counting(const RotaryEmbedding& embedding, const char* name) {
  if (embedding.coordinates.count == 0 || name == nullptr) return;
  refuse_value(name, {"counts rows"},
               {"the ", embedding.coordinates.count, " coordinates of each row, which are not counted"},
               {"pass positions as an array [.., ", embedding.coordinates.count, "]"});
}

void require_one_placement(const RotaryEmbedding& embedding, const Request& request) {
  require_one_placement(request);
  refuse_counting(embedding, request.offset ? "offset" : request.offsets.name);
  refuse_counting(embedding, request.cu_seqlens.name);
}

// The dtype of what is written, if it is written as complex numbers, of their parts.
DType dtype_of_values(const TablesRequest& request) {
  const bool is_complex = request.form.inner == InnerAxes::complex;
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
  Shape shape;
  shape.add_axis(form.inner == InnerAxes::columns ? form.columns_per_pair * pairs : pairs);
  if (form.inner == InnerAxes::matrices) shape.add_axis(2);
  if (form.inner == InnerAxes::matrices || form.inner == InnerAxes::pairs) shape.add_axis(2);
  return shape;
}

ExpectedHeads expected_heads(const RotaryEmbedding& embedding) {
  return {2 * embedding.pairs(), embedding.coordinates.count, "make the embedding with ", embedding.head_dim};
}

// Rotates the arrays in place or into others. What is written shares no memory with what is read, `tables` included.
void rotate_by(const Source& source, const Pairing& pairing, Extent extent, Placement placement, View<ArrayView> tables,
               const RotateRequest& request, FrontEnd& front_end) {
  make_batch_the_sequence(placement, extent);
  const View<ArrayView>& arrays = request.arrays;
  const bool is_out_given = request.outs.count > 0;
  ReadWrite few[2];  // without an allocation
  std::vector<ReadWrite> many(arrays.count > std::size(few) ? arrays.count : 0);
  ReadWrite* const rotated = many.empty() ? few : many.data();
  for (std::size_t i = 0; i < arrays.count; ++i) {
    const ArrayView& x = arrays[i];
    ArrayView out = x;
    if (!request.is_in_place) {
      out = output_of(is_out_given ? request.outs[i] : ArrayView(), x.dtype, Shape(x), front_end);
    }
    if (is_out_given) {
      if (!is_same_memory(out, x)) require_disjoint(out, x, " (out may be x itself)");
      for (std::size_t other = 0; other < arrays.count; ++other) {
        if (other != i) require_disjoint(out, arrays[other]);
        if (other < i) require_disjoint(out, request.outs[other]);
      }
    }
    require_disjoint(out, request);
    for (const ArrayView& table : tables) require_disjoint(out, table);
    const int row_axis = row_axis_of(placement, seq_axis_of(x, request));
    const Rows written = writable_rows_of(out, row_axis);
    rotated[i] = heads_of(request.is_in_place ? read_only(written) : rows_of(x, row_axis), written);
  }
  front_end.run({source, Rotate({rotated, arrays.count}, extent.batch_rows, pairing, !is_out_given), placement,
                 request.max_threads});
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const WantedFrequencies& frequencies, double attention_factor,
                                 FrequencyCoordinates coordinates_of, std::int64_t head_dim_, bool interleaved,
                                 bool conjugate, std::optional<std::int64_t> max_len)
    : Encoding(spec_of(frequencies, attention_factor), max_len),
      coordinates(std::move(coordinates_of)),
      head_dim(head_dim_) {
  const std::vector<Range> all{{0, pairs()}}, turning = turning_pairs(encoder);
  for (std::size_t i = 0; i < pairings_.size(); ++i) {
    pairings_[i] = {pairs(), interleaved, (i % 2 == 1) != conjugate, i < 2 ? all : turning};
  }
}

const Encoding& RotaryEmbedding::encoding_with(double row_factor) const {
  if (row_factor == encoder.spec().output_scale) return *this;
  assert(row_factor == 1.0 || row_factor == 1.0 / encoder.spec().output_scale);
  return *(row_factor == 1.0 ? with_factor_one_ : with_inverse_factor_).get([&] {
    return std::make_unique<Encoding>(spec_of(encoder.spec().wanted_frequencies, row_factor), 0);
  });
}

double RotaryEmbedding::row_factor(bool is_inverse) const {
  const double factor = encoder.spec().output_scale;
  if (!is_inverse) return factor;
  const double inverse_factor = 1.0 / factor;
  if (std::isfinite(inverse_factor)) return inverse_factor;
  refuse_value("inverse", {"was asked for"}, {"an attention_factor that has a finite inverse, not ", factor});
}

void write_tables(const RotaryEmbedding& embedding, const TablesRequest& request, FrontEnd& front_end) {
  const TableForm& form = request.form;
  require_one_placement(embedding, request);
  refuse_counting(embedding, request.count ? "positions" : nullptr);
  for (const ArrayView* const validity : {&request.valid, &request.lengths}) {
    if (validity->is_given()) refuse_value(validity->name, {"was given"}, {"no padding: tables have none"});
  }
  const DType dtype = dtype_of_values(request);
  const std::optional<DType> of_array = form.inner != InnerAxes::complex ? request.dtype
                                        : dtype == DType::float64        ? DType::complex128
                                                                         : DType::complex64;
  const Shape columns = shape_of_row(form, embedding.pairs());
  const PlacedRows rows = placed_rows(request, request.out[0], columns, 0, embedding.coordinates.count);
  ArrayView out[2];
  std::array<Rows, 2> written;
  for (std::size_t i = 0; i < form.array_count; ++i) {
    const ArrayView& given = request.out[i];
    out[i] = output_of(without_axes_in_front(given, rows.shape.axes()), of_array, rows.shape, front_end);
    require_disjoint(out[i], request);
    written[i] = form.inner == InnerAxes::columns ? writable_rows_of(out[i], rows.row_axes - 1)
                                                  : writable_rows_of_values(out[i], dtype, rows.row_axes);
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
  run(embedding.source(embedding.row_factor(false)), Write(written, form, embedding.pairs(), is_new));
}

void rotate(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end) {
  require_one_placement(embedding, request);
  const Extent extent = checked_extent(request, expected_heads(embedding));
  const Placement placement = placement_of(request, extent, 0, embedding.coordinates.count, request.is_shift);
  // Keys that are moved contain the embedding's factor.
  const double row_factor = request.is_shift ? 1.0 : embedding.row_factor(request.is_inverse);
  rotate_by(embedding.source(row_factor), embedding.pairing(row_factor, request.is_inverse), extent, placement, {},
            request, front_end);
}

void rotate_by_tables(const GivenTables& tables, const RotateRequest& given, FrontEnd& front_end) {
  const ArrayView cos_and_sin[] = {tables.cos, tables.sin};
  RotateRequest request = given;
  require_one_placement(request);
  check_tables(tables, request.arrays[0]);
  // Tables [B, L, pairs] have a row for each row of the arrays: positions number them.
  const bool has_numbered_rows = tables.cos.axes == 3;
  std::ptrdiff_t strides_bytes[2];
  if (has_numbered_rows) {
    const char* const offset = request.offset ? "offset" : request.offsets.name;
    for (const char* const name : {offset, request.positions.name, request.cu_seqlens.name}) {
      if (name == nullptr) continue;
      refuse_value("cos", {"has a row for each row of x, and ", name, " was given"}, {"one of them"},
                   {"pass tables [rows, pairs], or leave ", name, " out"});
    }
    request.positions = contiguous_view(nullptr, "cos[..., 0]", DType::int64, tables.cos.shape, 2, strides_bytes);
  }
  const std::int64_t pairs = tables.cos.last(), columns = 2 * pairs;
  const Extent extent =
      checked_extent(request, {columns, 0, "give ", tables.head_dim != 0 ? tables.head_dim : columns});
  require_table_dtype(tables.cos, request.arrays[0]);
  std::vector<std::int64_t> numbers;
  if (has_numbered_rows) {
    // As many as the arrays have rows. A table of another shape is refused before one is read.
    numbers.resize(static_cast<std::size_t>(std::max<std::int64_t>(extent.batch_rows * extent.seq_len, 1)));
    std::iota(numbers.begin(), numbers.end(), 0);
    request.positions.data = reinterpret_cast<char*>(numbers.data());
  }
  const Placement placement = placement_of(request, extent);
  const Pairing pairing{pairs, tables.interleaved, request.is_inverse, {{0, pairs}}};
  const RotaryTables source(batched_table_of(tables.cos), batched_table_of(tables.sin));
  rotate_by(source, pairing, extent, placement, {cos_and_sin, 2}, request, front_end);
}

}  // namespace fastpe
