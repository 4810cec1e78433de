// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "bindings.h"
#include "encoder_docs.h"
#include "fastpe/encoder.h"

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 16 * 1024;

struct BoundEncoder {
  Encoder core;
  std::int64_t first_position;
};

bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

std::string repr_of(PyObject* object) { return py::repr(py::handle(object)).cast<std::string>(); }

// ---- scalars

double number_argument(PyObject* object, const char* name, double otherwise) {
  if (!is_given(object)) return otherwise;
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::type_error(std::string(name) + " is " + repr_of(object) + ", expected a number");
  }
  return value;
}

// Made when the module is loaded. Made by the first call, they would be waited for with the interpreter's lock in hand,
// which the thread that makes them may have to take again.
struct Globals {
  Signature<12> add_in_place{"add_",
                             1,
                             {"x", "offset", "positions", "mask", "lengths", "cu_seqlens", "scale", "alpha", "seq_axis",
                              "channels", "table", "num_threads"}};
  Signature<13> add{"add",
                    1,
                    {"x", "offset", "positions", "mask", "lengths", "cu_seqlens", "scale", "alpha", "seq_axis",
                     "channels", "table", "num_threads", "out"}};
  Signature<8> encode{
      "encode", 1, {"positions", "dtype", "offset", "mask", "lengths", "channels", "num_threads", "out"}};
  Signature<12> embed{"embed",
                      2,
                      {"ids", "table", "offset", "positions", "mask", "lengths", "cu_seqlens", "scale", "alpha",
                       "position_table", "num_threads", "out"}};
  PyObject* numpy_scalar = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  PyObject* numpy_bool = py::object(py::module_::import("numpy").attr("bool_")).release().ptr();
};

const Globals& globals() {
  static const Globals made;
  return made;
}

bool is_numpy_scalar(PyObject* object) { return PyObject_IsInstance(object, globals().numpy_scalar) == 1; }

// An int that is no bool; saturated where it does not fit.
std::optional<std::int64_t> integer_argument(PyObject* object) {
  if (is_ndarray(object) || PyBool_Check(object)) return std::nullopt;
  if (!PyLong_Check(object)) {
    // Until NumPy 2.3 its bool had an __index__.
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == globals().numpy_bool) return std::nullopt;
    // Tensors of one element have an __index__ too, but are arrays.
    if (!PyIndex_Check(object) || (py::hasattr(object, "shape") && !is_numpy_scalar(object))) return std::nullopt;
  }
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN;
  return value;
}

int threads_argument(PyObject* object) {
  if (!is_given(object)) return default_thread_count();
  const std::optional<std::int64_t> value = integer_argument(object);
  if (!value || *value < 1) {
    const std::string message =
        "num_threads is " + repr_of(object) + ", expected a positive int, or None for the default";
    if (!value) throw py::type_error(message);
    throw py::value_error(message);
  }
  return static_cast<int>(std::min<std::int64_t>(*value, 1 << 16));
}

// ---- a call in the making

struct Keywords {
  PyObject* offset = nullptr;
  PyObject* positions = nullptr;
  PyObject* mask = nullptr;
  PyObject* lengths = nullptr;
  PyObject* cu_seqlens = nullptr;
};

// The job and the arrays that its views point into.
struct Call {
  Job job;
  RowsView x;
  std::vector<py::array> kept;

  py::array keep(py::array array) {
    kept.push_back(array);
    return array;
  }
};

struct Extent {
  std::int64_t rows;  // of per-row arguments: the first batch axis, or 1 without one
  std::int64_t seq_len;
  bool has_batch;
};

Extent extent_of(const RowsView& view) {
  return {view.batch_axes > 0 ? view.batch_shape[0] : 1, view.seq_len, view.batch_axes > 0};
}

std::int64_t batches_per_row(const RowsView& view) {
  std::int64_t count = 1;
  for (int axis = 1; axis < view.batch_axes; ++axis) count *= view.batch_shape[axis];
  return std::max<std::int64_t>(count, 1);
}

// One integer per row: an int for all of them, or an array [rows].
NumbersView per_row_integers(Call& call, PyObject* object, std::int64_t rows, const char* name, const char* axis) {
  const py::array array = call.keep(numbers_of(object, name, Numbers::integers));
  if (array.ndim() > 1 || (array.ndim() == 1 && array.shape(0) != rows)) {
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected an int, or shape " +
                          shape_text({rows}) + ": one per " + axis);
  }
  return {static_cast<const char*>(array.data()), number_type_of(array), array.ndim() == 1 ? array.strides(0) : 0, 0};
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

