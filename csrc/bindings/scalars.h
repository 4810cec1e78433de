// SPDX-License-Identifier: BSD-3-Clause
// Single numbers among a method's arguments. All of these may run Python code.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>

namespace fastpe::bindings {

inline bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

// An int that is not a bool, saturated where it does not fit; nothing for anything else.
std::optional<std::int64_t> integer_argument(PyObject* object);

// The same where it is to be a position, or the difference of two.
std::optional<std::int64_t> position_argument(PyObject* object, const char* name);

// How many positions there are; nothing where the object is to be an array of them.
std::optional<std::int64_t> position_count(PyObject* object);

double number_from(PyObject* object, const char* name);

// Arguments that may be missing: null, or, where it says so, None.
inline double factor_argument(PyObject* object, const char* name) {
  return object != nullptr ? number_from(object, name) : 1.0;
}
bool bool_argument(PyObject* object, const char* name);  // Python's or NumPy's; missing: False
int threads_argument(PyObject* object);                  // None: the default
std::optional<std::int64_t> seq_axis_argument(PyObject* object);

}  // namespace fastpe::bindings
