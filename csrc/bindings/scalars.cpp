// SPDX-License-Identifier: BSD-3-Clause
#include "scalars.h"

#include <algorithm>

#include "arrays.h"
#include "fastpe/parallel.h"

namespace fastpe::bindings {
namespace {

// Made when the module is loaded. Made by the first call, they would be waited for with the interpreter's lock in hand,
// which the thread that makes them may have to take again.
struct NumpyTypes {
  PyObject* scalar = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  PyObject* boolean = py::object(py::module_::import("numpy").attr("bool_")).release().ptr();
};

const NumpyTypes& numpy_types() {
  static const NumpyTypes made;
  return made;
}

}  // namespace

void load_scalar_types() { numpy_types(); }

bool is_numpy_scalar(PyObject* object) { return PyObject_IsInstance(object, numpy_types().scalar) == 1; }

std::optional<std::int64_t> integer_argument(PyObject* object) {
  if (is_ndarray(object) || PyBool_Check(object)) return std::nullopt;
  if (!PyLong_Check(object)) {
    // Until NumPy 2.3 its bool had an __index__.
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == numpy_types().boolean) return std::nullopt;
    // Tensors of one element have an __index__ too, but are arrays.
    if (!PyIndex_Check(object) || (py::hasattr(object, "shape") && !is_numpy_scalar(object))) return std::nullopt;
  }
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN;
  return value;
}

int threads_argument(PyObject* object) {
  if (!is_given(object)) return default_thread_count();
  const std::optional<std::int64_t> value = integer_argument(object);
  if (!value || *value < 1) {
    const std::string message =
        "num_threads is " + repr_of(object) + ", expected a positive int, or None for the default";
    if (!value) throw py::type_error(message);
    throw py::value_error(message);
  }
  return static_cast<int>(std::min<std::int64_t>(*value, 1 << 16));
}

std::string repr_of(PyObject* object) { return py::repr(py::handle(object)).cast<std::string>(); }

double number_argument(PyObject* object, const char* name, double otherwise) {
  if (!is_given(object)) return otherwise;
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::type_error(std::string(name) + " is " + repr_of(object) + ", expected a number");
  }
  return value;
}

}  // namespace fastpe::bindings