void set_explicit_positions(Call& call, PyObject* positions, const Extent& extent) {
  const py::array array = call.keep(numbers_of(positions, "positions", Numbers::integers_or_floats));
  Positions& p = call.job.positions;
  const py::ssize_t axes = array.ndim();
  const bool fits =
      (axes == 1 && array.shape(0) == extent.seq_len) ||
      (axes == 2 && extent.has_batch && array.shape(0) == extent.rows && array.shape(1) == extent.seq_len);
  if (!fits) {
    const std::string per_batch = extent.has_batch ? " or " + shape_text({extent.rows, extent.seq_len}) : "";
    throw py::value_error("positions has shape " + shape_text(array) + ", expected " + shape_text({extent.seq_len}) +
                          per_batch + ": one per row");
  }
  p.values = {static_cast<const char*>(array.data()), number_type_of(array), axes == 2 ? array.strides(0) : 0,
              array.strides(axes - 1)};
  p.values_per_batch = axes == 2;
}

void set_mask(Call& call, PyObject* mask, const Extent& extent) {
  const py::array array = call.keep(py::isinstance<py::array>(mask)
                                        ? array_of(mask, "mask")
                                        : py::array(py::module_::import("numpy").attr("asarray")(py::handle(mask))));
  if (array.dtype().kind() != 'b') {
    throw py::type_error("mask has dtype " + py::str(array.dtype()).cast<std::string>() +
                         ", expected bool, True where the row counts; convert it with .astype(bool)");
  }
  const py::ssize_t axes = array.ndim();
  const bool fits =
      (axes == 1 && array.shape(0) == extent.seq_len) ||
      (axes == 2 && extent.has_batch && array.shape(0) == extent.rows && array.shape(1) == extent.seq_len);
  if (!fits) {
    const std::string per_batch = extent.has_batch ? " or " + shape_text({extent.rows, extent.seq_len}) : "";
    throw py::value_error("mask has shape " + shape_text(array) + ", expected " + shape_text({extent.seq_len}) +
                          per_batch + ": one per row");
  }
  Validity& v = call.job.validity;
  v.mask = static_cast<const char*>(array.data());
  v.mask_batch_stride_bytes = axes == 2 ? array.strides(0) : 0;
  v.mask_seq_stride_bytes = array.strides(axes - 1);
  call.job.positions.count_valid_only = call.job.positions.values.data == nullptr;
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

void refuse_together(PyObject* a, const char* a_name, PyObject* b, const char* b_name) {
  if (is_given(a) && is_given(b)) {
    throw py::value_error(std::string(a_name) + " and " + b_name + " were both given, expected one of them; leave " +
                          b_name + " out");
  }
}

// Positions and validity of the rows of `view`.
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

// ---- running it

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

// pybind11's own cast would hand out raw memory for an object whose __init__ never ran.
BoundEncoder& encoder_of(PyObject* self) {
  void* const encoder = reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder().value_ptr();
  if (encoder == nullptr) {
    throw py::type_error(type_name(self) + " is not initialised, expected its __init__ to have run; make a new one");
  }
  return *static_cast<BoundEncoder*>(encoder);
}

// `out` as given, checked, or a new array.
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

// ---- add_, add

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

enum Add {
  add_x,
  add_offset,
  add_positions,
  add_mask,
  add_lengths,
  add_cu_seqlens,
  add_scale,
  add_alpha,
  add_seq_axis,
  add_channels,
  add_table,
  add_num_threads,
  add_out
};

template <std::size_t count>
PyObject* add_to(BoundEncoder& self, const std::array<PyObject*, count>& a, bool in_place) {
  Call call;
  Job& job = call.job;
  const py::array x = array_of(a[add_x], "x");
  const DType dtype = dtype_of(x, "x");
  const int seq_axis = seq_axis_argument(a[add_seq_axis], x);
  require_access(x, "x", in_place ? Access::write : Access::read);
  call.x = rows_of(x, dtype, seq_axis);
  job.positions.first = self.first_position;
  if (is_given(a[add_table])) {
    job.learned = learned_argument(call, a[add_table], x, "x", call.x.columns, "table");
    if (is_given(a[add_channels])) {
      throw py::value_error("table and channels were both given, expected one of them; slice the table's columns");
    }
  } else {
    job.encoder = &self.core;
    job.first_column = channels_argument(a[add_channels], self.core.spec().d_model, call.x.columns, "x");
  }
  set_rows(call, {a[add_offset], a[add_positions], a[add_mask], a[add_lengths], a[add_cu_seqlens]}, call.x);
  job.scale = number_argument(a[add_scale], "scale", 1.0);
  job.alpha = number_argument(a[add_alpha], "alpha", 1.0);
  job.max_threads = threads_argument(a[add_num_threads]);
  job.x = &call.x;
  if (in_place) {
    refuse_shared_inputs(call, x);
    job.out = call.x;
    finish(call);
    Py_INCREF(a[add_x]);
    return a[add_x];
  }
  py::array out;
  PyObject* const given_out = a[count - 1];
  const std::vector<py::ssize_t> shape(x.shape(), x.shape() + x.ndim());
  out = output(given_out, x.dtype(), shape);
  if (is_given(given_out)) {
    if (!is_same_memory(out, x)) require_disjoint(out, "out", x, "x");
    refuse_shared_inputs(call, out);
  }
  job.out = rows_of(out, dtype, seq_axis);
  finish(call);
  if (is_given(given_out)) {
    Py_INCREF(given_out);
    return given_out;
  }
  return out.release().ptr();
}

PyObject* method_add_in_place(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded(
      [&] { return add_to(encoder_of(self), globals().add_in_place.parse(arguments, given, keywords), true); });
}

PyObject* method_add(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return add_to(encoder_of(self), globals().add.parse(arguments, given, keywords), false); });
}

