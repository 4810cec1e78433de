// SPDX-License-Identifier: BSD-3-Clause
// The class Encoder of Python, which holds a SinusoidalEncoding; the core's Encoder is a part of that.
#include <memory>
#include <optional>
#include <utility>

#include "call.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/gather.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "fastpe/sources/tables.h"

namespace fastpe::bindings {
namespace {

// What Python's Encoder holds.
struct BoundEncoder : SinusoidalEncoding {
  using SinusoidalEncoding::SinusoidalEncoding;

  // What `embed` does where its call says nothing of it.
  double embedding_scale = 1.0;
  std::optional<std::int64_t> padding_idx;
};

// ---- add_, add

#define FASTPE_ADD "x, *, " FASTPE_PLACEMENT ", scale=1.0, alpha=1.0, seq_axis=-2, table=None, num_threads=None"
struct AddArguments {
  PyObject* x;
  PlacementObjects placement;
  PyObject *scale, *alpha, *seq_axis, *table, *num_threads;
};
struct AddApartArguments {
  AddArguments common;
  PyObject* out;
};
Signature add_in_place_signature("add_", FASTPE_ADD);
Signature add_signature("add", FASTPE_ADD ", out=None");

// For an x that holds the encoding's columns from first_column on.
struct AddColumnsArguments {
  PyObject *x, *first_column;
  PlacementObjects placement;
  PyObject *scale, *alpha, *seq_axis, *num_threads, *out;
};
Signature add_columns_signature("_add_columns", "x, first_column, *, " FASTPE_PLACEMENT
                                                ", scale=1.0, alpha=1.0, seq_axis=-2, num_threads=None, out=None");

// Calls use(source) with the learned table where one is given, else with the encoder's columns from first_column on.
template <class Use>
void with_source(const SinusoidalEncoding& self, const std::optional<TableView>& learned, std::int64_t first_column,
                 const Use& use) {
  if (learned) {
    use(LearnedTable(*learned));
  } else {
    use(Sinusoids(self.row_cache, first_column));
  }
}

PyObject* add_either_way(BoundEncoder& self, const AddArguments& a, bool in_place, PyObject* given_out,
                         std::optional<std::int64_t> first_column = std::nullopt) {
  // Phase 1
  Owned owned;
  PyObject* const x_array = in_place ? array_to_write(a.x, "x", owned) : array_to_read(a.x, "x", owned);
  PyObject* const out_array = is_given(given_out) ? array_to_write(given_out, "out", owned) : nullptr;
  PyObject* const table_array = is_given(a.table) ? array_to_read(a.table, "table", owned) : nullptr;
  if (a.seq_axis == Py_None) refuse_type("seq_axis", {"is None"}, {"an int, an axis of x other than the last"});
  const std::optional<std::int64_t> seq_axis_given = seq_axis_argument(a.seq_axis);
  const PlacementArrays placement_arrays(a.placement, owned);
  const Factors factors{factor_argument(a.scale, "scale"), factor_argument(a.alpha, "alpha")};
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView x = view_of(x_array, "x"), table = view_if_given(table_array, "table");
  const PlacementArguments given = placement_arrays.views();
  const DType dtype = dtype_of(x);
  const int seq_axis = seq_axis_of(x, seq_axis_given, "d_model");
  in_place ? require_writable(x, "add(.., out=)") : require_readable(x);
  std::optional<TableView> learned;
  if (table.is_given()) learned = position_table_of(table, x);
  if (!learned) require_columns(x, first_column, self.encoder.spec().d_model);
  const Extent extent = extent_of(x, seq_axis, seq_axis_remedy);
  const Placement placement = placement_of(given, extent, self.first_position);
  Output out;
  if (!in_place) out = output(out_array, borrowed_dtype(x_array), Shape(x));
  const ArrayView& written = in_place ? x : out.view;
  if (in_place || out_array != nullptr) {
    if (!is_same_memory(written, x)) require_disjoint(written, x, " (out may be x itself)");
    require_disjoint(written, given);
    require_disjoint(written, table);
  }
  const bool is_new = !in_place && out_array == nullptr;
  const Add add(rows_of(x, dtype, seq_axis), writable_rows_of(written, dtype, seq_axis), extent.batch_rows, factors,
                is_new);
  with_source(self, learned, first_column.value_or(0),
              [&](const Source& source) { run_call({source, add, placement, max_threads}); });
  return in_place ? Object::shared(a.x).release() : out.returned(given_out);
}

PyObject* add_in_place(BoundEncoder& self, const AddArguments& a) { return add_either_way(self, a, true, nullptr); }
PyObject* add(BoundEncoder& self, const AddApartArguments& a) { return add_either_way(self, a.common, false, a.out); }
PyObject* add_columns(BoundEncoder& self, const AddColumnsArguments& a) {
  const AddArguments common{a.x, a.placement, a.scale, a.alpha, a.seq_axis, nullptr, a.num_threads};
  return add_either_way(self, common, false, a.out, integer_or_none(a.first_column));
}

// ---- encode

struct EncodeArguments {
  PyObject *positions, *dtype, *offset, *valid, *lengths, *num_threads, *out;
};
Signature encode_signature(
    "encode", "positions, *, dtype=None, offset=None, valid=None, lengths=None, num_threads=None, out=None");

PyObject* encode(BoundEncoder& self, const EncodeArguments& a) {
  // Phase 1
  Owned owned;
  PyObject* const out_array = is_given(a.out) ? array_to_write(a.out, "out", owned) : nullptr;
  const Object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : Object();
  const WrittenPositions positions(a.positions, a.offset, owned);
  PlacementObjects placement;
  placement.offset = a.offset;
  placement.valid = a.valid;
  placement.lengths = a.lengths;
  const PlacementArrays placement_arrays(placement, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  const PlacementArguments given = placement_arrays.views();
  const WrittenPositions::Views rows = positions.views(given, self.first_position, 0);
  Shape shape = rows.shape;
  shape.add_axis(self.encoder.spec().d_model);
  Output out = output(out_array, dtype_given.get(), shape, "out", AxesInFront::of_length_1);
  require_disjoint(out.view, given);
  require_disjoint(out.view, rows.positions);
  const Write write(writable_rows_of(out.view, dtype_of(out.view), shape.axes() - 2), out_array == nullptr);
  run_call({Sinusoids(self.row_cache, 0), write, rows.placement, max_threads});
  return out.returned(a.out);
}

// ---- embed

struct EmbedArguments {
  PyObject *ids, *table;
  PlacementObjects placement;
  PyObject *scale, *alpha, *position_table, *num_threads, *out;
};
Signature embed_signature("embed", "ids, table, *, " FASTPE_PLACEMENT
                                   ", scale=None, alpha=1.0, position_table=None, num_threads=None, out=None");

// Whether each id is another one: what numpy.not_equal says. Runs no code of a caller.
PyObject* where_not(PyObject* ids, std::int64_t id, Owned& owned) {
  const ArrayView view = view_of(ids, "ids");
  const NumbersView numbers = numbers_view(view, Numbers::integers);
  const Shape shape(view);
  PyObject* const valid = owned.add(new_array(numpy_dtype(DType::boolean).get(), shape));
  std::int64_t index = 0;
  const ArrayView written = view_of(valid, "valid");
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  for (; index < count; ++index) written.data[index] = numbers.integer_at(0, index) != id ? 1 : 0;
  return valid;
}

PyObject* embed(BoundEncoder& self, const EmbedArguments& a) {
  // Phase 1
  Owned owned;
  PyObject* const table_array = array_to_read(a.table, "table", owned);
  PyObject* const ids_array = numbers_from(a.ids, "ids", Numbers::integers, owned, Order::contiguous);
  PyObject* const learned_array =
      is_given(a.position_table) ? array_to_read(a.position_table, "position_table", owned) : nullptr;
  PyObject* const out_array = is_given(a.out) ? array_to_write(a.out, "out", owned) : nullptr;
  PlacementArrays placement_arrays(a.placement, owned);
  const Factors factors{is_given(a.scale) ? number_from(a.scale, "scale") : self.embedding_scale,
                        factor_argument(a.alpha, "alpha")};
  const int max_threads = threads_argument(a.num_threads);
  const bool leaves_out_padding = self.padding_idx && is_integer(view_of(ids_array, "ids").dtype) &&
                                  !is_given(a.placement.valid) && !is_given(a.placement.lengths) &&
                                  !is_given(a.placement.cu_seqlens);
  if (leaves_out_padding) placement_arrays.valid = where_not(ids_array, *self.padding_idx, owned);

  // Phase 2
  const ArrayView table = view_of(table_array, "table"), ids = view_of(ids_array, "ids");
  const ArrayView position_table = view_if_given(learned_array, "position_table");
  const PlacementArguments given = placement_arrays.views();
  if (is_integer(table.dtype) && is_written(ids.dtype)) {
    refuse_type("ids", {"has dtype ", name_of(ids.dtype), ", and table ", name_of(table.dtype)},
                {"ids, and then the rows of the vocabulary"}, {"pass embed(ids, table)"});
  }
  const NumbersView ids_view = numbers_view(ids, Numbers::integers);
  const TableView vocabulary = table_of(table);
  std::optional<TableView> learned;
  if (position_table.is_given()) {
    learned = position_table_of(position_table, table);
  } else {
    require_columns(table, std::nullopt, self.encoder.spec().d_model);
  }
  Shape shape(ids);
  const int seq_axis = shape.axes() - 1;
  shape.add_axis(table.last());
  Output out = output(out_array, borrowed_dtype(table_array), shape);
  const Extent extent = extent_of(out.view, seq_axis);
  const Placement placement = placement_of(given, extent, self.first_position);
  require_disjoint(out.view, given);
  for (const ArrayView* each : {&ids, &table, &position_table}) require_disjoint(out.view, *each);
  const Gather gather(vocabulary, ids_view, item_axes_of(out.view, seq_axis),
                      writable_rows_of(out.view, vocabulary.dtype, seq_axis), extent.batch_rows, factors,
                      out_array == nullptr);
  with_source(self, learned, 0, [&](const Source& source) { run_call({source, gather, placement, max_threads}); });
  return out.returned(a.out);
}

// ---- The class

Signature warm_up_signature("warm_up", FASTPE_WARM_UP);

std::unique_ptr<BoundEncoder> make_encoder(PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"d_model",        "frequency_count",
                                      "base",           "exponent_denominator",
                                      "freq_scale",     "frequencies",
                                      "interleaved",    "cosine_first",
                                      "output_scale",   "max_len",
                                      "first_position", "embedding_scale",
                                      "padding_idx",    nullptr};
  long long d_model, frequency_count, first_position;
  double base, exponent_denominator, freq_scale, output_scale, embedding_scale;
  PyObject *given, *max_len, *padding_idx;
  int interleaved, cosine_first;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "LLdddOppdOLdO", const_cast<char**>(names), &d_model,
                                  &frequency_count, &base, &exponent_denominator, &freq_scale, &given, &interleaved,
                                  &cosine_first, &output_scale, &max_len, &first_position, &embedding_scale,
                                  &padding_idx) == 0) {
    throw PythonError{};
  }
  Spec spec;
  spec.d_model = d_model;
  spec.wanted_frequencies = {
      frequency_count, base, exponent_denominator, freq_scale, doubles_from(given), "d_model, base and freq_scale"};
  spec.interleaved = interleaved != 0;
  spec.cosine_first = cosine_first != 0;
  spec.output_scale = output_scale;
  auto made = std::make_unique<BoundEncoder>(std::move(spec), integer_or_none(max_len), first_position);
  made->embedding_scale = embedding_scale;
  made->padding_idx = integer_or_none(padding_idx);
  return made;
}

}  // namespace

void add_encoder(PyObject* module) {
  static PyMethodDef methods[] = {method<encode, encode_signature>(),
                                  method<add_in_place, add_in_place_signature>(),
                                  method<add, add_signature>(),
                                  method<add_columns, add_columns_signature>(),
                                  method<embed, embed_signature>(),
                                  method<warm_up<BoundEncoder>, warm_up_signature>(),
                                  {"_frequencies", frequencies<BoundEncoder>, METH_NOARGS, nullptr},
                                  {}};
  const Object type = holder_type<BoundEncoder, make_encoder>("fastpe._core.Encoder", methods);
  if (PyModule_AddObjectRef(module, "Encoder", type.get()) < 0) throw PythonError{};
}

}  // namespace fastpe::bindings
