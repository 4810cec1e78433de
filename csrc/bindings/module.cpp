// SPDX-License-Identifier: BSD-3-Clause
#include "bindings.h"

// Encoders are immutable and calls share nothing but the arrays that their callers pass: no GIL is needed.
PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The compiled core of fastpe; private.";
  fastpe::bindings::bind_config(module);
  fastpe::bindings::bind_encoder(module);
  fastpe::bindings::bind_rotary(module);
  fastpe::bindings::bind_rotary_frequencies(module);
  fastpe::bindings::bind_explained(module);
  fastpe::bindings::bind_wrong_calls(module);
}
