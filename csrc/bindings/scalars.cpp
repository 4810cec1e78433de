// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "arguments.h"
#include "errors.h"
#include "fastpe/parallel.h"
#include "fastpe/positions.h"

namespace fastpe::bindings {
namespace {

std::int64_t saturated(PyObject* integer) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN;
  return value;
}

std::int64_t integer_within(PyObject* object, const char* name, std::int64_t least, std::int64_t most,
                            const char* expected) {
  const std::optional<std::int64_t> value = integer_argument(object);
  if (value && least <= *value && *value <= most) return *value;
  refuse(value ? ErrorKind::value : ErrorKind::type, name, {"is ", repr_of(object)}, {expected}, {});
}

}  // namespace

std::optional<std::int64_t> integer_argument(PyObject* object) {
  if (PyLong_CheckExact(object)) return saturated(object);
  if (is_ndarray(object) || PyBool_Check(object)) return std::nullopt;
  if (PyLong_Check(object)) return saturated(object);
  // Until NumPy 2.3 its bool had an __index__.
  if (is_numpy_bool(object) || !PyIndex_Check(object)) return std::nullopt;
  // Tensors of one element have an __index__ too, but are arrays.
  if (!is_numpy_scalar(object) && has_attribute(object, "shape")) return std::nullopt;
  return saturated(not_null(PyNumber_Index(object)).ptr());
}

std::optional<std::int64_t> position_argument(PyObject* object, const char* name) {
  const std::optional<std::int64_t> value = integer_argument(object);
  if (value && (*value > max_position || *value < -max_position)) {
    refuse_value(name, {"is ", repr_of(object)}, {position_limit}, {why_limited});
  }
  return value;
}

std::optional<std::int64_t> position_count(PyObject* object) {
  // Only Python's own ints count: an element of an array of positions is a position.
  const bool is_int = PyLong_Check(object) != 0 && PyBool_Check(object) == 0;
  const std::optional<std::int64_t> count = integer_argument(object);
  if (!is_int || !count) {
    const bool is_number = count.has_value() || PyFloat_Check(object) != 0;
    if (!is_number && !PyBool_Check(object) && object != Py_None && !is_numpy_scalar(object)) return std::nullopt;
    const std::string text = repr_of(object);
    refuse_type("positions", {"is ", text}, {"an int, the number of positions, or an array of positions"},
                {count       ? joined({"pass [", str_of(object), "] for this position, and int(n) for n positions"})
                 : is_number ? joined({"pass [", str_of(object), "] for this position"})
                             : ""});
  }
  if (*count < 0) {
    refuse_value("positions", {"is ", repr_of(object)}, {"a number of positions, 0 or more"},
                 {"pass an array of one negative position"});
  }
  if (*count > 2 * max_position + 1) {
    refuse_value("positions", {"is ", repr_of(object)}, {"a number of positions of magnitude at most 2**53"});
  }
  return count;
}

double number_from(PyObject* object, const char* name) {
  const bool is_bool = PyBool_Check(object) || is_numpy_bool(object);
  const double value = is_bool ? -1.0 : PyFloat_AsDouble(object);
  if (is_bool || (value == -1.0 && PyErr_Occurred() != nullptr)) {
    // Only what says that this is no number: an interruption, or no memory left, is the caller's own.
    const bool is_no_number = is_bool || PyErr_ExceptionMatches(PyExc_TypeError) ||
                              PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!is_no_number) throw py::error_already_set();
    PyErr_Clear();
    refuse_type(name, {"is ", repr_of(object)}, {"a number"});
  }
  return value;
}

bool bool_argument(PyObject* object, const char* name) {
  if (object == nullptr) return false;
  if (object == Py_True || object == Py_False) return object == Py_True;
  if (!is_numpy_bool(object)) refuse_type(name, {"is ", repr_of(object)}, {"True or False"});
  return PyObject_IsTrue(object) == 1;
}

int threads_argument(PyObject* object) {
  if (!is_given(object)) return default_thread_count();
  const auto threads = integer_within(object, "num_threads", 1, INT64_MAX, "a positive int, or None for the default");
  return static_cast<int>(std::min<std::int64_t>(threads, 1 << 16));
}

std::optional<std::int64_t> seq_axis_argument(PyObject* object) {
  if (!is_given(object)) return std::nullopt;
  return integer_within(object, "seq_axis", -max_axes, max_axes, "an int, an axis of x other than the last");
}

}  // namespace fastpe::bindings
