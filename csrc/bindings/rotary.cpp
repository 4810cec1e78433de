// SPDX-License-Identifier: BSD-3-Clause
// The class Rotary, and rotation by tables that are given.
#include "fastpe/requests/rotary.h"

#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "call.h"
#include "fastpe/checks/rotation.h"

namespace fastpe::bindings {
namespace {

// ---- tables

const TableForm& form_named(PyObject* name) {
  const bool is_text = PyUnicode_Check(name) != 0;
  std::string names;
  for (const TableForm& form : table_forms) {
    if (is_text && PyUnicode_CompareWithASCIIString(name, form.name) == 0) return form;
    names += joined({names.empty() ? "'" : ", '", form.name, "'"});
  }
  refuse(is_text ? ErrorKind::value : ErrorKind::type, "form", {"is ", repr_of(name)}, {names}, {});
}

struct TablesArguments {
  PyObject *positions, *form, *dtype, *offset, *out, *num_threads;
};
Signature tables_signature("tables",
                           "positions, *, form='halves', dtype=None, offset=None, out=None, num_threads=None");

// The arrays to write into, where they are given.
std::array<PyObject*, 2> given_outputs(PyObject* out, const TableForm& form, Owned& owned) {
  if (!is_given(out)) return {};
  if (form.array_count == 1) return {array_to_write(out, "out", owned), nullptr};
  const bool is_sequence = PyTuple_Check(out) || PyList_Check(out);
  if (!is_sequence || PySequence_Fast_GET_SIZE(out) != 2) {
    refuse_type("out", {"is a ", type_name(out)}, {"a tuple of two arrays, (cos, sin), for form='", form.name, "'"});
  }
  // Another thread may replace a list's items: none is used before it is owned.
  PyObject* const cos = owned.add(run_python([&] { return PySequence_GetItem(out, 0); }));
  PyObject* const sin = owned.add(run_python([&] { return PySequence_GetItem(out, 1); }));
  return {array_to_write(cos, "out[0]", owned), array_to_write(sin, "out[1]", owned)};
}

PyObject* tables(RotaryEmbedding& self, const TablesArguments& a) {
  // Phase 1
  Owned owned;
  const TableForm& form = is_given(a.form) ? form_named(a.form) : table_forms[0];
  const auto [first, second] = given_outputs(a.out, form, owned);
  const std::optional<DType> dtype = dtype_argument(a.dtype);
  const WrittenArrays rows(a.positions, {a.offset}, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  PythonFrontEnd front_end;
  write_tables(self,
               {form,
                {view_if_given(first, second == nullptr ? "out" : "out[0]"), view_if_given(second, "out[1]")},
                rows.views(),
                dtype,
                max_threads},
               front_end);
  return form.array_count == 1 ? front_end.returned(a.out) : front_end.returned_pair(a.out);
}

// ---- Rotations, in place or apart

// What all rotations are given besides the angles: the arrays, x first, and their sequence's axis.
class RotatedArrays {
 public:
  RotatedArrays(PyObject* x_given, PyObject* seq_axis, Owned& owned, const Others& others)
      : x_(array_to_write(x_given, "x", owned)), seq_axis_(seq_axis_argument(seq_axis)), is_in_place_(true) {
    others_.reserve(static_cast<std::size_t>(others.count));
    for (Py_ssize_t i = 0; i < others.count; ++i) {
      others_.push_back(array_to_write(others.items[i], rotated_name(1 + others_.size()), owned));
    }
    if (others.count == 0) {
      returned_ = Object::shared(x_given);
      return;
    }
    returned_ = not_null(PyTuple_New(1 + others.count));
    PyTuple_SET_ITEM(returned_.get(), 0, Object::shared(x_given).release());
    for (Py_ssize_t i = 0; i < others.count; ++i) {
      PyTuple_SET_ITEM(returned_.get(), 1 + i, Object::shared(others.items[i]).release());
    }
  }
  RotatedArrays(PyObject* x_given, PyObject* seq_axis, Owned& owned, PyObject* out)
      : x_(array_to_read(x_given, "x", owned)),
        out_(given_output(out, owned)),
        seq_axis_(seq_axis_argument(seq_axis)),
        is_in_place_(false) {
    if (is_given(out)) returned_ = Object::shared(out);
  }
  RotatedArrays(const RotatedArrays&) = delete;

  // Phase 2: a request, and what the caller gets after use(request, front_end).
  template <class Use>
  PyObject* rotated(const PlacementArguments& placement, bool is_inverse, int max_threads, const Use& use) {
    // Views of one array, which is the common case, need no allocation.
    const ArrayView x = view_of(x_, "x"), out = view_if_given(out_, "out");
    std::vector<ArrayView> views;
    if (!others_.empty()) {
      views.reserve(1 + others_.size());
      views.push_back(x);
      for (PyObject* const other : others_) views.push_back(view_of(other, rotated_name(views.size())));
    }
    const Slice<ArrayView> arrays{views.empty() ? &x : views.data(), 1 + others_.size()};
    PythonFrontEnd front_end;
    use(
        RotateRequest{
            arrays, {&out, out.is_given() ? 1U : 0U}, is_in_place_, placement, seq_axis_, is_inverse, max_threads},
        front_end);
    return returned_ ? returned_.release() : front_end.returned(nullptr);
  }

 private:
  PyObject *x_, *out_ = nullptr;
  std::vector<PyObject*> others_;
  std::optional<std::int64_t> seq_axis_;
  bool is_in_place_;
  // What was given: x, a tuple or `out`. It is made before the first write, since no memory may be missing after it.
  Object returned_;
};

#define FASTPE_ROTATE FASTPE_PLACEMENT ", seq_axis=None, inverse=False, num_threads=None"
struct RotateArguments {
  PyObject* x;
  PlacementObjects placement;
  PyObject *seq_axis, *inverse, *num_threads;
};
struct RotateInPlaceArguments {
  RotateArguments common;
  Others others;
};
Signature rotate_in_place_signature("rotate_", "x, *others, " FASTPE_ROTATE);
struct RotateApartArguments {
  RotateArguments common;
  PyObject* out;
};
Signature rotate_signature("rotate", "x, *, " FASTPE_ROTATE ", out=None");

PyObject* rotate(RotaryEmbedding& self, const RotateArguments& a, Owned& owned, RotatedArrays arrays) {
  const bool is_inverse = bool_argument(a.inverse, "inverse");
  const PlacementArrays placement(a.placement, owned);
  const int max_threads = threads_argument(a.num_threads);
  return arrays.rotated(
      placement.views(), is_inverse, max_threads,
      [&](const RotateRequest& request, FrontEnd& front_end) { fastpe::rotate(self, request, front_end); });
}

PyObject* rotate_in_place(RotaryEmbedding& self, const RotateInPlaceArguments& a) {
  Owned owned;
  return rotate(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* rotate_apart(RotaryEmbedding& self, const RotateApartArguments& a) {
  Owned owned;
  return rotate(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

#define FASTPE_SHIFT "by, valid=None, lengths=None, seq_axis=None, num_threads=None"
struct ShiftArguments {
  PyObject *x, *by, *valid, *lengths, *seq_axis, *num_threads;
};
struct ShiftInPlaceArguments {
  ShiftArguments common;
  Others others;
};
Signature shift_in_place_signature("shift_", "x, *others, " FASTPE_SHIFT);
struct ShiftApartArguments {
  ShiftArguments common;
  PyObject* out;
};
Signature shift_signature("shift", "x, *, " FASTPE_SHIFT ", out=None");

PyObject* shift(RotaryEmbedding& self, const ShiftArguments& a, Owned& owned, RotatedArrays arrays) {
  const std::optional<std::int64_t> one = position_argument(a.by, "by");
  PyObject* const by = one ? nullptr : numbers_from(a.by, "by", Numbers::integers_or_floats, owned);
  const PlacementArrays validity({nullptr, nullptr, a.valid, a.lengths}, owned);
  const int max_threads = threads_argument(a.num_threads);

  std::int64_t same_for_all = one.value_or(0);
  PlacementArguments placement = validity.views();
  placement.positions = one ? view_of_number(same_for_all, "by") : view_of(by, "by");
  return arrays.rotated(placement, false, max_threads, [&](const RotateRequest& request, FrontEnd& front_end) {
    fastpe::shift(self, request, front_end);
  });
}

PyObject* shift_in_place(RotaryEmbedding& self, const ShiftInPlaceArguments& a) {
  Owned owned;
  return shift(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* shift_apart(RotaryEmbedding& self, const ShiftApartArguments& a) {
  Owned owned;
  return shift(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

// ---- Rotation by tables that are given

#define FASTPE_BY_TABLES \
  "cos, sin, interleaved, inverse, head_dim, " FASTPE_PLACEMENT ", seq_axis=None, num_threads=None"
struct ByTablesArguments {
  PyObject *x, *cos, *sin, *interleaved, *inverse, *head_dim;
  PlacementObjects placement;
  PyObject *seq_axis, *num_threads;
};
struct ByTablesInPlaceArguments {
  ByTablesArguments common;
  Others others;
};
Signature by_tables_in_place_signature("rotate_by_tables_", "x, *others, " FASTPE_BY_TABLES);
struct ByTablesApartArguments {
  ByTablesArguments common;
  PyObject* out;
};
Signature by_tables_signature("rotate_by_tables", "x, *, " FASTPE_BY_TABLES ", out=None");

PyObject* rotate_by_tables(const ByTablesArguments& a, Owned& owned, RotatedArrays arrays) {
  PyObject* const cos = array_to_read(a.cos, "cos", owned);
  PyObject* const sin = array_to_read(a.sin, "sin", owned);
  const bool interleaved = bool_argument(a.interleaved, "interleaved");
  const bool is_inverse = bool_argument(a.inverse, "inverse");
  const std::int64_t head_dim = integer_argument(a.head_dim).value_or(0);
  const PlacementArrays placement(a.placement, owned);
  const int max_threads = threads_argument(a.num_threads);

  const GivenTables tables{view_of(cos, "cos"), view_of(sin, "sin"), interleaved, head_dim};
  return arrays.rotated(
      placement.views(), is_inverse, max_threads,
      [&](const RotateRequest& request, FrontEnd& front_end) { fastpe::rotate_by_tables(tables, request, front_end); });
}

PyObject* rotate_by_tables_in_place(PyObject&, const ByTablesInPlaceArguments& a) {
  Owned owned;
  return rotate_by_tables(a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* rotate_by_tables_apart(PyObject&, const ByTablesApartArguments& a) {
  Owned owned;
  return rotate_by_tables(a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

// ---- The class

Signature warm_up_signature("warm_up", FASTPE_WARM_UP);

std::unique_ptr<RotaryEmbedding> make_rotary(PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"rotary_dim",     "interleaved", "base",    "frequencies", "attention_factor",
                                      "frequency_axes", "conjugate",   "max_len", "head_dim",    nullptr};
  long long rotary_dim, head_dim;
  int interleaved, conjugate;
  double base, attention_factor;
  PyObject *given, *axes, *max_len;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "LpdOdOpOL", const_cast<char**>(names), &rotary_dim,
                                  &interleaved, &base, &given, &attention_factor, &axes, &conjugate, &max_len,
                                  &head_dim) == 0) {
    throw PythonError{};
  }
  WantedFrequencies frequencies;
  frequencies.frequency_count = rotary_dim / 2;
  frequencies.base = base;
  frequencies.exponent_denominator = static_cast<double>(rotary_dim / 2);
  frequencies.given = doubles_from(given);
  frequencies.arguments = "base and scaling";
  return std::make_unique<RotaryEmbedding>(
      frequencies, attention_factor, FrequencyCoordinates(doubles_from(axes), rotary_dim / 2),
      RotaryEmbedding::Heads{head_dim, interleaved != 0, conjugate != 0}, integer_or_none(max_len));
}

}  // namespace

void add_rotary(PyObject* module) {
  static PyMethodDef methods[] = {method<tables, tables_signature>(),
                                  method<rotate_in_place, rotate_in_place_signature>(),
                                  method<rotate_apart, rotate_signature>(),
                                  method<shift_in_place, shift_in_place_signature>(),
                                  method<shift_apart, shift_signature>(),
                                  method<warm_up<RotaryEmbedding>, warm_up_signature>(),
                                  {"_frequencies", frequencies<RotaryEmbedding>, METH_NOARGS, nullptr},
                                  {}};
  static PyMethodDef functions[] = {method<rotate_by_tables_in_place, by_tables_in_place_signature>(),
                                    method<rotate_by_tables_apart, by_tables_signature>(),
                                    {}};
  const Object type = holder_type<RotaryEmbedding, make_rotary>("fastpe._core.Rotary", methods);
  const Object names = not_null(PyTuple_New(std::size(table_forms)));
  for (std::size_t i = 0; i < std::size(table_forms); ++i) {
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i),
                     not_null(PyUnicode_FromString(table_forms[i].name)).release());
  }
  if (PyModule_AddObjectRef(module, "Rotary", type.get()) < 0 ||
      PyModule_AddObjectRef(module, "table_forms", names.get()) < 0 ||
      PyModule_AddIntConstant(module, "max_coordinates", max_coordinates) < 0 ||
      PyModule_AddFunctions(module, functions) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