// ---- encode

py::dtype dtype_argument(PyObject* object) {
  try {
    return py::dtype::from_args(py::reinterpret_borrow<py::object>(object));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw py::type_error("dtype is " + repr_of(object) + ", expected float32, float64, float16 or ml_dtypes.bfloat16");
  }
}

// Positions of any shape; their own shape is the result's.
void set_encoded_positions(Call& call, py::array positions, std::vector<py::ssize_t>& shape) {
  shape.assign(positions.shape(), positions.shape() + positions.ndim());
  if (positions.ndim() > 1 && (positions.flags() & py::array::c_style) == 0) {
    positions = py::module_::import("numpy").attr("ascontiguousarray")(positions);
  }
  const py::array array = call.keep(std::move(positions));
  const py::ssize_t axes = array.ndim();
  Positions& p = call.job.positions;
  const py::ssize_t seq_stride = axes == 0 ? 0 : array.strides(axes - 1);
  const py::ssize_t batch_stride = axes > 1 ? last(array) * array.itemsize() : 0;
  p.values = {static_cast<const char*>(array.data()), number_type_of(array), batch_stride, seq_stride};
  p.values_per_batch = axes > 1;
}

enum Encode {
  encode_positions,
  encode_dtype,
  encode_offset,
  encode_mask,
  encode_lengths,
  encode_channels,
  encode_num_threads,
  encode_out
};

