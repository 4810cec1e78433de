// SPDX-License-Identifier: BSD-3-Clause
// NumPy arrays in, views out. Nothing is converted here that a caller would have to see again: what does not fit is
// refused with a message that names the argument, what was found, what was expected, and the remedy.
#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>

#include "fastpe/arrays.h"
#include "interpreter.h"

namespace fastpe::bindings {

namespace py = pybind11;

enum class Access { read, write };

// An ndarray that the call owns, or none.
class Array : public py::array {
 public:
  Array() : py::array(py::handle(), stolen_t{}) {}
  explicit Array(py::object owned) : py::array(owned.release(), stolen_t{}) {}
  Array(Array&& other) noexcept : py::array(other.release(), stolen_t{}) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(m_ptr, other.m_ptr);
    return *this;
  }
  ~Array() {
    if (PyObject* const owned = release().ptr()) drop_reference(owned);
  }

  // A small call asks for these many times. pybind11's own check the axis again, and count references of the dtype.
  using py::array::shape;
  using py::array::strides;
  py::ssize_t shape(py::ssize_t axis) const { return py::array::shape()[axis]; }
  py::ssize_t strides(py::ssize_t axis) const { return py::array::strides()[axis]; }
  py::handle borrowed_dtype() const { return py::detail::array_proxy(m_ptr)->descr; }
};

// An array's lengths, of at most as many axes as NumPy has and two more. Small calls notice what a std::vector
// allocates.
class Shape {
 public:
  static constexpr std::size_t most_axes = 66;

  Shape() = default;
  Shape(std::initializer_list<py::ssize_t> lengths) : Shape(lengths.begin(), lengths.end()) {}
  Shape(const py::ssize_t* first, const py::ssize_t* last) { assign(first, last); }
  Shape(const Shape& other) { assign(other.begin(), other.end()); }
  Shape& operator=(const Shape& other) {
    assign(other.begin(), other.end());
    return *this;
  }

  const py::ssize_t* begin() const { return lengths_; }
  const py::ssize_t* end() const { return lengths_ + axes_; }
  py::ssize_t axes() const { return axes_; }
  py::ssize_t first() const { return lengths_[0]; }
  py::ssize_t last() const { return lengths_[axes_ - 1]; }
  void add_axis(py::ssize_t length) { lengths_[axes_++] = length; }
  void drop_last_axis() { --axes_; }

 private:
  void assign(const py::ssize_t* first, const py::ssize_t* last) {
    std::copy(first, last, lengths_);
    axes_ = last - first;
  }

  py::ssize_t lengths_[most_axes];
  py::ssize_t axes_ = 0;
};

// The length of an array's axis. On a 32-bit machine, a count can be larger than any array.
inline py::ssize_t axis_length(std::int64_t count) {
  const auto length = static_cast<py::ssize_t>(count);
  if (length != count) throw std::bad_alloc();
  return length;
}

// ---- Phase 1: these may run Python code

// Exactly a numpy.ndarray: what nearly every call passes, told in no time.
bool is_ndarray(PyObject* object);

// The array behind an object that may be written to, never a copy: an ndarray, or anything with the buffer protocol or
// __array_interface__.
Array array_of(PyObject* object, const char* name);

// Whether an argument may hold bfloat16, or is a mask, which a comparison makes: messages about tensors depend on it.
enum class Bfloat16 { taken, refused, compared };

// The same for what is only read, which may be a new array too: of whatever numpy.asarray takes, or of an object that
// has DLPack alone.
Array array_from(PyObject* object, const char* name, Bfloat16 bfloat16 = Bfloat16::taken);

// The same for a mask: integers 0 and 1, as tokenizers have them, become bool.
Array mask_from(PyObject* object, const char* name);

// An array of numbers, from any array-like: such inputs are only read, so a conversion changes nothing for the caller.
// Of native byte order and, if asked for, contiguous where it has several axes.
enum class Numbers { integers, integers_or_floats };
enum class Order { any, contiguous };
Array numbers_from(PyObject* object, const char* name, Numbers numbers, Order order = Order::any);

// ---- Phase 2: these run none, but for the words of an error

// What makes numbers of `dtype` of an array of another one, as the end of a message.
std::string conversion(const Array& array, const char* name, const char* dtype);

// The dtype as the core knows it; a TypeError for any other.
DType dtype_of(const Array& array, const char* name, Access access = Access::read);
DType dtype_of(py::handle dtype, const char* name);

// The same of the argument `dtype`, whose byte order is checked too.
DType requested_dtype(py::handle dtype);

void require_native_order(py::handle dtype, const char* name, Access access = Access::read);

// Aligned, native byte order and, for writing, writable and without overlap in itself.
// `instead` is the call that writes elsewhere, where there is one.
constexpr const char* add_elsewhere = "add(.., out=)";
void require_access(const Array& array, const char* name, Access access, const char* instead = add_elsewhere);

// The axes of an array but its last one and seq_axis.
Axes item_axes_of(const Array& array, int seq_axis);

// Rows along seq_axis (-1: one row), columns along the last axis, all other axes items.
Rows writable_rows_of(Array& array, DType dtype, int seq_axis);
ConstRows rows_of(const Array& array, DType dtype, int seq_axis);

// The same, but for columns that are parts of pairs: of an array [.., pairs, 2], or [.., pairs] of complex numbers. The
// first `axes` axes count rows; the array is named in a ValueError where its pairs have gaps between them.
Rows writable_rows_of_pairs(Array& array, DType dtype, int axes, const char* name);

// [rows, columns] with contiguous columns.
TableView table_of(const Array& array, const char* name);
// The same, or [1, rows, columns] or [rows, 1, columns], as models keep their learned positions.
TableView position_table_of(const Array& array, const char* name);

// What makes an array of another one's dtype, as the end of a message.
std::string same_dtype(const Array& array, const char* name, const Array& like);

void require_shape(const Array& array, const Shape& shape, const char* name);
void require_dtype(const Array& array, const Array& like, const char* name, const char* like_name);

// The same elements in the same place.
bool is_same_memory(const Array& a, const Array& b);
// A ValueError where the two share memory, or may: strides can be too irregular to tell.
void require_disjoint(const Array& a, const char* a_name, const Array& b, const char* b_name,
                      const char* exception = "");

// A new array of the shape; a ValueError where its size in bytes overflows.
Array new_array(const py::dtype& dtype, const Shape& shape);

// Of numbers_from's result; a TypeError for other numbers.
NumberType number_type_of(const Array& array, const char* name, Numbers numbers);
void require_contiguous(const Array& array, const char* name);

std::string shape_text(const Shape& shape);
std::string shape_text(const Array& array);
std::string str_of(py::handle object);
std::string type_name(PyObject* object);

inline py::ssize_t last(const Array& array) { return array.shape(array.ndim() - 1); }

}  // namespace fastpe::bindings
