// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fastpe/messages.h"
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
  const bool is_fraction = PyFloat_Check(offset) != 0;
  if (is_fraction || PyBool_Check(offset)) {
    throw py::type_error("offset is " + repr_of(offset) + ", expected an int or an int array" +
                         (is_fraction ? "; fractional positions go into positions=" : ""));
  }
  inputs.offsets = numbers_from(offset, "offset", Numbers::integers);
}

// One integer for all rows, or one per row: [rows] or [rows, 1]. An array of one is none for all of several rows: it
// may as well be a list that misses the others, and an int says the same.
NumbersView per_row_integers(const Array& array, std::int64_t rows, const char* name, const char* axis,
                             std::int64_t seq_len = -1) {
  const NumberType type = number_type_of(array, name, Numbers::integers);
  const py::ssize_t axes = array.ndim();
  const bool fits = axes == 0 || (array.shape(0) == rows && (axes == 1 || (axes == 2 && array.shape(1) == 1)));
  if (!fits) {
    const bool is_per_position = axes == 1 && array.shape(0) == seq_len;
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected an int, or shape " +
                          shape_text({axis_length(rows)}) + ": one per " + axis +
                          (is_per_position ? "; x (or ids) is one sequence of " + std::to_string(seq_len) +
                                                 " rows: for one row in each of several sequences, pass x[:, None]"
                                           : ""));
  }
  return {static_cast<const char*>(array.data()), type, axes == 0 ? 0 : array.strides(0), 0};
}

void set_offset(PendingCall& call, const Inputs& inputs, std::int64_t rows, const char* axis,
                std::int64_t seq_len = -1) {
  Positions& p = call.positions;
  p.first += inputs.offset.value_or(0);
  p.is_offset_given = inputs.offset || inputs.offsets;
  if (inputs.offsets) p.offsets = per_row_integers(inputs.offsets, rows, "offset", axis, seq_len);
}

// Of an array of one entry per row: whether it has a batch axis, too, that differs from row to row. One of length 1 is
// the same for all.
bool is_per_batch(const Array& array, const Extent& extent, const char* name, int coordinate_count = 0) {
  const bool has_coordinates = coordinate_count > 0;
  const py::ssize_t axes = array.ndim() - (has_coordinates ? 1 : 0);
  const bool fits = (axes == 1 || (axes == 2 && (array.shape(0) == 1 || array.shape(0) == extent.rows))) &&
                    array.shape(axes - 1) == extent.seq_len && (!has_coordinates || last(array) == coordinate_count);
  if (!fits) {
    const py::ssize_t seq_len = axis_length(extent.seq_len);
    Shape one{seq_len}, each{axis_length(extent.rows), seq_len};
    if (has_coordinates) {
      one.add_axis(coordinate_count);
      each.add_axis(coordinate_count);
    }
    const bool has_coordinates_first =
        has_coordinates && array.ndim() > 1 && array.shape(0) == coordinate_count && last(array) == extent.seq_len;
    const bool is_shift = name == std::string("by");
    const bool has_column_axis = !has_coordinates && axes == (extent.has_batch ? 3 : 2) && last(array) == 1 &&
                                 array.shape(axes - 2) == extent.seq_len;
    const bool is_attention_mask = !has_column_axis && name == std::string("mask") && array.ndim() > 2;
    const bool is_other_axis = (axes == 1 || (axes == 2 && array.shape(0) == extent.other_rows)) &&
                               array.shape(axes - 1) == extent.other_seq_len &&
                               (!has_coordinates || last(array) == coordinate_count);
    const bool is_longer_mask = !is_other_axis && name == std::string("mask") && array.ndim() == 2 &&
                                array.shape(0) == extent.rows && extent.seq_len > 0 && array.shape(1) > extent.seq_len;
    const std::string seq_len_text = std::to_string(extent.seq_len);
    const bool may_be_coordinates = !has_column_axis && !has_coordinates && name == std::string("positions") &&
                                    (array.ndim() == 3 || (array.ndim() == 2 && array.shape(0) == extent.seq_len));
    const bool is_one_integer = array.ndim() == 0 && array.dtype().kind() == 'i' && name == std::string("positions");
    throw py::value_error(
        std::string(name) + " has shape " + shape_text(array) + ", expected " + shape_text(one) +
        (extent.has_batch ? " or " + shape_text(each) : "") +
        (has_coordinates ? ": the coordinates of each row" : ": one per row") +
        (is_shift && extent.has_batch && !has_coordinates
             ? ", or " + shape_text({axis_length(extent.rows), 1}) + ": one per sequence"
             : "") +
        (is_other_axis ? fastpe::remedy_of_other_axis : "") +
        (has_coordinates_first ? "; pass np.moveaxis(np.asarray(" + std::string(name) + "), 0, -1)" : "") +
        (has_column_axis ? "; pass " + std::string(name) + "[..., 0]" : "") +
        (is_one_integer ? "; to count from one position, pass offset=" : "") +
        (may_be_coordinates ? "; coordinates, [.., L, coordinates], need encode_coordinates, or a "
                              "RotaryEmbedding with axes, such as from_config(.., axes=True)"
                            : "") +
        (is_attention_mask ? std::string("; of a mask of scores, [B, .., L], pass the last query's row, ") +
                                 (array.ndim() > 3 ? "mask[:, 0, -1]" : "mask[:, -1]")
                           : "") +
        (is_longer_mask ? "; of one that has earlier rows, too, pass mask[:, -" + seq_len_text +
                              ":], and, without positions=, offset=mask[:, :-" + seq_len_text + "].sum(1)"
                        : ""));
  }
  return axes == 2 && array.shape(0) != 1;
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

  [[noreturn]] void raise(const char* what_to_know) {
    if (error_->matches(PyExc_KeyboardInterrupt)) {
      py::raise_from(*error_, PyExc_KeyboardInterrupt, what_to_know);
      throw py::error_already_set();
    }
    throw *error_;
  }

 private:
  std::optional<py::error_already_set> error_;
  std::optional<ReleasedInterpreter> released_;  // destroyed first: the error's destructor needs the interpreter
};

}  // namespace

