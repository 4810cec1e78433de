// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace fastpe::bindings {
namespace {

using Proxy = py::detail::npy_api;

constexpr int type_float16 = 23;  // NumPy's NPY_HALF; the others stand in pybind11's table

// ml_dtypes registers its types at run time. Recognised by name, so that nothing need be imported.
std::atomic<int> type_bfloat16{-1};

bool is_bfloat16(const py::dtype& dtype) {
  const int number = dtype.num();
  if (number == type_bfloat16.load(std::memory_order_relaxed)) return true;
  if (dtype.itemsize() != 2 || dtype.kind() != 'V' || number < 256) return false;
  if (py::str(dtype).cast<std::string>() != "bfloat16") return false;
  type_bfloat16.store(number, std::memory_order_relaxed);
  return true;
}

std::string dtype_text(const py::dtype& dtype) { return py::str(dtype).cast<std::string>(); }

int flags_of(const py::array& array) { return array.flags(); }

// NumPy writes '=', but a dtype from `newbyteorder`, as zarr makes them, keeps the letter of the machine's own order.
char native_order_letter() {
  const std::uint16_t one = 1;
  unsigned char first_byte = 0;
  std::memcpy(&first_byte, &one, 1);
  return first_byte == 1 ? '<' : '>';
}

bool has_native_order(const py::dtype& dtype) {
  const char order = dtype.byteorder();
  return order == '=' || order == '|' || order == native_order_letter();
}

std::string text(const char* name) { return std::string(name); }

}  // namespace

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

std::string shape_text(const std::vector<py::ssize_t>& shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) result += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

std::string shape_text(const py::array& array) {
  return shape_text(std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()));
}

bool is_ndarray(PyObject* object) { return Py_TYPE(object) == Proxy::get().PyArray_Type_; }

py::array array_of(PyObject* object, const char* name) {
  if (is_ndarray(object)) return py::reinterpret_borrow<py::array>(object);
  if (py::isinstance<py::array>(object)) {
    if (py::isinstance(object, py::module_::import("numpy.ma").attr("MaskedArray"))) {
      throw py::type_error(text(name) + " is a masked array, expected a plain numpy.ndarray; pass " + name +
                           ".data, and the rows to leave alone as mask=");
    }
    return py::reinterpret_borrow<py::array>(object);
  }
  if (PyObject_CheckBuffer(object) != 0 || py::hasattr(object, "__array_interface__")) {
    return py::module_::import("numpy").attr("asarray")(py::handle(object));
  }
  const bool has_numpy = py::hasattr(object, "numpy");
  throw py::type_error(text(name) + " is a " + type_name(object) + ", expected a numpy.ndarray; pass " +
                       (has_numpy ? text(name) + ".numpy()" : "np.asarray(..)") +
                       " and keep that array: the result is written into it");
}

DType dtype_of(const py::dtype& dtype, const char* name) {
  const int number = dtype.num();
  if (number == Proxy::NPY_FLOAT_) return DType::float32;
  if (number == Proxy::NPY_DOUBLE_) return DType::float64;
  if (number == type_float16) return DType::float16;
  if (is_bfloat16(dtype)) return DType::bfloat16;
  throw py::type_error(text(name) + " has dtype " + dtype_text(dtype) +
                       ", expected float32, float64, float16 or ml_dtypes.bfloat16; convert it with .astype(..)");
}

DType dtype_of(const py::array& array, const char* name) { return dtype_of(array.dtype(), name); }

void require_native_order(const py::dtype& dtype, const char* name) {
  if (has_native_order(dtype)) return;
  throw py::type_error(text(name) + " has dtype " + dtype_text(dtype) +
                       ", expected native byte order; convert it with .astype(dtype.newbyteorder('='))");
}

