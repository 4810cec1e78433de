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

// What every call has: where its rows are, and how many threads may do it.
struct Request {
  PlacementArguments placement;
  int max_threads = 1;
};

// What only the language of the caller can do.
class FrontEnd {
 public:
  // An array that the caller gets, where it gave none.
  virtual ArrayView new_array(DType dtype, const Shape& shape, const char* name) = 0;
  virtual void run(const Call& call) = 0;

 protected:
  ~FrontEnd() = default;
};

// `given` checked, or where it is not given, a new array. Without a dtype, that of `given`, or else float32. Where
// `given` may have axes of length 1 in front, the view is without them.
struct Output {
  const ArrayView& given;
  std::optional<DType> dtype;
  const char* name = "out";
  bool may_have_axes_in_front = false;
};
ArrayView output_of(const Output& output, const Shape& shape, FrontEnd& front_end);

// Rows that are only written, and the shape of the output: their axes, then `columns`. `first` is where rows are
// counted from.
struct PlacedRows {
  Shape shape;
  int row_axes;
  Placement placement;
};
PlacedRows placed_rows(const PlacementArguments& arguments, const ArrayView& out, const Shape& columns,
                       std::int64_t first, int coordinate_count);

}  // namespace fastpe
