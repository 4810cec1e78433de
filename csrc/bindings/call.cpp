// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>

#include "errors.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

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

}  // namespace

PlacementArrays::PlacementArrays(const PlacementObjects& objects, Owned& owned, Order order) {
  if (is_given(objects.cu_seqlens)) {
    cu_seqlens_ = numbers_from(objects.cu_seqlens, "cu_seqlens", Numbers::integers, owned);
  }
  if (is_given(objects.offset)) {
    offset_ = integer_argument(objects.offset);
    if (!offset_) {
      if (PyFloat_Check(objects.offset) || PyBool_Check(objects.offset)) {
        refuse_type("offset", {"is ", repr_of(objects.offset)}, {"an int or an int array"},
                    {"pass fractional positions as positions="});
      }
      offsets_ = numbers_from(objects.offset, "offset", Numbers::integers, owned);
    }
  }
  if (is_given(objects.positions)) {
    positions_ = numbers_from(objects.positions, "positions", Numbers::integers_or_floats, owned, order);
  }
  if (is_given(objects.valid)) valid_ = bools_from(objects.valid, "valid", owned);
  if (is_given(objects.lengths)) lengths_ = numbers_from(objects.lengths, "lengths", Numbers::integers, owned);
}

PlacementArguments PlacementArrays::views() const {
  PlacementArguments views;
  views.offset = offset_;
  if (offsets_ != nullptr) views.offsets = view_of(offsets_, "offset");
  if (positions_ != nullptr) views.positions = view_of(positions_, "positions");
  if (valid_ != nullptr) views.valid = view_of(valid_, "valid");
  if (lengths_ != nullptr) views.lengths = view_of(lengths_, "lengths");
  if (cu_seqlens_ != nullptr) views.cu_seqlens = view_of(cu_seqlens_, "cu_seqlens");
  return views;
}

PyObject* PythonFrontEnd::returned_pair(PyObject* given) {
  if (is_given(given)) return Object::shared(given).release();
  return not_null(PyTuple_Pack(2, made_[0].get(), made_[1].get())).release();
}

void PythonFrontEnd::run(const Call& call) {
  const OperationShape& shape = call.operation.shape();
  // Rows that have no columns are only checked.
  const bool is_small = std::max(shape.bytes_written, shape.items() * shape.seq_len) < bytes_worth_releasing_the_gil;
  // A small call may have to make the encoder's tables. It is interruptible then, but keeps the interpreter's lock, so
  // that not every thread makes them.
  if (is_small && call.source.is_prepared(shape.tile_dtype)) return fastpe::run(call, nullptr);
  // The arrays are alive meanwhile: the caller and the call hold them.
  run_interruptibly(!is_small,
                    shape.is_in_place
                        ? "interrupted: each array that was given to be changed may be partly changed; restore it from "
                          "a copy: a second call would change that part again"
                        : "interrupted: the output array was partly written; compute it again before using it",
                    [&call](Interruption* interruption) { fastpe::run(call, interruption); });
}

bool SignalCheck::requested() {
  if (released_) released_->take();
  const bool is_signalled = parked_at_exit([] { return PyErr_CheckSignals(); }) != 0;
  if (released_) released_->release();
  return is_signalled;
}

void SignalCheck::raise(const char* what_to_know) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw PythonError{};
  PyObject *type = nullptr, *cause = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &cause, &traceback);
  PyErr_NormalizeException(&type, &cause, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(cause, traceback);
  const Object its_type(type), its_cause(cause), its_traceback(traceback);
  const Object exception(PyObject_CallFunction(PyExc_KeyboardInterrupt, "s", what_to_know));
  if (!exception) throw PythonError{};
  PyException_SetCause(exception.get(), Py_NewRef(cause));
  PyErr_SetObject(PyExc_KeyboardInterrupt, exception.get());
  throw PythonError{};
}

PyObject* warm_up_rows(const RowCache& rows, const WarmUpArguments& a) {
  const DType dtype = dtype_argument(a.dtype).value_or(DType::float32);
  const int max_threads = threads_argument(a.num_threads);
  run_interruptibly(true, "interrupted: some rows are not made yet; later calls make them",
                    [&](Interruption* interruption) {
                      rows.encoder().prepare(dtype, interruption);
                      rows.fill_promised(row_dtype(dtype), max_threads, interruption);
                    });
  Py_RETURN_NONE;
}

}  // namespace fastpe::bindings
