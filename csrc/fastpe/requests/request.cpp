// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include <algorithm>
#include <string>

#include "fastpe/error.h"

namespace fastpe {
namespace {

// The shape of counted rows: a batch axis comes from the arguments that have one.
Shape counted_shape(const Request& request, std::int64_t count) {
  Shape shape;
  if (request.offsets.is_given() && request.offsets.axes > 0) {
    shape.add_axis(request.offsets.shape[0]);
  } else if (request.lengths.is_given() && request.lengths.axes > 0) {
    shape.add_axis(request.lengths.shape[0]);
  } else if (request.valid.is_given() && request.valid.axes == 2) {
    shape.add_axis(request.valid.shape[0]);
  }
  shape.add_axis(count);
  return shape;
}

}  // namespace

ArrayView output_of(const ArrayView& given, std::optional<DType> dtype, const Shape& shape, FrontEnd& front_end) {
  if (!given.is_given()) return front_end.new_array(dtype.value_or(DType::float32), shape);
  if (dtype) {
    require_dtype(given, *dtype, "pass an array of that dtype");
  } else {
    dtype_of(given);
  }
  require_shape(given, shape);
  require_writable(given, nullptr);
  return given;
}

ArrayView without_axes_in_front(const ArrayView& array, int axes) {
  ArrayView view = array;
  const int more = std::max(view.axes - axes, 0);
  if (std::count(view.shape, view.shape + more, 1) == more) {
    view.shape += more;
    view.strides_bytes += more;
    view.axes -= more;
  }
  return view;
}

PlacedRows placed_rows(const Request& request, const ArrayView& out, const Shape& columns, std::int64_t first,
                       int coordinate_count) {
  PlacedRows placed;
  Shape& shape = placed.shape;
  if (request.are_those_of_out) {
    const int axes = out.axes - columns.axes();
    if (axes != 1 && axes != 2) {
      std::string row = "L";
      for (const std::ptrdiff_t length : columns) row += joined({", ", length});
      refuse_shape(out, {"[", row, "] or [B, ", row, "]"});
    }
    for (int axis = 0; axis < axes; ++axis) shape.add_axis(out.shape[axis]);
  } else if (request.count) {
    shape = counted_shape(request, *request.count);
  } else {
    shape = Shape(request.positions);
    if (coordinate_count > 0 && shape.axes() > 0) shape.drop_last_axis();
  }
  const bool has_batch = shape.axes() > 1;
  // placement_at uses it only for a mask and lengths, and refuses these with more than two axes, where batch_rows would
  // have to be the product of all but the last.
  const Extent extent{has_batch ? *shape.begin() : 1, shape.axes() > 0 ? shape.end()[-1] : 1, has_batch};
  placed.placement = request.count || request.are_those_of_out ? placement_of(request, extent, first, coordinate_count)
                                                               : placement_at(request, extent, coordinate_count);
  placed.row_axes = shape.axes();
  for (const std::ptrdiff_t length : columns) shape.add_axis(length);
  return placed;
}

}  // namespace fastpe
