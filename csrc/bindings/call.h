// SPDX-License-Identifier: BSD-3-Clause
// What the objects of Python's two classes hold, and a call in the making, of which every method makes two phases:
//
//   1. Whatever can run Python code: arguments become numbers of a request (fastpe/requests), and ndarrays that outlive
//      the call. A caller's __index__, __float__, __array__, __getattr__ .. may meanwhile reshape any array, also one
//      that was taken before.
//   2. take_views() fills in the views of the request, and the core's function checks it. No Python code runs, so that
//      what was checked holds.
//
// Then the call runs, on views of its own.
#pragma once

#include <cstddef>
#include <iterator>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "arguments.h"
#include "fastpe/requests/rotary.h"
#include "fastpe/sources/sinusoid/encoding.h"
#include "interruptible.h"
#include "method.h"

namespace fastpe::bindings {

class PythonCall : public FrontEnd {
 public:
  PythonCall() = default;
  PythonCall(const PythonCall&) = delete;
  PythonCall& operator=(const PythonCall&) = delete;

  // ---- Phase 1: each argument with the view that it will fill in. Those that may be missing leave it as it is.

  void to_write(ArrayView& view, PyObject* object, const char* name) { keep(view, array_to_write(object, name), name); }
  void to_read(ArrayView& view, PyObject* object, const char* name) { keep(view, array_to_read(object, name), name); }
  void to_write_if_given(ArrayView& view, PyObject* object, const char* name = "out") {
    if (is_given(object)) to_write(view, object, name);
  }
  void to_read_if_given(ArrayView& view, PyObject* object, const char* name) {
    if (is_given(object)) to_read(view, object, name);
  }
  void numbers(ArrayView& view, PyObject* object, const char* name, Numbers numbers, Gaps gaps = Gaps::allowed) {
    keep(view, numbers_from(object, name, numbers, gaps), name);
  }
  // What every call has. `gaps` are those of positions.
  void fill(Request& request, const Arguments& a, Gaps gaps = Gaps::allowed);
  // Of calls that only write rows: `positions` is how many there are, or an array of any shape.
  void fill_written(Request& request, Arguments a);

  // ---- Phase 2

  void take_views() {
    for (std::size_t i = 0; i < kept_count_; ++i) kept_[i].take();
    for (const Kept& kept : more_kept_) kept.take();
  }
  ArrayView new_array(DType dtype, const Shape& shape) override {
    Object& made = made_[made_[0] ? 1 : 0];
    made = bindings::new_array(dtype, shape);
    return view_of(made.ptr(), "out");
  }
  // If a signal interrupts the call, the signal's exception is raised.
  void run(const Call& call) override;

  // The object that was given, or else the new array, or both of two.
  PyObject* returned(PyObject* given);

 private:
  struct Kept {
    Object array;
    ArrayView* view = nullptr;
    const char* name = nullptr;

    void take() const { new (view) ArrayView(view_of(array.ptr(), name)); }
  };
  void keep(ArrayView& view, Object array, const char* name) {
    Kept& kept = kept_count_ < std::size(kept_) ? kept_[kept_count_++] : more_kept_.emplace_back();
    kept = {std::move(array), &view, name};
  }

  Kept kept_[10];  // without an allocation: as many as a call has that rotates one array
  std::size_t kept_count_ = 0;
  std::vector<Kept> more_kept_;
  Object made_[2];
};

// ---- The classes. module.cpp makes their objects; encoding.cpp and rotary.cpp have their methods.

void add_encoding_methods(py::handle type);
void add_rotary_methods(py::handle type);
// Of rotations by tables that are given.
void add_functions(py::handle module);
void add_resizing(py::handle module);

// What both have, of a `Bound` that is an Encoding.
template <class Bound>
PyObject* warm_up(Bound& self, const Arguments& a) {
  const DType dtype = dtype_argument(a.dtype).value_or(DType::float32);
  const int max_threads = threads_argument(a.num_threads);
  run_interruptibly(true, "interrupted: some rows are not made yet; later calls make them",
                    [&](Interruption* interruption) { self.warm_up(dtype, max_threads, interruption); });
  Py_RETURN_NONE;
}
template <class Bound>
PyObject* frequencies(Bound& self, const Arguments&) {
  return new_array(self.encoder.frequencies().radians.high.data(), self.encoder.frequency_count()).release().ptr();
}
template <class Bound>
void add_common_methods(py::handle type) {
  add_method<warm_up<Bound>>(type, "warm_up", "*, dtype=None, num_threads=None");
  add_method<frequencies<Bound>>(type, "_frequencies", "");
}

}  // namespace fastpe::bindings
