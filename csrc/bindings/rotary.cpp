// SPDX-License-Identifier: BSD-3-Clause
// The class Rotary, and rotation by tables that are given.
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "call.h"
#include "fastpe/checks/rotation.h"
#include "fastpe/embeddings/rotary_embedding.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/coordinates.h"
#include "fastpe/sources/tables.h"

namespace fastpe::bindings {
namespace {

// ---- Forms of tables

enum class Arrangement { columns, pairs, complex };

struct Form {
  const char* name;
  std::optional<TableForm> table;  // none: the angles themselves
  Arrangement arrangement = Arrangement::columns;

  std::size_t arrays() const { return table ? static_cast<std::size_t>(arrays_of(*table)) : 1; }
};

constexpr Form forms[] = {
    {"halves", TableForm::halves},
    {"tile", TableForm::tile},
    {"repeat", TableForm::repeat},
    {"cos_sin", TableForm::cos_sin},
    {"sin_cos", TableForm::sin_cos},
    {"pairs", TableForm::pairs, Arrangement::pairs},
    {"complex", TableForm::pairs, Arrangement::complex},
    {"angles", std::nullopt},
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

// What Python's Rotary holds.
struct BoundRotary : RotaryEmbedding {
  using RotaryEmbedding::RotaryEmbedding;

  bool conjugate = false;
  std::int64_t head_dim = 0;
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
Signature tables_signature("tables",
                           "positions, *, form='halves', dtype=None, offset=None, out=None, num_threads=None");

// The arrays to write into, where they are given.
std::array<PyObject*, 2> given_outputs(PyObject* out, const Form& form, Owned& owned) {
  if (!is_given(out)) return {};
  if (form.arrays() == 1) return {array_to_write(out, "out", owned), nullptr};
  const bool is_sequence = PyTuple_Check(out) || PyList_Check(out);
  if (!is_sequence || PySequence_Fast_GET_SIZE(out) != 2) {
    refuse_type("out", {"is a ", type_name(out)}, {"a tuple of two arrays, (cos, sin), for form='", form.name, "'"});
  }
  // Another thread may replace a list's items: none is used before it is owned.
  PyObject* const cos = owned.add(run_python([&] { return PySequence_GetItem(out, 0); }));
  PyObject* const sin = owned.add(run_python([&] { return PySequence_GetItem(out, 1); }));
  return {array_to_write(cos, "out[0]", owned), array_to_write(sin, "out[1]", owned)};
}

// The dtype of the parts of what is returned: the one asked for, or else that of the array that is given, or float32.
DType dtype_of_parts(const Form& form, PyObject* asked, PyObject* given) {
  DType dtype = DType::float32;
  if (asked != nullptr) {
    dtype = requested_dtype(asked);
  } else if (given != nullptr) {
    const DType own = known_dtype_of(borrowed_dtype(given)).value_or(dtype);
    const bool is_wide = own == DType::complex128 && form.arrangement == Arrangement::complex;
    dtype = is_wide ? DType::float64 : is_written(own) ? own : dtype;
  }
  if ((form.arrangement == Arrangement::complex || !form.table) && is_16_bit(dtype)) {
    refuse_type(asked != nullptr ? "dtype" : "out", {"has 16 bits"}, {"float32 or float64 for form='", form.name, "'"});
  }
  return dtype;
}

Shape shape_of(const Shape& rows, const Form& form, std::int64_t pairs) {
  Shape shape = rows;
  const bool is_of_columns = form.table && form.arrangement == Arrangement::columns;
  shape.add_axis(is_of_columns ? columns_per_pair(*form.table) * pairs : pairs);
  if (form.arrangement == Arrangement::pairs) shape.add_axis(2);
  return shape;
}

PyObject* tables(BoundRotary& self, const TablesArguments& a) {
  // Phase 1
  Owned owned;
  const Form& form = is_given(a.form) ? form_named(a.form) : forms[0];
  const std::array<PyObject*, 2> given_out = given_outputs(a.out, form, owned);
  const Object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : Object();
  const WrittenPositions positions(a.positions, a.offset, owned);
  refuse_counting(self, a.offset, "offset");
  if (positions.is_count()) refuse_counting(self, a.positions, "positions");
  PlacementObjects placement;
  placement.offset = a.offset;
  const PlacementArrays placement_arrays(placement, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  const DType dtype = dtype_of_parts(form, dtype_given.get(), given_out[0]);
  const Object complex_dtype = form.arrangement == Arrangement::complex
                                   ? numpy_dtype(dtype == DType::float64 ? DType::complex128 : DType::complex64)
                                   : Object();
  PyObject* const dtype_of_array = complex_dtype ? complex_dtype.get() : dtype_given.get();
  const PlacementArguments given = placement_arrays.views();
  const WrittenPositions::Views rows = positions.views(given, 0, self.coordinates.count);
  const int row_axes = rows.shape.axes();
  constexpr const char* names[] = {"out[0]", "out[1]"};
  const bool are_pairs = form.arrangement == Arrangement::pairs || form.arrangement == Arrangement::complex;
  std::array<Output, 2> out;
  std::array<Rows, 2> written;
  for (std::size_t i = 0; i < form.arrays(); ++i) {
    const char* const name = form.arrays() == 1 ? "out" : names[i];
    out[i] =
        output(given_out[i], dtype_of_array, shape_of(rows.shape, form, self.pairs()), name, AxesInFront::of_length_1);
    require_disjoint(out[i].view, given);
    require_disjoint(out[i].view, rows.positions);
    written[i] = are_pairs ? writable_rows_of_pairs(out[i].view, dtype, row_axes)
                           : writable_rows_of(out[i].view, dtype, row_axes - 1);
  }
  if (form.arrays() == 2) {
    require_same_dtype(out[1].view, out[0].view);
    require_disjoint(out[0].view, out[1].view);
  }
  const bool is_new = given_out[0] == nullptr;
  if (form.table) {
    const Write write(written, *form.table, self.pairs(), is_new);
    self.with_source(self.row_factor(false),
                     [&](const Source& source) { run_call({source, write, rows.placement, max_threads}); });
  } else {
    run_call({AngleRows(self.encoder, self.coordinates), Write(written[0], is_new), rows.placement, max_threads});
  }
  if (form.arrays() == 1) return out[0].returned(a.out);
  if (is_given(a.out)) return Object::shared(a.out).release();
  return not_null(PyTuple_Pack(2, out[0].array.get(), out[1].array.get())).release();
}

// ---- Rotations, in place or apart

template <class T>
Slice<T> slice_of(const std::vector<T>& items) {
  return {items.data(), items.size()};
}

// What all rotations are given besides the angles: the arrays, x first, and their sequence's axis.
struct RotatedObjects {
  RotatedObjects(PyObject* x_given, PyObject* seq_axis_given, Owned& owned, const Others& others_given)
      : x(array_to_write(x_given, "x", owned)), seq_axis(seq_axis_argument(seq_axis_given)), in_place(true) {
    const Py_ssize_t count = others_given.count;
    others.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      others.push_back(array_to_write(others_given.items[i], rotated_name(1 + others.size()), owned));
    }
    if (count == 0) {
      returned = Object::shared(x_given);
      return;
    }
    returned = not_null(PyTuple_New(1 + count));
    PyTuple_SET_ITEM(returned.get(), 0, Object::shared(x_given).release());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(returned.get(), 1 + i, Object::shared(others_given.items[i]).release());
    }
  }
  RotatedObjects(PyObject* x_given, PyObject* seq_axis_given, Owned& owned, PyObject* out_given)
      : x(array_to_read(x_given, "x", owned)), seq_axis(seq_axis_argument(seq_axis_given)), in_place(false) {
    if (!is_given(out_given)) return;
    out = array_to_write(out_given, "out", owned);
    returned = Object::shared(out_given);
  }
  // Phase 2. They are kept here; those of one array, which is the common case, without an allocation.
  Slice<ArrayView> views() {
    x_view = view_of(x, "x");
    if (others.empty()) return {&x_view, 1};
    all_views.reserve(1 + others.size());
    all_views.push_back(x_view);
    for (PyObject* const other : others) all_views.push_back(view_of(other, rotated_name(all_views.size())));
    return slice_of(all_views);
  }

  PyObject *x, *out = nullptr;
  std::vector<PyObject*> others;
  ArrayView x_view;
  std::vector<ArrayView> all_views;
  std::optional<std::int64_t> seq_axis;
  bool in_place;
  Object
      returned;  // what was given, x, a tuple or `out`; made now, since no memory may be missing after the first write
};

RotationChecks::Rules rules_of(const BoundRotary& self, const RotatedObjects& objects) {
  return {2 * self.pairs(),
          objects.seq_axis,
          objects.in_place,
          self.coordinates.count,
          "make the embedding with a smaller rotary_dim",
          self.head_dim};
}

// Calls use(operation), which rotates the arrays in place, or x into `out` or a new array, and returns what the caller
// gets. What is written shares no memory with what is read: `given`, and `tables`.
template <class Use>
PyObject* with_rotation(const RotationChecks& checks, const PlacementArguments& given, Slice<ArrayView> tables,
                        const Pairing& pairing, RotatedObjects& objects, const Use& use) {
  if (objects.in_place) {
    std::vector<HeadArray> rotated(1 + objects.others.size());
    checks.fill_head_arrays(given, rotated.data());
    for (const ArrayView& table : tables) checks.require_disjoint_from(table);
    use(Rotate(slice_of(rotated), checks.extent().batch_rows, pairing));
    return objects.returned.release();
  }
  const ArrayView& x = checks.x();
  Output out = output(objects.out, borrowed_dtype(objects.x), Shape(x));
  if (!is_same_memory(out.view, x)) require_disjoint(out.view, x, " (out may be x itself)");
  require_disjoint(out.view, given);
  for (const ArrayView& table : tables) require_disjoint(out.view, table);
  const HeadArray rotated{rows_of(x, checks.dtype(), checks.seq_axis()),
                          writable_rows_of(out.view, checks.dtype(), checks.seq_axis())};
  use(Rotate({&rotated, 1}, checks.extent().batch_rows, pairing));
  return objects.returned ? objects.returned.release() : out.array.release();
}

#define FASTPE_ROTATE FASTPE_PLACEMENT ", seq_axis=None, inverse=False, num_threads=None"
struct RotateArguments {
  PyObject* x;
  PlacementObjects placement;
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

PyObject* rotate(BoundRotary& self, const RotateArguments& a, Owned& owned, RotatedObjects objects) {
  // Phase 1
  const bool is_inverse = bool_argument(a.inverse, "inverse");
  refuse_counting(self, a.placement.offset, "offset");
  refuse_counting(self, a.placement.cu_seqlens, "cu_seqlens");
  const PlacementArrays placement_arrays(a.placement, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  const PlacementArguments given = placement_arrays.views();
  const RotationChecks checks(objects.views(), given, rules_of(self, objects));
  const Placement placement = placement_of(given, checks.extent(), 0, self.coordinates.count);
  const double row_factor = self.row_factor(is_inverse);
  const Pairing& pairing = self.pairing(row_factor, is_inverse != self.conjugate);
  return with_rotation(checks, given, {}, pairing, objects, [&](const Rotate& rotate) {
    self.with_source(row_factor, [&](const Source& source) { run_call({source, rotate, placement, max_threads}); });
  });
}

PyObject* rotate_in_place(BoundRotary& self, const RotateInPlaceArguments& a) {
  Owned owned;
  return rotate(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* rotate_apart(BoundRotary& self, const RotateApartArguments& a) {
  Owned owned;
  return rotate(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

#define FASTPE_SHIFT "by, valid=None, lengths=None, seq_axis=None, num_threads=None"
struct ShiftArguments {
  PyObject *x, *by, *valid, *lengths, *seq_axis, *num_threads;
};
struct ShiftInPlaceArguments {
  ShiftArguments common;
  Others others;
};
Signature shift_in_place_signature("shift_", "x, *others, " FASTPE_SHIFT);
struct ShiftApartArguments {
  ShiftArguments common;
  PyObject* out;
};
Signature shift_signature("shift", "x, *, " FASTPE_SHIFT ", out=None");

PyObject* shift(BoundRotary& self, const ShiftArguments& a, Owned& owned, RotatedObjects objects) {
  // Phase 1
  const std::optional<std::int64_t> one = position_argument(a.by, "by");
  if (one && self.coordinates.count > 0) {
    refuse_value("by", {"is ", repr_of(a.by)}, {"an array of ", self.coordinates.count, " coordinates"});
  }
  PyObject* const by_array = one ? nullptr : numbers_from(a.by, "by", Numbers::integers_or_floats, owned);
  PlacementObjects validity;
  validity.valid = a.valid;
  validity.lengths = a.lengths;
  const PlacementArrays placement_arrays(validity, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  std::int64_t same_for_all = one.value_or(0);
  PlacementArguments given = placement_arrays.views();
  given.positions = one ? view_of_number(same_for_all, "by") : view_of(by_array, "by");
  const RotationChecks checks(objects.views(), given, rules_of(self, objects));
  const Placement placement = placement_of_moves(given, checks.extent(), self.coordinates.count);
  constexpr double row_factor = 1.0;  // the keys contain the embedding's factor
  const Pairing& pairing = self.pairing(row_factor, self.conjugate);
  return with_rotation(checks, given, {}, pairing, objects, [&](const Rotate& rotate) {
    self.with_source(row_factor, [&](const Source& source) { run_call({source, rotate, placement, max_threads}); });
  });
}

PyObject* shift_in_place(BoundRotary& self, const ShiftInPlaceArguments& a) {
  Owned owned;
  return shift(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* shift_apart(BoundRotary& self, const ShiftApartArguments& a) {
  Owned owned;
  return shift(self, a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

// ---- Rotation by tables that are given

#define FASTPE_BY_TABLES \
  "cos, sin, interleaved, inverse, head_dim, " FASTPE_PLACEMENT ", seq_axis=None, num_threads=None"
struct ByTablesArguments {
  PyObject *x, *cos, *sin, *interleaved, *inverse, *head_dim;
  PlacementObjects placement;
  PyObject *seq_axis, *num_threads;
};
struct ByTablesInPlaceArguments {
  ByTablesArguments common;
  Others others;
};
Signature by_tables_in_place_signature("rotate_by_tables_", "x, *others, " FASTPE_BY_TABLES);
struct ByTablesApartArguments {
  ByTablesArguments common;
  PyObject* out;
};
Signature by_tables_signature("rotate_by_tables", "x, *, " FASTPE_BY_TABLES ", out=None");

PyObject* rotate_by_tables(const ByTablesArguments& a, Owned& owned, RotatedObjects objects) {
  // Phase 1
  PyObject* const cos_array = array_to_read(a.cos, "cos", owned);
  PyObject* const sin_array = array_to_read(a.sin, "sin", owned);
  const bool interleaved = bool_argument(a.interleaved, "interleaved");
  const bool is_inverse = bool_argument(a.inverse, "inverse");
  const std::int64_t head_dim = integer_argument(a.head_dim).value_or(0);
  const PlacementArrays placement_arrays(a.placement, owned);
  const int max_threads = threads_argument(a.num_threads);

  // Phase 2
  const ArrayView cos_and_sin[] = {view_of(cos_array, "cos"), view_of(sin_array, "sin")};
  const auto& [cos, sin] = cos_and_sin;
  const PlacementArguments given = placement_arrays.views();
  const Slice<ArrayView> arrays = objects.views();
  const GivenTables tables = given_tables(cos, sin, arrays[0], head_dim);
  const RotationChecks checks(
      arrays, given,
      {2 * tables.pairs, objects.seq_axis, objects.in_place, 0, "tables of fewer columns, such as cos[..., :d // 2]",
       head_dim != 0 ? head_dim : 2 * tables.pairs});
  require_table_dtype(cos, checks.x());
  const Placement placement = placement_of(given, checks.extent());
  const Pairing pairing{tables.pairs, interleaved, is_inverse, {{0, tables.pairs}}};
  return with_rotation(checks, given, {cos_and_sin, 2}, pairing, objects, [&](const Rotate& rotate) {
    run_call({RotaryTables(tables.cosines, tables.sines, tables.pairs), rotate, placement, max_threads});
  });
}

PyObject* rotate_by_tables_in_place(PyObject&, const ByTablesInPlaceArguments& a) {
  Owned owned;
  return rotate_by_tables(a.common, owned, {a.common.x, a.common.seq_axis, owned, a.others});
}
PyObject* rotate_by_tables_apart(PyObject&, const ByTablesApartArguments& a) {
  Owned owned;
  return rotate_by_tables(a.common, owned, {a.common.x, a.common.seq_axis, owned, a.out});
}

// ---- The class

Signature warm_up_signature("warm_up", FASTPE_WARM_UP);

std::unique_ptr<BoundRotary> make_rotary(PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"rotary_dim",     "interleaved", "base",    "frequencies", "attention_factor",
                                      "frequency_axes", "conjugate",   "max_len", "head_dim",    nullptr};
  long long rotary_dim, head_dim;
  int interleaved, conjugate;
  double base, attention_factor;
  PyObject *given, *axes, *max_len;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "LpdOdOpOL", const_cast<char**>(names), &rotary_dim,
                                  &interleaved, &base, &given, &attention_factor, &axes, &conjugate, &max_len,
                                  &head_dim) == 0) {
    throw PythonError{};
  }
  WantedFrequencies frequencies;
  frequencies.frequency_count = rotary_dim / 2;
  frequencies.base = base;
  frequencies.exponent_denominator = static_cast<double>(rotary_dim / 2);
  frequencies.given = doubles_from(given);
  frequencies.arguments = "base and scaling";
  auto made =
      std::make_unique<BoundRotary>(frequencies, interleaved != 0, attention_factor,
                                    FrequencyCoordinates(doubles_from(axes), rotary_dim / 2), integer_or_none(max_len));
  made->conjugate = conjugate != 0;
  made->head_dim = head_dim;
  return made;
}

}  // namespace

void add_rotary(PyObject* module) {
  static PyMethodDef methods[] = {method<tables, tables_signature>(),
                                  method<rotate_in_place, rotate_in_place_signature>(),
                                  method<rotate_apart, rotate_signature>(),
                                  method<shift_in_place, shift_in_place_signature>(),
                                  method<shift_apart, shift_signature>(),
                                  method<warm_up<BoundRotary>, warm_up_signature>(),
                                  {"_frequencies", frequencies<BoundRotary>, METH_NOARGS, nullptr},
                                  {}};
  static PyMethodDef functions[] = {method<rotate_by_tables_in_place, by_tables_in_place_signature>(),
                                    method<rotate_by_tables_apart, by_tables_signature>(),
                                    {}};
  const Object type = holder_type<BoundRotary, make_rotary>("fastpe._core.Rotary", methods);
  const Object names = not_null(PyTuple_New(std::size(forms)));
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), not_null(PyUnicode_FromString(forms[i].name)).release());
  }
  if (PyModule_AddObjectRef(module, "Rotary", type.get()) < 0 ||
      PyModule_AddObjectRef(module, "table_forms", names.get()) < 0 ||
      PyModule_AddIntConstant(module, "max_coordinates", max_coordinates) < 0 ||
      PyModule_AddFunctions(module, functions) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
