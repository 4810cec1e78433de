// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include "errors.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

}  // namespace

RowInputs::RowInputs(const GivenRows& rows, Made& made) {
  if (is_given(rows.cu_seqlens)) {
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.positions, "positions");
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.mask, "mask");
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.lengths, "lengths");
    cu_seqlens = numbers_from(rows.cu_seqlens, "cu_seqlens", Numbers::integers, made);
  }
  if (is_given(rows.offset)) {
    refuse_together(rows.positions, "positions", rows.offset, "offset");
    offset = position_argument(rows.offset, "offset");
    if (!offset) {
      if (PyFloat_Check(rows.offset) || PyBool_Check(rows.offset)) {
        refuse_type("offset", {"is ", repr_of(rows.offset)}, {"an int or an int array"},
                    {"pass fractional positions as positions="});
      }
      offsets = numbers_from(rows.offset, "offset", Numbers::integers, made);
    }
  }
  if (is_given(rows.positions)) {
    positions = numbers_from(rows.positions, "positions", Numbers::integers_or_floats, made);
  }
  refuse_together(rows.mask, "mask", rows.lengths, "lengths");
  if (is_given(rows.mask)) mask = mask_from(rows.mask, "mask", made);
  if (is_given(rows.lengths)) lengths = numbers_from(rows.lengths, "lengths", Numbers::integers, made);
}

RowArguments RowInputs::views() const {
  RowArguments views;
  views.offset = offset;
  if (offsets != nullptr) views.offsets = view_of(offsets, "offset");
  if (positions != nullptr) views.positions = view_of(positions, "positions");
  if (mask != nullptr) views.mask = view_of(mask, "mask");
  if (lengths != nullptr) views.lengths = view_of(lengths, "lengths");
  if (cu_seqlens != nullptr) views.cu_seqlens = view_of(cu_seqlens, "cu_seqlens");
  return views;
}

Output output(PyObject* given, PyObject* dtype, const Shape& shape, const char* name) {
  if (given == nullptr) {
    Object made =
        dtype != nullptr ? new_array(dtype, shape) : new_array(dtype_of_element(Element::float32).get(), shape);
    const ArrayView view = view_of(made.get(), name);
    return {std::move(made), view};
  }
  const ArrayView view = view_of(given, name);
  if (dtype != nullptr) {
    require_element(view, *element_of(dtype), "pass an array of that dtype");
  } else {
    dtype_of(view);
  }
  require_shape(view, shape);
  require_writable(view, nullptr);
  return {Object::shared(given), view};
}

void finish(const PendingCall& pending, const Source& source, const Operation& operation) {
  const Call call{source, operation, pending.rows.positions, pending.rows.validity, pending.max_threads};
  const OperationShape& shape = operation.shape();
  const bool is_small = shape.bytes_written < bytes_worth_releasing_the_gil;
  // A small call may have to make the encoder's tables. It is interruptible then, but keeps the interpreter's lock, so
  // that not every thread makes them.
  if (is_small && source.is_prepared(shape.tile_dtype)) return run(call, nullptr);
  // The arrays are alive meanwhile: the caller and the call hold them.
  run_interruptibly(!is_small,
                    pending.is_in_place
                        ? "interrupted: each array that was given to be changed may be partly changed; restore it from "
                          "a copy: a second call would change that part again"
                        : "interrupted: the output array was partly written; compute it again before using it",
                    [&call](Interruption* interruption) { run(call, interruption); });
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

PyObject* warm_up(const RowCache& rows, const WarmUpArguments& a) {
  const Object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : Object();
  const DType dtype = dtype_given ? requested_dtype(dtype_given.get()) : DType::float32;
  const int max_threads = threads_argument(a.num_threads);
  run_interruptibly(true, "interrupted: some rows are not made yet; later calls make them",
                    [&](Interruption* interruption) {
                      rows.encoder().prepare(dtype, interruption);
                      rows.fill_promised(row_dtype(dtype), max_threads, interruption);
                    });
  Py_RETURN_NONE;
}

}  // namespace fastpe::bindings
