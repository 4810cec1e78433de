// SPDX-License-Identifier: BSD-3-Clause
// Methods on CPython's vectorcall protocol: a call is parsed in tens of nanoseconds, where pybind11's own dispatch
// takes hundreds for a dozen keywords.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>

#include "interpreter.h"

namespace fastpe::bindings {

namespace py = pybind11;

// The names of a method's arguments, positional ones first; all of those are required.
template <std::size_t count>
class Signature {
 public:
  Signature(const char* function, std::size_t positional, std::array<const char*, count> names)
      : function_(function), positional_(positional), names_(names) {
    for (std::size_t i = 0; i < count; ++i) interned_[i] = PyUnicode_InternFromString(names[i]);
  }

  // Borrowed references in the order of the names; null where not given.
  std::array<PyObject*, count> parse(PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) const {
    std::array<PyObject*, count> values{};
    if (static_cast<std::size_t>(given) > positional_) {
      throw py::type_error(std::string(function_) + "() takes " + std::to_string(positional_) +
                           " positional argument(s), found " + std::to_string(given) + "; pass the others by keyword");
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(given); ++i) values[i] = arguments[i];
    const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t k = 0; k < keyword_count; ++k) {
      const std::size_t at = index_of(PyTuple_GET_ITEM(keywords, k));
      if (values[at] != nullptr) {
        throw py::type_error(std::string(function_) + "() got two values for argument '" + names_[at] + "'");
      }
      values[at] = arguments[given + k];
    }
    for (std::size_t i = 0; i < positional_; ++i) {
      if (values[i] == nullptr) {
        throw py::type_error(std::string(function_) + "() is missing its argument '" + names_[i] + "'");
      }
    }
    return values;
  }

 private:
  std::size_t index_of(PyObject* keyword) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (interned_[i] == keyword) return i;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (PyUnicode_Compare(interned_[i], keyword) == 0) return i;
    }
    const auto name = py::reinterpret_borrow<py::str>(keyword);
    py::list known;
    for (const char* each : names_) known.append(each);
    const py::list close = py::module_::import("difflib").attr("get_close_matches")(name, known, 1);
    throw py::type_error(std::string(function_) + "() got an unexpected keyword argument '" + name.cast<std::string>() +
                         "'" +
                         (close.empty() ? std::string() : "; did you mean '" + close[0].cast<std::string>() + "'?"));
  }

  const char* function_;
  std::size_t positional_;
  std::array<const char*, count> names_;
  std::array<PyObject*, count> interned_{};
};

// Runs `body`, turning C++ exceptions into Python's; returns null after one.
template <class Body>
PyObject* returned_or_raised(const Body& body) {
  try {
    return body();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <class Body>
PyObject* guarded(const Body& body) {
  return parked_at_exit([&] { return returned_or_raised(body); });
}

using VectorcallMethod = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t given,
                                       PyObject* keywords);

}  // namespace fastpe::bindings
