// SPDX-License-Identifier: BSD-3-Clause
// Methods on CPython's vectorcall protocol: a call is parsed in tens of nanoseconds, where pybind11's own dispatch
// takes hundreds for a dozen keywords.
//
// The arguments of a method are one list, LIST(Required, Optional): Required(name) for each that must be given, by
// place or by keyword, then Optional(name, default) for each that is given by keyword alone. From it come the struct of
// what the caller gave, the names that are looked for, and the text signature that inspect reads.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "interpreter.h"
#include "scalars.h"
#include "wrong_calls.h"

namespace fastpe::bindings {

namespace py = pybind11;

// One argument of a method: its name, and where it stands in the method's struct of arguments.
template <class Arguments>
struct Argument {
  const char* name;
  PyObject* Arguments::* value;
};

#define FASTPE_NOTHING_R(name)
#define FASTPE_NOTHING_O(name, otherwise)
#define FASTPE_MEMBER_R(name) PyObject* name = nullptr;
#define FASTPE_MEMBER_O(name, otherwise) PyObject* name = nullptr;
#define FASTPE_COUNT_R(name) +1
#define FASTPE_ENTRY_R(name) {#name, &Arguments::name},
#define FASTPE_ENTRY_O(name, otherwise) {#name, &Arguments::name},
#define FASTPE_TEXT_R(name) ", " #name
#define FASTPE_TEXT_O(name, otherwise) ", " #name "=" #otherwise

// What a caller gave: borrowed references, null where nothing was given.
#define FASTPE_ARGUMENTS(Struct, LIST)     \
  struct Struct {                          \
    LIST(FASTPE_MEMBER_R, FASTPE_MEMBER_O) \
  }

// More arguments by place than the required ones.
struct Others {
  PyObject* const* others = nullptr;
  Py_ssize_t other_count = 0;
};
#define FASTPE_ARGUMENTS_AND_OTHERS(Struct, LIST) \
  struct Struct : Others {                        \
    LIST(FASTPE_MEMBER_R, FASTPE_MEMBER_O)        \
  }

// A method called `python_name`, whose arguments of LIST are members of Struct. `self` is "$self", or "$module" for a
// function; `star` is "*", or "*others" where Struct has them.
#define FASTPE_METHOD(Method, python_name, Struct, LIST, doc_text) \
  FASTPE_METHOD_WITH(Method, python_name, Struct, LIST, "$self", "*", doc_text)
#define FASTPE_METHOD_WITH(Method, python_name, Struct, LIST, self, star, doc_text)                            \
  struct Method {                                                                                              \
    using Arguments = Struct;                                                                                  \
    static constexpr const char* name = python_name;                                                           \
    static constexpr std::size_t required = 0 LIST(FASTPE_COUNT_R, FASTPE_NOTHING_O);                          \
    static constexpr Argument<Arguments> arguments[] = {LIST(FASTPE_ENTRY_R, FASTPE_ENTRY_O)};                 \
    static constexpr const char* doc = python_name "(" self ", /" LIST(                                        \
        FASTPE_TEXT_R, FASTPE_NOTHING_O) ", " star LIST(FASTPE_NOTHING_R, FASTPE_TEXT_O) ")\n--\n\n" doc_text; \
  }

// What reads a method's arguments.
template <class Method>
class Signature {
  using Arguments = typename Method::Arguments;

 public:
  // Made when the module is loaded, as the types of scalars are.
  static const Signature& get() {
    static const Signature made;
    return made;
  }

  Arguments parse(PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) const {
    Arguments values;
    const Py_ssize_t named = std::min(given, static_cast<Py_ssize_t>(Method::required));
    if constexpr (std::is_base_of_v<Others, Arguments>) {
      values.others = arguments + named;
      values.other_count = given - named;
    } else if (given > named) {
      refuse_too_many(names(), given);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(named); ++i) {
      values.*(Method::arguments[i].value) = arguments[i];
    }
    const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t k = 0; k < keyword_count; ++k) {
      const Argument<Arguments>& argument = Method::arguments[index_of(PyTuple_GET_ITEM(keywords, k))];
      if (values.*(argument.value) != nullptr) refuse_second(names(), argument.name);
      values.*(argument.value) = arguments[given + k];
    }
    for (std::size_t i = 0; i < Method::required; ++i) {
      if (values.*(Method::arguments[i].value) == nullptr) refuse_missing(names(), Method::arguments[i].name);
    }
    return values;
  }

  MethodNames names() const { return {Method::name, interned_.data(), count, Method::required}; }

 private:
  static constexpr std::size_t count = std::size(Method::arguments);

  Signature() {
    for (std::size_t i = 0; i < count; ++i) interned_[i] = PyUnicode_InternFromString(Method::arguments[i].name);
  }

  std::size_t index_of(PyObject* keyword) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (interned_[i] == keyword) return i;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (PyUnicode_Compare(interned_[i], keyword) == 0) return i;
    }
    refuse_unexpected(names(), keyword);
  }

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

// The C function of a method: self_of(object) is what it works on, body(self, arguments) what it does.
template <class Method, auto self_of, auto body>
PyObject* call_method(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return parked_at_exit([&] {
    return returned_or_raised(
        [&] { return body(self_of(self), Signature<Method>::get().parse(arguments, given, keywords)); });
  });
}

// What a Python object holds. pybind11's own cast would hand out raw memory for an object whose __init__ never ran.
template <class Bound>
Bound& bound_of(PyObject* self) {
  auto* const instance = reinterpret_cast<py::detail::instance*>(self);
  void* const bound =
      instance->simple_layout ? instance->simple_value_holder[0] : instance->get_value_and_holder().value_ptr();
  if (bound == nullptr) {
    throw py::type_error(std::string(Py_TYPE(self)->tp_name) +
                         " is not initialised, expected its __init__ to have run; make a new one");
  }
  return *static_cast<Bound*>(bound);
}

inline std::nullptr_t no_self(PyObject*) { return nullptr; }

// A function of a module: body(nullptr, arguments).
template <class Method, auto body>
void define_function(py::module_& module) {
  Signature<Method>::get();
  static PyMethodDef definition{
      Method::name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_method<Method, no_self, body>)),
      METH_FASTCALL | METH_KEYWORDS, Method::doc};
  PyObject* const function = PyCFunction_NewEx(&definition, nullptr, nullptr);
  if (function == nullptr) throw py::error_already_set();
  module.add_object(Method::name, py::reinterpret_steal<py::object>(function));
}

template <class Method, auto self_of, auto body>
void define_method(py::handle type) {
  Signature<Method>::get();
  // Alive as long as the type: CPython keeps a pointer to it.
  static PyMethodDef definition{
      Method::name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_method<Method, self_of, body>)),
      METH_FASTCALL | METH_KEYWORDS, Method::doc};
  PyObject* const descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition);
  if (descriptor == nullptr) throw py::error_already_set();
  type.attr(Method::name) = py::reinterpret_steal<py::object>(descriptor);
}

}  // namespace fastpe::bindings