std::optional<std::int64_t> seq_axis_argument(PyObject* object) {
  constexpr std::int64_t most_axes = 64;  // of a NumPy array
  if (object == nullptr) return std::nullopt;
  const std::optional<std::int64_t> axis = integer_argument(object);
  if (!axis) throw py::type_error("seq_axis is " + repr_of(object) + ", expected an int");
  if (*axis < -most_axes || *axis > most_axes) {
    throw py::value_error("seq_axis is " + repr_of(object) + ", expected an axis of x other than the last");
  }
  return axis;
}

py::dtype dtype_argument(PyObject* object) {
  try {
    return run_python([&] {
      PyObject* dtype = nullptr;
      return py::detail::npy_api::get().PyArray_DescrConverter_(object, &dtype) != 0 ? dtype : nullptr;
    });
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw py::type_error("dtype is " + repr_of(object) + ", expected float32, float64, float16 or ml_dtypes.bfloat16" +
                         (PyUnicode_Check(object) ? "" : "; pass a dtype of NumPy, such as np.float32"));
  }
}

py::dtype result_dtype(const py::object& asked, const Array& out) {
  const py::dtype dtype = asked ? py::reinterpret_borrow<py::dtype>(asked) : out ? out.dtype() : py::dtype::of<float>();
  if (asked) {
    requested_dtype(dtype);
  } else {
    dtype_of(dtype, "out");
    require_native_order(dtype, "out");
  }
  return dtype;
}

std::optional<std::int64_t> position_count(PyObject* object) {
  const std::optional<std::int64_t> count = integer_argument(object);
  if (!count) {
    const bool is_fraction = PyFloat_Check(object) != 0;
    if (is_fraction || PyBool_Check(object) || object == Py_None || is_numpy_scalar(object)) {
      throw py::type_error("positions is " + repr_of(object) +
                           ", expected an int, the number of positions, or an array of positions" +
                           (is_fraction ? "; for one fractional position pass [" + repr_of(object) + "]" : ""));
    }
    return std::nullopt;
  }
  if (*count < 0) {
    throw py::value_error("positions is " + repr_of(object) +
                          ", expected a number of positions, 0 or more; for one negative position pass an array, [" +
                          repr_of(object) + "]");
  }
  if (*count > 2 * max_position + 1) {
    throw py::value_error("positions is " + repr_of(object) +
                          ", expected a number of positions that all have magnitude at most 2**53; compute fewer");
  }
  return count;
}

