// SPDX-License-Identifier: BSD-3-Clause
// A request is the arguments of one call, as views. Its function checks them, makes the source and the operation, and
// has the call run. A front end, for Python or for C, turns its own objects into a request and checks what only its
// language has: so what a request holds is refused alike, in the same order.
#pragma once

#include <cstdint>
#include <optional>

#include "fastpe/call/call.h"
#include "fastpe/checks/placement.h"

namespace fastpe {

// What only the language of the caller can do.
class FrontEnd {
 public:
  // An array that the caller gets, where it gave none. It is named "out".
  virtual ArrayView new_array(DType dtype, const Shape& shape) = 0;
  virtual void run(const Call& call) = 0;

 protected:
  ~FrontEnd() = default;
};

// `given` checked, or where it is not given, a new array. Without a dtype, that of `given`, or else float32.
ArrayView output_of(const ArrayView& given, std::optional<DType> dtype, const Shape& shape, FrontEnd& front_end);
// Without those in front of so many axes, if all of them have length 1.
ArrayView without_axes_in_front(const ArrayView& array, int axes);

// Rows that are only written, and the shape of the output: their axes, then the columns.
struct PlacedRows {
  Shape shape;
  int row_axes;
  Placement placement;
};
// `first` is where rows are counted from.
PlacedRows placed_rows(const Request& request, const ArrayView& out, const Shape& columns, std::int64_t first,
                       int coordinate_count);

}  // namespace fastpe
