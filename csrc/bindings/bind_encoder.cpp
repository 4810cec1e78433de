// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "encoder_docs.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/gather.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "fastpe/sources/table.h"
#include "interpreter.h"
#include "scalars.h"
#include "vectorcall.h"

namespace fastpe::bindings {
namespace {

struct BoundEncoder {
  BoundEncoder(Spec spec, std::int64_t max_len, std::int64_t first)
      : core(std::move(spec)), kept(core, {max_len}), first_position(first) {}

  Encoder core;
  KeptRows kept;
  std::int64_t first_position;
};

// Made when the module is loaded, as the types of scalars are.
struct Signatures {
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
};

const Signatures& signatures() {
  static const Signatures made;
  return made;
}

// pybind11's own cast would hand out raw memory for an object whose __init__ never ran.
BoundEncoder& encoder_of(PyObject* self) {
  void* const encoder = reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder().value_ptr();
  if (encoder == nullptr) {
    throw py::type_error(type_name(self) + " is not initialised, expected its __init__ to have run; make a new one");
  }
  return *static_cast<BoundEncoder*>(encoder);
}

std::vector<py::ssize_t> shape_of(const Array& array) { return {array.shape(), array.shape() + array.ndim()}; }

// The object given as out, or else the new array.
PyObject* result(Array& out, PyObject* out_argument) {
  if (!is_given(out_argument)) return out.release().ptr();
  Py_INCREF(out_argument);
  return out_argument;
}

// ---- add_, add

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

constexpr std::int64_t most_axes = 64;  // of a NumPy array

std::optional<std::int64_t> seq_axis_argument(PyObject* object) {
  if (!is_given(object)) return std::nullopt;
  const std::optional<std::int64_t> axis = integer_argument(object);
  if (!axis) throw py::type_error("seq_axis is " + repr_of(object) + ", expected an int");
  if (*axis < -most_axes || *axis > most_axes) {
    throw py::value_error("seq_axis is " + repr_of(object) + ", expected an axis of x other than the last");
  }
  return axis;
}

// Calls use(source) with the learned table where one is given, else with the encoder's columns from first_column on.
template <class Use>
void with_source(const BoundEncoder& self, const std::optional<TableView>& learned, std::int64_t first_column,
                 const Use& use) {
  if (learned) {
    use(LearnedTable(*learned));
  } else {
    use(Sinusoids(self.core, &self.kept, first_column));
  }
}

template <std::size_t count>
PyObject* add_to(BoundEncoder& self, const std::array<PyObject*, count>& a, bool in_place) {
  // Phase 1
  PyObject* const out_argument = in_place ? nullptr : a[count - 1];
  const bool is_out_given = is_given(out_argument);
  const std::int64_t d_model = self.core.spec().d_model;
  Array x = array_of(a[add_x], "x");
  Array given_out = is_out_given ? array_of(out_argument, "out") : Array();
  Inputs inputs;
  if (is_given(a[add_table])) {
    inputs.learned = array_of(a[add_table], "table");
    if (is_given(a[add_channels])) {
      throw py::value_error("table and channels were both given, expected one of them; slice the table's columns");
    }
  }
  const std::optional<Channels> channels = channels_argument(a[add_channels], d_model);
  const std::optional<std::int64_t> seq_axis_given = seq_axis_argument(a[add_seq_axis]);
  read_rows(inputs, {a[add_offset], a[add_positions], a[add_mask], a[add_lengths], a[add_cu_seqlens]});
  PendingCall call;
  const Factors factors{number_argument(a[add_scale], "scale", 1.0), number_argument(a[add_alpha], "alpha", 1.0)};
  call.max_threads = threads_argument(a[add_num_threads]);

  // Phase 2
  const DType dtype = dtype_of(x, "x");
  const int seq_axis = seq_axis_of(seq_axis_given, x);
  require_access(x, "x", in_place ? Access::write : Access::read);
  std::optional<TableView> learned;
  std::int64_t first_column = 0;
  if (inputs.learned) {
    learned = learned_table(inputs.learned, x, "x", last(x), "table");
  } else {
    first_column = first_channel(channels, d_model, last(x), "x");
  }
  const Extent extent = extent_of(x, seq_axis);
  call.positions.first = self.first_position;
  set_rows(call, inputs, extent);
  const auto add = [&](const fastpe::Add& operation) {
    with_source(self, learned, first_column, [&](const Source& source) { finish(call, source, operation); });
  };
  if (in_place) {
    refuse_shared_inputs(inputs, x);
    add(fastpe::Add(writable_rows_of(x, dtype, seq_axis), extent.rows, factors));
    Py_INCREF(a[add_x]);
    return a[add_x];
  }
  Array out = output(std::move(given_out), x.dtype(), shape_of(x));
  if (is_out_given) {
    if (!is_same_memory(out, x)) require_disjoint(out, "out", x, "x");
    refuse_shared_inputs(inputs, out);
  }
  add({rows_of(x, dtype, seq_axis), writable_rows_of(out, dtype, seq_axis), extent.rows, factors});
  return result(out, out_argument);
}

PyObject* method_add_in_place(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded(
      [&] { return add_to(encoder_of(self), signatures().add_in_place.parse(arguments, given, keywords), true); });
}

PyObject* method_add(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return add_to(encoder_of(self), signatures().add.parse(arguments, given, keywords), false); });
}

