// SPDX-License-Identifier: BSD-3-Clause
// A function of Python whose TypeErrors are explained. A wrapper in Python would take a fifth of a small call's time,
// since it unpacks the keywords and packs them again.
#include <pybind11/pybind11.h>
#include <structmember.h>

#include <cstddef>

#include "bindings.h"
#include "interpreter.h"
#include "method.h"

namespace fastpe::bindings {
namespace {

namespace py = pybind11;

struct Explained {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* explanation;  // called with (function, arguments, keywords), returns a message or None
  PyObject* attributes;   // those that functools.update_wrapper() sets
};

Explained& of(PyObject* self) { return *reinterpret_cast<Explained*>(self); }

// Replaces the error, if the explanation has a message.
PyObject* explain(const Explained& self, PyObject* const* arguments, Py_ssize_t given, PyObject* names) {
  return parked_at_exit([&] {
    return returned_or_raised([&]() -> PyObject* {
      py::error_already_set error;
      py::tuple positional(static_cast<std::size_t>(given));
      for (Py_ssize_t i = 0; i < given; ++i) positional[static_cast<std::size_t>(i)] = py::handle(arguments[i]);
      py::dict keywords;
      const Py_ssize_t name_count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
      for (Py_ssize_t i = 0; i < name_count; ++i) {
        keywords[py::handle(PyTuple_GET_ITEM(names, i))] = py::handle(arguments[given + i]);
      }
      const py::object message = py::handle(self.explanation)(py::handle(self.function), positional, keywords);
      if (message.is_none()) throw error;
      PyErr_SetObject(PyExc_TypeError, message.ptr());
      return nullptr;
    });
  });
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t given, PyObject* names) {
  PyObject* const result = PyObject_Vectorcall(of(self).function, arguments, given, names);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  return explain(of(self), arguments, PyVectorcall_NARGS(given), names);
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* /*keywords*/) {
  PyObject *function = nullptr, *explanation = nullptr;
  if (PyArg_ParseTuple(arguments, "OO:Explained", &function, &explanation) == 0) return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  of(self).vectorcall = call;
  of(self).function = Py_NewRef(function);
  of(self).explanation = Py_NewRef(explanation);
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(of(self).function);
  Py_VISIT(of(self).explanation);
  Py_VISIT(of(self).attributes);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(of(self).function);
  Py_CLEAR(of(self).explanation);
  Py_CLEAR(of(self).attributes);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind_to(PyObject* self, PyObject* instance, PyObject* /*type*/) {
  return instance == nullptr ? Py_NewRef(self) : PyMethod_New(self, instance);
}

PyObject* represent(PyObject* self) { return PyObject_Repr(of(self).function); }

// It is found again by its name, as functions are.
PyObject* reduce(PyObject* self, PyObject* /*nothing*/) { return PyObject_GetAttrString(self, "__qualname__"); }

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Explained, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Explained, attributes), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void bind_explained(py::module_& module) {
  PyType_Slot slots[] = {{Py_tp_new, slot(make)},
                         {Py_tp_call, slot(PyVectorcall_Call)},
                         {Py_tp_traverse, slot(traverse)},
                         {Py_tp_clear, slot(clear)},
                         {Py_tp_dealloc, slot(deallocate)},
                         {Py_tp_descr_get, slot(bind_to)},
                         {Py_tp_repr, slot(represent)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_members, members},
                         {0, nullptr}};
  // help() begins with the last part of this name: "function in module fastpe".
  PyType_Spec spec{"fastpe._core.function", sizeof(Explained), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                   slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  module.add_object("Explained", py::reinterpret_steal<py::object>(type));
}

}  // namespace fastpe::bindings