PyObject* encode(BoundEncoder& self, const std::array<PyObject*, 8>& a) {
  Call call;
  Job& job = call.job;
  job.encoder = &self.core;
  job.positions.first = self.first_position;
  const std::int64_t d_model = self.core.spec().d_model;
  std::int64_t columns = d_model;
  if (is_given(a[encode_channels]) && PyTuple_Check(a[encode_channels]) && PyTuple_GET_SIZE(a[encode_channels]) == 2) {
    const auto first = integer_argument(PyTuple_GET_ITEM(a[encode_channels], 0));
    const auto end = integer_argument(PyTuple_GET_ITEM(a[encode_channels], 1));
    if (first && end && *first >= 0) columns = std::max<std::int64_t>(*end - *first, 0);
  }
  job.first_column = channels_argument(a[encode_channels], d_model, columns, "the result");

  const py::dtype dtype = is_given(a[encode_dtype]) ? dtype_argument(a[encode_dtype])
                          : is_given(a[encode_out]) ? array_of(a[encode_out], "out").dtype()
                                                    : py::dtype::of<float>();
  const char* const dtype_name = is_given(a[encode_dtype]) ? "dtype" : "out";
  const DType core_dtype = dtype_of(dtype, dtype_name);
  require_native_order(dtype, dtype_name);

  PyObject* const what = a[encode_positions];
  std::vector<py::ssize_t> shape;
  const std::optional<std::int64_t> seq_len = integer_argument(what);
  if (seq_len) {
    if (*seq_len < 0) {
      throw py::value_error("positions is " + repr_of(what) +
                            ", expected a number of positions, 0 or more; for one "
                            "negative position pass an array, [" +
                            repr_of(what) + "]");
    }
    if (*seq_len > 2 * max_position + 1) {
      throw py::value_error("positions is " + repr_of(what) +
                            ", expected a number of positions that all have magnitude at most 2**53; compute fewer");
    }
    // A batch axis comes from the arguments that have one.
    for (PyObject* per_row : {a[encode_offset], a[encode_lengths], a[encode_mask]}) {
      if (!is_given(per_row) || !shape.empty() || integer_argument(per_row)) continue;
      const py::array array = py::module_::import("numpy").attr("asarray")(py::handle(per_row));
      const bool is_mask = per_row == a[encode_mask];
      if (array.ndim() == (is_mask ? 2 : 1)) shape.push_back(array.shape(0));
    }
    shape.push_back(*seq_len);
  } else {
    if (PyFloat_Check(what) || PyBool_Check(what) || what == Py_None || is_numpy_scalar(what)) {
      throw py::type_error("positions is " + repr_of(what) +
                           ", expected an int, the number of positions, or an array "
                           "of positions; for one fractional position pass [" +
                           repr_of(what) + "]");
    }
    refuse_together(what, "positions", a[encode_offset], "offset");
    set_encoded_positions(call, numbers_of(what, "positions", Numbers::integers_or_floats), shape);
  }
  if (shape.size() > max_batch_axes) throw py::value_error("positions has more than 8 axes, expected at most 8");
  const int seq_axis = static_cast<int>(shape.size()) - 1;
  shape.push_back(columns);
  const py::array out = output(a[encode_out], dtype, shape);
  job.out = rows_of(out, core_dtype, seq_axis);
  if (seq_len) {
    set_rows(call, {a[encode_offset], nullptr, a[encode_mask], a[encode_lengths], nullptr}, job.out);
  } else {
    refuse_together(a[encode_mask], "mask", a[encode_lengths], "lengths");
    const Extent extent = extent_of(job.out);
    if (is_given(a[encode_mask]) || is_given(a[encode_lengths])) {
      if (job.out.batch_axes > 1) {
        throw py::value_error("mask and lengths go with positions [L] or [B, L], found positions of " +
                              std::to_string(job.out.batch_axes + 1) + " axes; reshape them");
      }
      if (is_given(a[encode_mask])) set_mask(call, a[encode_mask], extent);
      if (is_given(a[encode_lengths])) {
        job.validity.lengths = per_row_integers(call, a[encode_lengths], extent.rows, "lengths", "batch row");
      }
    }
  }
  job.max_threads = threads_argument(a[encode_num_threads]);
  if (is_given(a[encode_out])) refuse_shared_inputs(call, out);
  finish(call);
  if (is_given(a[encode_out])) {
    Py_INCREF(a[encode_out]);
    return a[encode_out];
  }
  return py::object(out).release().ptr();
}

PyObject* method_encode(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return encode(encoder_of(self), globals().encode.parse(arguments, given, keywords)); });
}

// ---- embed

enum Embed {
  embed_ids,
  embed_table,
  embed_offset,
  embed_positions,
  embed_mask,
  embed_lengths,
  embed_cu_seqlens,
  embed_scale,
  embed_alpha,
  embed_position_table,
  embed_num_threads,
  embed_out
};

