// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "interpreter.h"
#include "scalars.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

void read_offset(Inputs& inputs, PyObject* offset) {
  if (const std::optional<std::int64_t> value = integer_argument(offset)) {
    if (*value > max_position || *value < -max_position) {
      throw py::value_error("offset is " + repr_of(offset) +
                            ", expected magnitude at most 2**53; beyond it not every integer has a float64 of its own");
    }
    inputs.offset = *value;
    return;
  }
  if (PyFloat_Check(offset) || PyBool_Check(offset)) {
    throw py::type_error("offset is " + repr_of(offset) +
                         ", expected an int or an int array; fractional positions go into positions=");
  }
  inputs.offsets = numbers_from(offset, "offset", Numbers::integers);
}

// One integer for all rows, or one per row: [rows] or [rows, 1]. An array of one is none for all of several rows: it
// may as well be a list that misses the others, and an int says the same.
NumbersView per_row_integers(const Array& array, std::int64_t rows, const char* name, const char* axis) {
  const NumberType type = number_type_of(array, name, Numbers::integers);
  const py::ssize_t axes = array.ndim();
  const bool fits = axes == 0 || (array.shape(0) == rows && (axes == 1 || (axes == 2 && array.shape(1) == 1)));
  if (!fits) {
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected an int, or shape " +
                          shape_text({rows}) + ": one per " + axis);
  }
  return {static_cast<const char*>(array.data()), type, axes == 0 ? 0 : array.strides(0), 0};
}

void set_offset(PendingCall& call, const Inputs& inputs, std::int64_t rows, const char* axis) {
  Positions& p = call.positions;
  p.first += inputs.offset;
  if (inputs.offsets) p.offsets = per_row_integers(inputs.offsets, rows, "offset", axis);
}

// Of an array of one entry per row: whether it has a batch axis, too, that differs from row to row. One of length 1 is
// the same for all.
bool is_per_batch(const Array& array, const Extent& extent, const char* name) {
  const py::ssize_t axes = array.ndim();
  const bool fits = (axes == 1 || (axes == 2 && (array.shape(0) == 1 || array.shape(0) == extent.rows))) &&
                    last(array) == extent.seq_len;
  if (!fits) {
    const std::string per_batch = extent.has_batch ? " or " + shape_text({extent.rows, extent.seq_len}) : "";
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected " +
                          shape_text({extent.seq_len}) + per_batch + ": one per row");
  }
  return axes == 2 && array.shape(0) != 1;
}

void set_explicit_positions(PendingCall& call, const Array& array, const Extent& extent) {
  const NumberType type = number_type_of(array, "positions", Numbers::integers_or_floats);
  Positions& p = call.positions;
  p.values_per_row = is_per_batch(array, extent, "positions");
  const py::ssize_t seq_axis = array.ndim() - 1;
  if (seq_axis == 1) p.value_axes.add(array.shape(0), array.strides(0));
  p.values = {static_cast<const char*>(array.data()), type, p.values_per_row ? array.strides(0) : 0,
              array.strides(seq_axis)};
}

void set_sequences(PendingCall& call, const Array& array, const Extent& extent) {
  if (extent.has_batch) {
    throw py::value_error(
        "cu_seqlens is for a packed batch: expected x (or ids) with one row axis, [N, d_model] (or "
        "[N]); reshape it, or leave cu_seqlens out");
  }
  const NumberType type = number_type_of(array, "cu_seqlens", Numbers::integers);
  if (array.ndim() != 1 || array.shape(0) < 1) {
    throw py::value_error("cu_seqlens has shape " + shape_text(array) +
                          ", expected [number of sequences + 1]: 0, the running sum of lengths");
  }
  Positions& p = call.positions;
  p.sequence_starts = {static_cast<const char*>(array.data()), type, 0, array.strides(0)};
  p.sequence_count = array.shape(0) - 1;
}

class SignalCheck final : public Interruption {
 public:
  explicit SignalCheck(bool releases_interpreter) {
    if (releases_interpreter) released_.emplace();
  }

  void take_interpreter() { released_.reset(); }

  bool requested() override {
    if (released_) released_->take();
    const bool is_signalled = parked_at_exit([] { return PyErr_CheckSignals(); }) != 0;
    if (is_signalled) error_.emplace();
    if (released_) released_->release();
    return is_signalled;
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
  std::optional<ReleasedInterpreter> released_;  // destroyed first: the error's destructor needs the interpreter
};

}  // namespace

Extent extent_of(const Array& array, int seq_axis) {
  const bool has_batch = array.ndim() > (seq_axis < 0 ? 1 : 2);
  return {has_batch ? array.shape(seq_axis == 0 ? 1 : 0) : 1, seq_axis < 0 ? 1 : array.shape(seq_axis), has_batch};
}

void set_mask(PendingCall& call, const Array& array, const Extent& extent) {
  if (array.dtype().kind() != 'b') {
    throw py::type_error("mask has dtype " + py::str(array.dtype()).cast<std::string>() +
                         ", expected bool, True where the row counts; convert it with .astype(bool)");
  }
  Validity& v = call.validity;
  const bool has_batch = is_per_batch(array, extent, "mask");
  v.mask = static_cast<const char*>(array.data());
  v.mask_row_stride_bytes = has_batch ? array.strides(0) : 0;
  v.mask_seq_stride_bytes = array.strides(array.ndim() - 1);
  call.positions.count_valid_only = !call.positions.values.is_given();
}

void set_lengths(PendingCall& call, const Array& lengths, const Extent& extent) {
  call.validity.lengths = per_row_integers(lengths, extent.rows, "lengths", "batch row");
}

