// SPDX-License-Identifier: BSD-3-Clause
#include "interpreter.h"

#include <pybind11/gil.h>

#include <chrono>
#include <thread>

#if !defined(_WIN32)  // where threads end without unwinding
#include <pthread.h>
#endif

namespace fastpe::bindings {
namespace {

void park(void*) {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Calls body(), which may take the lock, and must not throw.
template <class Body>
void parked_at_exit(const Body& body) {
#if defined(_WIN32)
  body();
#else
  pthread_cleanup_push(park, nullptr);
  body();
  pthread_cleanup_pop(0);
#endif
}

}  // namespace

void Object::drop(PyObject* object) {
  if (py::detail::get_thread_state_unchecked() == nullptr) park(nullptr);  // the lock is lost
  parked_at_exit([object] { Py_DECREF(object); });                         // its finaliser may be Python code
}

bool has_attribute(PyObject* object, const char* name) {
  if (PyObject* const attribute = PyObject_GetAttrString(object, name)) {
    not_null(attribute);
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return false;
}

bool is_signalled() {
  bool result = false;
  parked_at_exit([&result] { result = PyErr_CheckSignals() != 0; });  // which may collect garbage first
  return result;
}

void ReleasedInterpreter::take() {
  parked_at_exit([this] { PyEval_RestoreThread(thread_); });
}

}  // namespace fastpe::bindings
