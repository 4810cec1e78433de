// SPDX-License-Identifier: BSD-3-Clause
// What the objects of Python's two classes hold. module.cpp makes them; encoder.cpp and rotary.cpp have their methods.
#pragma once

#include <cstdint>
#include <optional>

#include "fastpe/requests/rotary_embedding.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "interpreter.h"

namespace fastpe::bindings {

// The core's Encoder is a part of it.
struct BoundEncoder : SinusoidalEncoding {
  using SinusoidalEncoding::SinusoidalEncoding;

  // What `embed` does where its call says nothing of it.
  double embedding_scale = 1.0;
  std::optional<std::int64_t> padding_idx;
};

void add_encoder_methods(py::handle type);
void add_rotary_methods(py::handle type);
// Of rotations by tables that are given.
void add_functions(py::handle module);

}  // namespace fastpe::bindings
