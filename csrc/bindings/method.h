// SPDX-License-Identifier: BSD-3-Clause
// Methods and functions on CPython's vectorcall protocol: a call is parsed in tens of nanoseconds.
//
// The arguments of each are one struct of PyObject*, null where nothing was given, and one text, which inspect also
// reads, such as "x, *others, by, valid=None": those before the star may be given by place, and those without a default
// must be given. Both must have the same names in the same order, of which only the number is checked; where there is
// "*others", an Others ends the struct.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "errors.h"
#include "interpreter.h"

namespace fastpe::bindings {

// More arguments by place than those that have names.
struct Others {
  PyObject* const* items;
  Py_ssize_t count;
};

class Signature {
 public:
  using Function = PyObject* (*)(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords);

  constexpr Signature(const char* name, const char* parameters) : name_(name), parameters_(parameters) {}

  // To be called when the module is loaded; the struct of arguments has this size.
  PyMethodDef load(Function function, std::size_t struct_bytes);
  // Fills the struct of arguments. Throws a TypeError, worded as Python's own, for a call that does not fit.
  void parse(PyObject* const* given, Py_ssize_t count, PyObject* keywords, void* arguments) const;

 private:
  static constexpr int most_names = 20;

  int index_of(PyObject* keyword) const;
  [[noreturn]] void refuse_too_many(Py_ssize_t given) const;

  const char* name_;
  const char* parameters_;
  PyObject* names_[most_names] = {};  // interned
  int count_ = 0;
  int by_place_ = 0;       // the first ones
  unsigned required_ = 0;  // a bit for each
  bool has_others_ = false;
};

// An object of Python that holds one of C++.
template <class Bound>
struct Holder {
  PyObject ob_base;
  std::atomic<Bound*> bound;  // null until __init__ has run
};

template <class Bound>
Bound& bound_of(PyObject* self) {
  Bound* const bound = reinterpret_cast<Holder<Bound>*>(self)->bound.load(std::memory_order_acquire);
  if (bound != nullptr) return *bound;
  refuse_type("self", {"is a ", type_name(self), " that is not initialised"}, {"its __init__ to have run"},
              {"make a new one"});
}

// What a method is: PyObject* body(Bound&, const Arguments&). A function has the module, a PyObject&, in place of
// Bound.
template <class Body>
struct BodyTypes;
template <class Bound_, class Arguments_>
struct BodyTypes<PyObject* (*)(Bound_&, const Arguments_&)> {
  using Bound = Bound_;
  using Arguments = Arguments_;
};
template <>
inline PyObject& bound_of<PyObject>(PyObject* module) {
  return *module;
}

// The entry of a table of methods or functions.
template <auto body, Signature& signature>
PyMethodDef method() {
  using Types = BodyTypes<decltype(body)>;
  return signature.load(
      [](PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
        return parked_at_exit([&] {
          return returned_or<PyObject*>(nullptr, [&] {
            typename Types::Arguments arguments;
            signature.parse(given, count, keywords, &arguments);
            return body(bound_of<typename Types::Bound>(self), arguments);
          });
        });
      },
      sizeof(typename Types::Arguments));
}

// A class whose objects hold a Bound that `make` makes of the arguments of __init__. The table of methods ends with an
// empty entry.
template <class Bound, std::unique_ptr<Bound> (*make)(PyObject* arguments, PyObject* keywords)>
Object holder_type(const char* name, PyMethodDef* methods) {
  const auto initialise = [](PyObject* self, PyObject* arguments, PyObject* keywords) {
    return returned_or(-1, [&] {
      std::unique_ptr<Bound> made = make(arguments, keywords);
      Bound* none = nullptr;
      if (reinterpret_cast<Holder<Bound>*>(self)->bound.compare_exchange_strong(none, made.get())) {
        made.release();
        return 0;
      }
      refuse_type("self", {"is initialised already"}, {"one call of its __init__"}, {"make a new one"});
    });
  };
  const auto deallocate = [](PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    delete reinterpret_cast<Holder<Bound>*>(self)->bound.load();
    type->tp_free(self);
    Py_DECREF(type);
  };
  PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(static_cast<initproc>(initialise))},
                         {Py_tp_dealloc, reinterpret_cast<void*>(static_cast<destructor>(deallocate))},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(Holder<Bound>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return not_null(PyType_FromSpec(&spec));
}

// The function document(method, text): gives a method of this module the prose of its docstring.
PyObject* document(PyObject* module, PyObject* arguments);

// Each adds its part to the module.
void add_encoder(PyObject* module);
void add_rotary(PyObject* module);
void add_rotary_frequencies(PyObject* module);

}  // namespace fastpe::bindings
