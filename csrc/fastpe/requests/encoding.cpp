// SPDX-License-Identifier: BSD-3-Clause
#include "encoding.h"

#include <cmath>
#include <vector>

#include "fastpe/error.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "fastpe/sources/tables.h"

namespace fastpe {
namespace {

void require_factors(const Factors& factors) {
  if (std::isnan(factors.scale)) refuse_value("scale", {"is nan"}, {"a number"});
  if (std::isnan(factors.alpha)) refuse_value("alpha", {"is nan"}, {"a number"});
}

// An array must hold all d_model columns of the encoding, or some of them, from `first` on. It may have no columns.
void require_columns(const ArrayView& array, std::optional<std::int64_t> first, std::int64_t d_model) {
  const std::int64_t columns = array.last();
  if (columns == 0) return;  // nothing is computed for an empty array
  if (!first && columns != d_model) {
    refuse_value(array.name, {"has ", columns, " columns"}, {"d_model, ", d_model},
                 {"make the encoding for this width"});
  }
  if (first && (*first < 0 || *first > d_model - columns)) {
    refuse_value("first_column", {"is ", *first, ", and ", array.name, " has ", columns, " columns"},
                 {"columns within d_model, ", d_model});
  }
}

}  // namespace

void encode(const Encoding& encoding, const EncodeRequest& request, FrontEnd& front_end) {
  require_one_placement(request);
  const Shape columns{encoding.encoder.spec().d_model};
  const PlacedRows rows = placed_rows(request, request.out, columns, encoding.first_position, 0);
  const ArrayView out =
      output_of(without_axes_in_front(request.out, rows.shape.axes()), request.dtype, rows.shape, front_end);
  require_disjoint(out, request);
  const Write write(writable_rows_of(out, rows.row_axes - 1), !request.out.is_given());
  front_end.run({Sinusoids(encoding), write, rows.placement, request.max_threads});
}

void add(const Encoding* encoding, const AddRequest& request, FrontEnd& front_end) {
  const ArrayView &x = request.x, &table = request.table;
  require_one_placement(request);
  require_factors(request.factors);
  const DType dtype = dtype_of(x);
  const int seq_axis = seq_axis_of(x, request.seq_axis, "d_model");
  request.is_in_place ? require_writable(x, "add(.., out=)") : require_readable(x);
  std::optional<TableView> learned;
  if (table.is_given()) learned = position_table_of(table, x);
  if (!learned) require_columns(x, request.first_column, encoding->encoder.spec().d_model);
  Extent extent = extent_of(x, seq_axis, seq_axis_remedy);
  Placement placement = placement_of(request, extent, encoding != nullptr ? encoding->first_position : 0);
  const ArrayView out = request.is_in_place ? x : output_of(request.out, dtype, Shape(x), front_end);
  const bool is_new = !request.is_in_place && !request.out.is_given();
  if (!is_new) {
    if (!is_same_memory(out, x)) require_disjoint(out, x, " (out may be x itself)");
    require_disjoint(out, request);
    require_disjoint(out, table);
  }
  make_batch_the_sequence(placement, extent);
  const int row_axis = row_axis_of(placement, seq_axis);
  const Add add({rows_of(x, row_axis), writable_rows_of(out, row_axis)}, extent.batch_rows, request.factors, is_new);
  if (learned) return front_end.run({LearnedTable(*learned), add, placement, request.max_threads});
  front_end.run({Sinusoids(*encoding, request.first_column.value_or(0)), add, placement, request.max_threads});
}

void embed(const Encoding& encoding, const EmbedRequest& given, FrontEnd& front_end) {
  EmbedRequest request = given;
  const ArrayView &ids = request.ids, &table = request.table, &position_table = request.position_table;
  require_one_placement(request);
  require_factors(request.factors);
  if (is_integer(table.dtype) && is_written(ids.dtype)) {
    refuse_type("ids", {"has dtype ", name_of(ids.dtype), ", and table ", name_of(table.dtype)},
                {"ids, and then the rows of the vocabulary"}, {"pass embed(ids, table)"});
  }
  const NumbersView numbers = numbers_view(ids, Numbers::integers);
  const TableView vocabulary = table_of(table);
  std::optional<TableView> learned;
  if (position_table.is_given()) {
    learned = position_table_of(position_table, table);
  } else {
    require_columns(table, std::nullopt, encoding.encoder.spec().d_model);
  }
  Shape shape(ids);
  const int seq_axis = shape.axes() - 1;
  shape.add_axis(table.last());
  std::vector<char> valid;
  std::ptrdiff_t strides_bytes[max_item_axes];
  const bool has_validity = request.valid.is_given() || request.lengths.is_given();
  if (encoding.padding_idx && !has_validity && !request.cu_seqlens.is_given()) {
    if (ids.axes > 2) {
      refuse_value("ids", {"has ", ids.axes, " axes, and the encoder has a padding_idx"}, {"[L] or [B, L]"},
                   {"pass ids.reshape(-1, ids.shape[-1])"});
    }
    for (std::int64_t i = 0; i < ids.element_count(); ++i) {
      valid.push_back(numbers.integer_at(0, i) != *encoding.padding_idx);
    }
    request.valid = contiguous_view(valid.data(), "valid", DType::boolean, ids.shape, ids.axes, strides_bytes);
  }
  const ArrayView out = output_of(request.out, table.dtype, shape, front_end);
  const Extent extent = extent_of(out, seq_axis);
  const Placement placement = placement_of(request, extent, encoding.first_position);
  require_disjoint(out, request);
  for (const ArrayView* each : {&ids, &table, &position_table}) require_disjoint(out, *each);
  Axes id_axes = axes_of(ids);
  if (id_axes.count > 0) --id_axes.count;
  const Gather gather(vocabulary, numbers, id_axes, writable_rows_of(out, seq_axis), extent.batch_rows, request.factors,
                      !request.out.is_given());
  if (learned) return front_end.run({LearnedTable(*learned), gather, placement, request.max_threads});
  front_end.run({Sinusoids(encoding), gather, placement, request.max_threads});
}

}  // namespace fastpe