void require_access(const py::array& array, const char* name, Access access) {
  require_native_order(array.dtype(), name);
  if ((flags_of(array) & Proxy::NPY_ARRAY_ALIGNED_) == 0) {
    throw py::value_error(text(name) +
                          " is misaligned, expected addresses that are multiples of the item size; "
                          "make an aligned copy with np.require(" +
                          name + ", requirements='A')");
  }
  if (access == Access::read) return;
  if (!array.writeable()) {
    throw py::value_error(text(name) +
                          " is read-only, expected a writable array; use add(.., out=) with an array of "
                          "your own, or pass " +
                          name + ".copy() (np.load: mmap_mode='r+')");
  }
  // Axes from the smallest stride up: each must step over all that the ones before it cover.
  constexpr std::size_t most_axes = 64;  // NumPy's own limit
  std::array<std::pair<py::ssize_t, py::ssize_t>, most_axes> axes;
  std::size_t count = 0;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
    if (array.shape(axis) == 0) return;
    if (array.shape(axis) > 1) axes[count++] = {std::abs(array.strides(axis)), array.shape(axis)};
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  py::ssize_t covered = array.itemsize();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [stride, length] = axes[i];
    if (stride < covered) {
      throw py::value_error(text(name) +
                            " has elements that share memory (a broadcast or overlapping view), expected "
                            "every element to be its own; pass " +
                            name + ".copy(), or use add(.., out=)");
    }
    covered += stride * (length - 1);
  }
}

RowsView rows_of(const py::array& array, DType dtype, int seq_axis) {
  RowsView rows;
  rows.data = static_cast<char*>(const_cast<void*>(array.data()));
  rows.dtype = dtype;
  const int column_axis = static_cast<int>(array.ndim()) - 1;
  rows.columns = array.shape(column_axis);
  // The stride of an axis of length 1 may be any number, and too large to count with.
  rows.column_stride_bytes = rows.columns == 1 ? element_bytes(dtype) : array.strides(column_axis);
  rows.seq_len = seq_axis < 0 ? 1 : array.shape(seq_axis);
  rows.seq_stride_bytes = rows.seq_len == 1 ? 0 : array.strides(seq_axis);
  for (int axis = 0; axis < column_axis; ++axis) {
    if (axis == seq_axis) continue;
    rows.batch_shape[rows.batch_axes] = array.shape(axis);
    rows.batch_strides_bytes[rows.batch_axes] = array.strides(axis);
    rows.batch_count *= array.shape(axis);
    ++rows.batch_axes;
  }
  return rows;
}

TableView table_of(const py::array& array, const char* name) {
  if (array.ndim() != 2) {
    throw py::value_error(text(name) + " has shape " + shape_text(array) + ", expected two axes, [rows, d_model]");
  }
  if (array.size() > 0 && array.shape(1) > 1 && array.strides(1) != array.itemsize()) {
    throw py::value_error(text(name) +
                          " has columns that are not contiguous, expected rows that are; make a copy with "
                          "np.ascontiguousarray(" +
                          name + ")");
  }
  return {static_cast<const char*>(array.data()), array.shape(0), array.strides(0)};
}

void require_shape(const py::array& array, const std::vector<py::ssize_t>& shape, const char* name) {
  if (array.ndim() == static_cast<py::ssize_t>(shape.size()) && std::equal(shape.begin(), shape.end(), array.shape())) {
    return;
  }
  throw py::value_error(text(name) + " has shape " + shape_text(array) + ", expected exactly " + shape_text(shape) +
                        ": nothing is broadcast");
}

void require_dtype(const py::array& array, const py::array& like, const char* name, const char* like_name) {
  if (array.dtype().num() == like.dtype().num()) return;
  throw py::type_error(text(name) + " has dtype " + dtype_text(array.dtype()) + ", expected " +
                       dtype_text(like.dtype()) + " as " + like_name + " has; convert one of them with .astype(..)");
}

