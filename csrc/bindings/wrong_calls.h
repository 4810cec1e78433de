// SPDX-License-Identifier: BSD-3-Clause
// What is said of calls whose arguments have names that the function does not know, are too many, or are missing. The
// functions that are written in Python say it with the same words.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string>

namespace fastpe::bindings {

namespace py = pybind11;

// "; did you mean '..'?", of the name in `known` that is close to a str, or nothing. Below the cutoff it is another
// word: for 0.7, 'layout' is no 'out'.
std::string did_you_mean(PyObject* name, const py::list& known, double cutoff = 0.6);

// A method and its arguments, of which the first ones are required and may be given by place.
struct MethodNames {
  const char* method;
  PyObject* const* arguments;
  std::size_t count, required;
};
[[noreturn]] void refuse_unexpected(const MethodNames& names, PyObject* keyword);
[[noreturn]] void refuse_too_many(const MethodNames& names, Py_ssize_t given, const char* besides = "");
[[noreturn]] void refuse_second(const MethodNames& names, const char* argument);
[[noreturn]] void refuse_missing(const MethodNames& names, const char* argument);

// What to do about complex numbers where values are expected, of so many bytes each.
std::string parts_of_complex(const std::string& name, py::ssize_t bytes);

}  // namespace fastpe::bindings
