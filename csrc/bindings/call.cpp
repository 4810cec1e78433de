// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>

#include "errors.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

}  // namespace

PlacementArrays::PlacementArrays(const PlacementObjects& objects, Owned& owned) {
  if (is_given(objects.cu_seqlens)) {
    refuse_together(objects.cu_seqlens, "cu_seqlens", objects.positions, "positions");
    refuse_together(objects.cu_seqlens, "cu_seqlens", objects.valid, "valid");
    refuse_together(objects.cu_seqlens, "cu_seqlens", objects.lengths, "lengths");
    cu_seqlens = numbers_from(objects.cu_seqlens, "cu_seqlens", Numbers::integers, owned);
  }
  if (is_given(objects.offset)) {
    refuse_together(objects.positions, "positions", objects.offset, "offset");
    offset = position_argument(objects.offset, "offset");
    if (!offset) {
      if (PyFloat_Check(objects.offset) || PyBool_Check(objects.offset)) {
        refuse_type("offset", {"is ", repr_of(objects.offset)}, {"an int or an int array"},
                    {"pass fractional positions as positions="});
      }
      offsets = numbers_from(objects.offset, "offset", Numbers::integers, owned);
    }
  }
  if (is_given(objects.positions)) {
    positions = numbers_from(objects.positions, "positions", Numbers::integers_or_floats, owned);
  }
  refuse_together(objects.valid, "valid", objects.lengths, "lengths");
  if (is_given(objects.valid)) valid = bools_from(objects.valid, "valid", owned);
  if (is_given(objects.lengths)) lengths = numbers_from(objects.lengths, "lengths", Numbers::integers, owned);
}

PlacementArguments PlacementArrays::views() const {
  PlacementArguments views;
  views.offset = offset;
  if (offsets != nullptr) views.offsets = view_of(offsets, "offset");
  if (positions != nullptr) views.positions = view_of(positions, "positions");
  if (valid != nullptr) views.valid = view_of(valid, "valid");
  if (lengths != nullptr) views.lengths = view_of(lengths, "lengths");
  if (cu_seqlens != nullptr) views.cu_seqlens = view_of(cu_seqlens, "cu_seqlens");
  return views;
}

WrittenPositions::WrittenPositions(PyObject* positions, PyObject* offset, Owned& owned)
    : count_(position_count(positions)) {
  if (count_) return;
  refuse_together(positions, "positions", offset, "offset");
  array_ = numbers_from(positions, "positions", Numbers::integers_or_floats, owned, Order::contiguous);
}

WrittenPositions::Views WrittenPositions::views(const PlacementArguments& given, std::int64_t first,
                                                int coordinate_count) const {
  Views views;
  views.positions = view_if_given(array_, "positions");
  views.shape = count_ ? counted_shape(given, *count_) : Shape(views.positions);
  if (!count_ && coordinate_count > 0 && views.shape.axes() > 0) views.shape.drop_last_axis();
  const Shape& shape = views.shape;
  const bool has_batch = shape.axes() > 1;
  // placement_at uses it only for a mask and lengths, and refuses these with more than two axes, where batch_rows would
  // have to be the product of all but the last.
  const Extent extent{has_batch ? *shape.begin() : 1, shape.axes() > 0 ? shape.end()[-1] : 1, has_batch};
  views.placement =
      count_ ? placement_of(given, extent, first) : placement_at(views.positions, given, extent, coordinate_count);
  return views;
}

Output output(PyObject* given, PyObject* dtype, const Shape& shape, const char* name, AxesInFront axes_in_front) {
  if (given == nullptr) {
    Object made = dtype != nullptr ? new_array(dtype, shape) : new_array(numpy_dtype(DType::float32).get(), shape);
    const ArrayView view = view_of(made.get(), name);
    return {std::move(made), view};
  }
  ArrayView view = view_of(given, name);
  const int more = std::max(view.axes - shape.axes(), 0);
  if (axes_in_front == AxesInFront::of_length_1 && std::count(view.shape, view.shape + more, 1) == more) {
    view.shape += more;
    view.strides_bytes += more;
    view.axes -= more;
  }
  if (dtype != nullptr) {
    require_dtype(view, *known_dtype_of(dtype), "pass an array of that dtype");
  } else {
    dtype_of(view);
  }
  require_shape(view, shape);
  require_writable(view, nullptr);
  return {Object::shared(given), view};
}

void run_call(const Call& call) {
  const OperationShape& shape = call.operation.shape();
  // Rows that have no columns are only checked.
  const bool is_small = std::max(shape.bytes_written, shape.items() * shape.seq_len) < bytes_worth_releasing_the_gil;
  // A small call may have to make the encoder's tables. It is interruptible then, but keeps the interpreter's lock, so
  // that not every thread makes them.
  if (is_small && call.source.is_prepared(shape.tile_dtype)) return run(call, nullptr);
  // The arrays are alive meanwhile: the caller and the call hold them.
  run_interruptibly(!is_small,
                    shape.is_in_place
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

PyObject* warm_up_rows(const RowCache& rows, const WarmUpArguments& a) {
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
