// SPDX-License-Identifier: BSD-3-Clause
// Work of the core that Python's signals stop.
#pragma once

#include <optional>

#include "fastpe/interruption.h"
#include "interpreter.h"

namespace fastpe::bindings {

// Asks Python for signals. The exception of one that came stays set in this thread, and is raised when it is over.
class SignalCheck final : public Interruption {
 public:
  explicit SignalCheck(bool releases_interpreter) {
    if (releases_interpreter) released_.emplace();
  }

 private:
  bool requested() override {
    if (released_) released_->take();
    const bool result = is_signalled();
    if (released_) released_->release();
    return result;
  }

  std::optional<ReleasedInterpreter> released_;
};

// `what_to_know` is said to who stopped it.
template <class Body>
void run_interruptibly(bool releases_interpreter, const char* what_to_know, const Body& body) {
  try {
    SignalCheck signals(releases_interpreter);
    body(&signals);
    return;
  } catch (const Interrupted&) {
  }
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) py::raise_from(PyExc_KeyboardInterrupt, what_to_know);
  throw py::error_already_set();
}

}  // namespace fastpe::bindings
