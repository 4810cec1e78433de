// SPDX-License-Identifier: BSD-3-Clause
// Arguments are checked in Python, where the user's names for them are known.
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

#include <string>

#include "arrays.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {
namespace {

struct Arguments {
  PyObject *rotary_dim, *base, *rope_type;
  PyObject *factor, *stretch, *length, *trained_length, *beta_fast, *beta_slow, *truncate, *mscale, *mscale_all_dim,
      *divisors, *low_turns, *high_turns, *rotated_count;
};
Signature rotary_frequencies_signature(
    "rotary_frequencies",
    "rotary_dim, base, rope_type, *, factor=None, stretch=None, length=None, trained_length=None, beta_fast=None, "
    "beta_slow=None, truncate=None, mscale=None, mscale_all_dim=None, divisors=None, low_turns=None, high_turns=None, "
    "rotated_count=None");

RotaryScaling scaling_of(const Arguments& a) {
  const std::string type = utf8_of(a.rope_type);
  const auto number = [](PyObject* object) { return number_from(object == nullptr ? Py_None : object, "scaling"); };
  if (type == "default") return Unscaled{};
  if (type == "linear") return LinearScaling{number(a.factor)};
  if (type == "ntk") return BaseScaling{number(a.stretch)};
  if (type == "dynamic") return DynamicScaling{number(a.factor), number(a.length), number(a.trained_length)};
  if (type == "yarn") {
    return YarnScaling{number(a.factor),      number(a.trained_length), number(a.beta_fast),     number(a.beta_slow),
                       a.truncate == Py_True, number(a.mscale),         number(a.mscale_all_dim)};
  }
  if (type == "longrope") {
    return LongRopeScaling{doubles_from(a.divisors), number(a.factor), number(a.trained_length)};
  }
  if (type == "llama3") {
    return Llama3Scaling{number(a.factor), number(a.trained_length), number(a.low_turns), number(a.high_turns)};
  }
  if (type == "proportional") {
    return ProportionalScaling{number(a.factor), integer_argument(a.rotated_count).value_or(0)};
  }
  refuse_value("rope_type", {"is '", type, "'"}, {"one that the core knows"});
}

PyObject* frequencies(PyObject&, const Arguments& a) {
  const std::int64_t rotary_dim = integer_argument(a.rotary_dim).value_or(0);
  const double base = number_from(a.base, "base");
  const RotaryScaling scaling = scaling_of(a);
  const RotaryFrequencies result = [&] {
    const ReleasedInterpreter released;
    return rotary_frequencies(rotary_dim, base, scaling);
  }();
  const Object radians = new_array(result.radians.data(), static_cast<std::int64_t>(result.radians.size()));
  return checked(Py_BuildValue("(Od)", radians.get(), result.attention_factor)).release();
}

}  // namespace

void add_rotary_frequencies(PyObject* module) {
  static PyMethodDef functions[] = {method<frequencies, rotary_frequencies_signature>(), {}};
  const Object largest = checked(PyFloat_FromDouble(largest_scaling_number));
  if (PyModule_AddFunctions(module, functions) < 0 ||
      PyModule_AddObjectRef(module, "largest_scaling_number", largest.get()) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
