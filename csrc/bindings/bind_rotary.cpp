// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call.h"
#include "fastpe/lazy.h"
#include "fastpe/messages.h"
#include "fastpe/operations/rotate.h"
#include "fastpe/operations/write.h"
#include "fastpe/operations/write_tables.h"
#include "fastpe/sources/rotary_tables.h"
#include "fastpe/sources/sinusoid/angles.h"
#include "fastpe/sources/sinusoid/coordinates.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "rotary_methods.h"
#include "rotation.h"
#include "scalars.h"
#include "warm_up.h"
#include "wrong_calls.h"

namespace fastpe::bindings {
namespace {

// ---- Forms of tables

enum class Arrangement { columns, pairs, complex };

struct Form {
  const char* name;
  TableForm table;
  Arrangement arrangement;
  bool is_angles;
};

constexpr Form forms[] = {
    {"halves", TableForm::halves, Arrangement::columns, false},
    {"tile", TableForm::tile, Arrangement::columns, false},
    {"repeat", TableForm::repeat, Arrangement::columns, false},
    {"cos_sin", TableForm::cos_sin, Arrangement::columns, false},
    {"sin_cos", TableForm::sin_cos, Arrangement::columns, false},
    {"pairs", TableForm::pairs, Arrangement::pairs, false},
    {"complex", TableForm::pairs, Arrangement::complex, false},
    {"angles", TableForm::cos_sin, Arrangement::columns, true},
};

const Form& form_named(PyObject* name) {
  const bool is_text = PyUnicode_Check(name) != 0;
  std::string names;
  py::list known;
  for (const Form& form : forms) {
    if (is_text && PyUnicode_CompareWithASCIIString(name, form.name) == 0) return form;
    const bool is_last = &form == std::end(forms) - 1;
    names += (names.empty() ? "'" : is_last ? " or '" : ", '") + std::string(form.name) + "'";
    known.append(form.name);
  }
  const std::string message = "form is " + repr_of(name) + ", expected " + names;
  if (!is_text) throw py::type_error(message);
  throw py::value_error(message + did_you_mean(name, known));
}

// ---- The embedding

// A row of the encoding: cosines, then sines, times the factor.
Spec spec_of(const FrequencySpec& frequencies, double factor) {
  Spec spec;
  spec.d_model = 2 * frequencies.frequency_count;
  spec.frequencies = frequencies;
  spec.interleaved = false;
  spec.cosine_first = true;
  spec.output_scale = factor;
  return spec;
}

// The pairs that turn. Those of frequency 0 keep their bits where the factor is 1.
std::vector<Columns> turning_pairs(const Encoder& encoder) {
  std::vector<Columns> turning;
  const std::vector<double>& radians = encoder.frequencies().radians.high;
  for (std::int64_t k = 0; k < encoder.spec().frequencies.frequency_count; ++k) {
    if (radians[static_cast<std::size_t>(k)] == 0.0) continue;
    if (turning.empty() || turning.back().first + turning.back().count < k) turning.push_back({k, 0});
    ++turning.back().count;
  }
  return turning;
}

// The same pairs in both directions.
struct Directions {
  Directions(std::int64_t pairs, bool interleaved, const std::vector<Columns>& rotated)
      : forward{pairs, interleaved, false, rotated}, inverse{pairs, interleaved, true, rotated} {}
  Pairing forward, inverse;
};

struct BoundRotary {
  BoundRotary(const FrequencySpec& frequencies, bool interleaved, bool is_conjugate, double factor,
              std::vector<int> frequency_axes, const Form& default_form, std::optional<std::int64_t> max_len)
      : core(spec_of(frequencies, factor)),
        rows(core, max_len),
        pairs(frequencies.frequency_count),
        attention_factor(factor),
        conjugate(is_conjugate),
        all(pairs, interleaved, {{0, pairs}}),
        turning(pairs, interleaved, turning_pairs(core)),
        form(default_form) {
    axes.of_frequency = std::move(frequency_axes);
    for (const int axis : axes.of_frequency) axes.count = std::max(axes.count, axis + 1);
  }

  // The encoder whose rows have this factor: the embedding's own, 1, or the inverse. Only rows of the own one are kept.
  const Encoder& encoder(double factor) const {
    if (factor == attention_factor) return core;
    const auto make = [&] { return std::make_unique<Encoder>(spec_of(core.spec().frequencies, factor)); };
    return *(factor == 1.0 ? unscaled : inverse).get(make);
  }

