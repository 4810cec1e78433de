// SPDX-License-Identifier: BSD-3-Clause
// The methods of the class Rotary, and rotation by tables that are given.
#include "fastpe/requests/rotary.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "call.h"
#include "classes.h"
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

PyObject* tables(RotaryEmbedding& self, const TablesArguments& a) {
  PythonCall call;
  TablesRequest request{is_given(a.form) ? form_named(a.form) : table_forms[0], {}, {}, {}, 0};
  if (request.form.array_count == 1) {
    call.to_write_if_given(request.out[0], a.out);
  } else if (is_given(a.out)) {
    const bool is_sequence = PyTuple_Check(a.out) || PyList_Check(a.out);
    if (!is_sequence || PySequence_Fast_GET_SIZE(a.out) != 2) {
      refuse_type("out", {"is a ", type_name(a.out)},
                  {"a tuple of two arrays, (cos, sin), for form='", request.form.name, "'"});
    }
    // Another thread may replace a list's items: they are owned before they are used.
    call.to_write(request.out[0], not_null(PySequence_GetItem(a.out, 0)).ptr(), "out[0]");
    call.to_write(request.out[1], not_null(PySequence_GetItem(a.out, 1)).ptr(), "out[1]");
  }
  request.dtype = dtype_argument(a.dtype);
  call.place_written(request.placement, a.positions, {a.offset});
  request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  write_tables(self, request, call);
  return call.returned(a.out);
}

// ---- Rotations, in place or apart

template <class Common>
struct InPlace {
  Common common;
  Others others;
};
template <class Common>
struct Apart {
  Common common;
  PyObject* out;
};

// A call whose request has its arrays.
class RotateCall : public PythonCall {
 public:
  template <class Common>
  explicit RotateCall(const InPlace<Common>& a) : several_(a.others.count == 0 ? 0 : 1 + a.others.count) {
    set_arrays(true);
    PyObject* const x = a.common.x;
    to_write(views()[0], x, "x");
    for (std::size_t i = 1; i < several_.size(); ++i) to_write(views()[i], a.others.items[i - 1], rotated_name(i));
    returned_ = a.others.count == 0 ? shared(x) : not_null(PyTuple_New(1 + a.others.count));
    if (a.others.count == 0) return;
    PyTuple_SET_ITEM(returned_.ptr(), 0, Py_NewRef(x));
    for (Py_ssize_t i = 0; i < a.others.count; ++i) {
      PyTuple_SET_ITEM(returned_.ptr(), 1 + i, Py_NewRef(a.others.items[i]));
    }
  }
  template <class Common>
  explicit RotateCall(const Apart<Common>& a) {
    set_arrays(false);
    to_read(one_, a.common.x, "x");
    to_write_if_given(out_, a.out);
    if (!is_given(a.out)) return;
    request.outs = {&out_, 1};
    returned_ = shared(a.out);
  }

  PyObject* returned() { return returned_ ? returned_.release().ptr() : PythonCall::returned(nullptr); }

  RotateRequest request{};

 private:
  ArrayView* views() { return several_.empty() ? &one_ : several_.data(); }
  void set_arrays(bool is_in_place) {
    request.is_in_place = is_in_place;
    request.arrays = {views(), std::max<std::size_t>(1, several_.size())};
  }

  ArrayView one_, out_;  // without an allocation
  std::vector<ArrayView> several_;
  // What was given. A tuple is made before the first write, since no memory may be missing after it.
  Object returned_;
};

#define FASTPE_ROTATE FASTPE_PLACEMENT ", seq_axis=None, inverse=False, num_threads=None"
struct RotateArguments {
  PyObject* x;
  PlacementObjects placement;
  PyObject *seq_axis, *inverse, *num_threads;
};

template <template <class> class Given>
PyObject* rotate(RotaryEmbedding& self, const Given<RotateArguments>& given) {
  const RotateArguments& a = given.common;
  RotateCall call(given);
  call.request.seq_axis = seq_axis_argument(a.seq_axis);
  call.request.is_inverse = bool_argument(a.inverse, "inverse");
  call.place(call.request.placement, a.placement);
  call.request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::rotate(self, call.request, call);
  return call.returned();
}

#define FASTPE_SHIFT "by, valid=None, lengths=None, seq_axis=None, num_threads=None"
struct ShiftArguments {
  PyObject *x, *by, *valid, *lengths, *seq_axis, *num_threads;
};

template <template <class> class Given>
PyObject* shift(RotaryEmbedding& self, const Given<ShiftArguments>& given) {
  const ShiftArguments& a = given.common;
  RotateCall call(given);
  PlacementArguments& placement = call.request.placement;
  call.request.seq_axis = seq_axis_argument(a.seq_axis);
  std::optional<std::int64_t> same_for_all = position_argument(a.by, "by");
  if (!same_for_all) call.numbers(placement.positions, a.by, "by", Numbers::integers_or_floats);
  if (same_for_all) placement.positions = view_of_number(*same_for_all, "by");
  call.place(placement, {nullptr, nullptr, a.valid, a.lengths});
  call.request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::shift(self, call.request, call);
  return call.returned();
}

// ---- Rotation by tables that are given

#define FASTPE_BY_TABLES \
  "cos, sin, interleaved, inverse, head_dim, " FASTPE_PLACEMENT ", seq_axis=None, num_threads=None"
struct ByTablesArguments {
  PyObject *x, *cos, *sin, *interleaved, *inverse, *head_dim;
  PlacementObjects placement;
  PyObject *seq_axis, *num_threads;
};

template <template <class> class Given>
PyObject* rotate_by_tables(PyObject&, const Given<ByTablesArguments>& given) {
  const ByTablesArguments& a = given.common;
  RotateCall call(given);
  GivenTables tables;
  call.request.seq_axis = seq_axis_argument(a.seq_axis);
  call.to_read(tables.cos, a.cos, "cos");
  call.to_read(tables.sin, a.sin, "sin");
  tables.interleaved = bool_argument(a.interleaved, "interleaved");
  call.request.is_inverse = bool_argument(a.inverse, "inverse");
  tables.head_dim = integer_argument(a.head_dim).value_or(0);
  call.place(call.request.placement, a.placement);
  call.request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::rotate_by_tables(tables, call.request, call);
  return call.returned();
}

}  // namespace

void add_rotary_methods(py::handle type) {
  add_common_methods<RotaryEmbedding>(type);
  add_method<tables>(type, "tables",
                     "positions, *, form='halves', dtype=None, offset=None, out=None, num_threads=None");
  add_method<rotate<InPlace>>(type, "rotate_", "x, *others, " FASTPE_ROTATE);
  add_method<rotate<Apart>>(type, "rotate", "x, *, " FASTPE_ROTATE ", out=None");
  add_method<shift<InPlace>>(type, "shift_", "x, *others, " FASTPE_SHIFT);
  add_method<shift<Apart>>(type, "shift", "x, *, " FASTPE_SHIFT ", out=None");
}

void add_functions(py::handle module) {
  add_function<rotate_by_tables<InPlace>>(module, "rotate_by_tables_", "x, *others, " FASTPE_BY_TABLES);
  add_function<rotate_by_tables<Apart>>(module, "rotate_by_tables", "x, *, " FASTPE_BY_TABLES ", out=None");
}

}  // namespace fastpe::bindings
