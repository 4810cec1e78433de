// SPDX-License-Identifier: BSD-3-Clause
// What is said of calls whose arguments have names that the function does not know, are too many, or are missing. The
// functions that are written in Python say it with the same words.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace fastpe::bindings {

namespace py = pybind11;

// "; did you mean '..'?", of the name in `known` that is close to a str, or nothing. Below the cutoff it is another
// word: for 0.7, 'layout' is no 'out'.
std::string did_you_mean(PyObject* name, const py::list& known, double cutoff = 0.6);

std::string unexpected_argument(const std::string& function, PyObject* keyword, const py::list& known);
// Of `known`, the first `allowed` may be given by place.
std::string too_many_arguments(const std::string& function, const py::list& known, Py_ssize_t allowed,
                               Py_ssize_t given);
std::string missing_argument(const std::string& function, const std::string& argument);

}  // namespace fastpe::bindings
