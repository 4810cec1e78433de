// SPDX-License-Identifier: BSD-3-Clause
// Running Python code and letting go of the interpreter, without ending the process when the interpreter ends.
//
// A daemon thread may be in a call when the interpreter finalises. Until 3.14, CPython ends such a thread with
// pthread_exit() as soon as it takes the interpreter's lock, which any Python code may do. On most systems that unwinds
// the stack: a noexcept function, a destructor or an OpenMP region on its way ends the process, and a destructor that
// drops a reference does so without the lock. So the thread is parked for ever where it took the lock, as CPython 3.14
// parks it itself: nothing of it is unwound, and threads that work on its arrays find them where they were.
#pragma once

#include <pybind11/pybind11.h>

#if defined(_WIN32)
// Threads end there without unwinding.
#define FASTPE_PARK_BEGIN
#define FASTPE_PARK_END
#else
#include <pthread.h>
#define FASTPE_PARK_BEGIN pthread_cleanup_push(fastpe::bindings::park, nullptr)
#define FASTPE_PARK_END pthread_cleanup_pop(0)
#endif

namespace fastpe::bindings {

namespace py = pybind11;

// Never returns.
void park(void*);

// What `body` returns, which may take the interpreter's lock; `body` must not throw.
template <class Body>
auto parked_at_exit(const Body& body) {
  decltype(body()) result{};
  FASTPE_PARK_BEGIN;
  result = body();
  FASTPE_PARK_END;
  return result;
}

#undef FASTPE_PARK_BEGIN
#undef FASTPE_PARK_END

// The new reference that `call`, of Python's C API alone, returns; throws Python's error where that is null.
template <class Call>
py::object run_python(const Call& call) {
  PyObject* const result = parked_at_exit(call);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// Errors other than an AttributeError are passed on.
bool has_attribute(PyObject* object, const char* name);

// Drops a reference that may be the last one to an object with a finaliser of its own.
void drop_reference(PyObject* object);

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