bool is_same_memory(const py::array& a, const py::array& b) {
  return a.data() == b.data() && a.ndim() == b.ndim() && std::equal(a.shape(), a.shape() + a.ndim(), b.shape()) &&
         std::equal(a.strides(), a.strides() + a.ndim(), b.strides());
}

namespace {

std::pair<const char*, const char*> bounds_of(const py::array& array) {
  const char* low = static_cast<const char*>(array.data());
  const char* high = low;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
    if (array.shape(axis) == 0) return {nullptr, nullptr};
    const py::ssize_t reach = array.strides(axis) * (array.shape(axis) - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high + array.itemsize()};
}

}  // namespace

void require_disjoint(const py::array& a, const char* a_name, const py::array& b, const char* b_name) {
  const auto [a_low, a_high] = bounds_of(a);
  const auto [b_low, b_high] = bounds_of(b);
  if (a_high <= b_low || b_high <= a_low) return;
  if (!py::module_::import("numpy").attr("shares_memory")(a, b).cast<bool>()) return;
  throw py::value_error(text(a_name) + " shares memory with " + b_name +
                        ", expected arrays apart from each other (out may be x itself); pass a copy of one");
}

py::array new_array(const py::dtype& dtype, const std::vector<py::ssize_t>& shape) {
  py::ssize_t bytes = dtype.itemsize();
  bool is_empty = false;
  for (const py::ssize_t length : shape) is_empty = is_empty || length == 0;
  for (const py::ssize_t length : shape) {
    if (is_empty) break;
    if (bytes > PY_SSIZE_T_MAX / length) {
      throw py::value_error("the result would have shape " + shape_text(shape) +
                            ", expected less than 2**63 bytes; compute it in parts with offset=");
    }
    bytes *= length;
  }
  return py::array(dtype, shape);
}

py::array numbers_of(PyObject* object, const char* name, Numbers kind) {
  py::array array;
  if (is_ndarray(object) || py::isinstance<py::array>(object)) {
    array = array_of(object, name);
  } else {
    try {
      array = py::module_::import("numpy").attr("asarray")(py::handle(object));
    } catch (py::error_already_set& error) {  // lists of unequal lengths
      if (!error.matches(PyExc_ValueError)) throw;
      throw py::value_error(text(name) + " is a " + type_name(object) + " that makes no array, expected numbers in " +
                            "rows of one length; pass an array");
    }
    if (array.size() == 0 && kind == Numbers::integers) array = array.attr("astype")("int64");
  }
  const char type = array.dtype().kind();
  const bool is_integer = type == 'i' || type == 'u';
  const bool is_float = type == 'f' && (array.itemsize() == 4 || array.itemsize() == 8);
  if (!is_integer && !(is_float && kind == Numbers::integers_or_floats)) {
    const std::string expected = kind == Numbers::integers ? "integers" : "integers, float32 or float64";
    const bool is_short_float = array.itemsize() == 2 && (type == 'f' || type == 'V');
    throw py::type_error(text(name) + " has dtype " + dtype_text(array.dtype()) + ", expected " + expected +
                         (is_short_float ? "; a 16-bit float cannot hold every position: keep them in int64 from the "
                                           "start"
                                         : "; convert it with .astype(..)"));
  }
  if (!has_native_order(array.dtype())) array = array.attr("astype")(array.dtype().attr("newbyteorder")("="));
  return array;
}

NumberType number_type_of(const py::array& array) {
  const char kind = array.dtype().kind();
  const py::ssize_t bytes = array.itemsize();
  if (kind == 'f') return bytes == 4 ? NumberType::float32 : NumberType::float64;
  const bool is_signed = kind == 'i';
  switch (bytes) {
    case 1: return is_signed ? NumberType::int8 : NumberType::uint8;
    case 2: return is_signed ? NumberType::int16 : NumberType::uint16;
    case 4: return is_signed ? NumberType::int32 : NumberType::uint32;
    default: return is_signed ? NumberType::int64 : NumberType::uint64;
  }
}

}  // namespace fastpe::bindings
