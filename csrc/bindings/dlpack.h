// SPDX-License-Identifier: BSD-3-Clause
// Arrays of other libraries, by DLPack: torch's tensors, JAX's arrays, ONNX Runtime's OrtValues.
#pragma once

#include <cstdint>
#include <optional>

#include "fastpe/dtype.h"
#include "interpreter.h"

namespace fastpe::bindings {

// A tensor in memory that the processor reaches, which stays where it is as long as `owner` lives.
struct Tensor {
  static constexpr int most_axes = 32;  // of an array of NumPy 1

  char* data = nullptr;
  DType dtype = DType::float32;
  int axes = 0;
  Py_ssize_t shape[most_axes] = {};
  Py_ssize_t strides_bytes[most_axes] = {};
  Object owner;
};

// The memory of an object that has __dlpack__, never a copy where it is to be written. Runs its library's code.
Tensor tensor_behind(PyObject* object, const char* name, bool is_written);

}  // namespace fastpe::bindings
