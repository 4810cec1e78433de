// SPDX-License-Identifier: BSD-3-Clause
// Arguments are checked in Python, where the user's names for them are known.
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "arrays.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {
namespace {

constexpr std::string_view types[] = {"default", "linear",   "ntk",    "dynamic",
                                      "yarn",    "longrope", "llama3", "proportional"};
static_assert(static_cast<std::size_t>(RotaryScaling::Type::proportional) + 1 == std::size(types));

RotaryScaling::Type type_named(const char* name) {
  const auto found = std::find(std::begin(types), std::end(types), name);
  if (found == std::end(types)) refuse_value("rope_type", {"is '", name, "'"}, {"one that the core knows"});
  return static_cast<RotaryScaling::Type>(found - std::begin(types));
}

// Numbers of the scaling that are not given keep their defaults.
PyObject* frequencies(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {
      "rotary_dim", "base",           "rope_type", "factor",     "length",   "trained_length", "beta_fast", "beta_slow",
      "mscale",     "mscale_all_dim", "low_turns", "high_turns", "truncate", "rotated_count",  "divisors",  nullptr};
  return returned_or<PyObject*>(nullptr, [&] {
    RotaryScaling s;
    long long rotary_dim, rotated_count = 0;
    double base;
    const char* type;
    int truncate = 1;
    PyObject* divisors = nullptr;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "Lds|$dddddddddpLO", const_cast<char**>(names), &rotary_dim,
                                    &base, &type, &s.factor, &s.length, &s.trained_length, &s.beta_fast, &s.beta_slow,
                                    &s.mscale, &s.mscale_all_dim, &s.low_turns, &s.high_turns, &truncate,
                                    &rotated_count, &divisors) == 0) {
      throw PythonError{};
    }
    s.type = type_named(type);
    s.truncate = truncate != 0;
    s.rotated_count = rotated_count;
    if (divisors != nullptr) s.divisors = doubles_from(divisors);
    const RotaryFrequencies result = [&] {
      const ReleasedInterpreter released;
      return rotary_frequencies(rotary_dim, base, s);
    }();
    const Object radians = new_array(result.radians.data(), static_cast<std::int64_t>(result.radians.size()));
    return not_null(Py_BuildValue("(Od)", radians.get(), result.attention_factor)).release();
  });
}

}  // namespace

void add_rotary_frequencies(PyObject* module) {
  const auto function = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(frequencies));
  static PyMethodDef functions[] = {{"rotary_frequencies", function, METH_VARARGS | METH_KEYWORDS, nullptr}, {}};
  const Object largest = not_null(PyFloat_FromDouble(largest_scaling_number));
  if (PyModule_AddFunctions(module, functions) < 0 ||
      PyModule_AddObjectRef(module, "largest_scaling_number", largest.get()) < 0) {
    throw PythonError{};
  }
}

}  // namespace fastpe::bindings
