// SPDX-License-Identifier: BSD-3-Clause
#include "errors.h"

#include <pybind11/pybind11.h>

#include <exception>
#include <stdexcept>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace fastpe::bindings {
namespace {

// By the C API, whose functions all leave a MemoryError where there is no memory.
void set_error_of(const Error& error) {
  PyObject* const type = error.kind == ErrorKind::type    ? PyExc_TypeError
                         : error.kind == ErrorKind::index ? PyExc_IndexError
                                                          : PyExc_ValueError;
  const auto exception = py::reinterpret_steal<py::object>(PyObject_CallFunction(type, "s", error.what()));
  if (!exception) return;
  const auto fields = py::reinterpret_steal<py::object>(
      Py_BuildValue("{s:s,s:s,s:s,s:s}", "argument", error.argument.c_str(), "found", error.found.c_str(), "expected",
                    error.expected.c_str(), "remedy", error.remedy.c_str()));
  if (!fields || PyObject_SetAttrString(exception.ptr(), "_fields", fields.ptr()) < 0) return;
  PyErr_SetObject(type, exception.ptr());
}

void translate(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    set_error_of(error);
  } catch (const std::runtime_error&) {  // pybind11's, where an object of Python was not made; the core throws none
    PyErr_NoMemory();
  }
}

// Messages are UTF-8 and end at the first zero byte: both a lone surrogate and a zero are escaped.
std::string utf8_of(PyObject* text) {
  const Object bytes = not_null(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  std::string result(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
  for (std::size_t at; (at = result.find('\0')) != std::string::npos;) result.replace(at, 1, "\\x00");
  return result;
}

}  // namespace

void register_errors() { py::register_local_exception_translator(translate); }

void set_error() {
  try {
    throw;
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {  // of a thread that is ended
    throw;
#endif
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
}

bool is_error_of_object() {
  return PyErr_ExceptionMatches(PyExc_Exception) != 0 && PyErr_ExceptionMatches(PyExc_MemoryError) == 0;
}

std::string taken_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Object its_type = py::reinterpret_steal<Object>(type), its_value = py::reinterpret_steal<Object>(value),
               its_traceback = py::reinterpret_steal<Object>(traceback);
  return value == nullptr ? "" : str_of(value);
}

std::string str_of(PyObject* object) { return utf8_of(not_null(PyObject_Str(object)).ptr()); }

std::string repr_of(PyObject* object) {
  if (PyObject* const text = PyObject_Repr(object)) {
    const std::string repr = utf8_of(not_null(text).ptr());
    return repr.find('\n') == std::string::npos ? repr : a_type(object);
  }
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw py::error_already_set();
  PyErr_Clear();  // Python writes no integers of more than 4300 digits
  return a_type(object);
}

std::string a_type(PyObject* object) {
  const std::string name = Py_TYPE(object)->tp_name;
  return (name.find_first_of("AEIOUaeiou") == 0 ? "an " : "a ") + name;
}

}  // namespace fastpe::bindings