  Encoder core;
  RowCache rows;
  std::int64_t pairs;
  double attention_factor;
  bool conjugate;
  Directions all, turning;
  FrequencyAxes axes;
  const Form& form;
  Lazy<std::unique_ptr<Encoder>> unscaled, inverse;
};

// Calls use(source) with rows of this factor at the call's positions.
template <class Use>
void with_rows(const BoundRotary& self, double factor, const Use& use) {
  const Encoder& encoder = self.encoder(factor);
  const RowCache* const rows = &encoder == &self.core ? &self.rows : nullptr;
  if (self.axes.count > 0) {
    use(CoordinateSinusoids(encoder, rows, self.axes));
  } else {
    use(Sinusoids(encoder, rows, 0));
  }
}

void refuse_counting(const BoundRotary& self, PyObject* argument, const char* name) {
  if (self.axes.count == 0 || !is_given(argument)) return;
  throw py::value_error(std::string(name) + " is " + repr_of(argument) +
                        ", but rows of several coordinates have no order to count; pass positions=, an array [.., " +
                        std::to_string(self.axes.count) + "], and leave counting out");
}

// ---- tables

int arrays_of(const Form& form) { return form.is_angles ? 1 : fastpe::arrays_of(form.table); }

// The arrays to write into, where they are given.
std::array<Array, 2> given_outputs(PyObject* out, const Form& form) {
  std::array<Array, 2> given;
  if (!is_given(out)) return given;
  if (arrays_of(form) == 1) {
    if (PyTuple_Check(out)) {
      throw py::type_error("out is a " + type_name(out) + ", expected one array for form='" + form.name +
                           "'; give the array, or a form of two arrays, such as 'halves'");
    }
    given[0] = array_of(out, "out");
    return given;
  }
  const bool is_sequence = PyTuple_Check(out) || PyList_Check(out);
  const Py_ssize_t count = !is_sequence ? 0 : PyTuple_Check(out) ? PyTuple_GET_SIZE(out) : PyList_GET_SIZE(out);
  if (count != 2) {
    throw py::type_error("out is a " + type_name(out) + (is_sequence ? " of " + std::to_string(count) : "") +
                         ", expected a tuple of two arrays, (cos, sin), for form='" + form.name + "'");
  }
  const py::object items[] = {py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(out, 0)),
                              py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(out, 1))};
  given[0] = array_of(items[0].ptr(), "out[0]");
  given[1] = array_of(items[1].ptr(), "out[1]");
  return given;
}

// The dtype of the parts of what is returned, and of the array itself.
struct TableDTypes {
  py::dtype parts, array;
};

TableDTypes dtypes_of(const Form& form, const py::object& asked, const Array& given) {
  const bool is_complex = form.arrangement == Arrangement::complex;
  const bool is_given_complex = given && given.dtype().kind() == 'c';
  const auto wrong = [&](const std::string& found) {
    return py::type_error(found + ", expected float32 or float64" + (is_complex ? ", the dtype of the parts," : "") +
                          " for form='" + form.name + "'");
  };
  if (asked && asked.attr("kind").cast<std::string>() == "c" && (is_complex || form.is_angles)) {
    throw wrong("dtype is " + str_of(asked));
  }
  py::dtype parts = py::dtype::of<float>();
  if (!asked && is_complex && is_given_complex) {
    require_native_order(given.dtype(), "out");
    if (given.itemsize() == 16) parts = py::dtype::of<double>();
  } else if (asked || !is_complex) {
    parts = result_dtype(asked, given);
  }
  const DType dtype = dtype_of(parts, asked ? "dtype" : "out");
  if ((is_complex || form.is_angles) && dtype != row_dtype(dtype)) {
    throw wrong((asked ? "dtype is " : "out has dtype ") + str_of(parts));
  }
  if (!is_complex) return {parts, parts};
  return {parts, dtype == DType::float64 ? py::dtype("complex128") : py::dtype("complex64")};
}

Shape with_columns(const Shape& rows, const Form& form, std::int64_t pairs) {
  Shape shape = rows;
  const bool is_wide = !form.is_angles && form.arrangement == Arrangement::columns;
  shape.add_axis(axis_length(is_wide ? columns_per_pair(form.table) * pairs : pairs));
  if (form.arrangement == Arrangement::pairs) shape.add_axis(2);
  return shape;
}

