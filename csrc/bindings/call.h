// SPDX-License-Identifier: BSD-3-Clause
// A call in the making, of which every method makes two phases:
//
//   1. Whatever can run Python code: arguments become plain numbers and ndarrays that outlive the call. A caller's
//      __index__, __float__, __array__, __getattr__ .. may meanwhile reshape any array, also one that was taken before.
//   2. Views of the arrays are taken, and checked against each other. No Python code runs, so that what was checked
//      holds.
//
// Then the call runs, on views of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "arrays.h"
#include "fastpe/call/call.h"
#include "fastpe/checks/placement.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "interpreter.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {

// ---- Phase 1

// The arguments that say where rows are and which are valid. They become arrays (phase 1), then views (phase 2), then a
// Placement. A method that has only some of them leaves the others null.
#define FASTPE_PLACEMENT "offset=None, positions=None, valid=None, lengths=None, cu_seqlens=None"
struct PlacementObjects {
  PyObject *offset = nullptr, *positions = nullptr, *valid = nullptr, *lengths = nullptr, *cu_seqlens = nullptr;
};

inline void refuse_together(PyObject* a, const char* a_name, PyObject* b, const char* b_name) {
  if (is_given(a) && is_given(b)) refuse_both(a_name, b_name);
}

struct PlacementArrays {
  PlacementArrays(const PlacementObjects& objects, Owned& owned);
  // Phase 2
  PlacementArguments views() const;

  std::optional<std::int64_t> offset;
  PyObject *offsets = nullptr, *positions = nullptr, *valid = nullptr, *lengths = nullptr, *cu_seqlens = nullptr;
};

// Of calls that only write rows: how many positions, or an array of them of any shape.
class WrittenPositions {
 public:
  WrittenPositions(PyObject* positions, PyObject* offset, Owned& owned);

  // Phase 2
  struct Views {
    ArrayView positions;
    Shape shape;  // of the result, without its columns
    Placement placement;
  };
  Views views(const PlacementArguments& given, std::int64_t first, int coordinate_count) const;

  bool is_count() const { return count_.has_value(); }

 private:
  std::optional<std::int64_t> count_;
  PyObject* array_ = nullptr;
};

// ---- Phase 2

struct Output {
  Object array;
  ArrayView view;

  // The object that was given, or else the new array.
  PyObject* returned(PyObject* given) { return is_given(given) ? Object::shared(given).release() : array.release(); }
};
// `given` checked, or a new array. Without a dtype, that of `given`, or else float32. Where `given` may have axes of
// length 1 in front, the view is without them.
enum class AxesInFront { refused, of_length_1 };
Output output(PyObject* given, PyObject* dtype, const Shape& shape, const char* name = "out",
              AxesInFront axes_in_front = AxesInFront::refused);

// ---- The run

// Runs the call. If a signal interrupts it, the signal's exception is raised.
void run_call(const Call& call);

// Asks Python for signals. The exception of one that came stays set in this thread, and is raised when it is over.
class SignalCheck final : public Interruption {
 public:
  explicit SignalCheck(bool releases_interpreter) {
    if (releases_interpreter) released_.emplace();
  }
  void take_interpreter() { released_.reset(); }
  // A KeyboardInterrupt tells what there is to know of the state that is left.
  [[noreturn]] static void raise(const char* what_to_know);

 private:
  bool requested() override;

  std::optional<ReleasedInterpreter> released_;
};

template <class Body>
void run_interruptibly(bool releases_interpreter, const char* what_to_know, const Body& body) {
  SignalCheck signals(releases_interpreter);
  try {
    body(&signals);
  } catch (const Interrupted&) {
    signals.take_interpreter();
    SignalCheck::raise(what_to_know);
  }
}

// ---- What both classes have

#define FASTPE_WARM_UP "*, dtype=None, num_threads=None"
struct WarmUpArguments {
  PyObject *dtype, *num_threads;
};
PyObject* warm_up_rows(const RowCache& rows, const WarmUpArguments& arguments);
template <class Bound>
PyObject* warm_up(Bound& self, const WarmUpArguments& arguments) {
  return warm_up_rows(self.row_cache, arguments);
}

template <class Bound>
PyObject* frequencies(PyObject* self, PyObject*) {
  return returned_or<PyObject*>(nullptr, [&] {
    const Encoder& encoder = bound_of<Bound>(self).encoder;
    return new_array(encoder.frequencies().radians.high.data(), encoder.frequency_count()).release();
  });
}

}  // namespace fastpe::bindings
