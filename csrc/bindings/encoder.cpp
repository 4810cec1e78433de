// SPDX-License-Identifier: BSD-3-Clause
// The class Encoder of Python, which holds a SinusoidalEncoding; the core's Encoder is a part of that.
#include <memory>
#include <optional>
#include <utility>

#include "call.h"
#include "fastpe/requests/encoding.h"
#include "fastpe/sources/sinusoid/conventions.h"

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

PyObject* add_either_way(BoundEncoder& self, const AddArguments& a, bool in_place, PyObject* given_out,
                         std::optional<std::int64_t> first_column = std::nullopt) {
  // Phase 1
  Owned owned;
  PyObject* const x = in_place ? array_to_write(a.x, "x", owned) : array_to_read(a.x, "x", owned);
  PyObject* const out = given_output(given_out, owned);
  PyObject* const table = is_given(a.table) ? array_to_read(a.table, "table", owned) : nullptr;
  if (a.seq_axis == Py_None) refuse_type("seq_axis", {"is None"}, {"an int, an axis of x other than the last"});
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  const PlacementArrays placement(a.placement, owned);
  const Factors factors{factor_argument(a.scale, "scale"), factor_argument(a.alpha, "alpha")};
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  PythonFrontEnd front_end;
  fastpe::add(&self,
              {view_of(x, "x"), view_if_given(out, "out"), in_place, view_if_given(table, "table"), placement.views(),
               factors, seq_axis, first_column, max_threads},
              front_end);
  return front_end.returned(in_place ? a.x : given_out);
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
  PyObject* const out = given_output(a.out, owned);
  const std::optional<DType> dtype = dtype_argument(a.dtype);
  const WrittenArrays rows(a.positions, {a.offset, nullptr, a.valid, a.lengths}, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  PythonFrontEnd front_end;
  fastpe::encode(self, {view_if_given(out, "out"), rows.views(), dtype, max_threads}, front_end);
  return front_end.returned(a.out);
}

// ---- embed

struct EmbedArguments {
  PyObject *ids, *table;
  PlacementObjects placement;
  PyObject *scale, *alpha, *position_table, *num_threads, *out;
};
Signature embed_signature("embed", "ids, table, *, " FASTPE_PLACEMENT
                                   ", scale=None, alpha=1.0, position_table=None, num_threads=None, out=None");

PyObject* embed(BoundEncoder& self, const EmbedArguments& a) {
  // Phase 1
  Owned owned;
  PyObject* const table = array_to_read(a.table, "table", owned);
  PyObject* const ids = numbers_from(a.ids, "ids", Numbers::integers, owned, Order::contiguous);
  PyObject* const learned =
      is_given(a.position_table) ? array_to_read(a.position_table, "position_table", owned) : nullptr;
  PyObject* const out = given_output(a.out, owned);
  const PlacementArrays placement(a.placement, owned);
  const Factors factors{is_given(a.scale) ? number_from(a.scale, "scale") : self.embedding_scale,
                        factor_argument(a.alpha, "alpha")};
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  PythonFrontEnd front_end;
  fastpe::embed(self,
                {view_of(ids, "ids"), view_of(table, "table"), view_if_given(learned, "position_table"),
                 view_if_given(out, "out"), placement.views(), self.padding_idx, factors, max_threads},
                front_end);
  return front_end.returned(a.out);
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

// The fields of the package's conventions, by name.
Object named_conventions() {
  Object result = not_null(PyDict_New());
  for (const Convention& each : conventions) {
    const char* const alpha = alphas[static_cast<int>(each.alpha)];
    const Object number = not_null(PyFloat_FromDouble(1.0)),
                 denominator = not_null(PyFloat_FromDouble(each.denominator));
    const Object text = alpha == nullptr ? Object() : not_null(PyUnicode_FromString(alpha));
    const Object fields =
        not_null(Py_BuildValue("{s:s,s:O,s:d,s:O,s:s,s:d,s:d,s:L,s:O}",                               //
                               "layout", each.interleaved ? "interleaved" : "concatenated",           //
                               "cosine_first", each.cosine_first ? Py_True : Py_False,                //
                               "denominator_offset", each.denominator_offset,                         //
                               "denominator", each.denominator == 0.0 ? Py_None : denominator.get(),  //
                               "odd", odd_widths[static_cast<int>(each.odd)],                         //
                               "base", each.base,                                                     //
                               "freq_scale", each.freq_scale,                                         //
                               "first_position", static_cast<long long>(each.first_position),         //
                               "alpha", text ? text.get() : number.get()));
    if (PyDict_SetItemString(result.get(), each.name, fields.get()) < 0) throw PythonError{};
  }
  return result;
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
  if (PyModule_AddObjectRef(module, "Encoder", type.get()) < 0 ||
      PyModule_AddObjectRef(module, "conventions", named_conventions().get()) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
