// SPDX-License-Identifier: BSD-3-Clause
#include "array_view.h"

#include <new>

namespace fastpe {
namespace {

// The rows that the first `axes` axes count.
void lay_out_rows(RowsLayout& rows, const ArrayView& array, int axes, int seq_axis) {
  rows.seq_len = seq_axis < 0 ? 1 : array.shape[seq_axis];
  rows.seq_stride_bytes = seq_axis < 0 ? 0 : array.stride_bytes(seq_axis);
  for (int axis = 0; axis < axes; ++axis) {
    if (axis != seq_axis) rows.add_items(array.shape[axis], array.stride_bytes(axis));
  }
  rows.walk_inside();
}

void require_contiguous_rows(const ArrayView& array) {
  require_readable(array);
  if (!array.is_empty() && array.last() > 1 && array.last_stride_bytes() != element_bytes(array.dtype)) {
    refuse_value(array.name, {"has columns that are not contiguous"}, {"rows that are"},
                 {"pass np.ascontiguousarray(", in_code(array.name), ")"});
  }
}

TableView table_along(const ArrayView& array, int row_axis) {
  require_contiguous_rows(array);
  return {array.data, dtype_of(array), array.shape[row_axis], array.last(), array.stride_bytes(row_axis)};
}

}  // namespace

ArrayView described_view(const ArrayDescription& given, const char* name, std::ptrdiff_t* shape,
                         std::ptrdiff_t* strides_bytes) {
  const std::int64_t bytes = element_bytes(given.dtype), most = PTRDIFF_MAX / given.stride_unit_bytes;
  const bool is_empty = std::find(given.shape, given.shape + given.axes, 0) != given.shape + given.axes;
  ArrayView view;
  view.is_contiguous = true;
  view.is_aligned = is_empty || reinterpret_cast<std::uintptr_t>(given.data) % static_cast<std::uintptr_t>(bytes) == 0;
  std::int64_t contiguous = bytes;
  for (int axis = given.axes - 1; axis >= 0; --axis) {
    const std::int64_t length = given.shape[axis];
    if (length < 0) refuse_value(name, {"has an axis of length ", length}, {"0 or more"});
    if (length > PTRDIFF_MAX / contiguous) refuse_value(name, {"has more bytes than can be counted"}, {"fewer"});
    std::int64_t stride_bytes = contiguous;
    if (given.strides != nullptr && length > 1 && !is_empty) {
      const std::int64_t stride = given.strides[axis];
      if (stride > most || stride < -most) refuse_value(name, {"has the stride ", stride}, {"at most ", most});
      stride_bytes = stride * given.stride_unit_bytes;
    }
    shape[axis] = static_cast<std::ptrdiff_t>(length);
    strides_bytes[axis] = static_cast<std::ptrdiff_t>(stride_bytes);
    view.is_contiguous = view.is_contiguous && stride_bytes == contiguous;
    view.is_aligned = view.is_aligned && stride_bytes % bytes == 0;
    contiguous *= std::max<std::int64_t>(length, 1);
  }
  if (given.data == nullptr && !is_empty) refuse_value(name, {"has no data"}, {"a pointer to its elements"});
  view.data = given.data;
  view.shape = shape;
  view.axes = given.axes;
  view.strides_bytes = is_empty ? no_strides : strides_bytes;
  view.name = name;
  view.dtype = given.dtype;
  return view;
}

ArrayView contiguous_view(char* data, const char* name, DType dtype, const std::ptrdiff_t* shape, int axes,
                          std::ptrdiff_t* strides_bytes) {
  for (int axis = axes - 1; axis >= 0; --axis) {
    strides_bytes[axis] = axis + 1 < axes ? strides_bytes[axis + 1] * shape[axis + 1] : element_bytes(dtype);
  }
  ArrayView view;
  view.data = data;
  view.shape = shape;
  view.strides_bytes = strides_bytes;
  view.name = name;
  view.axes = axes;
  view.dtype = dtype;
  return view;
}

void Shape::add_axis(std::int64_t length) {
  lengths_[axes_] = static_cast<std::ptrdiff_t>(length);
  if (lengths_[axes_++] != length) throw std::bad_alloc();
}

void Shape::require_bytes_countable(std::int64_t bytes_of_element) const {
  if (std::find(begin(), end(), 0) != end()) return;
  std::int64_t bytes = bytes_of_element;
  for (const std::ptrdiff_t length : *this) {
    if (bytes > PTRDIFF_MAX / length) {
      refuse_value("the result", {"would have shape ", shape_text(*this)}, {"less than 2**63 bytes"},
                   {"compute it in parts with offset="});
    }
    bytes *= length;
  }
}

std::string shape_text(const Shape& shape) {
  std::string result = "[";
  for (const std::ptrdiff_t& length : shape) result += joined({&length == shape.begin() ? "" : ", ", length});
  return result + "]";
}

std::string shape_text(const ArrayView& array) { return shape_text(Shape(array)); }

std::string conversion(const ArrayView& array, const char* dtype) {
  const TextPart name = in_code(array.name);
  if (is_complex(array.dtype)) return joined({"pass ", name, ".real, or its parts as columns"});
  if (array.dtype == DType::uint16 || array.dtype == DType::int16) {
    return joined({"pass ", name, ".view(ml_dtypes.bfloat16) if it has the bits of bfloat16"});
  }
  const bool may_have_fractions = std::string_view(dtype) == "int64";
  return joined({"convert it to ", dtype, " first", may_have_fractions ? ", if all numbers are whole" : ""});
}

void refuse_dtype(const ArrayView& array, Text expected, Text remedy) {
  refuse_type(array.name, {"has dtype ", name_of(array.dtype)}, expected, remedy);
}

DType dtype_of(const ArrayView& array) {
  if (is_written(array.dtype)) return array.dtype;
  refuse_dtype(array, {written_dtypes}, {conversion(array, "float32")});
}

void require_native_order(const ArrayView& array) {
  if (array.has_native_order) return;
  refuse_type(array.name, {"has dtype ", name_of(array.dtype), " of the other byte order"}, {"native byte order"},
              {"pass ", in_code(array.name), ".astype(", in_code(array.name), ".dtype.newbyteorder('='))"});
}

void require_dtype(const ArrayView& array, DType dtype, const char* remedy) {
  if (array.dtype != dtype) refuse_dtype(array, {name_of(dtype)}, {remedy});
}

void require_same_dtype(const ArrayView& array, const ArrayView& like) {
  if (array.dtype == like.dtype) return;
  refuse_dtype(array, {name_of(like.dtype), " as ", like.name, " has"}, {conversion(array, name_of(like.dtype))});
}

void require_readable(const ArrayView& array) {
  require_native_order(array);
  if (array.is_aligned) return;
  refuse_value(array.name, {"is misaligned"},
               {"an address and strides in bytes that are multiples of the element's size"},
               {"make an aligned copy with np.require(", in_code(array.name), ", requirements='A')"});
}

void require_writable(const ArrayView& array, const char* instead) {
  require_readable(array);
  if (!array.is_writable) {
    refuse_value(array.name, {"is read-only"}, {"a writable array"},
                 {instead == nullptr ? "" : joined({"use ", instead, " with an array of your own, or "}),
                  "pass a copy of ", in_code(array.name), " and keep that array (np.load: mmap_mode='r+')"});
  }
  if (array.is_contiguous || is_nested(array)) return;
  refuse_value(array.name, {"has elements that share memory (a broadcast or overlapping view)"},
               {"every element to be its own"}, {"pass a copy of ", in_code(array.name), " and keep that array"});
}

bool is_same_memory(const ArrayView& a, const ArrayView& b) {
  return a.data == b.data && a.axes == b.axes && std::equal(a.shape, a.shape + a.axes, b.shape) &&
         std::equal(a.strides_bytes, a.strides_bytes + a.axes, b.strides_bytes);
}

void require_disjoint(const ArrayView& a, const ArrayView& b, const char* unless) {
  if (!a.is_given() || !b.is_given()) return;
  const Overlap overlap = overlap_of(a, b);
  if (overlap == Overlap::none) return;
  const bool is_known = overlap == Overlap::some;
  refuse_value(a.name,
               {is_known ? "shares memory with " : "may share memory with ", b.name,
                is_known ? "" : ", whose strides are too irregular to tell"},
               {"arrays apart from each other", unless}, {"pass a copy of one"});
}

void refuse_shape(const ArrayView& array, Text expected, Text remedy) {
  refuse_value(array.name, {"has shape ", shape_text(array)}, expected, remedy);
}

void require_axes(const ArrayView& array, int most) {
  if (array.axes > most) refuse_value(array.name, {"has ", array.axes, " axes"}, {"at most ", most});
}

Axes axes_of(const ArrayView& array) {
  require_axes(array, max_item_axes);
  Axes axes;
  for (int axis = 0; axis < array.axes; ++axis) axes.add(array.shape[axis], array.stride_bytes(axis));
  return axes;
}

void require_shape(const ArrayView& array, const Shape& shape) {
  if (array.axes == shape.axes() && std::equal(shape.begin(), shape.end(), array.shape)) return;
  refuse_shape(array, {"exactly ", shape_text(shape)});
}

int seq_axis_of(const ArrayView& array, const std::optional<std::int64_t>& seq_axis, const char* last_axis) {
  if (array.axes < 2) {
    refuse_shape(array, {"at least two axes, [L, ", last_axis, "] or [B, .., L, ", last_axis, "]"},
                 {"give a row an axis more, as ", in_code(array.name), "[None] has"});
  }
  require_axes(array, max_item_axes + 2);
  if (!seq_axis) return array.axes - 2;
  const std::int64_t axis = *seq_axis < 0 ? *seq_axis + array.axes : *seq_axis;
  if (axis < 0 || axis >= array.axes - 1) {
    refuse_value("seq_axis", {"is ", *seq_axis},
                 {"an axis of ", array.name, ", ", shape_text(array), ", other than the last"});
  }
  return static_cast<int>(axis);
}

Rows writable_rows_of(const ArrayView& array, int seq_axis) {
  Rows rows;
  rows.data = array.data;
  rows.dtype = array.dtype;
  rows.columns = array.last();
  rows.column_stride_bytes = rows.columns == 1 ? element_bytes(array.dtype) : array.last_stride_bytes();
  lay_out_rows(rows, array, array.axes - 1, seq_axis);
  return rows;
}

ConstRows rows_of(const ArrayView& array, int seq_axis) { return read_only(writable_rows_of(array, seq_axis)); }

Rows writable_rows_of_values(const ArrayView& array, DType dtype, int axes) {
  const std::int64_t values = is_complex(array.dtype) ? 2 : 1;
  Rows rows;
  rows.data = array.data;
  rows.dtype = dtype;
  rows.columns = values;
  rows.column_stride_bytes = values == 2 ? element_bytes(dtype) : array.last_stride_bytes();
  for (int axis = array.axes - 1; axis >= axes; --axis) {
    if (!array.is_empty() && array.shape[axis] > 1 &&
        array.strides_bytes[axis] != rows.columns * rows.column_stride_bytes) {
      refuse_value(array.name, {"has pairs with gaps between them"}, {"pairs that lie side by side"},
                   {"pass an array whose last axes are contiguous"});
    }
    rows.columns *= array.shape[axis];
  }
  lay_out_rows(rows, array, axes, axes - 1);
  return rows;
}

TableView table_of(const ArrayView& array) {
  if (array.axes == 2) return table_along(array, 0);
  refuse_shape(array, {"two axes, [rows, columns]"});
}

ConstRows batched_table_of(const ArrayView& array) {
  require_readable(array);
  dtype_of(array);
  return rows_of(array, array.axes - 2);
}

TableView position_table_of(const ArrayView& array, const ArrayView& like) {
  require_same_dtype(array, like);
  const bool is_second = array.axes == 3 && array.shape[0] == 1;
  if (array.axes != 2 && !is_second && !(array.axes == 3 && array.shape[1] == 1)) {
    refuse_shape(array, {"two axes, [rows, columns], and at most one of length 1 before or between them"});
  }
  const TableView table = table_along(array, is_second ? 1 : 0);
  if (array.last() != like.last()) {
    refuse_value(array.name, {"has ", array.last(), " columns"}, {like.last(), " as ", like.name, " has"});
  }
  return table;
}

}  // namespace fastpe
