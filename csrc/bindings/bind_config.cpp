// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include "bindings.h"
#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"
#include "fastpe/sources/sinusoid/row_cache.h"

namespace fastpe::bindings {

namespace py = pybind11;

namespace {

#define FASTPE_TEXT_OF(x) #x
#define FASTPE_TEXT(x) FASTPE_TEXT_OF(x)

const char* compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#elif defined(_MSC_VER)
  return "MSVC " FASTPE_TEXT(_MSC_VER);
#else
  return "unknown";
#endif
}

// Throws std::invalid_argument for a wrong FASTPE_* variable.
void check_environment() {
  active_instruction_set();
  default_thread_count();
  streaming_threshold_bytes();
}

}  // namespace

void bind_config(py::module_& module) {
  module.attr("__version__") = FASTPE_TEXT(FASTPE_VERSION);
  module.def("check_environment", &check_environment);
  module.def("compiler", &compiler);
  module.def("has_openmp", &has_openmp);
  module.def("thread_count", &default_thread_count);
  module.def("streaming_threshold_bytes", &streaming_threshold_bytes);
  module.def("kept_row_bytes", &kept_row_bytes);
  module.def("instruction_set", &active_instruction_set);
  module.def("available_instruction_sets", &available_instruction_sets);
  module.def("use_instruction_set", &use_instruction_set, py::arg("name"));
}

}  // namespace fastpe::bindings
