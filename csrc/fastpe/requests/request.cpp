// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include <algorithm>
#include <string>

#include "fastpe/error.h"

namespace fastpe {
namespace {

// The shape of counted rows: a batch axis comes from the arguments that have one.
Shape counted_shape(const PlacementArguments& arguments, std::int64_t count) {
  Shape shape;
  if (arguments.offsets.is_given() && arguments.offsets.axes > 0) {
    shape.add_axis(arguments.offsets.shape[0]);
  } else if (arguments.lengths.is_given() && arguments.lengths.axes > 0) {
    shape.add_axis(arguments.lengths.shape[0]);
  } else if (arguments.valid.is_given() && arguments.valid.axes == 2) {
    shape.add_axis(arguments.valid.shape[0]);
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

PlacedRows placed_rows(const PlacementArguments& arguments, const ArrayView& out, const Shape& columns,
                       std::int64_t first, int coordinate_count) {
  PlacedRows placed;
  Shape& shape = placed.shape;
  if (arguments.are_those_of_out) {
    const int axes = out.axes - columns.axes();
    if (axes != 1 && axes != 2) {
      std::string row = "L";
      for (const std::ptrdiff_t length : columns) row += joined({", ", length});
      refuse_value(out.name, {"has shape ", shape_text(out)}, {"[", row, "] or [B, ", row, "]"});
    }
    for (int axis = 0; axis < axes; ++axis) shape.add_axis(out.shape[axis]);
  } else if (arguments.count) {
    shape = counted_shape(arguments, *arguments.count);
  } else {
    shape = Shape(arguments.positions);
    if (coordinate_count > 0 && shape.axes() > 0) shape.drop_last_axis();
  }
  const bool has_batch = shape.axes() > 1;
  // placement_at uses it only for a mask and lengths, and refuses these with more than two axes, where batch_rows would
  // have to be the product of all but the last.
  const Extent extent{has_batch ? *shape.begin() : 1, shape.axes() > 0 ? shape.end()[-1] : 1, has_batch};
  placed.placement = arguments.count || arguments.are_those_of_out
                         ? placement_of(arguments, extent, first, coordinate_count)
                         : placement_at(arguments, extent, coordinate_count);
  placed.row_axes = shape.axes();
  for (const std::ptrdiff_t length : columns) shape.add_axis(length);
  return placed;
}

}  // namespace fastpe
