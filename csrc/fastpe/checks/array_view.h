// SPDX-License-Identifier: BSD-3-Clause
// Arrays as callers give them, in any language: nothing about a view is checked yet. The functions refuse what does not
// fit with an Error that names the argument, and otherwise say what the core takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>

#include "fastpe/arrays.h"
#include "fastpe/error.h"

namespace fastpe {

// Of an array without elements, where nobody walks along an axis.
inline constexpr std::ptrdiff_t no_strides[max_axes] = {};

struct ArrayView {
  char* data = nullptr;
  const std::ptrdiff_t* shape = nullptr;
  const std::ptrdiff_t* strides_bytes = nullptr;  // see stride_bytes()
  const char* name = nullptr;                     // of the argument; null where it was not given
  int axes = 0;
  DType dtype = DType::float32;
  bool is_writable = false;
  bool is_aligned = true;
  bool has_native_order = true;
  bool is_contiguous = false;  // in C order, as far as the caller knows

  bool is_given() const { return name != nullptr; }
  std::ptrdiff_t last() const { return shape[axes - 1]; }
  // That of an axis of length 1 may be any number, too large to count with.
  std::ptrdiff_t stride_bytes(int axis) const { return shape[axis] == 1 ? 0 : strides_bytes[axis]; }
  std::ptrdiff_t last_stride_bytes() const { return stride_bytes(axes - 1); }
  bool is_empty() const { return std::find(shape, shape + axes, 0) != shape + axes; }
  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < axes; ++axis) count *= shape[axis];
    return count;
  }
};

// The name of an argument in a line of code; "the second array" is none.
inline const char* in_code(const char* name) { return std::strchr(name, ' ') == nullptr ? name : "it"; }

// An array as another library describes it: the numbers may be any.
struct ArrayDescription {
  char* data;
  DType dtype;
  int axes;
  const std::int64_t* shape;
  const std::int64_t* strides;  // null: there are no gaps; those of an axis that nobody walks along do not count
  std::int64_t stride_unit_bytes;
};
// A ValueError where that is no memory. The view's lengths and strides are put where the last two arguments point.
ArrayView described_view(const ArrayDescription& given, const char* name, std::ptrdiff_t* shape,
                         std::ptrdiff_t* strides_bytes);

// Of elements without gaps. The strides are put where `strides_bytes` points.
ArrayView contiguous_view(char* data, const char* name, DType dtype, const std::ptrdiff_t* shape, int axes,
                          std::ptrdiff_t* strides_bytes);

// The lengths of an array that is to be made.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> lengths) {
    for (const std::int64_t length : lengths) add_axis(length);
  }
  explicit Shape(const ArrayView& array) : axes_(array.axes) {
    std::copy(array.shape, array.shape + array.axes, lengths_);
  }

  const std::ptrdiff_t* begin() const { return lengths_; }
  const std::ptrdiff_t* end() const { return lengths_ + axes_; }
  int axes() const { return axes_; }
  // std::bad_alloc for a length that no array of a 32-bit machine has.
  void add_axis(std::int64_t length);
  void drop_last_axis() { --axes_; }
  // A ValueError where there would be more bytes than can be counted.
  void require_bytes_countable(std::int64_t bytes_of_element) const;

 private:
  std::ptrdiff_t lengths_[max_axes + 2];  // those of positions, and two more: pairs, and the two columns of one
  int axes_ = 0;
};

std::string shape_text(const Shape& shape);
std::string shape_text(const ArrayView& array);

// What to write in Python to get an array of another dtype, as a remedy.
std::string conversion(const ArrayView& array, const char* dtype);

// ---- dtypes

[[noreturn]] void refuse_dtype(const ArrayView& array, Text expected, Text remedy = {});
// A TypeError for those that fastpe does not write.
DType dtype_of(const ArrayView& array);
void require_native_order(const ArrayView& array);
void require_same_dtype(const ArrayView& array, const ArrayView& like);
void require_dtype(const ArrayView& array, DType dtype, const char* remedy);

// ---- Memory

void require_readable(const ArrayView& array);  // aligned and of native byte order
// Also writable, without elements that share memory. `instead` is the call that writes elsewhere, where there is one.
void require_writable(const ArrayView& array, const char* instead);

// An array's strides are nested if each is at least as large as what all axes of smaller strides cover together. No two
// of its elements share memory then. (overlap.cpp)
bool is_nested(const ArrayView& array);

// Whether arrays share memory, told only from their pointers, shapes and strides. The answer is exact for slices of one
// buffer with nested strides and up to ten axes. For other arrays it is exact unless the search exceeds its bound,
// which is well below a millisecond. Arrays far apart take some nanoseconds.
enum class Overlap { none, some, unknown };
Overlap overlap_of(const ArrayView& a, const ArrayView& b);

// The same elements in the same place.
bool is_same_memory(const ArrayView& a, const ArrayView& b);
// A ValueError where both are given and share memory, or may: strides can be too irregular to tell.
void require_disjoint(const ArrayView& a, const ArrayView& b, const char* unless = "");

// ---- Shapes

[[noreturn]] void refuse_shape(const ArrayView& array, Text expected, Text remedy = {});
void require_axes(const ArrayView& array, int most);
// All of them, at most max_item_axes.
Axes axes_of(const ArrayView& array);
void require_shape(const ArrayView& array, const Shape& shape);

// Which axis is the sequence: seq_axis, or else the last but one.
int seq_axis_of(const ArrayView& array, const std::optional<std::int64_t>& seq_axis, const char* last_axis);

// Rows along seq_axis (-1: one row), columns along the last axis, all other axes items.
Rows writable_rows_of(const ArrayView& array, int seq_axis);
ConstRows rows_of(const ArrayView& array, int seq_axis);
// The same, but for values of this dtype that stand in the axes behind the first `axes` ones, such as [.., pairs, 2],
// or in complex numbers. A ValueError where there are gaps between them.
Rows writable_rows_of_values(const ArrayView& array, DType dtype, int axes);

// [rows, columns] with contiguous columns, readable.
TableView table_of(const ArrayView& array);
// Of an array [rows, columns] or [B, rows, columns], with any strides.
ConstRows batched_table_of(const ArrayView& array);
// The same, or [1, rows, columns] or [rows, 1, columns], of the dtype and the columns of another array.
TableView position_table_of(const ArrayView& array, const ArrayView& like);

}  // namespace fastpe