PyObject* tables(BoundRotary& self, const TablesArguments& a) {
  // Phase 1
  const Form& form = is_given(a.form) ? form_named(a.form) : self.form;
  const bool is_out_given = is_given(a.out);
  std::array<Array, 2> out = given_outputs(a.out, form);
  const py::object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : py::object();
  const std::optional<std::int64_t> count = position_count(a.positions);
  refuse_counting(self, a.offset, "offset");
  Inputs inputs;
  if (!count) {
    refuse_together(a.positions, "positions", a.offset, "offset");
    inputs.positions = numbers_from(a.positions, "positions", Numbers::integers_or_floats, Order::contiguous);
  } else {
    refuse_counting(self, a.positions, "positions");
  }
  RowArguments rows;
  rows.offset = a.offset;
  read_rows(inputs, rows);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const TableDTypes dtypes = dtypes_of(form, dtype_given, out[0]);
  const DType dtype = dtype_of(dtypes.parts, "dtype");
  Shape shape;
  if (count) {
    shape = counted_shape(inputs, *count);
  } else {
    set_any_positions(call, inputs.positions, "positions", self.axes.count);
    shape = shape_of(inputs.positions);
    if (self.axes.count > 0) shape.drop_last_axis();
  }
  const int axes = static_cast<int>(shape.axes());
  const Shape out_shape = with_columns(shape, form, self.pairs);
  const char* const names[] = {arrays_of(form) == 1 ? "out" : "out[0]", "out[1]"};
  for (int i = 0; i < arrays_of(form); ++i) {
    Array& each = out[static_cast<std::size_t>(i)];
    each = output(std::move(each), dtypes.array, out_shape, nullptr, names[i]);
    if (is_out_given) refuse_shared_inputs(inputs, each, names[i]);
  }
  if (is_out_given && arrays_of(form) == 2) require_disjoint(out[0], names[0], out[1], names[1]);
  if (count) {
    set_rows(call, inputs, {axes > 1 ? shape.first() : 1, shape.last(), axes > 1});
  }
  std::array<Rows, 2> written;
  for (std::size_t i = 0; i < static_cast<std::size_t>(arrays_of(form)); ++i) {
    written[i] = form.arrangement == Arrangement::columns ? writable_rows_of(out[i], dtype, axes - 1)
                                                          : writable_rows_of_pairs(out[i], dtype, axes, names[i]);
  }
  if (form.is_angles) {
    finish(call, AngleRows(self.core, self.axes.of_frequency.data()), Write(written[0], !is_out_given));
  } else {
    const WriteTables write(written, form.table, self.pairs, !is_out_given);
    with_rows(self, self.attention_factor, [&](const Source& source) { finish(call, source, write); });
  }
  if (is_out_given) {
    Py_INCREF(a.out);
    return a.out;
  }
  if (arrays_of(form) == 1) return out[0].release().ptr();
  return py::make_tuple(py::object(std::move(out[0])), py::object(std::move(out[1]))).release().ptr();
}

// ---- rotate_, rotate, shift_

// The arrays as they were given: one, or a tuple of several.
PyObject* as_given(PyObject* x, const Others& others) {
  if (others.other_count == 0) {
    Py_INCREF(x);
    return x;
  }
  py::tuple arrays(static_cast<std::size_t>(1 + others.other_count));
  arrays[0] = py::handle(x);
  for (Py_ssize_t i = 0; i < others.other_count; ++i)
    arrays[static_cast<std::size_t>(1 + i)] = py::handle(others.others[i]);
  return arrays.release().ptr();
}

RotationArrays::Requirement requirement_of(const BoundRotary& self, const std::optional<std::int64_t>& seq_axis,
                                           Access access, const char* instead) {
  return {2 * self.pairs, seq_axis, access, self.axes.count > 0 ? 1 : 0, "make the embedding with a smaller rotary_dim",
          instead};
}

// Positions and validity; with axes=, positions have coordinates.
void set_rotation_rows(PendingCall& call, const BoundRotary& self, const Inputs& inputs, const Extent& extent) {
  if (self.axes.count == 0) return set_rows(call, inputs, extent);
  set_explicit_positions(call, inputs.positions, extent, "positions", self.axes.count);
  if (inputs.mask) set_mask(call, inputs.mask, extent);
  if (inputs.lengths) set_lengths(call, inputs.lengths, extent);
}