void raise_given_together(const char* a_name, const char* b_name) {
  throw py::value_error(std::string(a_name) + " and " + b_name + " were both given, expected one of them; leave " +
                        b_name + " out");
}

void read_rows(Inputs& inputs, const RowArguments& rows) {
  if (is_given(rows.cu_seqlens)) {
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.positions, "positions");
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.mask, "mask");
    refuse_together(rows.cu_seqlens, "cu_seqlens", rows.lengths, "lengths");
    inputs.cu_seqlens = numbers_from(rows.cu_seqlens, "cu_seqlens", Numbers::integers);
  }
  if (is_given(rows.offset)) {
    refuse_together(rows.positions, "positions", rows.offset, "offset");
    read_offset(inputs, rows.offset);
  }
  if (is_given(rows.positions)) {
    inputs.positions = numbers_from(rows.positions, "positions", Numbers::integers_or_floats);
  }
  if (is_given(rows.mask)) {
    refuse_together(rows.mask, "mask", rows.lengths, "lengths");
    inputs.mask = array_from(rows.mask, "mask");
  }
  if (is_given(rows.lengths)) inputs.lengths = numbers_from(rows.lengths, "lengths", Numbers::integers);
}

void set_rows(PendingCall& call, const Inputs& inputs, const Extent& extent) {
  Positions& p = call.positions;
  if (inputs.cu_seqlens) {
    set_sequences(call, inputs.cu_seqlens, extent);
    set_offset(call, inputs, p.sequence_count, "sequence");
    return;
  }
  set_offset(call, inputs, extent.rows, "batch row");
  if (inputs.positions) set_explicit_positions(call, inputs.positions, extent);
  if (inputs.mask) set_mask(call, inputs.mask, extent);
  if (inputs.lengths) set_lengths(call, inputs.lengths, extent);
}

Channels channels_from(PyObject* channels, std::int64_t d_model) {
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
  return Channels{*first, *end};
}

std::int64_t checked_first_channel(const std::optional<Channels>& channels, std::int64_t d_model, std::int64_t columns,
                                   const char* name) {
  const auto mismatch = [&](const std::string& expected) {
    return py::value_error(std::string(name) + " has " + std::to_string(columns) + " columns, expected " + expected);
  };
  if (!channels) {
    if (columns == 0) return 0;  // nothing is computed for an empty array
    throw mismatch("d_model, " + std::to_string(d_model) +
                   "; make the encoding for this width, or pass channels=(first, end)");
  }
  if (channels->end - channels->first != columns) {
    throw mismatch(std::to_string(channels->end - channels->first) + " for channels=(" +
                   std::to_string(channels->first) + ", " + std::to_string(channels->end) + ")");
  }
  return channels->first;
}

int seq_axis_of(const std::optional<std::int64_t>& seq_axis, const Array& x) {
  const auto axes = static_cast<std::int64_t>(x.ndim());
  if (axes < 2) {
    throw py::value_error("x has shape " + shape_text(x) +
                          ", expected at least two axes, [L, d_model] or [B, L, d_model]; use x[None] for one row");
  }
  if (axes - 2 > max_item_axes) throw py::value_error("x has " + std::to_string(axes) + " axes, expected at most 10");
  if (!seq_axis) return static_cast<int>(axes - 2);
  const std::int64_t axis = *seq_axis < 0 ? *seq_axis + axes : *seq_axis;
  if (axis < 0 || axis >= axes - 1) {
    throw py::value_error("seq_axis is " + std::to_string(*seq_axis) + ", expected an axis of x, " + shape_text(x) +
                          ", other than the last");
  }
  return static_cast<int>(axis);
}

TableView learned_table(const Array& table, const Array& like, const char* like_name, std::int64_t columns,
                        const char* name) {
  require_dtype(table, like, name, like_name);
  require_access(table, name, Access::read);
  const TableView view = position_table_of(table, name);
  if (last(table) != columns) {
    throw py::value_error(std::string(name) + " has " + std::to_string(last(table)) + " columns, expected " +
                          std::to_string(columns) + " as " + like_name + " has");
  }
  return view;
}

Array output(Array given, const py::dtype& dtype, const std::vector<py::ssize_t>& shape) {
  if (!given) return new_array(dtype, shape);
  if (given.dtype().num() != dtype.num()) {
    throw py::type_error("out has dtype " + py::str(given.dtype()).cast<std::string>() + ", expected " +
                         py::str(dtype).cast<std::string>() + "; pass an array of that dtype, or dtype=");
  }
  require_shape(given, shape, "out");
  require_access(given, "out", Access::write);
  return given;
}

void refuse_shared_inputs(const Inputs& inputs, const Array& out) {
  const auto refuse = [&out](const auto&... arrays) {
    ((arrays ? require_disjoint(out, "the output", arrays, "an input") : void()), ...);
  };
  refuse(inputs.offsets, inputs.positions, inputs.mask, inputs.lengths, inputs.cu_seqlens, inputs.learned,
         inputs.vocabulary, inputs.ids);
}

void finish(const PendingCall& pending, const Source& source, const Operation& operation) {
  const Call call{source, operation, pending.positions, pending.validity, pending.max_threads};
  const OperationShape& shape = operation.shape();
  const bool is_small = shape.bytes_written < bytes_worth_releasing_the_gil;
  // A small call, too, may have the encoder's tables to make: interruptible, but not so that every thread makes them.
  if (is_small && source.is_prepared(shape.dtype)) return run(call, nullptr);
  SignalCheck signals(!is_small);  // the arrays are alive meanwhile: the caller and the call's inputs hold them
  try {
    run(call, &signals);
  } catch (const Interrupted&) {
    signals.take_interpreter();
    signals.raise();
  }
  signals.take_interpreter();
}

}  // namespace fastpe::bindings
