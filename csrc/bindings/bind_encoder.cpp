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
#include "fastpe/encoder.h"
#include "scalars.h"
#include "vectorcall.h"

namespace fastpe::bindings {
namespace {

struct BoundEncoder {
  Encoder core;
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
      [&] { return add_to(encoder_of(self), signatures().add_in_place.parse(arguments, given, keywords), true); });
}

PyObject* method_add(PyObject* self, PyObject* const* arguments, Py_ssize_t given, PyObject* keywords) {
  return guarded([&] { return add_to(encoder_of(self), signatures().add.parse(arguments, given, keywords), false); });
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
  return std::unique_ptr<BoundEncoder>(new BoundEncoder{Encoder(std::move(spec), max_len), first_position});
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
