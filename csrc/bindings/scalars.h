// SPDX-License-Identifier: BSD-3-Clause
// Single numbers among a method's arguments.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>

#include "fastpe/parallel.h"

// All of these may run Python code.

namespace fastpe::bindings {

namespace py = pybind11;

// To be called once, when the module is loaded.
void load_scalar_types();

inline bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }
bool is_numpy_scalar(PyObject* object);

// For messages, which are UTF-8 and end at the first zero byte: both a lone surrogate and a zero are escaped.
std::string utf8_of(const py::object& text);
std::string repr_of(PyObject* object);

double number_from(PyObject* object, const char* name);
inline double number_argument(PyObject* object, const char* name, double otherwise) {
  return object != nullptr ? number_from(object, name) : otherwise;
}

// An int that is no bool, saturated where it does not fit; nothing where it is no int.
std::optional<std::int64_t> integer_argument(PyObject* object);

// A bool, Python's or NumPy's.
bool bool_from(PyObject* object, const char* name);
inline bool bool_argument(PyObject* object, const char* name, bool otherwise) {
  return object != nullptr ? bool_from(object, name) : otherwise;
}

int threads_from(PyObject* object);
inline int threads_argument(PyObject* object) {
  return is_given(object) ? threads_from(object) : default_thread_count();
}

}  // namespace fastpe::bindings
