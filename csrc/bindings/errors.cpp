// SPDX-License-Identifier: BSD-3-Clause
#include "errors.h"

#include <exception>
#include <new>

namespace fastpe::bindings {
namespace {

void set_error_of(const Error& error) {
  PyObject* const type = error.kind == ErrorKind::type    ? PyExc_TypeError
                         : error.kind == ErrorKind::index ? PyExc_IndexError
                                                          : PyExc_ValueError;
  const Object exception(PyObject_CallFunction(type, "s", error.what()));
  if (!exception) return;
  const Object fields(Py_BuildValue("{s:s,s:s,s:s,s:s}", "argument", error.argument.c_str(), "found",
                                    error.found.c_str(), "expected", error.expected.c_str(), "remedy",
                                    error.remedy.c_str()));
  if (!fields || PyObject_SetAttrString(exception.get(), "_fields", fields.get()) < 0) return;
  PyErr_SetObject(type, exception.get());
}

}  // namespace

void set_error() {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const Error& error) {
    set_error_of(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

std::string utf8_of(PyObject* text) {
  const Object bytes = run_python([&] { return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"); });
  std::string result(PyBytes_AS_STRING(bytes.get()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get())));
  for (std::size_t at; (at = result.find('\0')) != std::string::npos;) result.replace(at, 1, "\\x00");
  return result;
}

std::string str_of(PyObject* object) {
  return utf8_of(run_python([&] { return PyObject_Str(object); }).get());
}

std::string repr_of(PyObject* object) {
  if (PyObject* const text = parked_at_exit([&] { return PyObject_Repr(object); })) {
    const std::string repr = utf8_of(Object(text).get());
    return repr.find('\n') == std::string::npos ? repr : "a " + type_name(object);
  }
  // Python writes no integers of more than 4300 digits.
  const bool is_int = PyLong_CheckExact(object);
  const bool may_hold_some = is_int || PyTuple_CheckExact(object) || PyList_CheckExact(object);
  if (!may_hold_some || PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw PythonError{};
  PyErr_Clear();
  if (!is_int) return joined({"a ", type_name(object), " of ", PySequence_Fast_GET_SIZE(object)});
  const Object bits = run_python([&] { return PyObject_CallMethod(object, "bit_length", nullptr); });
  return "an int of " + repr_of(bits.get()) + " bits";
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

}  // namespace fastpe::bindings
