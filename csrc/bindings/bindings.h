// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

namespace fastpe::bindings {

void bind_encoder(pybind11::module_& module);
void bind_config(pybind11::module_& module);
void bind_rotary(pybind11::module_& module);
void bind_rotary_frequencies(pybind11::module_& module);
void bind_explained(pybind11::module_& module);
void bind_wrong_calls(pybind11::module_& module);

}  // namespace fastpe::bindings
