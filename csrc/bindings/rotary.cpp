// SPDX-License-Identifier: BSD-3-Clause
// The class Rotary, and rotation by tables that are given.
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "call.h"
#include "fastpe/checks/rotation.h"
#include "fastpe/embeddings/rotary_embedding.h"
#include "fastpe/operations/write.h"
#include "fastpe/operations/write_tables.h"
#include "fastpe/sources/sinusoid/angles.h"
#include "fastpe/sources/tables.h"
#include "method.h"

namespace fastpe::bindings {
namespace {

// ---- Forms of tables

enum class Arrangement { columns, pairs, complex };

struct Form {
  const char* name;
  TableForm table;
  Arrangement arrangement;
  bool is_angles;

  std::size_t arrays() const { return is_angles ? 1 : static_cast<std::size_t>(arrays_of(table)); }
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
  for (const Form& form : forms) {
    if (is_text && PyUnicode_CompareWithASCIIString(name, form.name) == 0) return form;
    names += joined({names.empty() ? "'" : ", '", form.name, "'"});
  }
  refuse(is_text ? ErrorKind::value : ErrorKind::type, "form", {"is ", repr_of(name)}, {names}, {});
}

// ---- The embedding

struct BoundRotary : RotaryEmbedding {
  BoundRotary(const WantedFrequencies& frequencies, bool interleaved, bool is_conjugate, double attention_factor,
              FrequencyCoordinates frequency_coordinates, const Form& default_form, std::optional<std::int64_t> max_len)
      : RotaryEmbedding(frequencies, interleaved, attention_factor, std::move(frequency_coordinates), max_len),
        conjugate(is_conjugate),
        form(default_form) {}

