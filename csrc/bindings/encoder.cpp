// SPDX-License-Identifier: BSD-3-Clause
// The class Encoder.
#include <memory>
#include <optional>
#include <utility>

#include "call.h"
#include "fastpe/embeddings/sinusoidal_embedding.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/gather.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "fastpe/sources/tables.h"
#include "method.h"

namespace fastpe::bindings {
namespace {

// ---- add_, add

#define FASTPE_ADD \
  "x, *, " FASTPE_ROWS ", scale=1.0, alpha=1.0, seq_axis=-2, channels=None, table=None, num_threads=None"
struct AddArguments {
  PyObject* x;
  GivenRows rows;
  PyObject *scale, *alpha, *seq_axis, *channels, *table, *num_threads;
};
struct AddApartArguments {
  AddArguments common;
  PyObject* out;
};
Signature add_in_place_signature("add_", FASTPE_ADD);
Signature add_signature("add", FASTPE_ADD ", out=None");

// Calls use(source) with the learned table where one is given, else with the encoder's columns from first_column on.
template <class Use>
void with_source(const SinusoidalEmbedding& self, const std::optional<TableView>& learned, std::int64_t first_column,
                 const Use& use) {
  if (learned) {
    use(LearnedTable(*learned));
  } else {
    use(Sinusoids(self.row_cache, first_column));
  }
}

PyObject* add_to(SinusoidalEmbedding& self, const AddArguments& a, bool in_place, PyObject* given_out) {
  // Phase 1
  Made made;
  PyObject* const x_array = in_place ? array_of(a.x, "x", made) : array_from(a.x, "x", made);
  PyObject* const out_array = is_given(given_out) ? array_of(given_out, "out", made) : nullptr;
  PyObject* const table_array = is_given(a.table) ? array_from(a.table, "table", made) : nullptr;
  refuse_together(a.table, "table", a.channels, "channels");
  const std::optional<Channels> channels = channels_argument(a.channels, self.encoder.spec().d_model);
  const std::optional<std::int64_t> seq_axis_given = seq_axis_argument(a.seq_axis);
  const RowInputs inputs(a.rows, made);
  const Factors factors{number_argument(a.scale, "scale", 1.0), number_argument(a.alpha, "alpha", 1.0)};
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView x = view_of(x_array, "x"), table = view_if_given(table_array, "table");
  const RowArguments rows = inputs.views();
  const DType dtype = dtype_of(x);
  const int seq_axis = seq_axis_of(x, seq_axis_given ? &*seq_axis_given : nullptr, "d_model");
  in_place ? require_writable(x, "add(.., out=)") : require_readable(x);
  std::optional<TableView> learned;
  if (table.is_given()) learned = position_table_of(table, x);
  const std::int64_t first_column = learned ? 0 : first_column_of(x, channels, self.encoder.spec().d_model);
  Extent extent = extent_of(x, seq_axis);
  extent.remedy = name_seq_axis;
  call.rows.positions.first = self.first_position;
  set_rows(call.rows, rows, extent);
  const auto add = [&](const Add& operation) {
    with_source(self, learned, first_column, [&](const Source& source) { finish(call, source, operation); });
  };
  if (in_place) {
    require_disjoint(x, rows);
    require_disjoint(x, table);
    call.is_in_place = true;
    add(Add(writable_rows_of(x, dtype, seq_axis), extent.rows, factors));
    return Object::shared(a.x).release();
  }
  Output out = output(out_array, borrowed_dtype(x_array), Shape(x));
  if (out_array != nullptr) {
    call.is_in_place = is_same_memory(out.view, x);
    if (!call.is_in_place) require_disjoint(out.view, x, " (out may be x itself)");
    require_disjoint(out.view, rows);
    require_disjoint(out.view, table);
  }
  add(Add(rows_of(x, dtype, seq_axis), writable_rows_of(out.view, dtype, seq_axis), extent.rows, factors,
          out_array == nullptr));
  return out.returned(given_out);
}

PyObject* add_in_place(SinusoidalEmbedding& self, const AddArguments& a) { return add_to(self, a, true, nullptr); }
PyObject* add(SinusoidalEmbedding& self, const AddApartArguments& a) { return add_to(self, a.common, false, a.out); }

// ---- encode

struct EncodeArguments {
  PyObject *positions, *dtype, *offset, *mask, *lengths, *channels, *num_threads, *out;
};
Signature encode_signature("encode",
                           "positions, *, dtype=None, offset=None, mask=None, lengths=None, channels=None, "
                           "num_threads=None, out=None");

PyObject* encode(SinusoidalEmbedding& self, const EncodeArguments& a) {
  // Phase 1
  Made made;
  const std::int64_t d_model = self.encoder.spec().d_model;
  const std::optional<Channels> channels = channels_argument(a.channels, d_model);
  PyObject* const out_array = is_given(a.out) ? array_of(a.out, "out", made) : nullptr;
  const Object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : Object();
  const std::optional<std::int64_t> count = position_count(a.positions);
  if (!count) refuse_together(a.positions, "positions", a.offset, "offset");
  PyObject* const positions_array =
      count ? nullptr : numbers_from(a.positions, "positions", Numbers::integers_or_floats, made, Order::contiguous);
  const RowInputs inputs({a.offset, nullptr, a.mask, a.lengths}, made);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView positions = view_if_given(positions_array, "positions");
  const RowArguments rows = inputs.views();
  call.rows.positions.first = self.first_position;
  if (!count) set_any_positions(call.rows.positions, positions);
  Shape shape = count ? counted_shape(rows, *count) : Shape(positions);
  const int seq_axis = shape.axes() - 1;
  shape.add_axis(channels ? channels->end - channels->first : d_model);
  Output out = output(out_array, dtype_given.get(), shape);
  const Extent extent = extent_of(out.view, seq_axis);
  if (count) {
    set_rows(call.rows, rows, extent);
  } else {
    if (positions.axes > 2 && (rows.mask.is_given() || rows.lengths.is_given())) {
      refuse_value("positions", {"has ", positions.axes, " axes"}, {"[L] or [B, L] with mask= and lengths="},
                   {"reshape it"});
    }
    set_validity(call.rows, rows, extent);
  }
  require_disjoint(out.view, rows);
  require_disjoint(out.view, positions);
  const Sinusoids source(self.row_cache, channels ? channels->first : 0);
  finish(call, source, Write(writable_rows_of(out.view, dtype_of(out.view), seq_axis), out_array == nullptr));
  return out.returned(a.out);
}

// ---- embed

struct EmbedArguments {
  PyObject *ids, *table;
  GivenRows rows;
  PyObject *scale, *alpha, *position_table, *num_threads, *out;
};
Signature embed_signature("embed", "ids, table, *, " FASTPE_ROWS
                                   ", scale=1.0, alpha=1.0, position_table=None, num_threads=None, out=None");

PyObject* embed(SinusoidalEmbedding& self, const EmbedArguments& a) {
  // Phase 1
  Made made;
  PyObject* const table_array = array_from(a.table, "table", made);
  PyObject* const ids_array = numbers_from(a.ids, "ids", Numbers::integers, made, Order::contiguous);
  PyObject* const learned_array =
      is_given(a.position_table) ? array_from(a.position_table, "position_table", made) : nullptr;
  PyObject* const out_array = is_given(a.out) ? array_of(a.out, "out", made) : nullptr;
  const RowInputs inputs(a.rows, made);
  const Factors factors{number_argument(a.scale, "scale", 1.0), number_argument(a.alpha, "alpha", 1.0)};
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView table = view_of(table_array, "table"), ids = view_of(ids_array, "ids");
  const ArrayView position_table = view_if_given(learned_array, "position_table");
  const RowArguments rows = inputs.views();
  const NumbersView ids_view = numbers_view(ids, Numbers::integers);
  const TableView vocabulary = table_of(table);
  std::optional<TableView> learned;
  if (position_table.is_given()) {
    learned = position_table_of(position_table, table);
  } else {
    first_column_of(table, std::nullopt, self.encoder.spec().d_model);
  }
  Shape shape(ids);
  const int seq_axis = shape.axes() - 1;
  shape.add_axis(table.last());
  Output out = output(out_array, borrowed_dtype(table_array), shape);
  const Extent extent = extent_of(out.view, seq_axis);
  call.rows.positions.first = self.first_position;
  set_rows(call.rows, rows, extent);
  require_disjoint(out.view, rows);
  for (const ArrayView* each : {&ids, &table, &position_table}) require_disjoint(out.view, *each);
  const Gather gather(vocabulary, ids_view, item_axes_of(out.view, seq_axis),
                      writable_rows_of(out.view, vocabulary.dtype, seq_axis), extent.rows, factors,
                      out_array == nullptr);
  with_source(self, learned, 0, [&](const Source& source) { finish(call, source, gather); });
  return out.returned(a.out);
}

// ---- The class

PyObject* warm_up_encoder(SinusoidalEmbedding& self, const WarmUpArguments& a) { return warm_up(self.row_cache, a); }
Signature warm_up_signature("warm_up", FASTPE_WARM_UP);

PyObject* frequencies(PyObject* self, PyObject*) {
  return returned_or<PyObject*>(nullptr, [&] {
    const Encoder& encoder = bound_of<SinusoidalEmbedding>(self).encoder;
    return new_array(encoder.frequencies().radians.high.data(), encoder.frequency_count()).release();
  });
}

std::unique_ptr<SinusoidalEmbedding> make_encoder(PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"d_model",      "frequency_count", "base",           "exponent_denominator",
                                      "freq_scale",   "freqs",           "interleaved",    "cosine_first",
                                      "output_scale", "max_len",         "first_position", nullptr};
  long long d_model, frequency_count, first_position;
  double base, exponent_denominator, freq_scale, output_scale;
  PyObject *freqs, *max_len;
  int interleaved, cosine_first;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "LLdddOppdOL", const_cast<char**>(names), &d_model,
                                  &frequency_count, &base, &exponent_denominator, &freq_scale, &freqs, &interleaved,
                                  &cosine_first, &output_scale, &max_len, &first_position) == 0) {
    throw PythonError{};
  }
  Spec spec;
  spec.d_model = d_model;
  spec.wanted_frequencies = {
      frequency_count, base, exponent_denominator, freq_scale, doubles_from(freqs), "d_model, base and freq_scale"};
  spec.interleaved = interleaved != 0;
  spec.cosine_first = cosine_first != 0;
  spec.output_scale = output_scale;
  return std::make_unique<SinusoidalEmbedding>(std::move(spec), max_len_from(max_len), first_position);
}

}  // namespace

void add_encoder(PyObject* module) {
  static PyMethodDef methods[] = {method<encode, encode_signature>(),
                                  method<add_in_place, add_in_place_signature>(),
                                  method<add, add_signature>(),
                                  method<embed, embed_signature>(),
                                  method<warm_up_encoder, warm_up_signature>(),
                                  {"_frequencies", frequencies, METH_NOARGS, nullptr},
                                  {}};
  const Object type = holder_type<SinusoidalEmbedding, make_encoder>("fastpe._core.Encoder", methods);
  if (PyModule_AddObjectRef(module, "Encoder", type.get()) < 0) throw PythonError{};
}

}  // namespace fastpe::bindings
