// SPDX-License-Identifier: BSD-3-Clause
// Python's objects and errors, running Python code and letting go of the interpreter, without ending the process when
// the interpreter ends.
//
// A daemon thread may be in a call when the interpreter finalises. Until 3.14, CPython ends such a thread with
// pthread_exit() as soon as it takes the interpreter's lock, which any Python code may do. On most systems that unwinds
// the stack: a noexcept function, a destructor or an OpenMP region on its way ends the process, and a destructor that
// drops a reference does so without the lock. So the thread is parked for ever where it took the lock, as CPython 3.14
// parks it itself: nothing of it is unwound, and threads that work on its arrays find them where they were.
#pragma once

#include <Python.h>

#include <utility>

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

// Thrown where Python's error indicator is set.
struct PythonError {};

// Drops a reference that may be the last one to an object with a finaliser of its own.
void drop_reference(PyObject* object);

// A reference that is owned, or null.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  Object(Object&& other) noexcept : object_(other.release()) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() {
    if (object_ != nullptr) drop_reference(object_);
  }

  static Object shared(PyObject* object) {
    Py_INCREF(object);
    return Object(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// What a function of Python's C API returned as a new reference.
inline Object not_null(PyObject* result) {
  if (result == nullptr) throw PythonError{};
  return Object(result);
}

// The same of `call`, which may run Python code.
template <class Call>
Object run_python(const Call& call) {
  return not_null(parked_at_exit(call));
}

// Errors other than an AttributeError are passed on.
bool has_attribute(PyObject* object, const char* name);

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
