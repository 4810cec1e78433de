// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a rotation: taken, checked against each other, and seen as rows of heads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "fastpe/operations/rotate.h"

namespace fastpe::bindings {

class RotationArrays {
 public:
  // Phase 1
  void take(PyObject* x, const Others& others, Access access);

  // Phase 2: checks everything that does not depend on positions.
  struct Requirement {
    std::int64_t rotary_dim;
    std::optional<std::int64_t> seq_axis;
    Access access;
    int coordinate_axes;   // that positions have at their end: 0 or 1
    const char* narrower;  // what to do about heads that are narrower
    const char* instead;   // the call that rotates into another array, where there is one
  };
  void check(const Requirement& requirement, const Inputs& inputs);

  const Array& x() const { return taken_.front().array; }
  DType dtype() const { return dtype_; }
  int seq_axis() const { return taken_.front().seq_axis; }
  const Extent& extent() const { return extent_; }
  void refuse_shared(const Inputs& inputs) const;

  // Each array, to be written in place.
  std::vector<RotatedArray> in_place();

 private:
  struct Taken {
    Array array;
    int seq_axis = 0;
    Extent extent(bool is_packed) const;
  };
  void refuse_tables() const;
  void check_like_first(const Array& array, const char* name, const Extent& extent, const Requirement& requirement,
                        const char* per_row);

  std::vector<Taken> taken_;
  DType dtype_ = DType::float32;
  Extent extent_{1, 0, false};
};

}  // namespace fastpe::bindings
