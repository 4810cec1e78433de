// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "encoder_methods.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/gather.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "fastpe/sources/table.h"
#include "interpreter.h"
#include "scalars.h"
#include "warm_up.h"

namespace fastpe::bindings {
namespace {

struct BoundEncoder {
  BoundEncoder(Spec spec, std::optional<std::int64_t> max_len, std::int64_t first)
      : core(std::move(spec)), rows(core, max_len), first_position(first) {}

  Encoder core;
  RowCache rows;
  std::int64_t first_position;
};

// The object given as out, or else the new array.
PyObject* result(Array& out, PyObject* out_argument) {
  if (!is_given(out_argument)) return out.release().ptr();
  Py_INCREF(out_argument);
  return out_argument;
}

// ---- add_, add

// Calls use(source) with the learned table where one is given, else with the encoder's columns from first_column on.
template <class Use>
void with_source(const BoundEncoder& self, const std::optional<TableView>& learned, std::int64_t first_column,
                 const Use& use) {
  if (learned) {
    use(LearnedTable(*learned));
  } else {
    use(Sinusoids(self.core, &self.rows, first_column));
  }
}

PyObject* add_to(BoundEncoder& self, const AddArguments& a, bool in_place) {
  // Phase 1
  const bool is_out_given = is_given(a.out);
  const std::int64_t d_model = self.core.spec().d_model;
  Array x = in_place ? array_of(a.x, "x") : array_from(a.x, "x");
  Array given_out = is_out_given ? array_of(a.out, "out") : Array();
  Inputs inputs;
  if (is_given(a.table)) {
    inputs.learned = array_from(a.table, "table");
    if (is_given(a.channels)) {
      throw py::value_error("table and channels were both given, expected one of them; slice the table's columns");
    }
  }
  const std::optional<Channels> channels = channels_argument(a.channels, d_model);
  const std::optional<std::int64_t> seq_axis_given = seq_axis_argument(a.seq_axis);
  read_rows(inputs, row_arguments(a));
  PendingCall call;
  const Factors factors{number_argument(a.scale, "scale", 1.0), number_argument(a.alpha, "alpha", 1.0)};
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const Access access = in_place ? Access::write : Access::read;
  const DType dtype = dtype_of(x, "x", access);
  const int seq_axis = seq_axis_of(seq_axis_given, x);
  require_access(x, "x", access);
  std::optional<TableView> learned;
  std::int64_t first_column = 0;
  if (inputs.learned) {
    learned = learned_table(inputs.learned, x, "x", last(x), "table");
  } else {
    first_column = first_channel(channels, d_model, last(x), "x");
  }
  Extent extent = extent_of(x, seq_axis);
  if (x.ndim() > 2 && seq_axis == x.ndim() - 2) {
    const Extent other = extent_of(x, seq_axis - 1);
    extent.other_rows = other.rows;
    extent.other_seq_len = other.seq_len;
  }
  call.positions.first = self.first_position;
  set_rows(call, inputs, extent);
  const auto add = [&](const fastpe::Add& operation) {
    with_source(self, learned, first_column, [&](const Source& source) { finish(call, source, operation); });
  };
  if (in_place) {
    refuse_shared_inputs(inputs, x);
    call.is_in_place = true;
    add(fastpe::Add(writable_rows_of(x, dtype, seq_axis), extent.rows, factors));
    Py_INCREF(a.x);
    return a.x;
  }
  Array out = output(std::move(given_out), x.dtype(), shape_of(x), "x");
  if (is_out_given) {
    call.is_in_place = is_same_memory(out, x);
    if (!call.is_in_place) require_disjoint(out, "out", x, "x", " (out may be x itself)");
    refuse_shared_inputs(inputs, out);
  }
  add({rows_of(x, dtype, seq_axis), writable_rows_of(out, dtype, seq_axis), extent.rows, factors, !is_out_given});
  return result(out, a.out);
}

PyObject* add_in_place(BoundEncoder& self, const AddArguments& a) { return add_to(self, a, true); }
PyObject* add(BoundEncoder& self, const AddArguments& a) { return add_to(self, a, false); }

// ---- encode

// For functions in Python: the array behind `out`, checked, or a new one. It shares no memory with the inputs.
py::object output_for(const py::object& out, const py::object& dtype, const std::vector<py::ssize_t>& lengths,
                      const py::args& inputs) {
  if (lengths.size() > Shape::most_axes) {
    throw py::value_error("the result would have " + std::to_string(lengths.size()) +
                          " axes, expected at most as many as an array has, 64");
  }
  // Phase 1
  Array given_out = is_given(out.ptr()) ? array_of(out.ptr(), "out") : Array();
  const py::object asked = is_given(dtype.ptr()) ? dtype_argument(dtype.ptr()) : py::object();
  std::vector<Array> read;
  for (const py::handle input : inputs) read.push_back(array_of(input.ptr(), "an input"));

  // Phase 2
  const py::dtype chosen = result_dtype(asked, given_out);
  Array result = output(std::move(given_out), chosen, Shape(lengths.data(), lengths.data() + lengths.size()), nullptr);
  for (const Array& input : read) require_disjoint(result, "the output", input, "an input");
  return py::object(std::move(result));
}

PyObject* encode(BoundEncoder& self, const EncodeArguments& a) {
  // Phase 1
  const std::int64_t d_model = self.core.spec().d_model;
  const std::optional<Channels> channels = channels_argument(a.channels, d_model);
  const bool is_out_given = is_given(a.out);
  Array given_out = is_out_given ? array_of(a.out, "out") : Array();
  const py::object dtype_given = is_given(a.dtype) ? dtype_argument(a.dtype) : py::object();
  const std::optional<std::int64_t> count = position_count(a.positions);
  Inputs inputs;
  if (!count) {
    refuse_together(a.positions, "positions", a.offset, "offset");
    inputs.positions = numbers_from(a.positions, "positions", Numbers::integers_or_floats, Order::contiguous);
  }
  RowArguments rows;
  rows.offset = a.offset;
  rows.mask = a.mask;
  rows.lengths = a.lengths;
  read_rows(inputs, rows);
  PendingCall call;
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const py::dtype dtype = result_dtype(dtype_given, given_out);
  call.positions.first = self.first_position;
  if (!count) {
    set_any_positions(call, inputs.positions, "positions");
  }
  Shape shape = count ? counted_shape(inputs, *count) : shape_of(inputs.positions);
  const int seq_axis = static_cast<int>(shape.axes()) - 1;
  shape.add_axis(axis_length(channels ? channels->end - channels->first : d_model));
  Array out = output(std::move(given_out), dtype, shape, nullptr);
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
  const Sinusoids source(self.core, &self.rows, channels ? channels->first : 0);
  finish(call, source, Write(writable_rows_of(out, dtype_of(dtype, "dtype"), seq_axis), !is_out_given));
  return result(out, a.out);
}

// ---- embed

PyObject* embed(BoundEncoder& self, const EmbedArguments& a) {
  // Phase 1
  const bool is_out_given = is_given(a.out);
  Inputs inputs;
  inputs.vocabulary = array_from(a.table, "table");
  inputs.ids = numbers_from(a.ids, "ids", Numbers::integers, Order::contiguous);
  if (is_given(a.position_table)) inputs.learned = array_from(a.position_table, "position_table");
  Array given_out = is_out_given ? array_of(a.out, "out") : Array();
  read_rows(inputs, row_arguments(a));
  PendingCall call;
  const Factors factors{number_argument(a.scale, "scale", 1.0), number_argument(a.alpha, "alpha", 1.0)};
  call.max_threads = threads_argument(a.num_threads);

  // Phase 2
  const Array& table = inputs.vocabulary;
  if (table.dtype().kind() == 'i' && inputs.ids.dtype().kind() == 'f' && inputs.ids.ndim() == 2) {
    throw py::type_error("ids has dtype " + str_of(inputs.ids.dtype()) + " and table " + str_of(table.dtype()) +
                         ", expected integers and floats; pass the ids first, then the table");
  }
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
  Shape shape = shape_of(inputs.ids);
  const int seq_axis = static_cast<int>(shape.axes()) - 1;
  shape.add_axis(axis_length(columns));
  Array out = output(std::move(given_out), table.dtype(), shape, "table");
  const Extent extent = extent_of(out, seq_axis);
  call.positions.first = self.first_position;
  set_rows(call, inputs, extent);
  if (is_out_given) refuse_shared_inputs(inputs, out);
  const Gather gather(vocabulary, ids, item_axes_of(out, seq_axis), writable_rows_of(out, dtype, seq_axis), extent.rows,
                      factors, !is_out_given);
  with_source(self, learned, 0, [&](const Source& source) { finish(call, source, gather); });
  return result(out, a.out);
}

PyObject* warm_up_encoder(BoundEncoder& self, const WarmUpArguments& a) { return warm_up(self.core, self.rows, a); }

// ---- the class

std::unique_ptr<BoundEncoder> make_encoder(std::int64_t d_model, std::int64_t frequency_count, double base,
                                           double exponent_denominator, double freq_scale, std::vector<double> freqs,
                                           bool interleaved, bool cosine_first, double output_scale,
                                           std::optional<std::int64_t> max_len, std::int64_t first_position) {
  Spec spec;
  spec.d_model = d_model;
  spec.frequencies = {frequency_count, base, exponent_denominator, freq_scale, std::move(freqs)};
  spec.frequencies.arguments = "d_model, base, freq_scale and freqs";
  spec.interleaved = interleaved;
  spec.cosine_first = cosine_first;
  spec.output_scale = output_scale;
  return std::make_unique<BoundEncoder>(std::move(spec), max_len, first_position);
}

}  // namespace

void bind_encoder(py::module_& module) {
  load_scalar_types();
  py::class_<BoundEncoder> type(module, "Encoder");
  type.def(py::init(&make_encoder), py::kw_only(), py::arg("d_model"), py::arg("frequency_count"), py::arg("base"),
           py::arg("exponent_denominator"), py::arg("freq_scale"), py::arg("freqs"), py::arg("interleaved"),
           py::arg("cosine_first"), py::arg("output_scale"), py::arg("max_len"), py::arg("first_position"));
  type.def("_frequencies", [](const BoundEncoder& self) {
    return py::array_t<double>(static_cast<py::ssize_t>(self.core.spec().frequencies.frequency_count),
                               self.core.frequencies().radians.high.data());
  });
  module.def("output", &output_for, py::arg("out"), py::arg("dtype"), py::arg("shape"));
  module.def(
      "array",
      [](const py::object& input, const char* name, bool takes_bfloat16, bool in_place) {
        if (in_place) return py::object(array_of(input.ptr(), name));
        return py::object(array_from(input.ptr(), name, takes_bfloat16 ? Bfloat16::taken : Bfloat16::refused));
      },
      py::arg("input"), py::arg("name"), py::arg("takes_bfloat16") = false, py::arg("in_place") = false);
  module.def(
      "conversion",
      [](const py::object& array, const char* name, const char* dtype) {
        return conversion(array_from(array.ptr(), name), name, dtype);
      },
      py::arg("array"), py::arg("name"), py::arg("dtype"));
  module.def(
      "mask", [](const py::object& input, const char* name) { return py::object(mask_from(input.ptr(), name)); },
      py::arg("input"), py::arg("name"));
  define_method<EncodeMethod, bound_of<BoundEncoder>, encode>(type);
  define_method<AddInPlaceMethod, bound_of<BoundEncoder>, add_in_place>(type);
  define_method<AddMethod, bound_of<BoundEncoder>, add>(type);
  define_method<EmbedMethod, bound_of<BoundEncoder>, embed>(type);
  define_method<WarmUpMethod, bound_of<BoundEncoder>, warm_up_encoder>(type);
}

}  // namespace fastpe::bindings