Shape counted_shape(const Inputs& inputs, std::int64_t count) {
  const py::ssize_t length = axis_length(count);
  if (inputs.offsets && inputs.offsets.ndim() > 0) return {inputs.offsets.shape(0), length};
  if (inputs.lengths && inputs.lengths.ndim() > 0) return {inputs.lengths.shape(0), length};
  if (inputs.mask && inputs.mask.ndim() == 2) return {inputs.mask.shape(0), length};
  return {length};
}

NumbersView numbers_view(const Array& array, const char* name, Numbers numbers) {
  const NumberType type = number_type_of(array, name, numbers);
  if (array.ndim() > max_item_axes) {
    throw py::value_error(std::string(name) + " has more than 8 axes, expected at most 8");
  }
  require_contiguous(array, name);
  const py::ssize_t axes = array.ndim();
  return {static_cast<const char*>(array.data()), type, axes > 1 ? last(array) * array.itemsize() : 0,
          axes > 0 ? array.strides(axes - 1) : 0};
}

void set_any_positions(PendingCall& call, const Array& array, const char* name, int coordinate_count) {
  Positions& p = call.positions;
  p.values = numbers_view(array, name, Numbers::integers_or_floats);
  py::ssize_t axes = array.ndim();
  if (coordinate_count > 0) {
    if (axes < 1 || last(array) != coordinate_count) {
      throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected a last axis of " +
                            std::to_string(coordinate_count) + ", the coordinates that axes= counts" +
                            (axes > 1 && array.shape(0) == coordinate_count
                                 ? "; pass np.moveaxis(np.asarray(" + std::string(name) + "), 0, -1)"
                                 : ""));
    }
    --axes;
    p.coordinate_count = coordinate_count;
    p.coordinate_stride_bytes = array.strides(axes);  // a single position need not be contiguous
    p.values.seq_stride_bytes = coordinate_count * array.itemsize();
    p.values.row_stride_bytes = axes > 1 ? array.shape(axes - 1) * p.values.seq_stride_bytes : 0;
  }
  p.values_per_row = axes > 1;
  for (py::ssize_t axis = 0; axis + 1 < axes; ++axis) p.value_axes.add(array.shape(axis), array.strides(axis));
}

Extent extent_of(const Array& array, int seq_axis) {
  const bool has_batch = array.ndim() > (seq_axis < 0 ? 1 : 2);
  return {has_batch ? array.shape(seq_axis == 0 ? 1 : 0) : 1, seq_axis < 0 ? 1 : array.shape(seq_axis), has_batch};
}

void set_explicit_positions(PendingCall& call, const Array& array, const Extent& extent, const char* name,
                            int coordinate_count) {
  const NumberType type = number_type_of(array, name, Numbers::integers_or_floats);
  Positions& p = call.positions;
  p.values_per_row = is_per_batch(array, extent, name, coordinate_count);
  const py::ssize_t seq_axis = array.ndim() - (coordinate_count > 0 ? 2 : 1);
  if (seq_axis == 1) p.value_axes.add(array.shape(0), array.strides(0));
  p.values = {static_cast<const char*>(array.data()), type, p.values_per_row ? array.strides(0) : 0,
              array.strides(seq_axis)};
  if (coordinate_count > 0) {
    p.coordinate_count = coordinate_count;
    p.coordinate_stride_bytes = array.strides(seq_axis + 1);
  }
}

