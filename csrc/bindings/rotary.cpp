// SPDX-License-Identifier: BSD-3-Clause
// The methods of the class RotaryEmbedding, and rotation by tables that are given.
#include "fastpe/requests/rotary.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "call.h"

namespace fastpe::bindings {
namespace {

const TableForm& form_named(PyObject* name) {
  const bool is_text = PyUnicode_Check(name) != 0;
  std::string names;
  for (const TableForm& form : table_forms) {
    if (is_text && PyUnicode_CompareWithASCIIString(name, form.name) == 0) return form;
    names += joined({names.empty() ? "'" : ", '", form.name, "'"});
  }
  refuse(is_text ? ErrorKind::value : ErrorKind::type, "form", {"is ", repr_of(name)}, {names}, {});
}

PyObject* tables(RotaryEmbedding& self, const Arguments& a) {
  PythonCall call;
  TablesRequest request(is_given(a.form) ? form_named(a.form) : table_forms[0]);
  if (request.form.array_count == 1) {
    call.to_write_if_given(request.out[0], a.out);
  } else if (is_given(a.out)) {
    const bool is_sequence = PyTuple_Check(a.out) || PyList_Check(a.out);
    if (!is_sequence || PySequence_Fast_GET_SIZE(a.out) != 2) {
      const std::string count = is_sequence ? " of " + std::to_string(PySequence_Fast_GET_SIZE(a.out)) : "";
      refuse_type("out", {"is ", a_type(a.out), count},
                  {"a tuple of two arrays, (cos, sin), for form='", request.form.name, "'"});
    }
    // Another thread may replace a list's items: they are owned before they are used.
    call.to_write(request.out[0], not_null(PySequence_GetItem(a.out, 0)).ptr(), "out[0]");
    call.to_write(request.out[1], not_null(PySequence_GetItem(a.out, 1)).ptr(), "out[1]");
  }
  request.dtype = dtype_argument(a.dtype);
  call.fill_written(request, a);

  call.take_views();
  write_tables(self, request, call);
  return call.returned(a.out);
}

// A call whose request has its arrays: x and the others, or x and out.
class RotateCall : public PythonCall {
 public:
  RotateCall(const Arguments& a, bool is_in_place)
      : several_(a.other_count == 0 ? 0 : 1 + a.other_count), given_(is_in_place ? a.x : a.out) {
    ArrayView* const views = several_.empty() ? &one_ : several_.data();
    request.is_in_place = is_in_place;
    request.arrays = {views, std::max<std::size_t>(1, several_.size())};
    request.outs = {&out_, is_given(a.out) ? 1U : 0U};
    is_in_place ? to_write(views[0], a.x, "x") : to_read(views[0], a.x, "x");
    for (std::size_t i = 1; i < several_.size(); ++i) to_write(views[i], a.others[i - 1], rotated_name(i));
    to_write_if_given(out_, a.out);
    request.seq_axis = seq_axis_argument(a.seq_axis);
    if (a.other_count == 0) return;
    tuple_ = not_null(PyTuple_New(1 + a.other_count));
    PyTuple_SET_ITEM(tuple_.ptr(), 0, Py_NewRef(a.x));
    for (Py_ssize_t i = 0; i < a.other_count; ++i) PyTuple_SET_ITEM(tuple_.ptr(), 1 + i, Py_NewRef(a.others[i]));
    given_ = tuple_.ptr();
  }

  PyObject* returned() { return PythonCall::returned(given_); }

  RotateRequest request{};

 private:
  ArrayView one_, out_;  // without an allocation
  std::vector<ArrayView> several_;
  PyObject* given_;
  Object tuple_;  // of what was given. It is made before the first write, since no memory may be missing after it.
};

template <bool is_in_place, bool is_shift>
PyObject* rotate(RotaryEmbedding& self, const Arguments& a) {
  RotateCall call(a, is_in_place);
  ArrayView& positions = call.request.positions;  // of keys that are moved, how far
  auto one_distance = is_shift ? position_argument(a.by, "by") : std::nullopt;
  if (one_distance) {
    positions = contiguous_view(reinterpret_cast<char*>(&*one_distance), "by", DType::int64, nullptr, 0, nullptr);
  } else if (is_shift) {
    call.numbers(positions, a.by, "by", Numbers::integers_or_floats);
  }
  call.request.is_shift = is_shift;
  call.request.is_inverse = bool_argument(a.inverse, "inverse");
  call.fill(call.request, a);

  call.take_views();
  fastpe::rotate(self, call.request, call);
  return call.returned();
}

template <bool is_in_place>
PyObject* rotate_by_tables(PyObject&, const Arguments& a) {
  RotateCall call(a, is_in_place);
  GivenTables tables;
  call.to_read(tables.cos, a.cos, "cos");
  call.to_read(tables.sin, a.sin, "sin");
  tables.interleaved = bool_argument(a.interleaved, "interleaved");
  call.request.is_inverse = bool_argument(a.inverse, "inverse");
  tables.head_dim = integer_argument(a.head_dim).value_or(0);
  call.fill(call.request, a);

  call.take_views();
  fastpe::rotate_by_tables(tables, call.request, call);
  return call.returned();
}

}  // namespace

#define FASTPE_ROTATE FASTPE_PLACEMENT ", seq_axis=None, inverse=False, num_threads=None"
#define FASTPE_SHIFT "by, valid=None, lengths=None, seq_axis=None, num_threads=None"
#define FASTPE_BY_TABLES "cos, sin, interleaved, inverse, head_dim" FASTPE_PLACEMENT ", seq_axis=None, num_threads=None"

void add_rotary_methods(py::handle type) {
  add_common_methods<RotaryEmbedding>(type);
  add_method<tables>(type, "tables",
                     "positions, *, form='halves', dtype=None, offset=None, out=None, num_threads=None");
  add_method<rotate<true, false>>(type, "rotate_", "x, *others" FASTPE_ROTATE);
  add_method<rotate<false, false>>(type, "rotate", "x, *" FASTPE_ROTATE ", out=None");
  add_method<rotate<true, true>>(type, "shift_", "x, *others, " FASTPE_SHIFT);
  add_method<rotate<false, true>>(type, "shift", "x, *, " FASTPE_SHIFT ", out=None");
}

void add_functions(py::handle module) {
  add_function<rotate_by_tables<true>>(module, "rotate_by_tables_", "x, *others, " FASTPE_BY_TABLES);
  add_function<rotate_by_tables<false>>(module, "rotate_by_tables", "x, *, " FASTPE_BY_TABLES ", out=None");
}

}  // namespace fastpe::bindings