// ---- encode

py::dtype dtype_argument(PyObject* object) {
  try {
    return run_python([&] {
      PyObject* dtype = nullptr;
      return py::detail::npy_api::get().PyArray_DescrConverter_(object, &dtype) != 0 ? dtype : nullptr;
    });
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw py::type_error("dtype is " + repr_of(object) + ", expected float32, float64, float16 or ml_dtypes.bfloat16");
  }
}

// A number of positions; nothing where the object is to be an array of them.
std::optional<std::int64_t> position_count(PyObject* object) {
  const std::optional<std::int64_t> count = integer_argument(object);
  if (!count) {
    if (PyFloat_Check(object) || PyBool_Check(object) || object == Py_None || is_numpy_scalar(object)) {
      throw py::type_error("positions is " + repr_of(object) +
                           ", expected an int, the number of positions, or an array of positions; for one fractional "
                           "position pass [" +
                           repr_of(object) + "]");
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

// A batch axis comes from the arguments that have one.
std::vector<py::ssize_t> counted_shape(const Inputs& inputs, std::int64_t count) {
  if (inputs.offsets && inputs.offsets.ndim() == 1) return {inputs.offsets.shape(0), count};
  if (inputs.lengths && inputs.lengths.ndim() == 1) return {inputs.lengths.shape(0), count};
  if (inputs.mask && inputs.mask.ndim() == 2) return {inputs.mask.shape(0), count};
  return {count};
}

// Numbers of any shape, which is the result's too, but for its columns.
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
  // Phase 1
  const std::int64_t d_model = self.core.spec().d_model;
  const std::optional<Channels> channels = channels_argument(a[encode_channels], d_model);
  const bool is_out_given = is_given(a[encode_out]);
  const bool is_dtype_given = is_given(a[encode_dtype]);
  Array given_out = is_out_given ? array_of(a[encode_out], "out") : Array();
  const py::object dtype_given = is_dtype_given ? dtype_argument(a[encode_dtype]) : py::object();
  const std::optional<std::int64_t> count = position_count(a[encode_positions]);
  Inputs inputs;
  if (!count) {
    refuse_together(a[encode_positions], "positions", a[encode_offset], "offset");
    inputs.positions = numbers_from(a[encode_positions], "positions", Numbers::integers_or_floats, Order::contiguous);
  }
  read_rows(inputs, {a[encode_offset], nullptr, a[encode_mask], a[encode_lengths], nullptr});
  PendingCall call;
  call.max_threads = threads_argument(a[encode_num_threads]);

  // Phase 2
  const py::dtype dtype = is_dtype_given ? py::reinterpret_borrow<py::dtype>(dtype_given)
                          : is_out_given ? given_out.dtype()
                                         : py::dtype::of<float>();
  const char* const dtype_name = is_dtype_given ? "dtype" : "out";
  const DType core_dtype = dtype_of(dtype, dtype_name);
  require_native_order(dtype, dtype_name);
  call.positions.first = self.first_position;
  if (!count) {
    const Array& positions = inputs.positions;
    call.positions.values = numbers_view(positions, "positions", Numbers::integers_or_floats);
    call.positions.values_per_row = positions.ndim() > 1;
    for (py::ssize_t axis = 0; axis + 1 < positions.ndim(); ++axis) {
      call.positions.value_axes.add(positions.shape(axis), positions.strides(axis));
    }
  }
  std::vector<py::ssize_t> shape = count ? counted_shape(inputs, *count) : shape_of(inputs.positions);
  const int seq_axis = static_cast<int>(shape.size()) - 1;
  shape.push_back(channels ? channels->end - channels->first : d_model);
  Array out = output(std::move(given_out), dtype, shape);
  const Extent extent = extent_of(out, seq_axis);
  if (count) {
    set_rows(call, inputs, extent);
  } else if (inputs.mask || inputs.lengths) {
    if (inputs.positions.ndim() > 2) {
      throw py::value_error("mask and lengths go with positions [L] or [B, L], found positions of " +
                            std::to_string(inputs.positions.ndim()) + " axes; reshape them");
    }
    if (inputs.mask) set_mask(call, inputs.mask, extent);
    if (inputs.lengths) set_lengths(call, inputs.lengths, extent);
  }
  if (is_out_given) refuse_shared_inputs(inputs, out);
  const Sinusoids source(self.core, &self.kept, channels ? channels->first : 0);
  finish(call, source, Write(writable_rows_of(out, core_dtype, seq_axis)));
  return result(out, a[encode_out]);
}

PyObject* method_encode(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return encode(encoder_of(self), signatures().encode.parse(arguments, given, keywords)); });
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
  // Phase 1
  const bool is_out_given = is_given(a[embed_out]);
  Inputs inputs;
  inputs.vocabulary = array_of(a[embed_table], "table");
  inputs.ids = numbers_from(a[embed_ids], "ids", Numbers::integers, Order::contiguous);
  if (is_given(a[embed_position_table])) inputs.learned = array_of(a[embed_position_table], "position_table");
  Array given_out = is_out_given ? array_of(a[embed_out], "out") : Array();
  read_rows(inputs, {a[embed_offset], a[embed_positions], a[embed_mask], a[embed_lengths], a[embed_cu_seqlens]});
  PendingCall call;
  const Factors factors{number_argument(a[embed_scale], "scale", 1.0), number_argument(a[embed_alpha], "alpha", 1.0)};
  call.max_threads = threads_argument(a[embed_num_threads]);

  // Phase 2
  const Array& table = inputs.vocabulary;
  const DType dtype = dtype_of(table, "table");
  require_access(table, "table", Access::read);
  const TableView vocabulary = table_of(table, "table");
  const std::int64_t columns = table.shape(1);
  const NumbersView ids = numbers_view(inputs.ids, "ids", Numbers::integers);
  std::optional<TableView> learned;
  if (inputs.learned) {
    learned = learned_table(inputs.learned, table, "table", columns, "position_table");
  } else {
    first_channel(std::nullopt, self.core.spec().d_model, columns, "table");
  }
  std::vector<py::ssize_t> shape = shape_of(inputs.ids);
  const int seq_axis = static_cast<int>(shape.size()) - 1;
  shape.push_back(columns);
  Array out = output(std::move(given_out), table.dtype(), shape);
  const Extent extent = extent_of(out, seq_axis);
  call.positions.first = self.first_position;
  set_rows(call, inputs, extent);
  if (is_out_given) refuse_shared_inputs(inputs, out);
  const Gather gather(vocabulary, ids, item_axes_of(out, seq_axis), writable_rows_of(out, dtype, seq_axis), extent.rows,
                      factors);
  with_source(self, learned, 0, [&](const Source& source) { finish(call, source, gather); });
  return result(out, a[embed_out]);
}

PyObject* method_embed(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return embed(encoder_of(self), signatures().embed.parse(arguments, given, keywords)); });
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
  return std::make_unique<BoundEncoder>(std::move(spec), max_len, first_position);
}

}  // namespace

void bind_encoder(py::module_& module) {
  load_scalar_types();
  signatures();
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
