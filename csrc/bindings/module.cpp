// SPDX-License-Identifier: BSD-3-Clause
// The module, and the functions about its configuration and about arrays that those written in Python call.
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "call.h"
#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"
#include "method.h"

namespace fastpe::bindings {
namespace {

#define FASTPE_TEXT_OF(x) #x
#define FASTPE_TEXT(x) FASTPE_TEXT_OF(x)

#if defined(__clang__)
constexpr const char* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* compiler = "GCC " __VERSION__;
#elif defined(_MSC_VER)
constexpr const char* compiler = "MSVC " FASTPE_TEXT(_MSC_VER);
#else
constexpr const char* compiler = "unknown";
#endif

// What fastpe.show_config() says of the core. Raises a ValueError for a wrong FASTPE_* variable.
PyObject* config(PyObject*, PyObject*) {
  return returned_or<PyObject*>(nullptr, [] {
    const char* const instruction_set = active_instruction_set();
    const int threads = default_thread_count();
    const long long streaming_bytes = streaming_threshold_bytes(), row_bytes = kept_row_bytes();
    const Object available = not_null(PyList_New(0));
    for (const std::string& name : available_instruction_sets()) {
      const Object text = not_null(PyUnicode_FromString(name.c_str()));
      if (PyList_Append(available.get(), text.get()) < 0) throw PythonError{};
    }
    return not_null(Py_BuildValue("{s:s,s:O,s:s,s:O,s:i,s:L,s:L}",                //
                                  "compiler", compiler,                           //
                                  "openmp", has_openmp() ? Py_True : Py_False,    //
                                  "instruction_set", instruction_set,             //
                                  "available_instruction_sets", available.get(),  //
                                  "threads", threads,                             //
                                  "streaming_bytes", streaming_bytes,             //
                                  "kept_row_bytes", row_bytes))
        .release();
  });
}

struct InstructionSetArguments {
  PyObject* name;
};
Signature use_instruction_set_signature("use_instruction_set", "name");
PyObject* use_instruction_set(PyObject&, const InstructionSetArguments& a) {
  fastpe::use_instruction_set(utf8_of(a.name));
  Py_RETURN_NONE;
}

// The array behind what a caller gave, under the name that messages have for it.
struct ArrayArguments {
  PyObject *input, *name, *in_place;
};
Signature array_signature("array", "input, name, *, in_place=False");
PyObject* array(PyObject&, const ArrayArguments& a) {
  Owned owned;
  const std::string name = utf8_of(a.name);
  const bool in_place = bool_argument(a.in_place, "in_place");
  return Object::shared(in_place ? array_to_write(a.input, name.c_str(), owned)
                                 : array_to_read(a.input, name.c_str(), owned))
      .release();
}

struct BoolsArguments {
  PyObject *input, *name;
};
Signature bools_signature("bools", "input, name");
PyObject* bools(PyObject&, const BoolsArguments& a) {
  Owned owned;
  return Object::shared(bools_from(a.input, utf8_of(a.name).c_str(), owned)).release();
}

// The array behind `out`, checked, or a new one. It shares no memory with the inputs.
struct OutputArguments {
  PyObject *out, *dtype, *shape;
  Others inputs;
};
Signature output_signature("output", "out, dtype, shape, *inputs");
PyObject* checked_output(PyObject&, const OutputArguments& a) {
  // Phase 1
  Owned owned;
  PyObject* const out = given_output(a.out, owned);
  const std::optional<DType> dtype = dtype_argument(a.dtype);
  const Object lengths = not_null(PySequence_Tuple(a.shape));
  if (PyTuple_GET_SIZE(lengths.get()) > max_axes) {
    refuse_value("the result", {"would have ", PyTuple_GET_SIZE(lengths.get()), " axes"}, {"at most ", max_axes});
  }
  std::vector<PyObject*> inputs;
  for (Py_ssize_t i = 0; i < a.inputs.count; ++i) inputs.push_back(array_to_read(a.inputs.items[i], "an input", owned));
  Shape shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lengths.get()); ++i) {
    shape.add_axis(integer_argument(PyTuple_GET_ITEM(lengths.get(), i)).value_or(0));
  }

  // Phase 2
  const ArrayView given = view_if_given(out, "out");
  PythonFrontEnd front_end;
  const ArrayView written = output_of({given, dtype}, shape, front_end);
  for (PyObject* const input : inputs) require_disjoint(written, view_of(input, "an input"));
  return front_end.returned(out);
}

void fill(PyObject* module) {
  load_numpy();
  static PyMethodDef functions[] = {method<use_instruction_set, use_instruction_set_signature>(),
                                    method<array, array_signature>(),
                                    method<bools, bools_signature>(),
                                    method<checked_output, output_signature>(),
                                    {"config", config, METH_NOARGS, nullptr},
                                    {"document", document, METH_VARARGS, nullptr},
                                    {}};
  if (PyModule_AddFunctions(module, functions) < 0 ||
      PyModule_AddStringConstant(module, "__version__", FASTPE_TEXT(FASTPE_VERSION)) < 0) {
    throw PythonError{};
  }
  add_encoder(module);
  add_rotary(module);
  add_rotary_frequencies(module);
}

}  // namespace
}  // namespace fastpe::bindings

// Encoders are immutable and what calls share, tables and kept rows, is thread-safe: no GIL is needed.
PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  using namespace fastpe::bindings;
  module.doc() = "The compiled core of fastpe; private.";
  const bool is_filled = returned_or(false, [&] {
    fill(module.ptr());
    return true;
  });
  if (!is_filled) throw pybind11::error_already_set();
}
