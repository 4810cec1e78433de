// SPDX-License-Identifier: BSD-3-Clause
#include "scalars.h"

#include <algorithm>
#include <cmath>

#include "arrays.h"
#include "interpreter.h"

namespace fastpe::bindings {
namespace {

// Made when the module is loaded. Made by the first call, they would be waited for with the interpreter's lock in hand,
// which the thread that makes them may have to take again.
struct NumpyTypes {
  PyTypeObject* scalar = type_named("generic");
  PyTypeObject* boolean = type_named("bool_");

  static PyTypeObject* type_named(const char* name) {
    return reinterpret_cast<PyTypeObject*>(py::object(py::module_::import("numpy").attr(name)).release().ptr());
  }
};

const NumpyTypes& numpy_types() {
  static const NumpyTypes made;
  return made;
}

std::int64_t saturated(PyObject* integer) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN;
  return value;
}

}  // namespace

void load_scalar_types() { numpy_types(); }

// By its type alone: its __class__ may be Python code.
bool is_numpy_scalar(PyObject* object) { return PyObject_TypeCheck(object, numpy_types().scalar) != 0; }

std::optional<std::int64_t> integer_argument(PyObject* object) {
  if (PyLong_CheckExact(object)) return saturated(object);
  if (is_ndarray(object) || PyBool_Check(object)) return std::nullopt;
  if (PyLong_Check(object)) return saturated(object);
  // Until NumPy 2.3 its bool had an __index__.
  if (Py_TYPE(object) == numpy_types().boolean || !PyIndex_Check(object)) return std::nullopt;
  // Tensors of one element have an __index__ too, but are arrays.
  if (!is_numpy_scalar(object) && has_attribute(object, "shape")) return std::nullopt;
  return saturated(run_python([&] { return PyNumber_Index(object); }).ptr());
}

bool bool_from(PyObject* object, const char* name) {
  if (object == Py_True || object == Py_False) return object == Py_True;
  if (Py_TYPE(object) != numpy_types().boolean) {
    throw py::type_error(std::string(name) + " is " + repr_of(object) + ", expected True or False");
  }
  return parked_at_exit([&] { return PyObject_IsTrue(object); }) == 1;
}

int threads_from(PyObject* object) {
  const std::optional<std::int64_t> value = integer_argument(object);
  if (!value || *value < 1) {
    const std::string message =
        "num_threads is " + repr_of(object) + ", expected a positive int, or None for the default";
    if (!value) throw py::type_error(message);
    throw py::value_error(message);
  }
  return static_cast<int>(std::min<std::int64_t>(*value, 1 << 16));
}

std::string utf8_of(const py::object& text) {
  const py::object bytes =
      run_python([&] { return PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"); });
  std::string result(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
  for (std::size_t at; (at = result.find('\0')) != std::string::npos;) result.replace(at, 1, "\\x00");
  return result;
}

std::string repr_of(PyObject* object) {
  try {
    const std::string text = utf8_of(run_python([&] { return PyObject_Repr(object); }));
    return text.find('\n') == std::string::npos ? text : "a " + type_name(object);
  } catch (py::error_already_set& error) {
    // Python writes no integers of more than 4300 digits.
    const bool is_sequence = PyTuple_CheckExact(object) || PyList_CheckExact(object);
    if (!error.matches(PyExc_ValueError) || !(PyLong_CheckExact(object) || is_sequence)) throw;
    if (is_sequence) return "a " + type_name(object) + " of " + std::to_string(PySequence_Fast_GET_SIZE(object));
  }
  const py::object bits = run_python([&] { return PyObject_CallMethod(object, "bit_length", nullptr); });
  return "an int of " + repr_of(bits.ptr()) + " bits";
}

double number_from(PyObject* object, const char* name) {
  const bool is_bool = PyBool_Check(object) || Py_TYPE(object) == numpy_types().boolean;
  const double value = is_bool ? -1.0 : parked_at_exit([&] { return PyFloat_AsDouble(object); });
  if (is_bool || (value == -1.0 && PyErr_Occurred() != nullptr)) {
    // Only what says that this is no number: an interruption, or no memory left, is the caller's own.
    const bool is_no_number = is_bool || PyErr_ExceptionMatches(PyExc_TypeError) ||
                              PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!is_no_number) throw py::error_already_set();
    PyErr_Clear();
    throw py::type_error(std::string(name) + " is " + repr_of(object) + ", expected a number");
  }
  if (std::isnan(value)) throw py::value_error(std::string(name) + " is nan, expected a number");
  return value;
}

}  // namespace fastpe::bindings
