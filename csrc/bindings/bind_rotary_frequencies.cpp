// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.h"
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

namespace fastpe::bindings {

namespace py = pybind11;

namespace {

RotaryScaling scaling_of(const std::string& rope_type, const py::kwargs& values) {
  const auto number = [&](const char* name) { return values[name].cast<double>(); };
  if (rope_type == "default") return Unscaled{};
  if (rope_type == "linear") return LinearScaling{number("factor")};
  if (rope_type == "ntk") return BaseScaling{number("stretch")};
  if (rope_type == "dynamic") return DynamicScaling{number("factor"), number("length"), number("trained_length")};
  if (rope_type == "yarn") {
    YarnScaling scaling;
    scaling.factor = number("factor");
    scaling.trained_length = number("trained_length");
    scaling.beta_fast = number("beta_fast");
    scaling.beta_slow = number("beta_slow");
    scaling.truncate = values["truncate"].cast<bool>();
    scaling.mscale = number("mscale");
    scaling.mscale_all_dim = number("mscale_all_dim");
    return scaling;
  }
  if (rope_type == "longrope") {
    return LongRopeScaling{values["divisors"].cast<std::vector<double>>(), number("factor"), number("trained_length")};
  }
  if (rope_type == "llama3") {
    Llama3Scaling scaling;
    scaling.factor = number("factor");
    scaling.trained_length = number("trained_length");
    scaling.low_turns = number("low_turns");
    scaling.high_turns = number("high_turns");
    return scaling;
  }
  if (rope_type == "proportional") {
    return ProportionalScaling{number("factor"), values["rotated_count"].cast<std::int64_t>()};
  }
  throw std::invalid_argument("rope_type is '" + rope_type + "', which the core does not know");
}

// Arguments are checked in Python, where the user's names for them are known.
py::tuple rotary_frequencies_of(std::int64_t rotary_dim, double base, const std::string& rope_type,
                                const py::kwargs& values) {
  const RotaryScaling scaling = scaling_of(rope_type, values);
  const RotaryFrequencies result = [&] {
    const py::gil_scoped_release release;
    return rotary_frequencies(rotary_dim, base, scaling);
  }();
  const auto count = static_cast<py::ssize_t>(result.radians.size());
  return py::make_tuple(py::array_t<double>(count, result.radians.data()), result.attention_factor);
}

}  // namespace

void bind_rotary_frequencies(py::module_& module) {
  module.def("rotary_frequencies", &rotary_frequencies_of, py::arg("rotary_dim"), py::arg("base"),
             py::arg("rope_type"));
  module.attr("largest_scaling_number") = largest_scaling_number;
}

}  // namespace fastpe::bindings
