// SPDX-License-Identifier: BSD-3-Clause
// Arguments are checked in Python, where the user's names for them are known.
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "arrays.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {
namespace {

struct Arguments {
  PyObject *rotary_dim, *base, *rope_type;
  PyObject *factor, *length, *trained_length, *beta_fast, *beta_slow, *truncate, *mscale, *mscale_all_dim, *divisors,
      *low_turns, *high_turns, *rotated_count;
};
Signature rotary_frequencies_signature(
    "rotary_frequencies",
    "rotary_dim, base, rope_type, *, factor=None, length=None, trained_length=None, beta_fast=None, beta_slow=None, "
    "truncate=None, mscale=None, mscale_all_dim=None, divisors=None, low_turns=None, high_turns=None, "
    "rotated_count=None");

constexpr std::string_view types[] = {"default", "linear",   "ntk",    "dynamic",
                                      "yarn",    "longrope", "llama3", "proportional"};
static_assert(static_cast<std::size_t>(RotaryScaling::Type::proportional) + 1 == std::size(types));

constexpr struct {
  PyObject* Arguments::* given;
  double RotaryScaling::* number;
} numbers[] = {
    {&Arguments::factor, &RotaryScaling::factor},
    {&Arguments::length, &RotaryScaling::length},
    {&Arguments::trained_length, &RotaryScaling::trained_length},
    {&Arguments::beta_fast, &RotaryScaling::beta_fast},
    {&Arguments::beta_slow, &RotaryScaling::beta_slow},
    {&Arguments::mscale, &RotaryScaling::mscale},
    {&Arguments::mscale_all_dim, &RotaryScaling::mscale_all_dim},
    {&Arguments::low_turns, &RotaryScaling::low_turns},
    {&Arguments::high_turns, &RotaryScaling::high_turns},
};

RotaryScaling scaling_of(const Arguments& a) {
  const std::string type = utf8_of(a.rope_type);
  const auto found = std::find(std::begin(types), std::end(types), type);
  if (found == std::end(types)) refuse_value("rope_type", {"is '", type, "'"}, {"one that the core knows"});
  RotaryScaling scaling;
  scaling.type = static_cast<RotaryScaling::Type>(found - std::begin(types));
  for (const auto& each : numbers) {
    if (is_given(a.*each.given)) scaling.*each.number = number_from(a.*each.given, "scaling");
  }
  scaling.truncate = bool_argument(a.truncate, "truncate", true);
  if (is_given(a.rotated_count)) scaling.rotated_count = integer_argument(a.rotated_count).value_or(0);
  if (is_given(a.divisors)) scaling.divisors = doubles_from(a.divisors);
  return scaling;
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
  return not_null(Py_BuildValue("(Od)", radians.get(), result.attention_factor)).release();
}

}  // namespace

void add_rotary_frequencies(PyObject* module) {
  static PyMethodDef functions[] = {method<frequencies, rotary_frequencies_signature>(), {}};
  const Object largest = not_null(PyFloat_FromDouble(largest_scaling_number));
  if (PyModule_AddFunctions(module, functions) < 0 ||
      PyModule_AddObjectRef(module, "largest_scaling_number", largest.get()) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
