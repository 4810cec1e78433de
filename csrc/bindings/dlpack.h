// SPDX-License-Identifier: BSD-3-Clause
// Arrays of other libraries, by DLPack: torch's tensors, JAX's arrays, ONNX Runtime's OrtValues.
#pragma once

#include <cstddef>

#include "fastpe/checks/array_view.h"
#include "interpreter.h"

namespace fastpe::bindings {

// The memory of an object that has __dlpack__, never a copy where it is to be written. It stays where it is as long as
// `owner` lives.
struct Tensor {
  static constexpr int most_axes = 32;  // of an array of NumPy 1

  // Runs the code of the object's library.
  Tensor(PyObject* object, const char* name, bool is_written);
  Tensor(const Tensor&) = delete;

  ArrayView view;
  std::ptrdiff_t shape[most_axes], strides_bytes[most_axes];  // of the view
  Object owner;
};

}  // namespace fastpe::bindings
