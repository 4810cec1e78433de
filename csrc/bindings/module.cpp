// SPDX-License-Identifier: BSD-3-Clause
// The module by pybind11: constructors, and functions that those written in Python call. Methods are of another kind:
// method.h says why.
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/operations/write.h"
#include "fastpe/parallel.h"
#include "fastpe/sources/sinusoid/conventions.h"
#include "fastpe/sources/sinusoid/rotary_frequencies.h"
#include "method.h"

namespace fastpe::bindings {
namespace {

using py::literals::operator""_a;

// What fastpe.show_config() says of the core. Raises a ValueError for a wrong FASTPE_* variable.
py::dict config() {
  // One variable after the other, so that a wrong one keeps none of the others from being read again.
  const char* const instruction_set = active_instruction_set();
  const int threads = default_thread_count();
  const std::int64_t streaming_bytes = streaming_threshold_bytes();
  return py::dict("compiler"_a = FASTPE_COMPILER, "openmp"_a = has_openmp(), "instruction_set"_a = instruction_set,
                  "available_instruction_sets"_a = available_instruction_sets(), "threads"_a = threads,
                  "streaming_bytes"_a = streaming_bytes, "kept_row_bytes"_a = kept_row_bytes());
}

// The array behind what a caller gave, under the name that messages have for it.
Object array(const py::object& input, const std::string& name, bool in_place) {
  return in_place ? array_to_write(input.ptr(), name.c_str()) : array_to_read(input.ptr(), name.c_str());
}

Object bools(const py::object& input, const std::string& name) { return bools_from(input.ptr(), name.c_str()); }

// The array behind `out`, checked, or a new one. It shares no memory with the inputs.
Object output(const py::object& out, const py::object& dtype, const std::vector<std::int64_t>& lengths,
              const py::args& inputs) {
  // Phase 1
  PythonCall call;
  ArrayView given;
  const Object behind = is_given(out.ptr()) ? array_to_write(out.ptr(), "out") : Object();
  call.to_write_if_given(given, behind.ptr());
  const std::optional<DType> wanted = dtype_argument(dtype.ptr());
  if (lengths.size() > max_axes) {
    refuse_value("the result", {"would have ", static_cast<long>(lengths.size()), " axes"}, {"at most ", max_axes});
  }
  Shape shape;
  for (const std::int64_t length : lengths) shape.add_axis(length);
  std::vector<ArrayView> read(inputs.size());
  for (std::size_t i = 0; i < read.size(); ++i) call.to_read(read[i], inputs[i].ptr(), "an input");

  // Phase 2
  call.take_views();
  const ArrayView written = output_of(given, wanted, shape, call);
  for (const ArrayView& input : read) require_disjoint(written, input);
  return py::reinterpret_steal<Object>(call.returned(behind.ptr()));
}

// ---- Encodings. What they are made of is checked in Python, where the user's names for it are known.

template <class T>
T get(const py::dict& arguments, const char* name) {
  return arguments[name].cast<T>();
}
using Integer = std::int64_t;
using Doubles = std::vector<double>;

std::unique_ptr<Encoding> make_encoding(const py::dict& a) {
  Spec spec;
  spec.d_model = get<Integer>(a, "d_model");
  spec.wanted_frequencies = {get<Integer>(a, "frequency_count"),     get<double>(a, "base"),
                             get<double>(a, "exponent_denominator"), get<double>(a, "freq_scale"),
                             get<Doubles>(a, "frequencies"),         "d_model, base and freq_scale"};
  spec.interleaved = get<bool>(a, "interleaved");
  spec.cosine_first = get<bool>(a, "cosine_first");
  spec.output_scale = get<double>(a, "output_scale");
  return std::make_unique<Encoding>(std::move(spec), get<std::optional<Integer>>(a, "max_len"),
                                    get<Integer>(a, "first_position"), get<double>(a, "embedding_scale"),
                                    get<std::optional<Integer>>(a, "padding_idx"));
}

std::unique_ptr<RotaryEmbedding> make_rotary(const py::dict& a) {
  const Integer count = get<Integer>(a, "rotary_dim") / 2;
  const WantedFrequencies wanted{count, get<double>(a, "base"),         static_cast<double>(count),
                                 1.0,   get<Doubles>(a, "frequencies"), "base and scaling"};
  return std::make_unique<RotaryEmbedding>(wanted, get<double>(a, "attention_factor"),
                                           FrequencyCoordinates(get<Doubles>(a, "frequency_axes"), count),
                                           get<Integer>(a, "head_dim"), get<bool>(a, "interleaved"),
                                           get<bool>(a, "conjugate"), get<std::optional<Integer>>(a, "max_len"));
}

// `given` has a scaling's numbers by name, `truncate`, `divisors` and `attention_factor`, which counts as being there.
py::tuple scaled_frequencies(std::int64_t rotary_dim, double base, const std::string& type, const py::dict& given) {
  RotaryScaling scaling;
  const auto found = std::find(std::begin(scaling_types), std::end(scaling_types), type);
  if (found == std::end(scaling_types)) refuse_value("rope_type", {"is '", type, "'"}, {"one that the core knows"});
  scaling.type = static_cast<RotaryScaling::Type>(found - std::begin(scaling_types));
  for (const ScalingNumber& each : scaling_numbers()) {
    if (given.contains(each.name)) scaling.*each.number = get<double>(given, each.name);
  }
  if (given.contains("truncate")) scaling.truncate = get<bool>(given, "truncate");
  if (given.contains("divisors")) scaling.divisors = get<Doubles>(given, "divisors");
  if (given.contains("other_divisors")) scaling.other_divisors = get<Doubles>(given, "other_divisors");
  scaling.has_attention_factor = given.contains("attention_factor");
  const RotaryFrequencies result = [&] {
    const ReleasedInterpreter released;
    return rotary_frequencies(rotary_dim, base, scaling);
  }();
  const auto count = static_cast<std::int64_t>(result.radians.size());
  return py::make_tuple(new_array(result.radians.data(), count), result.attention_factor);
}

// The fields of the package's conventions, by name.
py::dict named_conventions() {
  py::dict result;
  for (const Convention& each : conventions) {
    const char* const alpha = alphas[static_cast<int>(each.alpha)];
    const py::object denominator = each.denominator != 0.0 ? py::cast(each.denominator) : py::none();
    result[each.name] = py::dict(
        "layout"_a = each.interleaved ? "interleaved" : "concatenated", "cosine_first"_a = each.cosine_first,
        "denominator_offset"_a = each.denominator_offset, "denominator"_a = denominator,
        "odd"_a = odd_widths[static_cast<int>(each.odd)], "base"_a = each.base, "freq_scale"_a = each.freq_scale,
        "first_position"_a = each.first_position, "alpha"_a = alpha == nullptr ? py::cast(1.0) : py::cast(alpha));
  }
  return result;
}

// How many frequencies an encoding has, the denominator of their exponents, and what it is multiplied by.
py::tuple convention_numbers(const std::string& name, const std::string& odd, double denominator_offset,
                             std::optional<double> denominator, const py::object& alpha, std::int64_t d_model) {
  Convention convention{};
  convention.name = name.c_str();
  convention.odd = static_cast<OddWidth>(std::find(std::begin(odd_widths), std::end(odd_widths), odd) - odd_widths);
  convention.denominator_offset = denominator_offset;
  convention.denominator = denominator.value_or(0.0);
  const bool is_named = py::isinstance<py::str>(alpha);
  if (is_named) {
    const auto named = alpha.cast<std::string>();
    convention.alpha = named == alphas[1] ? Alpha::one_over_root : Alpha::root_of_two_over;
  }
  const ConventionNumbers numbers = numbers_of(convention, d_model);
  return py::make_tuple(numbers.frequency_count, numbers.exponent_denominator,
                        is_named ? numbers.output_scale : alpha.cast<double>());
}

py::tuple table_form_names() {
  py::list names;
  for (const TableForm& form : table_forms) names.append(form.name);
  return names;
}

constexpr const char* why_only_main =
    "fastpe, as NumPy, supports a process's main interpreter only, and this is a sub-interpreter: import it in the "
    "main one (mod_wsgi: WSGIApplicationGroup %{GLOBAL})";

bool is_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

void fill(py::module_& module) {
  if (!is_main_interpreter()) throw py::import_error(why_only_main);
  module.doc() = "The compiled core of fastpe; private.";
  module.attr("__version__") = FASTPE_VERSION;
  register_errors();
  load_numpy();
  module.def("config", config);
  module.def("use_instruction_set", use_instruction_set, "name"_a);
  module.def("array", array, "input"_a, "name"_a, py::kw_only(), "in_place"_a = false);
  module.def("bools", bools, "input"_a, "name"_a);
  module.def("output", output, "out"_a, "dtype"_a, "shape"_a);
  module.def("document", document, "method"_a, "prose"_a);
  module.def("rotary_frequencies", scaled_frequencies);
  add_functions(module);
  add_resizing(module);
  module.attr("conventions") = named_conventions();
  module.def("convention_numbers", convention_numbers);
  module.attr("largest_scaling_number") = largest_scaling_number;
  module.attr("table_forms") = table_form_names();

  const Object encoding = holder_type<Encoding, make_encoding>("fastpe._core.Encoding");
  add_encoding_methods(encoding);
  module.attr("Encoding") = encoding;
  const Object rotary = holder_type<RotaryEmbedding, make_rotary>("fastpe._core.RotaryEmbedding");
  add_rotary_methods(rotary);
  module.attr("RotaryEmbedding") = rotary;
}

}  // namespace
}  // namespace fastpe::bindings

// Encoders are immutable and what calls share, tables and kept rows, is thread-safe: no GIL is needed.
PYBIND11_MODULE(_core_of_main_interpreter, module, pybind11::mod_gil_not_used()) { fastpe::bindings::fill(module); }

// The module's entry. What pybind11 does first would wait for ever for a lock that a sub-interpreter's thread holds.
// From 3.13 on, Python runs this in the main interpreter, and `fill` in the one that imports.
PYBIND11_PLUGIN_IMPL(_core) {
  if (fastpe::bindings::is_main_interpreter()) return PyInit__core_of_main_interpreter();
  PyErr_SetString(PyExc_ImportError, fastpe::bindings::why_only_main);
  return nullptr;
}