void set_mask(PendingCall& call, const Array& array, const Extent& extent) {
  if (array.dtype().kind() != 'b') {
    // An additive mask has 0 where the row is valid: converted to bool, it would mean the contrary.
    throw py::type_error("mask has dtype " + py::str(array.dtype()).cast<std::string>() +
                         ", expected bool, or integers 0 and 1: True where the row is valid; give mask != 0, or "
                         "mask == 0 of one that is added to scores");
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
  if (extent.other_rows == extent.rows) call.validity.other_seq_len = extent.other_seq_len;
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
    inputs.mask = mask_from(rows.mask, "mask");
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
  set_offset(call, inputs, extent.rows, "batch row", extent.has_batch ? -1 : extent.seq_len);
  if (inputs.positions) set_explicit_positions(call, inputs.positions, extent, "positions");
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
                          std::to_string(d_model) +
                          (*end > d_model ? "; give d_model, the width of the whole encoding" : ""));
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

int seq_axis_of(const std::optional<std::int64_t>& seq_axis, const Array& array, const char* name,
                const char* last_axis) {
  const auto axes = static_cast<std::int64_t>(array.ndim());
  if (axes < 2) {
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected at least two axes, [L, " +
                          last_axis + "] or [B, .., L, " + last_axis + "]; use " + name +
                          (axes == 0 ? "[None, None] for one number" : "[None] for one row"));
  }
  if (axes - 2 > max_item_axes) {
    throw py::value_error(std::string(name) + " has " + std::to_string(axes) + " axes, expected at most 10");
  }
  if (!seq_axis) return static_cast<int>(axes - 2);
  const std::int64_t axis = *seq_axis < 0 ? *seq_axis + axes : *seq_axis;
  if (axis < 0 || axis >= axes - 1) {
    throw py::value_error("seq_axis is " + std::to_string(*seq_axis) + ", expected an axis of " + name + ", " +
                          shape_text(array) + ", other than the last");
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

Array output(Array given, const py::dtype& dtype, const Shape& shape, const char* like, const char* name) {
  if (!given) return new_array(dtype, shape);
  if (given.dtype().num() != dtype.num()) {
    throw py::type_error(std::string(name) + " has dtype " + py::str(given.dtype()).cast<std::string>() +
                         ", expected " + py::str(dtype).cast<std::string>() +
                         (like != nullptr ? " as " + std::string(like) + " has; pass an array of that dtype"
                                          : "; pass an array of that dtype, or dtype="));
  }
  require_shape(given, shape, name);
  require_access(given, name, Access::write, nullptr);
  return given;
}

void refuse_shared_inputs(const Inputs& inputs, const Array& out, const char* out_name) {
  const bool is_named = out_name != nullptr;
  const auto refuse = [&](const Array& input, const char* name) {
    if (input) require_disjoint(out, is_named ? out_name : "the output", input, is_named ? name : "an input");
  };
  refuse(inputs.offsets, "offset");
  refuse(inputs.positions, inputs.positions_name);
  refuse(inputs.mask, "mask");
  refuse(inputs.lengths, "lengths");
  refuse(inputs.cu_seqlens, "cu_seqlens");
  refuse(inputs.learned, "table");
  refuse(inputs.vocabulary, "table");
  refuse(inputs.ids, "ids");
  refuse(inputs.cosines, "cos");
  refuse(inputs.sines, "sin");
}

void finish(const PendingCall& pending, const Source& source, const Operation& operation) {
  const Call call{source, operation, pending.positions, pending.validity, pending.max_threads};
  const OperationShape& shape = operation.shape();
  const bool is_small = shape.bytes_written < bytes_worth_releasing_the_gil;
  // A small call, too, may have the encoder's tables to make: interruptible, but not so that every thread makes them.
  if (is_small && source.is_prepared(shape.tile_dtype)) return run(call, nullptr);
  // The arrays are alive meanwhile: the caller and the call's inputs hold them.
  run_interruptibly(!is_small,
                    pending.is_in_place
                        ? "interrupted: each array that was given to be changed may be partly changed; restore it from "
                          "a copy: a second call would change that part again"
                        : "interrupted: the output array was partly written; compute it again before using it",
                    [&call](Interruption* interruption) { run(call, interruption); });
}

void run_interruptibly(bool releases_interpreter, const char* what_to_know,
                       const std::function<void(Interruption*)>& body) {
  SignalCheck signals(releases_interpreter);
  try {
    body(&signals);
  } catch (const Interrupted&) {
    signals.take_interpreter();
    signals.raise(what_to_know);
  }
  signals.take_interpreter();
}

}  // namespace fastpe::bindings
