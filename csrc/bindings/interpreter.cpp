// SPDX-License-Identifier: BSD-3-Clause
#include "interpreter.h"

#include <chrono>
#include <thread>

namespace fastpe::bindings {

void park(void*) {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void drop_reference(PyObject* object) {
  parked_at_exit([&] {
    Py_DECREF(object);
    return 0;
  });
}

bool has_attribute(PyObject* object, const char* name) {
  if (Object(parked_at_exit([&] { return PyObject_GetAttrString(object, name); }))) return true;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw PythonError{};
  PyErr_Clear();
  return false;
}

void ReleasedInterpreter::take() {
  parked_at_exit([&] {
    PyEval_RestoreThread(thread_);
    return 0;
  });
}

}  // namespace fastpe::bindings
