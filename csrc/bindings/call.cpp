// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>
#include <optional>

#include "scalars.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

std::int64_t batches_per_row(const RowsView& view) {
  std::int64_t count = 1;
  for (int axis = 1; axis < view.batch_axes; ++axis) count *= view.batch_shape[axis];
  return std::max<std::int64_t>(count, 1);
}

void set_offset(Call& call, PyObject* offset, std::int64_t rows, const char* axis) {
  if (!is_given(offset)) return;
  Positions& p = call.job.positions;
  if (const std::optional<std::int64_t> value = integer_argument(offset)) {
    if (*value > max_position || *value < -max_position) {
      throw py::value_error("offset is " + repr_of(offset) +
                            ", expected magnitude at most 2**53; beyond it not every integer has a float64 of its own");
    }
    p.first += *value;
    return;
  }
  if (PyFloat_Check(offset) || PyBool_Check(offset)) {
    throw py::type_error("offset is " + repr_of(offset) +
                         ", expected an int or an int array; fractional positions go into positions=");
  }
  p.offsets = per_row_integers(call, offset, rows, "offset", axis);
}

// Whether an array of one entry per row has a batch axis, too.
bool is_per_batch(const py::array& array, const Extent& extent, const char* name) {
  const py::ssize_t axes = array.ndim();
  const bool fits =
      (axes == 1 && array.shape(0) == extent.seq_len) ||
      (axes == 2 && extent.has_batch && array.shape(0) == extent.rows && array.shape(1) == extent.seq_len);
  if (!fits) {
    const std::string per_batch = extent.has_batch ? " or " + shape_text({extent.rows, extent.seq_len}) : "";
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected " +
                          shape_text({extent.seq_len}) + per_batch + ": one per row");
  }
  return axes == 2;
}

void set_explicit_positions(Call& call, PyObject* positions, const Extent& extent) {
  const py::array array = call.keep(numbers_of(positions, "positions", Numbers::integers_or_floats));
  Positions& p = call.job.positions;
  p.values_per_batch = is_per_batch(array, extent, "positions");
  p.values = {static_cast<const char*>(array.data()), number_type_of(array), p.values_per_batch ? array.strides(0) : 0,
              array.strides(array.ndim() - 1)};
}

void set_sequences(Call& call, PyObject* cu_seqlens, const Extent& extent) {
  if (extent.has_batch) {
    throw py::value_error(
        "cu_seqlens is for a packed batch: expected x (or ids) with one row axis, [N, d_model] (or "
        "[N]); reshape it, or leave cu_seqlens out");
  }
  const py::array array = call.keep(numbers_of(cu_seqlens, "cu_seqlens", Numbers::integers));
  if (array.ndim() != 1 || array.shape(0) < 1) {
    throw py::value_error("cu_seqlens has shape " + shape_text(array) +
                          ", expected [number of sequences + 1]: 0, the running sum of lengths");
  }
  Positions& p = call.job.positions;
  p.sequence_starts = {static_cast<const char*>(array.data()), number_type_of(array), 0, array.strides(0)};
  p.sequence_count = array.shape(0) - 1;
}

class SignalCheck final : public Interruption {
 public:
  bool requested() override {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return false;
    error_.emplace();
    return true;
  }

  [[noreturn]] void raise() {
    if (error_->matches(PyExc_KeyboardInterrupt)) {
      py::raise_from(*error_, PyExc_KeyboardInterrupt,
                     "interrupted: the output array was partly written; compute it again before using it");
      throw py::error_already_set();
    }
    throw *error_;
  }

 private:
  std::optional<py::error_already_set> error_;
};

}  // namespace

Extent extent_of(const RowsView& view) {
  return {view.batch_axes > 0 ? view.batch_shape[0] : 1, view.seq_len, view.batch_axes > 0};
}

NumbersView per_row_integers(Call& call, PyObject* object, std::int64_t rows, const char* name, const char* axis) {
  const py::array array = call.keep(numbers_of(object, name, Numbers::integers));
  if (array.ndim() > 1 || (array.ndim() == 1 && array.shape(0) != rows)) {
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected an int, or shape " +
                          shape_text({rows}) + ": one per " + axis);
  }
  return {static_cast<const char*>(array.data()), number_type_of(array), array.ndim() == 1 ? array.strides(0) : 0, 0};
}

void set_mask(Call& call, PyObject* mask, const Extent& extent) {
  const py::array array = call.keep(py::isinstance<py::array>(mask)
                                        ? array_of(mask, "mask")
                                        : py::array(py::module_::import("numpy").attr("asarray")(py::handle(mask))));
  if (array.dtype().kind() != 'b') {
    throw py::type_error("mask has dtype " + py::str(array.dtype()).cast<std::string>() +
                         ", expected bool, True where the row counts; convert it with .astype(bool)");
  }
  Validity& v = call.job.validity;
  const bool has_batch = is_per_batch(array, extent, "mask");
  v.mask = static_cast<const char*>(array.data());
  v.mask_batch_stride_bytes = has_batch ? array.strides(0) : 0;
  v.mask_seq_stride_bytes = array.strides(array.ndim() - 1);
  call.job.positions.count_valid_only = call.job.positions.values.data == nullptr;
}

void refuse_together(PyObject* a, const char* a_name, PyObject* b, const char* b_name) {
  if (is_given(a) && is_given(b)) {
    throw py::value_error(std::string(a_name) + " and " + b_name + " were both given, expected one of them; leave " +
                          b_name + " out");
  }
}

