// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "fastpe/overlap.h"
#include "scalars.h"
#include "wrong_calls.h"

namespace fastpe::bindings {
namespace {

using Proxy = py::detail::npy_api;

constexpr int type_float16 = 23;  // NumPy's NPY_HALF; the others stand in pybind11's table
constexpr int first_registered_type = 256;

// ml_dtypes registers its types at run time. Recognised by name, so that nothing need be imported.
std::atomic<int> type_bfloat16{-1};

bool is_bfloat16(const py::dtype& dtype) {
  const int number = dtype.num();
  if (number == type_bfloat16.load(std::memory_order_relaxed)) return true;
  if (dtype.itemsize() != 2 || dtype.kind() != 'V' || number < first_registered_type) return false;
  const PyObject* const type = py::detail::array_descriptor_proxy(dtype.ptr())->typeobj;
  const std::string_view name = reinterpret_cast<const PyTypeObject*>(type)->tp_name;  // with or without its module
  if (name.substr(name.rfind('.') + 1) != "bfloat16") return false;
  type_bfloat16.store(number, std::memory_order_relaxed);
  return true;
}

std::string text(const char* name) { return std::string(name); }

std::string dtype_text(py::handle dtype) { return str_of(dtype); }

bool is_array(PyObject* object) { return is_ndarray(object) || Proxy::get().PyArray_Check_(object); }

Array borrowed(PyObject* array) { return Array(py::reinterpret_borrow<py::object>(array)); }

// numpy.asarray(object), with requirements: never a subclass, whose methods are a caller's code.
Array converted(PyObject* object, int flags = 0) {
  return Array(run_python([&] {
    return Proxy::get().PyArray_FromAny_(object, nullptr, 0, 0, Proxy::NPY_ARRAY_ENSUREARRAY_ | flags, nullptr);
  }));
}

// numpy.from_dlpack(object). NumPy's own message for memory of another device does not name the argument.
Array array_by_dlpack(PyObject* object, const char* name) {
  constexpr long cpu = 1, cuda_host = 3, rocm_host = 11, cuda_managed = 13;  // kDLCPU ..
  const py::object device = run_python([&] { return PyObject_CallMethod(object, "__dlpack_device__", nullptr); });
  const py::object type = run_python([&] { return PySequence_GetItem(device.ptr(), 0); });
  const std::int64_t number = integer_argument(type.ptr()).value_or(0);
  if (number != cpu && number != cuda_host && number != rocm_host && number != cuda_managed) {
    throw py::type_error(text(name) + " is a " + type_name(object) + " on the DLPack device " + str_of(device) +
                         ", expected memory of the CPU, device 1; copy it there first");
  }
  const py::object module = run_python([] { return PyImport_ImportModule("numpy"); });
  return Array(run_python([&] { return PyObject_CallMethod(module.ptr(), "from_dlpack", "O", object); }));
}

bool is_masked_array(PyObject* array) {
  const py::object module = run_python([] { return PyImport_ImportModule("numpy.ma"); });
  const py::object type = run_python([&] { return PyObject_GetAttrString(module.ptr(), "MaskedArray"); });
  const int is_instance = parked_at_exit([&] { return PyObject_IsInstance(array, type.ptr()); });
  if (is_instance < 0) throw py::error_already_set();
  return is_instance == 1;
}

StridedArray strided(const Array& array) {
  return {array.data(), static_cast<std::size_t>(array.itemsize()), array.ndim(), array.shape(), array.strides()};
}

int flags_of(const Array& array) { return array.flags(); }

// NumPy writes '=', but a dtype from `newbyteorder`, as zarr makes them, keeps the letter of the machine's own order.
char native_order_letter() {
  const std::uint16_t one = 1;
  unsigned char first_byte = 0;
  std::memcpy(&first_byte, &one, 1);
  return first_byte == 1 ? '<' : '>';
}

bool has_native_order(py::handle dtype) {
  const char order = py::detail::array_descriptor_proxy(dtype.ptr())->byteorder;
  return order == '=' || order == '|' || order == native_order_letter();
}

// The expression that makes of a tensor an array with its memory. torch refuses `.numpy()` of a tensor that requires a
// gradient, and of one in bfloat16, of which NumPy knows nothing.
std::string array_of_tensor(PyObject* tensor, const char* name, Bfloat16 bfloat16) {
  const auto attribute_text = [&](const char* attribute) {
    if (!has_attribute(tensor, attribute)) return std::string();
    return str_of(run_python([&] { return PyObject_GetAttrString(tensor, attribute); }));
  };
  const bool requires_grad = attribute_text("requires_grad") == "True";
  const bool is_bfloat16 = attribute_text("dtype") == "torch.bfloat16";
  if (bfloat16 == Bfloat16::compared && (requires_grad || is_bfloat16)) {
    return "(" + text(name) + " != 0).numpy(), or (" + text(name) + " == 0).numpy() of one that is added to scores";
  }
  return text(name) + (requires_grad ? ".detach()" : "") +
         (!is_bfloat16                    ? ".numpy()"
          : bfloat16 == Bfloat16::refused ? ".float().numpy()"
                                          : ".view(torch.uint16).numpy().view(ml_dtypes.bfloat16)");
}

bool holds_arrays(PyObject* object) {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
  const py::object first = run_python([&] { return PySequence_GetSlice(object, 0, 1); });
  return py::len(first) == 1 && is_array(py::object(first[py::int_(0)]).ptr());
}

}  // namespace

std::string str_of(py::handle object) {
  return utf8_of(run_python([&] { return PyObject_Str(object.ptr()); }));
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

std::string shape_text(const Shape& shape) {
  std::string result = "[";
  for (const py::ssize_t& length : shape) result += (&length == shape.begin() ? "" : ", ") + std::to_string(length);
  return result + "]";
}

std::string shape_text(const Array& array) { return shape_text(Shape(array.shape(), array.shape() + array.ndim())); }

bool is_ndarray(PyObject* object) { return Py_TYPE(object) == Proxy::get().PyArray_Type_; }

Array array_of(PyObject* object, const char* name) {
  if (is_ndarray(object)) return borrowed(object);
  if (is_array(object)) {
    if (is_masked_array(object)) {
      throw py::type_error(text(name) + " is a masked array, expected a plain numpy.ndarray; pass " + name +
                           ".data, and the rows to leave alone as mask=");
    }
    return borrowed(object);
  }
  if (PyObject_CheckBuffer(object) != 0 || has_attribute(object, "__array_interface__")) return converted(object);
  if (object == Py_None) {
    throw py::type_error(text(name) +
                         " is None, expected a numpy.ndarray; check the call that made it: some functions " +
                         "change their array and return nothing");
  }
  const std::string found = text(name) + " is a " + type_name(object);
  if (holds_arrays(object)) {
    throw py::type_error(found + " of arrays, expected one numpy.ndarray; pass its arrays one by one");
  }
  throw py::type_error(found + ", expected a numpy.ndarray; pass " +
                       (has_attribute(object, "numpy") ? array_of_tensor(object, name, Bfloat16::taken)
                        : has_attribute(object, "__fspath__") || PyUnicode_Check(object)
                            ? "np.load(..) of a file"
                            : "np.asarray(" + text(name) + ", np.float32)") +
                       " and keep that array: the result is written into it" +
                       (has_attribute(object, "dask") ? "; or call fastpe.dask.add for a new dask array" : ""));
}

Array array_from(PyObject* object, const char* name, Bfloat16 bfloat16) {
  if (is_array(object)) return array_of(object, name);
  const bool has_dlpack_alone = has_attribute(object, "__dlpack__") && PyObject_CheckBuffer(object) == 0 &&
                                !has_attribute(object, "__array__") && !has_attribute(object, "__array_interface__");
  Array array;
  try {
    array = has_dlpack_alone ? array_by_dlpack(object, name) : converted(object);
  } catch (py::error_already_set& error) {  // tensors that torch makes no array of, and lists of unequal lengths
    if (error.matches(PyExc_Exception) && has_attribute(object, "numpy")) {
      const std::string instead = array_of_tensor(object, name, bfloat16);
      if (instead == text(name) + ".numpy()") throw;
      throw py::type_error(text(name) + " is a " + type_name(object) + " that numpy.asarray refuses, expected an " +
                           "array; pass " + instead);
    }
    if (!error.matches(PyExc_ValueError)) throw;
    throw py::value_error(text(name) + " is a " + type_name(object) + " that makes no array, expected numbers in " +
                          "rows of one length; pass an array");
  }
  if (array.ndim() == 0 && array.dtype().kind() == 'O') {
    throw py::type_error(text(name) + " is a " + type_name(object) +
                         ", expected an array, or what np.asarray makes an array of numbers" +
                         (has_attribute(object, "weight") ? "; pass " + text(name) + ".weight.detach().numpy()"
                          : has_attribute(object, "state_dict")
                              ? "; pass an array of it, such as " + text(name) + ".pe.detach().numpy()"
                              : ""));
  }
  return array;
}

Array mask_from(PyObject* object, const char* name) {
  Array array = array_from(object, name, Bfloat16::compared);
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u') return array;
  array = converted(array.ptr());
  const auto method = [&](const char* method_name) {
    return run_python([&] { return PyObject_CallMethod(array.ptr(), method_name, nullptr); });
  };
  if (array.size() > 0) {
    const py::object least = method("min"), largest = method("max");
    if (integer_argument(least.ptr()).value_or(-1) < 0 || integer_argument(largest.ptr()).value_or(2) > 1) {
      throw py::value_error(text(name) + " holds integers from " + str_of(least) + " to " + str_of(largest) +
                            ", expected bool, or 0 and 1 alone: 1 where the row is valid; pass a condition, "
                            "such as " +
                            name + " != 0");
    }
  }
  return Array(run_python([&] { return PyObject_CallMethod(array.ptr(), "astype", "s", "bool"); }));
}

Array numbers_from(PyObject* object, const char* name, Numbers numbers, Order order) {
  Array array = array_from(object, name, Bfloat16::refused);
  if (array.size() == 0 && numbers == Numbers::integers && !is_array(object)) {  // of an empty list, for example
    array = Array(run_python([&] { return PyObject_CallMethod(array.ptr(), "astype", "s", "int64"); }));
  }
  const char kind = array.dtype().kind();
  if ((kind == 'i' || kind == 'u' || kind == 'f') && !has_native_order(array.dtype())) {
    const py::dtype dtype = array.dtype();
    const py::object native = run_python([&] { return PyObject_CallMethod(dtype.ptr(), "newbyteorder", "s", "="); });
    array = converted(array.ptr());
    array = Array(run_python([&] { return PyObject_CallMethod(array.ptr(), "astype", "O", native.ptr()); }));
  }
  const bool is_contiguous = array.ndim() <= 1 || (flags_of(array) & py::array::c_style) != 0;
  if (order == Order::contiguous && !is_contiguous) array = converted(array.ptr(), py::array::c_style);
  return array;
}

namespace {

constexpr const char* known_dtypes = "float32, float64, float16 or ml_dtypes.bfloat16";

// The place of an element of an array, by its index in C order: "ids[2, 7]".
std::string element_text(const Array& array, const char* name, py::ssize_t index) {
  std::string result;
  for (py::ssize_t axis = array.ndim() - 1; axis >= 0; --axis) {
    result = std::to_string(index % array.shape(axis)) + (result.empty() ? "" : ", ") + result;
    index /= array.shape(axis);
  }
  return text(name) + (result.empty() ? "" : "[" + result + "]");
}

// Calls visit(element, index) for the elements of an array of Python's objects, until it returns false.
template <class Visit>
void each_object(const Array& array, const Visit& visit) {
  const py::object elements = run_python([&] { return PyObject_GetAttrString(array.ptr(), "flat"); });
  py::ssize_t index = 0;
  for (const py::handle element : elements) {
    if (!visit(element.ptr(), index++)) return;
  }
}

// A ValueError for Python's integers of more than 64 bits, which make an array of objects.
void refuse_long_integers(const Array& array, const char* name) {
  if (array.dtype().kind() != 'O') return;
  each_object(array, [&](PyObject* object, py::ssize_t index) {
    const std::optional<std::int64_t> value = PyLong_Check(object) ? integer_argument(object) : std::nullopt;
    if (!value || (*value != INT64_MAX && *value != INT64_MIN)) return true;
    throw py::value_error(element_text(array, name, index) + " is " + repr_of(object) +
                          ", expected magnitude at most 2**53; beyond it not every integer has a float64 of its own");
  });
}

std::optional<DType> known_dtype(py::handle dtype) {
  const int number = py::detail::array_descriptor_proxy(dtype.ptr())->type_num;
  if (number == Proxy::NPY_FLOAT_) return DType::float32;
  if (number == Proxy::NPY_DOUBLE_) return DType::float64;
  if (number == type_float16) return DType::float16;
  if (is_bfloat16(py::reinterpret_borrow<py::dtype>(dtype))) return DType::bfloat16;
  return std::nullopt;
}

// Two bytes without a floating type: NumPy loads bfloat16 so, and torch views its bits as integers.
bool may_be_bits_of_bfloat16(const Array& array) {
  const py::dtype dtype = array.dtype();
  const bool is_raw = dtype.kind() == 'V' && dtype.num() < first_registered_type && !dtype.has_fields();
  return dtype.itemsize() == 2 && (is_raw || dtype.kind() == 'u' || dtype.kind() == 'i');
}

std::string as_bits_of_bfloat16(const char* name, const std::string& dtype) {
  return "pass " + text(name) + ".view(ml_dtypes.bfloat16)" + (dtype == "bfloat16" ? "" : ".astype(np." + dtype + ")") +
         " if these are the bits of bfloat16";
}

}  // namespace

std::string conversion(const Array& array, const char* name, const char* dtype) {
  const char kind = array.dtype().kind();
  if (kind == 'c' && text(dtype) == "float32") return parts_of_complex(name, array.itemsize());
  const std::string numbers = kind == 'c' ? "np.real(" + text(name) + ")" : text(name);
  const std::string type = (text(dtype) == "bfloat16" ? "ml_dtypes." : "np.") + text(dtype);
  const std::string asarray = "np.asarray(" + numbers + ", " + type + ")";
  if (kind == 'U') {
    const std::string number = array.ndim() == 0 ? "int(" + text(name) + ")" : asarray;
    return "; give numbers, or " + number + " where the text is digits";
  }
  if (kind == 'S') return "; give numbers, or np.frombuffer(" + text(name) + ", " + type + ") of raw bytes";
  if (array.dtype().has_fields()) {
    return "; pass one field of it, such as " + text(name) + "['field'], that has numbers";
  }
  if (kind == 'V' && array.dtype().num() < first_registered_type) {
    if (array.itemsize() == 2) return "; " + as_bits_of_bfloat16(name, dtype);
    return "; pass " + text(name) + ".view(" + type + ") of raw bytes";
  }
  std::string hint = "; pass " + asarray;
  if (kind == 'O') {
    each_object(array, [&](PyObject* object, py::ssize_t index) {
      if (PyList_Check(object) || PyTuple_Check(object) || is_array(object)) {
        hint = "; its elements are arrays: pass np.stack(" + text(name) + ")";
      } else if (object == Py_None) {
        hint = "; " + element_text(array, name, index) + " is None: give a number in its place";
      } else if (has_attribute(object, "state_dict")) {
        hint = "; its elements are modules: pass an array of one, such as " + element_text(array, name, index) +
               ".weight.detach().numpy()";
      } else {
        return true;
      }
      return false;
    });
  }
  return hint;
}

DType dtype_of(py::handle dtype, const char* name) {
  if (const std::optional<DType> known = known_dtype(dtype)) return *known;
  throw py::type_error(text(name) + " has dtype " + dtype_text(dtype) + ", expected " + known_dtypes +
                       "; pass an array of one of them");
}

DType requested_dtype(py::handle dtype) {
  const std::optional<DType> known = known_dtype(dtype);
  if (!known) throw py::type_error("dtype is " + dtype_text(dtype) + ", expected " + known_dtypes);
  if (!has_native_order(dtype)) {
    throw py::type_error("dtype is " + dtype_text(dtype) + ", expected native byte order; pass np.dtype(dtype)" +
                         ".newbyteorder('=')");
  }
  return *known;
}

namespace {

// What is said of a converted array that is passed where the result is written.
const char* kept(Access access) {
  return access == Access::write ? " and keep that array: the result is written into it" : "";
}

}  // namespace

DType dtype_of(const Array& array, const char* name, Access access) {
  const py::handle dtype = array.borrowed_dtype();
  if (const std::optional<DType> known = known_dtype(dtype)) return *known;
  const char kind = array.dtype().kind();
  const bool may_be_bfloat16 = may_be_bits_of_bfloat16(array);
  const std::string bits = as_bits_of_bfloat16(name, "bfloat16");
  throw py::type_error(text(name) + " has dtype " + dtype_text(dtype) + ", expected " + known_dtypes +
                       (may_be_bfloat16 && kind == 'V' ? "; " + bits
                                                       : conversion(array, name, "float32") + kept(access) +
                                                             (may_be_bfloat16 ? ", or " + bits : "")));
}

void require_native_order(py::handle dtype, const char* name, Access access) {
  if (has_native_order(dtype)) return;
  throw py::type_error(text(name) + " has dtype " + dtype_text(dtype) +
                       ", expected native byte order; convert it with " + name + ".astype(" + name +
                       ".dtype.newbyteorder('='))" + kept(access));
}

void require_access(const Array& array, const char* name, Access access, const char* instead) {
  require_native_order(array.borrowed_dtype(), name, access);
  if ((flags_of(array) & Proxy::NPY_ARRAY_ALIGNED_) == 0) {
    throw py::value_error(text(name) +
                          " is misaligned, expected addresses that are multiples of the item size; "
                          "make an aligned copy with np.require(" +
                          name + ", requirements='A')" + kept(access));
  }
  if (access == Access::read) return;
  if (!array.writeable()) {
    throw py::value_error(text(name) + " is read-only, expected a writable array; " +
                          (instead == nullptr ? "" : "use " + text(instead) + " with an array of your own, or ") +
                          "pass np.array(" + name + ") and keep that array (np.load: mmap_mode='r+')");
  }
  if ((flags_of(array) & py::array::c_style) != 0 || is_nested(strided(array))) return;
  throw py::value_error(text(name) +
                        " has elements that share memory (a broadcast or overlapping view), expected every element to "
                        "be its own; pass " +
                        name + ".copy() and keep that array" + (instead == nullptr ? "" : ", or use " + text(instead)));
}

namespace {

// The rows that the first `axes` axes count.
void lay_out_rows(RowsLayout& rows, const Array& array, int axes, int seq_axis) {
  rows.seq_len = seq_axis < 0 ? 1 : array.shape(seq_axis);
  rows.seq_stride_bytes = rows.seq_len == 1 ? 0 : array.strides(seq_axis);
  for (int axis = 0; axis < axes; ++axis) {
    if (axis != seq_axis) rows.add_items(array.shape(axis), array.strides(axis));
  }
  rows.walk_inside();
}

template <class RowsOf>
RowsOf layout_of(const Array& array, DType dtype, int seq_axis) {
  RowsOf rows;
  rows.dtype = dtype;
  const int column_axis = static_cast<int>(array.ndim()) - 1;
  rows.columns = array.shape(column_axis);
  // The stride of an axis of length 1 may be any number, and too large to count with.
  rows.column_stride_bytes = rows.columns == 1 ? element_bytes(dtype) : array.strides(column_axis);
  lay_out_rows(rows, array, column_axis, seq_axis);
  return rows;
}

}  // namespace

Axes item_axes_of(const Array& array, int seq_axis) {
  Axes axes;
  for (int axis = 0; axis < array.ndim() - 1; ++axis) {
    if (axis != seq_axis) axes.add(array.shape(axis), array.strides(axis));
  }
  return axes;
}

Rows writable_rows_of(Array& array, DType dtype, int seq_axis) {
  Rows rows = layout_of<Rows>(array, dtype, seq_axis);
  rows.data = static_cast<char*>(array.mutable_data());
  return rows;
}

Rows writable_rows_of_pairs(Array& array, DType dtype, int axes, const char* name) {
  const bool is_complex = array.ndim() == axes + 1;
  const std::int64_t pairs = array.shape(axes);
  Rows rows;
  rows.dtype = dtype;
  rows.columns = 2 * pairs;
  rows.column_stride_bytes = is_complex ? element_bytes(dtype) : array.strides(axes + 1);
  const bool is_empty = array.size() == 0;  // NumPy makes its strides 0
  if (!is_empty && pairs > 1 && array.strides(axes) != 2 * rows.column_stride_bytes) {
    throw py::value_error(text(name) +
                          " has pairs with gaps between them, expected pairs that lie side by side; pass "
                          "an array whose last axes are contiguous");
  }
  lay_out_rows(rows, array, axes, axes - 1);
  rows.data = static_cast<char*>(array.mutable_data());
  return rows;
}

ConstRows rows_of(const Array& array, DType dtype, int seq_axis) {
  ConstRows rows = layout_of<ConstRows>(array, dtype, seq_axis);
  rows.data = static_cast<const char*>(array.data());
  return rows;
}

namespace {

TableView table_along(const Array& array, const char* name, int row_axis) {
  if (array.size() > 0 && last(array) > 1 && array.strides(array.ndim() - 1) != array.itemsize()) {
    throw py::value_error(text(name) +
                          " has columns that are not contiguous, expected rows that are; make a copy with "
                          "np.ascontiguousarray(" +
                          name + ")");
  }
  return {static_cast<const char*>(array.data()), dtype_of(array, name), array.shape(row_axis),
          array.strides(row_axis)};
}

}  // namespace

TableView table_of(const Array& array, const char* name) {
  if (array.ndim() == 2) return table_along(array, name, 0);
  throw py::value_error(text(name) + " has shape " + shape_text(array) + ", expected two axes, [rows, d_model]");
}

TableView position_table_of(const Array& array, const char* name) {
  if (array.ndim() == 3 && array.shape(0) == 1) return table_along(array, name, 1);
  if (array.ndim() == 2 || (array.ndim() == 3 && array.shape(1) == 1)) return table_along(array, name, 0);
  throw py::value_error(text(name) + " has shape " + shape_text(array) +
                        ", expected two axes, [rows, d_model], and at most one of length 1 before or between them");
}

void require_shape(const Array& array, const Shape& shape, const char* name) {
  if (array.ndim() == shape.axes() && std::equal(shape.begin(), shape.end(), array.shape())) {
    return;
  }
  throw py::value_error(text(name) + " has shape " + shape_text(array) + ", expected exactly " + shape_text(shape) +
                        ": nothing is broadcast");
}

std::string same_dtype(const Array& array, const char* name, const Array& like) {
  if (array.dtype().kind() == 'c') return parts_of_complex(name, array.itemsize());
  const std::string dtype = dtype_text(like.dtype());
  if (may_be_bits_of_bfloat16(array)) return "; " + as_bits_of_bfloat16(name, dtype);
  return conversion(array, name, dtype.c_str());
}

void require_dtype(const Array& array, const Array& like, const char* name, const char* like_name) {
  if (array.dtype().num() == like.dtype().num()) return;
  throw py::type_error(text(name) + " has dtype " + dtype_text(array.dtype()) + ", expected " +
                       dtype_text(like.dtype()) + " as " + like_name + " has" + same_dtype(array, name, like));
}

bool is_same_memory(const Array& a, const Array& b) {
  return a.data() == b.data() && a.ndim() == b.ndim() && std::equal(a.shape(), a.shape() + a.ndim(), b.shape()) &&
         std::equal(a.strides(), a.strides() + a.ndim(), b.strides());
}

void require_disjoint(const Array& a, const char* a_name, const Array& b, const char* b_name, const char* exception) {
  const Overlap overlap = overlap_of(strided(a), strided(b));
  if (overlap == Overlap::none) return;
  const bool is_known = overlap == Overlap::some;
  throw py::value_error(text(a_name) + (is_known ? " shares memory with " : " may share memory with ") + b_name +
                        (is_known ? "" : ", whose strides are too irregular to tell") +
                        ", expected arrays apart from each other" + exception + "; pass a copy of one");
}

Array new_array(const py::dtype& dtype, const Shape& shape) {
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
  return Array(py::array(dtype, std::vector<py::ssize_t>(shape.begin(), shape.end())));
}

void require_contiguous(const Array& array, const char* name) {
  if (array.ndim() <= 1 || (flags_of(array) & py::array::c_style) != 0) return;
  throw py::value_error(text(name) +
                        " was given other strides while the arguments were read, expected an array that "
                        "stays as it is; pass " +
                        name + ".copy()");
}

NumberType number_type_of(const Array& array, const char* name, Numbers numbers) {
  const char kind = array.dtype().kind();
  const py::ssize_t bytes = array.itemsize();
  const bool is_integer = kind == 'i' || kind == 'u';
  const bool is_float = kind == 'f' && (bytes == 4 || bytes == 8);
  if (!is_integer && !(is_float && numbers == Numbers::integers_or_floats)) {
    refuse_long_integers(array, name);
    const bool is_integer_only = numbers == Numbers::integers;
    const std::string expected = is_integer_only ? "integers" : "integers, float32 or float64";
    const bool is_short_float = bytes == 2 && (kind == 'f' || kind == 'V');
    throw py::type_error(text(name) + " has dtype " + dtype_text(array.dtype()) + ", expected " + expected +
                         (is_short_float ? "; a 16-bit float cannot hold every position: keep them in int64 from the "
                                           "start"
                                         : conversion(array, name, is_integer_only ? "int64" : "float64")));
  }
  require_native_order(array.dtype(), name);
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