double inverse_factor(double factor) {
  const double inverse = 1.0 / factor;
  if (std::isfinite(inverse)) return inverse;
  throw py::value_error("inverse is True, but the attention_factor, " + text_of(factor) +
                        ", has no finite inverse; make the embedding with a larger one");
}

PyObject* rotate(BoundRotary& self, const RotateArguments& a, bool in_place) {
  // Phase 1
  RotationArrays arrays;
  arrays.take(a.x, a, in_place ? Access::write : Access::read);
  const bool is_out_given = is_given(a.out);
  Array out = is_out_given ? array_of(a.out, "out") : Array();
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  const bool is_inverse = bool_argument(a.inverse, "inverse", false);
  refuse_counting(self, a.offset, "offset");
  refuse_counting(self, a.cu_seqlens, "cu_seqlens");
  Inputs inputs;
  read_rows(inputs, row_arguments(a));
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  arrays.check(requirement_of(self, seq_axis, in_place ? Access::write : Access::read, "rotate(.., out=)"), inputs);
  if (self.axes.count > 0 && !inputs.positions) {
    throw py::value_error("positions is missing, expected an array [.., " + std::to_string(self.axes.count) +
                          "], the coordinates of each row: rows of several coordinates have no order to count");
  }
  set_rotation_rows(call, self, inputs, arrays.extent());
  std::vector<RotatedArray> rotated;
  if (in_place) {
    arrays.refuse_shared(inputs);
    rotated = arrays.in_place();
    call.is_in_place = true;
  } else {
    const Array& x = arrays.x();
    out = output(std::move(out), x.dtype(), shape_of(x), "x");
    if (is_out_given) {
      call.is_in_place = is_same_memory(out, x);
      if (!call.is_in_place) require_disjoint(out, "out", x, "x", " (out may be x itself)");
      refuse_shared_inputs(inputs, out, "out");
    }
    rotated.push_back(
        {rows_of(x, arrays.dtype(), arrays.seq_axis()), writable_rows_of(out, arrays.dtype(), arrays.seq_axis())});
  }
  const double factor = is_inverse ? inverse_factor(self.attention_factor) : self.attention_factor;
  const Directions& directions = factor == 1.0 ? self.turning : self.all;
  const Rotate operation(std::move(rotated), arrays.extent().rows,
                         is_inverse != self.conjugate ? directions.inverse : directions.forward);
  with_rows(self, factor, [&](const Source& source) { finish(call, source, operation); });
  if (in_place) return as_given(a.x, a);
  if (!is_out_given) return out.release().ptr();
  Py_INCREF(a.out);
  return a.out;
}

PyObject* rotate_in_place(BoundRotary& self, const RotateArguments& a) { return rotate(self, a, true); }

PyObject* rotate_apart(BoundRotary& self, const RotateArguments& a) {
  if (a.other_count > 0) {
    refuse_too_many(Signature<RotateMethod>::get().names(), 1 + a.other_count, "; rotate one array in each call");
  }
  return rotate(self, a, false);
}

// How far each row moves, as positions: one for all rows, or for all of each sequence, has no axis for the rows.
void set_moves(PendingCall& call, const BoundRotary& self, const Array& by, const std::int64_t& one,
               const Extent& extent) {
  Positions& p = call.positions;
  p.values_name = "by";
  const int coordinates = self.axes.count;
  if (!by) {
    p.values = {reinterpret_cast<const char*>(&one), NumberType::int64, 0, 0};
    return;
  }
  const py::ssize_t axes = by.ndim() - (coordinates > 0 ? 1 : 0);
  const bool is_for_all = axes == 0;
  const bool is_for_sequence = axes == 2 && by.shape(1) == 1 && extent.seq_len != 1 && by.shape(0) == extent.rows;
  if (!is_for_all && !is_for_sequence) return set_explicit_positions(call, by, extent, "by", coordinates);
  if (coordinates > 0 && last(by) != coordinates) {
    throw py::value_error("by has shape " + shape_text(by) + ", expected a last axis of " +
                          std::to_string(coordinates) + ", the coordinates that axes= counts");
  }
  p.values = {static_cast<const char*>(by.data()), number_type_of(by, "by", Numbers::integers_or_floats),
              is_for_sequence ? by.strides(0) : 0, 0};
  p.values_per_row = is_for_sequence;
  if (is_for_sequence) p.value_axes.add(by.shape(0), by.strides(0));
  p.coordinate_count = coordinates;
  p.coordinate_stride_bytes = coordinates > 0 ? by.strides(by.ndim() - 1) : 0;
}