void set_rows(Call& call, const Keywords& k, const RowsView& view) {
  refuse_together(k.positions, "positions", k.offset, "offset");
  refuse_together(k.mask, "mask", k.lengths, "lengths");
  refuse_together(k.cu_seqlens, "cu_seqlens", k.positions, "positions");
  refuse_together(k.cu_seqlens, "cu_seqlens", k.mask, "mask");
  refuse_together(k.cu_seqlens, "cu_seqlens", k.lengths, "lengths");
  const Extent extent = extent_of(view);
  Positions& p = call.job.positions;
  p.batches_per_row = batches_per_row(view);
  if (is_given(k.cu_seqlens)) {
    set_sequences(call, k.cu_seqlens, extent);
    set_offset(call, k.offset, p.sequence_count, "sequence");
    return;
  }
  set_offset(call, k.offset, extent.rows, "batch row");
  if (is_given(k.positions)) set_explicit_positions(call, k.positions, extent);
  if (is_given(k.mask)) set_mask(call, k.mask, extent);
  if (is_given(k.lengths)) {
    call.job.validity.lengths = per_row_integers(call, k.lengths, extent.rows, "lengths", "batch row");
  }
}

std::int64_t channels_argument(PyObject* channels, std::int64_t d_model, std::int64_t columns, const char* name) {
  const auto mismatch = [&](const std::string& expected) {
    return py::value_error(std::string(name) + " has " + std::to_string(columns) + " columns, expected " + expected);
  };
  if (!is_given(channels)) {
    if (columns == d_model || columns == 0) return 0;  // nothing is computed for an empty array
    throw mismatch("d_model, " + std::to_string(d_model) +
                   "; make the encoding for this width, or pass channels=(first, end)");
  }
  if (!PyTuple_Check(channels) || PyTuple_GET_SIZE(channels) != 2) {
    throw py::type_error("channels is " + repr_of(channels) + ", expected a tuple (first, end) of ints");
  }
  const auto first = integer_argument(PyTuple_GET_ITEM(channels, 0));
  const auto end = integer_argument(PyTuple_GET_ITEM(channels, 1));
  if (!first || !end) throw py::type_error("channels is " + repr_of(channels) + ", expected two ints");
  if (*first < 0 || *end < *first || *end > d_model) {
    throw py::value_error("channels is " + repr_of(channels) + ", expected 0 <= first <= end <= d_model, " +
                          std::to_string(d_model));
  }
  if (*end - *first != columns) {
    throw mismatch(std::to_string(*end - *first) + " for channels=" + repr_of(channels));
  }
  return *first;
}

int seq_axis_argument(PyObject* object, const py::array& x) {
  const auto axes = static_cast<std::int64_t>(x.ndim());
  if (axes < 2) {
    throw py::value_error("x has shape " + shape_text(x) +
                          ", expected at least two axes, [L, d_model] or [B, L, d_model]; use x[None] for one row");
  }
  if (axes - 2 > max_batch_axes) throw py::value_error("x has " + std::to_string(axes) + " axes, expected at most 10");
  if (!is_given(object)) return static_cast<int>(axes - 2);
  const auto value = integer_argument(object);
  if (!value) throw py::type_error("seq_axis is " + repr_of(object) + ", expected an int");
  const std::int64_t axis = *value < 0 ? *value + axes : *value;
  if (axis < 0 || axis >= axes - 1) {
    throw py::value_error("seq_axis is " + repr_of(object) + ", expected an axis of x, " + shape_text(x) +
                          ", other than the last");
  }
  return static_cast<int>(axis);
}

TableView learned_argument(Call& call, PyObject* object, const py::array& like, const char* like_name,
                           std::int64_t columns, const char* name) {
  const py::array table = call.keep(array_of(object, name));
  require_dtype(table, like, name, like_name);
  require_access(table, name, Access::read);
  const TableView view = table_of(table, name);
  if (table.shape(1) != columns) {
    throw py::value_error(std::string(name) + " has " + std::to_string(table.shape(1)) + " columns, expected " +
                          std::to_string(columns) + " as " + like_name + " has");
  }
  return view;
}

py::array output(PyObject* out, const py::dtype& dtype, const std::vector<py::ssize_t>& shape) {
  if (!is_given(out)) return new_array(dtype, shape);
  py::array array = array_of(out, "out");
  if (array.dtype().num() != dtype.num()) {
    throw py::type_error("out has dtype " + py::str(array.dtype()).cast<std::string>() + ", expected " +
                         py::str(dtype).cast<std::string>() + "; pass an array of that dtype, or dtype=");
  }
  require_shape(array, shape, "out");
  require_access(array, "out", Access::write);
  return array;
}

void refuse_shared_inputs(const Call& call, const py::array& out) {
  for (const py::array& input : call.kept) {
    require_disjoint(out, "the output", input, "an input");
  }
}

void finish(const Call& call) {
  const Job& job = call.job;
  const bool is_small = job.out.bytes() < bytes_worth_releasing_the_gil;
  // A small call, too, may have the encoder's rows to make: interruptible, but not so that every thread makes them.
  if (is_small && (job.encoder == nullptr || job.encoder->is_complete(job.out.dtype))) {
    run(job, nullptr);
    return;
  }
  SignalCheck signals;
  bool completed;
  if (is_small) {
    completed = run(job, &signals);
  } else {
    const py::gil_scoped_release no_gil;  // the arrays are alive: the caller and `kept` hold them
    completed = run(job, &signals);
  }
  if (!completed) signals.raise();
}

}  // namespace fastpe::bindings
