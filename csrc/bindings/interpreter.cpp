// SPDX-License-Identifier: BSD-3-Clause
#include "interpreter.h"

#include <chrono>
#include <thread>

namespace fastpe::bindings {

void park(void*) {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool has_attribute(PyObject* object, const char* name) {
  PyObject* const attribute = parked_at_exit([&] { return PyObject_GetAttrString(object, name); });
  if (attribute != nullptr) {
    drop_reference(attribute);
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return false;
}

void drop_reference(PyObject* object) {
  parked_at_exit([&] {
    Py_DECREF(object);
    return 0;
  });
}

void ReleasedInterpreter::take() {
  parked_at_exit([&] {
    PyEval_RestoreThread(thread_);
    return 0;
  });
}

}  // namespace fastpe::bindings