  bool conjugate;
  const Form& form;
  std::int64_t head_dim = 0;  // 0: not known
};

void refuse_counting(const BoundRotary& self, PyObject* argument, const char* name) {
  if (self.coordinates.count == 0 || !is_given(argument)) return;
  refuse_value(name, {"was given"}, {"no counting: rows of several coordinates have no order"},
               {"pass positions=, an array [.., ", self.coordinates.count, "]"});
}

// ---- tables

struct TablesArguments {
  PyObject *positions, *form, *dtype, *offset, *out, *num_threads;
};
Signature tables_signature("tables", "positions, *, form=None, dtype=None, offset=None, out=None, num_threads=None");

// The arrays to write into, where they are given.
std::array<PyObject*, 2> given_outputs(PyObject* out, const Form& form, Made& made) {
  if (!is_given(out)) return {};
  if (form.arrays() == 1) return {array_of(out, "out", made), nullptr};
  const bool is_sequence = PyTuple_Check(out) || PyList_Check(out);
  if (!is_sequence || PySequence_Fast_GET_SIZE(out) != 2) {
    refuse_type("out", {"is a ", type_name(out)}, {"a tuple of two arrays, (cos, sin), for form='", form.name, "'"});
  }
  PyObject* const cos = made.keep(Object::shared(PySequence_Fast_GET_ITEM(out, 0)));
  PyObject* const sin = made.keep(Object::shared(PySequence_Fast_GET_ITEM(out, 1)));
  return {array_of(cos, "out[0]", made), array_of(sin, "out[1]", made)};
}

// The dtype of the parts of what is returned: the one asked for, or else that of the array that is given, or float32.
DType dtype_of_parts(const Form& form, PyObject* asked, PyObject* given) {
  DType dtype = DType::float32;
  if (asked != nullptr) {
    dtype = requested_dtype(asked);
  } else if (given != nullptr) {
    const std::optional<Element> element = element_of(borrowed_dtype(given));
    const bool is_wide = element == Element::complex128 && form.arrangement == Arrangement::complex;
    dtype = is_wide ? DType::float64 : float_dtype(element.value_or(Element::boolean)).value_or(dtype);
  }
  if ((form.arrangement == Arrangement::complex || form.is_angles) && dtype != row_dtype(dtype)) {
    refuse_type(asked != nullptr ? "dtype" : "out", {"has 16 bits"}, {"float32 or float64 for form='", form.name, "'"});
  }
  return dtype;
}

Shape shape_of(const Shape& rows, const Form& form, std::int64_t pairs) {
  Shape shape = rows;
  const bool is_wide = !form.is_angles && form.arrangement == Arrangement::columns;
  shape.add_axis(is_wide ? columns_per_pair(form.table) * pairs : pairs);
  if (form.arrangement == Arrangement::pairs) shape.add_axis(2);
  return shape;
}

PyObject* tables(BoundRotary& self, const TablesArguments& a) {
  // Phase 1
  Made made;
  const Form& form = is_given(a.form) ? form_named(a.form) : self.form;
  const std::array<PyObject*, 2> given = given_outputs(a.out, form, made);
  const Object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : Object();
  const std::optional<std::int64_t> count = position_count(a.positions);
  refuse_counting(self, a.offset, "offset");
  if (count) refuse_counting(self, a.positions, "positions");
  if (!count) refuse_together(a.positions, "positions", a.offset, "offset");
  PyObject* const positions_array =
      count ? nullptr : numbers_from(a.positions, "positions", Numbers::integers_or_floats, made, Order::contiguous);
  const RowInputs inputs({a.offset}, made);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const DType dtype = dtype_of_parts(form, dtype_given.get(), given[0]);
  const Object complex_dtype =
      form.arrangement == Arrangement::complex
          ? dtype_of_element(dtype == DType::float64 ? Element::complex128 : Element::complex64)
          : Object();
  PyObject* const dtype_of_array = complex_dtype ? complex_dtype.get() : dtype_given.get();
  const RowArguments rows = inputs.views();
  const ArrayView positions = view_if_given(positions_array, "positions");
  Shape shape;
  if (count) {
    shape = counted_shape(rows, *count);
    const bool has_batch = shape.axes() > 1;
    set_rows(call.rows, rows, {has_batch ? *shape.begin() : 1, shape.end()[-1], has_batch});
  } else {
    set_any_positions(call.rows.positions, positions, self.coordinates.count);
    shape = Shape(positions);
    if (self.coordinates.count > 0) shape.drop_last_axis();
  }
  constexpr const char* names[] = {"out[0]", "out[1]"};
  std::array<Output, 2> out;
  std::array<Rows, 2> written;
  for (std::size_t i = 0; i < form.arrays(); ++i) {
    const char* const name = form.arrays() == 1 ? "out" : names[i];
    out[i] = output(given[i], dtype_of_array, shape_of(shape, form, self.pairs()), name);
    require_disjoint(out[i].view, rows);
    require_disjoint(out[i].view, positions);
    written[i] = form.arrangement == Arrangement::columns ? writable_rows_of(out[i].view, dtype, shape.axes() - 1)
                                                          : writable_rows_of_pairs(out[i].view, dtype, shape.axes());
  }
  if (form.arrays() == 2) {
    require_same_dtype(out[1].view, out[0].view);
    require_disjoint(out[0].view, out[1].view);
  }
  if (form.is_angles) {
    finish(call, AngleRows(self.encoder, self.coordinates), Write(written[0], given[0] == nullptr));
  } else {
    const WriteTables write(written, form.table, self.pairs(), given[0] == nullptr);
    self.with_source(self.row_factor(false), [&](const Source& source) { finish(call, source, write); });
  }
  if (form.arrays() == 1) return out[0].returned(a.out);
  if (is_given(a.out)) return Object::shared(a.out).release();
  return checked(PyTuple_Pack(2, out[0].array.get(), out[1].array.get())).release();
}

// ---- rotate_, rotate, shift_

// The arrays to rotate, x first.
std::vector<PyObject*> rotated_arrays(PyObject* x, const Others& others, Made& made) {
  std::vector<PyObject*> arrays{array_of(x, "x", made)};
  arrays.reserve(1 + static_cast<std::size_t>(others.count));
  for (Py_ssize_t i = 0; i < others.count; ++i) {
    arrays.push_back(array_of(others.items[i], rotated_name(arrays.size()), made));
  }
  return arrays;
}

template <class T>
Slice<T> slice_of(const std::vector<T>& items) {
  return {items.data(), items.size()};
}

std::vector<ArrayView> views_of(const std::vector<PyObject*>& arrays) {
  std::vector<ArrayView> views;
  views.reserve(arrays.size());
  for (PyObject* const array : arrays) views.push_back(view_of(array, rotated_name(views.size())));
  return views;
}

// The arrays as they were given: one, or a tuple of several.
PyObject* as_given(PyObject* x, const Others& others) {
  if (others.count == 0) return Object::shared(x).release();
  const Object arrays = checked(PyTuple_New(1 + others.count));
  PyTuple_SET_ITEM(arrays.get(), 0, Object::shared(x).release());
  for (Py_ssize_t i = 0; i < others.count; ++i) {
    PyTuple_SET_ITEM(arrays.get(), 1 + i, Object::shared(others.items[i]).release());
  }
  return Object::shared(arrays.get()).release();
}

#define FASTPE_ROTATE FASTPE_ROWS ", seq_axis=-2, inverse=False, num_threads=None"
struct RotateArguments {
  PyObject* x;
  GivenRows rows;
  PyObject *seq_axis, *inverse, *num_threads;
};
struct RotateInPlaceArguments {
  RotateArguments common;
  Others others;
};
Signature rotate_in_place_signature("rotate_", "x, *others, " FASTPE_ROTATE);
struct RotateApartArguments {
  RotateArguments common;
  PyObject* out;
};
Signature rotate_signature("rotate", "x, *, " FASTPE_ROTATE ", out=None");

constexpr const char* smaller_rotary_dim = "make the embedding with a smaller rotary_dim";

PyObject* rotate(BoundRotary& self, const RotateArguments& a, const Others* others, PyObject* given_out) {
  // Phase 1
  const bool in_place = others != nullptr;
  Made made;
  const std::vector<PyObject*> arrays =
      in_place ? rotated_arrays(a.x, *others, made) : std::vector{array_from(a.x, "x", made)};
  PyObject* const out_array = is_given(given_out) ? array_of(given_out, "out", made) : nullptr;
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  const bool is_inverse = bool_argument(a.inverse, "inverse", false);
  refuse_counting(self, a.rows.offset, "offset");
  refuse_counting(self, a.rows.cu_seqlens, "cu_seqlens");
  const RowInputs inputs(a.rows, made);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const RowArguments rows = inputs.views();
  const std::vector<ArrayView> views = views_of(arrays);
  const RotatedArrays checked_arrays(slice_of(views), rows,
                                     {2 * self.pairs(), seq_axis ? &*seq_axis : nullptr, in_place,
                                      self.coordinates.count, smaller_rotary_dim, self.head_dim});
  const Extent& extent = checked_arrays.extent();
  if (self.coordinates.count == 0) {
    set_rows(call.rows, rows, extent);
  } else {
    if (!rows.positions.is_given()) {
      refuse_value("positions", {"is missing"},
                   {"an array [.., ", self.coordinates.count, "], the coordinates of each row"});
    }
    set_explicit_positions(call.rows.positions, rows.positions, extent, self.coordinates.count);
    set_validity(call.rows, rows, extent);
  }
  Output out;
  std::vector<RotatedArray> rotated(views.size());
  if (in_place) {
    checked_arrays.set_in_place(rows, rotated.data());
    call.is_in_place = true;
  } else {
    const ArrayView& x = checked_arrays.x();
    out = output(out_array, borrowed_dtype(arrays.front()), Shape(x));
    call.is_in_place = is_same_memory(out.view, x);
    if (!call.is_in_place) require_disjoint(out.view, x, " (out may be x itself)");
    require_disjoint(out.view, rows);
    rotated.front() = {rows_of(x, checked_arrays.dtype(), checked_arrays.seq_axis()),
                       writable_rows_of(out.view, checked_arrays.dtype(), checked_arrays.seq_axis())};
  }
  const double row_factor = self.row_factor(is_inverse);
  const Rotate operation(slice_of(rotated), extent.rows, self.pairing(row_factor, is_inverse != self.conjugate));
  self.with_source(row_factor, [&](const Source& source) { finish(call, source, operation); });
  return in_place ? as_given(a.x, *others) : out.returned(given_out);
}

PyObject* rotate_in_place(BoundRotary& self, const RotateInPlaceArguments& a) {
  return rotate(self, a.common, &a.others, nullptr);
}
PyObject* rotate_apart(BoundRotary& self, const RotateApartArguments& a) {
  return rotate(self, a.common, nullptr, a.out);
}

struct ShiftArguments {
  PyObject *x, *by, *mask, *lengths, *seq_axis, *num_threads;
  Others others;
};
Signature shift_signature("shift_", "x, *others, by, mask=None, lengths=None, seq_axis=-2, num_threads=None");

PyObject* shift(BoundRotary& self, const ShiftArguments& a) {
  // Phase 1
  Made made;
  const std::vector<PyObject*> arrays = rotated_arrays(a.x, a.others, made);
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  const std::optional<std::int64_t> one = position_argument(a.by, "by");
  if (one && self.coordinates.count > 0) {
    refuse_value("by", {"is ", repr_of(a.by)}, {"an array of ", self.coordinates.count, " coordinates"});
  }
  PyObject* const by_array = one ? nullptr : numbers_from(a.by, "by", Numbers::integers_or_floats, made);
  const RowInputs inputs({nullptr, nullptr, a.mask, a.lengths}, made);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  std::int64_t same_for_all = one.value_or(0);
  RowArguments rows = inputs.views();
  if (one) {
    rows.positions.data = reinterpret_cast<char*>(&same_for_all);
    rows.positions.element = Element::int64;
    rows.positions.name = "by";
  } else {
    rows.positions = view_of(by_array, "by");
  }
  const std::vector<ArrayView> views = views_of(arrays);
  const RotatedArrays checked_arrays(slice_of(views), rows,
                                     {2 * self.pairs(), seq_axis ? &*seq_axis : nullptr, true, self.coordinates.count,
                                      smaller_rotary_dim, self.head_dim});
  const Extent& extent = checked_arrays.extent();
  set_moves(call.rows.positions, rows.positions, extent, self.coordinates.count);
  set_validity(call.rows, rows, extent);
  call.is_in_place = true;
  std::vector<RotatedArray> rotated(views.size());
  checked_arrays.set_in_place(rows, rotated.data());
  const Rotate operation(slice_of(rotated), extent.rows, self.pairing(1.0, self.conjugate));
  self.with_source(1.0, [&](const Source& source) { finish(call, source, operation); });
  return as_given(a.x, a.others);
}

// ---- Rotation by tables that are given

struct RotateByTablesArguments {
  PyObject *x, *cos, *sin, *interleaved, *conjugate;
  GivenRows rows;
  PyObject *seq_axis, *num_threads;
  Others others;
};
Signature rotate_by_tables_signature("rotate_by_tables",
                                     "x, *others, cos, sin, interleaved, conjugate=False, " FASTPE_ROWS
                                     ", seq_axis=-2, num_threads=None");

PyObject* rotate_by_tables(PyObject&, const RotateByTablesArguments& a) {
  // Phase 1
  Made made;
  const std::vector<PyObject*> arrays = rotated_arrays(a.x, a.others, made);
  PyObject* const cos_array = array_from(a.cos, "cos", made);
  PyObject* const sin_array = array_from(a.sin, "sin", made);
  const bool interleaved = bool_from(a.interleaved, "interleaved");
  const bool conjugate = bool_argument(a.conjugate, "conjugate", false);
  const std::optional<std::int64_t> seq_axis = seq_axis_argument(a.seq_axis);
  const RowInputs inputs(a.rows, made);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView cos = view_of(cos_array, "cos"), sin = view_of(sin_array, "sin");
  const RowArguments rows = inputs.views();
  const GivenTables tables = given_tables(cos, sin);
  const std::vector<ArrayView> views = views_of(arrays);
  const RotatedArrays checked_arrays(
      slice_of(views), rows,
      {2 * tables.pairs, seq_axis ? &*seq_axis : nullptr, true, 0, "tables of fewer columns, such as cos[:, :d // 2]"});
  require_table_dtype(cos, checked_arrays.x());
  set_rows(call.rows, rows, checked_arrays.extent());
  checked_arrays.require_disjoint(cos);
  checked_arrays.require_disjoint(sin);
  call.is_in_place = true;
  const Pairing pairing{tables.pairs, interleaved, conjugate, {{0, tables.pairs}}};
  std::vector<RotatedArray> rotated(views.size());
  checked_arrays.set_in_place(rows, rotated.data());
  const Rotate operation(slice_of(rotated), checked_arrays.extent().rows, pairing);
  finish(call, RotaryTables(tables.cosines, tables.sines, tables.pairs), operation);
  return as_given(a.x, a.others);
}

// ---- The class

PyObject* warm_up_rotary(BoundRotary& self, const WarmUpArguments& a) { return warm_up(self.row_cache, a); }
Signature warm_up_signature("warm_up", FASTPE_WARM_UP);

PyObject* frequencies(PyObject* self, PyObject*) {
  return returned_or<PyObject*>(nullptr, [&] {
    const BoundRotary& rotary = bound_of<BoundRotary>(self);
    return new_array(rotary.encoder.frequencies().radians.high.data(), rotary.pairs()).release();
  });
}

std::unique_ptr<BoundRotary> make_rotary(PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"rotary_dim",       "interleaved", "base",      "freqs",
                                      "attention_factor", "axes",        "conjugate", "form",
                                      "max_len",          "head_dim",    nullptr};
  long long rotary_dim, head_dim;
  int interleaved, conjugate;
  double base, attention_factor;
  PyObject *freqs, *axes, *form, *max_len;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "LpdOdOpOOL", const_cast<char**>(names), &rotary_dim,
                                  &interleaved, &base, &freqs, &attention_factor, &axes, &conjugate, &form, &max_len,
                                  &head_dim) == 0) {
    throw PythonError{};
  }
  WantedFrequencies frequencies;
  frequencies.frequency_count = rotary_dim / 2;
  frequencies.base = base;
  frequencies.exponent_denominator = static_cast<double>(rotary_dim / 2);
  frequencies.given = doubles_from(freqs);
  frequencies.arguments = "base and scaling";
  auto made = std::make_unique<BoundRotary>(frequencies, interleaved != 0, conjugate != 0, attention_factor,
                                            FrequencyCoordinates(doubles_from(axes), rotary_dim / 2, "axes"),
                                            form_named(form), max_len_from(max_len));
  made->head_dim = head_dim;
  return made;
}

}  // namespace

void add_rotary(PyObject* module) {
  static PyMethodDef methods[] = {method<tables, tables_signature>(),
                                  method<rotate_in_place, rotate_in_place_signature>(),
                                  method<rotate_apart, rotate_signature>(),
                                  method<shift, shift_signature>(),
                                  method<warm_up_rotary, warm_up_signature>(),
                                  {"_frequencies", frequencies, METH_NOARGS, nullptr},
                                  {}};
  static PyMethodDef functions[] = {method<rotate_by_tables, rotate_by_tables_signature>(), {}};
  const Object type = holder_type<BoundRotary, make_rotary>("fastpe._core.Rotary", methods);
  const Object names = checked(PyTuple_New(std::size(forms)));
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), checked(PyUnicode_FromString(forms[i].name)).release());
  }
  if (PyModule_AddObjectRef(module, "Rotary", type.get()) < 0 ||
      PyModule_AddObjectRef(module, "table_forms", names.get()) < 0 ||
      PyModule_AddIntConstant(module, "max_coordinates", max_coordinates) < 0 ||
      PyModule_AddFunctions(module, functions) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