PyObject* embed(BoundEncoder& self, const std::array<PyObject*, 12>& a) {
  Call call;
  Job& job = call.job;
  const py::array table = call.keep(array_of(a[embed_table], "table"));
  const DType dtype = dtype_of(table, "table");
  require_access(table, "table", Access::read);
  job.vocabulary = table_of(table, "table");
  const std::int64_t columns = table.shape(1);

  py::array ids = numbers_of(a[embed_ids], "ids", Numbers::integers);
  std::vector<py::ssize_t> shape(ids.shape(), ids.shape() + ids.ndim());
  if (shape.size() > max_batch_axes) throw py::value_error("ids has more than 8 axes, expected at most 8");
  if (ids.ndim() > 1 && (ids.flags() & py::array::c_style) == 0) {
    ids = py::module_::import("numpy").attr("ascontiguousarray")(ids);
  }
  const py::array kept_ids = call.keep(std::move(ids));
  const py::ssize_t axes = kept_ids.ndim();
  job.ids = {static_cast<const char*>(kept_ids.data()), number_type_of(kept_ids),
             axes > 1 ? last(kept_ids) * kept_ids.itemsize() : 0, axes > 0 ? kept_ids.strides(axes - 1) : 0};

  job.positions.first = self.first_position;
  if (is_given(a[embed_position_table])) {
    job.learned = learned_argument(call, a[embed_position_table], table, "table", columns, "position_table");
  } else {
    job.encoder = &self.core;
    channels_argument(nullptr, self.core.spec().d_model, columns, "table");
  }
  const int seq_axis = static_cast<int>(axes) - 1;
  shape.push_back(columns);
  const py::array out = output(a[embed_out], table.dtype(), shape);
  job.out = rows_of(out, dtype, seq_axis);
  set_rows(call, {a[embed_offset], a[embed_positions], a[embed_mask], a[embed_lengths], a[embed_cu_seqlens]}, job.out);
  job.scale = number_argument(a[embed_scale], "scale", 1.0);
  job.alpha = number_argument(a[embed_alpha], "alpha", 1.0);
  job.max_threads = threads_argument(a[embed_num_threads]);
  if (is_given(a[embed_out])) refuse_shared_inputs(call, out);
  finish(call);
  if (is_given(a[embed_out])) {
    Py_INCREF(a[embed_out]);
    return a[embed_out];
  }
  return py::object(out).release().ptr();
}

PyObject* method_embed(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return embed(encoder_of(self), globals().embed.parse(arguments, given, keywords)); });
}

// ---- the class

void define(py::class_<BoundEncoder>& type, const char* name, VectorcallMethod method, const char* doc) {
  // Alive as long as the type: CPython keeps a pointer to it.
  static std::array<PyMethodDef, 4> definitions{};
  static std::size_t used = 0;
  PyMethodDef& definition = definitions.at(used++);
  definition.ml_name = name;
  definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
  definition.ml_flags = METH_FASTCALL | METH_KEYWORDS;
  definition.ml_doc = doc;
  PyObject* const descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition);
  if (descriptor == nullptr) throw py::error_already_set();
  type.attr(name) = py::reinterpret_steal<py::object>(descriptor);
}

std::unique_ptr<BoundEncoder> make_encoder(std::int64_t d_model, std::int64_t frequency_count, double base,
                                           double exponent_denominator, double freq_scale, std::vector<double> freqs,
                                           bool interleaved, bool cosine_first, double output_scale,
                                           std::int64_t max_len, std::int64_t first_position) {
  Spec spec;
  spec.d_model = d_model;
  spec.frequencies = {frequency_count, base, exponent_denominator, freq_scale, std::move(freqs)};
  spec.interleaved = interleaved;
  spec.cosine_first = cosine_first;
  spec.output_scale = output_scale;
  return std::unique_ptr<BoundEncoder>(new BoundEncoder{Encoder(std::move(spec), max_len), first_position});
}

}  // namespace

void bind_encoder(py::module_& module) {
  globals();
  py::class_<BoundEncoder> type(module, "Encoder");
  type.def(py::init(&make_encoder), py::kw_only(), py::arg("d_model"), py::arg("frequency_count"), py::arg("base"),
           py::arg("exponent_denominator"), py::arg("freq_scale"), py::arg("freqs"), py::arg("interleaved"),
           py::arg("cosine_first"), py::arg("output_scale"), py::arg("max_len"), py::arg("first_position"));
  type.def("_frequencies", [](const BoundEncoder& self) {
    const std::vector<double>& radians = self.core.frequencies().radians;
    return py::array_t<double>(static_cast<py::ssize_t>(radians.size()), radians.data());
  });
  define(type, "encode", method_encode, encode_doc);
  define(type, "add_", method_add_in_place, add_in_place_doc());
  define(type, "add", method_add, add_doc());
  define(type, "embed", method_embed, embed_doc());
}

}  // namespace fastpe::bindings