PyObject* shift(BoundRotary& self, const ShiftArguments& a) {
  // Phase 1
  RotationArrays arrays;
  arrays.take(a.x, a, Access::write);
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  if (!is_given(a.by)) refuse_missing(Signature<ShiftMethod>::get().names(), "by");
  const std::optional<std::int64_t> one = integer_argument(a.by);
  Inputs inputs;
  inputs.positions_name = "by";
  if (one && (*one > max_position || *one < -max_position)) {
    throw py::value_error("by is " + repr_of(a.by) +
                          ", expected magnitude at most 2**53; beyond it not every integer " +
                          "has a float64 of its own");
  }
  if (!one) {
    inputs.positions = numbers_from(a.by, "by", Numbers::integers_or_floats);
  } else if (self.axes.count > 0) {
    throw py::value_error("by is " + repr_of(a.by) + ", expected an array of " + std::to_string(self.axes.count) +
                          " coordinates, since the embedding has axes");
  }
  RowArguments rows;
  rows.mask = a.mask;
  rows.lengths = a.lengths;
  read_rows(inputs, rows);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  arrays.check(requirement_of(self, seq_axis, Access::write, nullptr), inputs);
  const Extent& extent = arrays.extent();
  const std::int64_t constant = one.value_or(0);
  set_moves(call, self, inputs.positions, constant, extent);
  if (inputs.mask) set_mask(call, inputs.mask, extent);
  if (inputs.lengths) set_lengths(call, inputs.lengths, extent);
  arrays.refuse_shared(inputs);
  call.is_in_place = true;
  const Rotate operation(arrays.in_place(), extent.rows, self.conjugate ? self.turning.inverse : self.turning.forward);
  with_rows(self, 1.0, [&](const Source& source) { finish(call, source, operation); });
  return as_given(a.x, a);
}

// ---- rotation by tables that are given

void require_table_dtype(const Array& table, const Array& x, const char* name) {
  const DType dtype = dtype_of(table, name), x_dtype = dtype_of(x, "x");
  if (dtype == DType::float32 || dtype == x_dtype) return;
  const bool has_choice = x_dtype != DType::float32;
  throw py::type_error(std::string(name) + " has dtype " + py::str(table.dtype()).cast<std::string>() + ", expected " +
                       (has_choice ? "float32, or " : "") + py::str(x.dtype()).cast<std::string>() + " as x has" +
                       same_dtype(table, name, x));
}

// Tables that have each column twice would rotate twice as many columns.
void refuse_twins(const TableView& cosines, const TableView& sines, std::int64_t pairs) {
  const Twins twins = twins_of(cosines, sines, pairs);
  if (twins == Twins::none) return;
  const std::string columns = "[:, :" + std::to_string(pairs / 2) + "]";
  throw py::value_error("cos and sin have each column twice, expected [rows, pairs]; pass " +
                        (twins == Twins::tiled
                             ? "cos" + columns + " and sin" + columns
                             : "np.ascontiguousarray(cos[:, ::2]) and np.ascontiguousarray(sin[:, ::2])"));
}

// What to do about the tables [1, L, d] of transformers.
std::string without_leading_axes(const Array& table) {
  const py::ssize_t outer = table.ndim() - 2;
  if (outer < 1) return "";
  std::string zeros;
  for (py::ssize_t axis = 0; axis < outer; ++axis) {
    if (table.shape(axis) != 1) return "; pass one table for all sequences, and which rows of it as positions=";
    zeros += (axis == 0 ? "" : ", ") + std::string("0");
  }
  return "; pass cos[" + zeros + "], or cos[" + zeros + ", :, :" + std::to_string(last(table) / 2) +
         "] of a tiled one, or np.ascontiguousarray(cos[" + zeros + ", :, ::2]) of a repeated one, and the same of sin";
}

