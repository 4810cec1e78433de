// SPDX-License-Identifier: BSD-3-Clause
// Single numbers among a method's arguments. All of these may run Python code.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "fastpe/checks/rows.h"
#include "fastpe/parallel.h"

namespace fastpe::bindings {

inline bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

// An int that is not a bool, saturated where it does not fit; nothing for anything else.
std::optional<std::int64_t> integer_argument(PyObject* object);

// The same where it is to be a position, or the difference of two.
std::optional<std::int64_t> position_argument(PyObject* object, const char* name);

// How many positions there are; nothing where the object is to be an array of them.
std::optional<std::int64_t> position_count(PyObject* object);

double number_from(PyObject* object, const char* name);
inline double number_argument(PyObject* object, const char* name, double otherwise) {
  return object != nullptr ? number_from(object, name) : otherwise;
}

// A bool, Python's or NumPy's.
bool bool_from(PyObject* object, const char* name);
inline bool bool_argument(PyObject* object, const char* name, bool otherwise) {
  return object != nullptr ? bool_from(object, name) : otherwise;
}

int threads_from(PyObject* object);
inline int threads_argument(PyObject* object) {
  return is_given(object) ? threads_from(object) : default_thread_count();
}

// Nothing where they were not given.
std::int64_t seq_axis_from(PyObject* object);
inline std::optional<std::int64_t> seq_axis_argument(PyObject* object) {
  if (object == nullptr) return std::nullopt;
  return seq_axis_from(object);
}
Channels channels_from(PyObject* channels, std::int64_t d_model);
inline std::optional<Channels> channels_argument(PyObject* channels, std::int64_t d_model) {
  if (!is_given(channels)) return std::nullopt;
  return channels_from(channels, d_model);
}

// What the package's own Python code passes: a sequence of floats, and an int or None.
std::vector<double> doubles_from(PyObject* sequence);
std::optional<std::int64_t> max_len_from(PyObject* object);

}  // namespace fastpe::bindings
