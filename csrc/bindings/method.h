// SPDX-License-Identifier: BSD-3-Clause
// Classes, methods and functions by CPython's own interface. Methods take their arguments as METH_FASTCALL passes them,
// which calls in loops need: pybind11 takes many times as long to read them. Calls that do not fit are refused in
// Python's own words.
//
// Each has a text, which inspect also reads, such as "x, *others, by, valid=None": arguments before the star may be
// given by place, and those without a default must be given.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "errors.h"
#include "interpreter.h"

namespace fastpe::bindings {

// Where rows are and which are valid, and how methods that take all of these name them.
#define FASTPE_FOR_EACH_PLACEMENT(use) use(offset) use(positions) use(valid) use(lengths) use(cu_seqlens)
#define FASTPE_OPTIONAL(name) ", " #name "=None"
#define FASTPE_PLACEMENT FASTPE_FOR_EACH_PLACEMENT(FASTPE_OPTIONAL)

#define FASTPE_FOR_EACH_ARGUMENT(use)                                                                           \
  FASTPE_FOR_EACH_PLACEMENT(use)                                                                                \
  use(x) use(out) use(table) use(ids) use(position_table) use(seq_axis) use(scale) use(alpha) use(first_column) \
      use(form) use(dtype) use(inverse) use(by) use(cos) use(sin) use(interleaved) use(head_dim) use(num_threads)

// All that methods take; null where it was not given, or where a method does not take it.
struct Arguments {
#define FASTPE_MEMBER(name) PyObject* name = nullptr;
  FASTPE_FOR_EACH_ARGUMENT(FASTPE_MEMBER)
  // Those by place behind the ones with names, where a signature has "*others".
  PyObject* const* others = nullptr;
  Py_ssize_t other_count = 0;
};

class Signature {
 public:
  using Entry = PyObject* (*)(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords);

  // To be called when the module is loaded.
  PyMethodDef load(const char* name, const char* parameters, Entry entry);
  // Throws a TypeError, worded as Python's own, for a call that does not fit.
  Arguments parse(PyObject* const* given, Py_ssize_t count, PyObject* keywords) const;

 private:
  static constexpr int most_names = 20;

  int index_of(PyObject* keyword) const;
  // What a message says of an unknown name besides, of too many arguments by place, the empty one; of a missing
  // argument where no names are known.
  std::string hint_of(PyObject* name, int known_count) const;

  const char* name_ = "";
  PyObject* names_[most_names] = {};  // interned
  PyObject* Arguments::* members_[most_names] = {};
  int count_ = 0;
  int by_place_ = 0;       // the first ones
  unsigned required_ = 0;  // a bit for each
  bool has_others_ = false;
};

// An object of Python that holds one of C++. The classes are not pybind11's, which end the process if there is no
// memory for an object, and whose objects do not tell whether __init__ ran.
template <class Bound>
struct Holder {
  PyObject ob_base;
  std::atomic<Bound*> bound;  // null until __init__ has run
};

template <class Bound>
Bound& bound_of(PyObject* self) {
  Bound* const bound = reinterpret_cast<Holder<Bound>*>(self)->bound.load(std::memory_order_acquire);
  if (bound != nullptr) return *bound;
  refuse_type("self", {"is ", a_type(self), " that is not initialised"}, {"its __init__ to have run"},
              {"make a new one"});
}
template <>
inline PyObject& bound_of<PyObject>(PyObject* module) {
  return *module;
}

// What is called: PyObject* body(Bound&, const Arguments&), which belongs to one name. A function has the module, a
// PyObject&, in place of Bound.
template <auto body>
struct Method;
template <class Bound, PyObject* (*body)(Bound&, const Arguments&)>
struct Method<body> {
  static inline Signature signature;
  static inline PyMethodDef definition;

  static PyObject* entry(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
    try {
      const Arguments arguments = signature.parse(given, count, keywords);
      return body(bound_of<Bound>(self), arguments);
    } catch (...) {
      set_error();
      return nullptr;
    }
  }
  static PyMethodDef* load(const char* name, const char* parameters) {
    definition = signature.load(name, parameters, entry);
    return &definition;
  }
};

template <auto body>
void add_method(py::handle type, const char* name, const char* parameters) {
  auto* const of = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.attr(name) = not_null(PyDescr_NewMethod(of, Method<body>::load(name, parameters)));
}
template <auto body>
void add_function(py::handle module, const char* name, const char* parameters) {
  const Object of = not_null(PyModule_GetNameObject(module.ptr()));
  module.attr(name) = not_null(PyCFunction_NewEx(Method<body>::load(name, parameters), module.ptr(), of.ptr()));
}

// A class whose objects hold what `make` makes of the arguments of __init__, which are all given by name.
template <class Bound, std::unique_ptr<Bound> (*make)(const py::dict& arguments)>
Object holder_type(const char* name) {
  const auto initialise = [](PyObject* self, PyObject*, PyObject* keywords) {
    try {
      std::unique_ptr<Bound> made = make(keywords == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(keywords));
      Bound* none = nullptr;  // the package's classes refuse a second call
      if (reinterpret_cast<Holder<Bound>*>(self)->bound.compare_exchange_strong(none, made.get())) made.release();
      return 0;
    } catch (...) {
      set_error();
      return -1;
    }
  };
  const auto deallocate = [](PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    delete reinterpret_cast<Holder<Bound>*>(self)->bound.load();
    type->tp_free(self);
    Py_DECREF(type);
  };
  PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(static_cast<initproc>(initialise))},
                         {Py_tp_dealloc, reinterpret_cast<void*>(static_cast<destructor>(deallocate))},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(Holder<Bound>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return not_null(PyType_FromSpec(&spec));
}

// Gives a method the prose of its docstring.
void document(const py::handle& descriptor, const std::string& prose);

}  // namespace fastpe::bindings
