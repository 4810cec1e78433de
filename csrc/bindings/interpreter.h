// SPDX-License-Identifier: BSD-3-Clause
// References to Python's objects, and letting go of the interpreter, without ending the process when the interpreter
// ends.
//
// A daemon thread may be in a call when the interpreter finalises. Until 3.14, CPython ends such a thread with
// pthread_exit() as soon as it takes the interpreter's lock, which any Python code may do. On most systems that unwinds
// the stack: a noexcept function, a destructor or an OpenMP region on its way ends the process, and a destructor that
// drops a reference does so without the lock. So the thread is parked for ever, as CPython 3.14 parks it itself: where
// ReleasedInterpreter takes the lock, with all threads that work on its arrays finding them where they were; or, where
// Python code took it, at the first Object that unwinding comes to. Until then nothing is on its way that minds.
#pragma once

#include <pybind11/pytypes.h>

#include <utility>

namespace fastpe::bindings {

namespace py = pybind11;

// A reference. Where Python code may run while it lives, it must be one of these, and not one of pybind11's own.
class Object : public py::object {
 public:
  using py::object::object;
  Object() = default;
  Object(py::object&& other) noexcept : py::object(std::move(other)) {}
  Object(Object&& other) noexcept : py::object(std::move(other)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(m_ptr, other.m_ptr);
    return *this;
  }
  ~Object() {
    if (m_ptr != nullptr) drop(release().ptr());
  }

 private:
  static void drop(PyObject* object);
};

// What a function of Python's C API returned as a new reference.
inline Object not_null(PyObject* result) {
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<Object>(result);
}
inline Object shared(PyObject* object) { return py::reinterpret_borrow<Object>(object); }

// Errors other than an AttributeError are passed on.
bool has_attribute(PyObject* object, const char* name);

// Whether one of Python's handlers of signals has raised something.
bool is_signalled();

// While it lives, the interpreter is let go of.
class ReleasedInterpreter {
 public:
  ReleasedInterpreter() { release(); }
  ~ReleasedInterpreter() { take(); }
  ReleasedInterpreter(const ReleasedInterpreter&) = delete;
  ReleasedInterpreter& operator=(const ReleasedInterpreter&) = delete;

  void release() { thread_ = PyEval_SaveThread(); }
  void take();

 private:
  PyThreadState* thread_;
};

}  // namespace fastpe::bindings