PyObject* rotate_by_tables(std::nullptr_t, const RotateByTablesArguments& a) {
  // Phase 1
  RotationArrays arrays;
  arrays.take(a.x, a, Access::write);
  Array cos = array_from(a.cos, "cos", Bfloat16::refused), sin = array_from(a.sin, "sin", Bfloat16::refused);
  const bool interleaved = bool_from(a.interleaved, "interleaved");
  const bool conjugate = bool_argument(a.conjugate, "conjugate", false);
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  Inputs inputs;
  read_rows(inputs, row_arguments(a));
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  if (cos.ndim() != 2 || last(cos) == 0) {
    throw py::value_error("cos has shape " + shape_text(cos) + ", expected [rows, pairs], one pair or more" +
                          without_leading_axes(cos));
  }
  require_shape(sin, shape_of(cos), "sin");
  const TableView cosines = table_of(cos, "cos"), sines = table_of(sin, "sin");
  require_dtype(sin, cos, "sin", "cos");
  require_access(cos, "cos", Access::read);
  require_access(sin, "sin", Access::read);
  const std::int64_t pairs = last(cos);
  refuse_twins(cosines, sines, pairs);
  arrays.check(
      {2 * pairs, seq_axis, Access::write, 0,
       "tables of fewer columns, such as cos[:, :d // 2] of a tiled one or np.ascontiguousarray(cos[:, ::2]) of "
       "a repeated one",
       nullptr},
      inputs);
  require_table_dtype(cos, arrays.x(), "cos");
  set_rows(call, inputs, arrays.extent());
  inputs.cosines = std::move(cos);
  inputs.sines = std::move(sin);
  arrays.refuse_shared(inputs);
  call.is_in_place = true;
  const Pairing pairing{pairs, interleaved, conjugate, {{0, pairs}}};
  const Rotate operation(arrays.in_place(), arrays.extent().rows, pairing);
  finish(call, RotaryTables(cosines, sines, pairs), operation);
  return as_given(a.x, a);
}

PyObject* warm_up_rotary(BoundRotary& self, const WarmUpArguments& a) { return warm_up(self.core, self.rows, a); }

// ---- the class

std::unique_ptr<BoundRotary> make_rotary(std::int64_t rotary_dim, bool interleaved, double base,
                                         std::vector<double> freqs, double attention_factor, std::vector<int> axes,
                                         bool conjugate, const py::object& form, std::optional<std::int64_t> max_len) {
  const bool has_axis_for_each = axes.empty() || static_cast<std::int64_t>(axes.size()) == rotary_dim / 2;
  const auto is_axis = [](int axis) { return 0 <= axis && axis < max_coordinates; };
  if (!has_axis_for_each || !std::all_of(axes.begin(), axes.end(), is_axis)) {
    throw py::value_error("axes: expected one of 0 to " + std::to_string(max_coordinates - 1) + " for each of " +
                          std::to_string(rotary_dim / 2) + " frequencies");
  }
  FrequencySpec frequencies;
  frequencies.frequency_count = rotary_dim / 2;
  frequencies.base = base;
  frequencies.exponent_denominator = static_cast<double>(rotary_dim / 2);
  frequencies.given = std::move(freqs);
  frequencies.arguments = "base, scaling and freqs";
  return std::make_unique<BoundRotary>(frequencies, interleaved, conjugate, attention_factor, std::move(axes),
                                       form_named(form.ptr()), max_len);
}

}  // namespace

void bind_rotary(py::module_& module) {
  py::class_<BoundRotary> type(module, "Rotary");
  type.def(py::init(&make_rotary), py::kw_only(), py::arg("rotary_dim"), py::arg("interleaved"), py::arg("base"),
           py::arg("freqs"), py::arg("attention_factor"), py::arg("axes"), py::arg("conjugate"), py::arg("form"),
           py::arg("max_len"));
  type.def("_frequencies", [](const BoundRotary& self) {
    return py::array_t<double>(static_cast<py::ssize_t>(self.pairs), self.core.frequencies().radians.high.data());
  });
  define_method<TablesMethod, bound_of<BoundRotary>, tables>(type);
  define_method<RotateInPlaceMethod, bound_of<BoundRotary>, rotate_in_place>(type);
  define_method<RotateMethod, bound_of<BoundRotary>, rotate_apart>(type);
  define_method<ShiftMethod, bound_of<BoundRotary>, shift>(type);
  define_method<WarmUpMethod, bound_of<BoundRotary>, warm_up_rotary>(type);
  define_function<RotateByTablesMethod, rotate_by_tables>(module);
  module.attr("max_coordinates") = max_coordinates;
  py::list names;
  for (const Form& form : forms) names.append(form.name);
  module.attr("table_forms") = py::tuple(names);
}

}  // namespace fastpe::bindings
