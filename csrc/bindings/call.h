// SPDX-License-Identifier: BSD-3-Clause
// A call in the making, of which every method makes two phases:
//
//   1. Whatever can run Python code: arguments become plain numbers and ndarrays that outlive the call. A caller's
//      __index__, __float__, __array__, __getattr__ .. may meanwhile reshape any array, also one that was taken before.
//   2. Views of the arrays become a request of the core (fastpe/requests), which checks them. No Python code runs, so
//      that what was checked holds.
//
// Then the call runs, on views of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "arrays.h"
#include "fastpe/requests/request.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "interpreter.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {

// The arguments that say where rows are and which are valid. A method that has only some of them leaves the others
// null.
#define FASTPE_PLACEMENT "offset=None, positions=None, valid=None, lengths=None, cu_seqlens=None"
struct PlacementObjects {
  PyObject *offset = nullptr, *positions = nullptr, *valid = nullptr, *lengths = nullptr, *cu_seqlens = nullptr;
};

// The same as arrays (phase 1), then as views (phase 2).
class PlacementArrays {
 public:
  // `order` is that of positions.
  PlacementArrays(const PlacementObjects& objects, Owned& owned, Order order = Order::any);
  PlacementArguments views() const;

 private:
  std::optional<std::int64_t> offset_;
  PyObject *offsets_ = nullptr, *positions_ = nullptr, *valid_ = nullptr, *lengths_ = nullptr, *cu_seqlens_ = nullptr;
};

// Of calls that only write rows: how many positions, or an array of them of any shape.
class WrittenArrays {
 public:
  WrittenArrays(PyObject* positions, PlacementObjects others, Owned& owned)
      : count_(position_count(positions)),
        arrays_(with_positions(others, count_ ? nullptr : positions), owned, Order::contiguous) {}
  WrittenRows views() const { return {arrays_.views(), count_, false}; }

 private:
  static PlacementObjects with_positions(PlacementObjects objects, PyObject* positions) {
    objects.positions = positions;
    return objects;
  }

  std::optional<std::int64_t> count_;
  PlacementArrays arrays_;
};

// An array to write into, where one is given.
inline PyObject* given_output(PyObject* object, Owned& owned, const char* name = "out") {
  return is_given(object) ? array_to_write(object, name, owned) : nullptr;
}

// Makes new arrays, which are returned, and runs calls. If a signal interrupts one, the signal's exception is raised.
class PythonFrontEnd final : public FrontEnd {
 public:
  ArrayView new_array(DType dtype, const Shape& shape, const char* name) override {
    Object& made = made_[made_[0] ? 1 : 0];
    made = bindings::new_array(dtype, shape);
    return view_of(made.get(), name);
  }
  void run(const Call& call) override;

  // The object that was given, or else the new array.
  PyObject* returned(PyObject* given) { return is_given(given) ? Object::shared(given).release() : made_[0].release(); }
  // The same, but for two new arrays.
  PyObject* returned_pair(PyObject* given);

 private:
  Object made_[2];
};

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
