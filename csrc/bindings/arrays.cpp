// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/numpy.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <string_view>

#include "arguments.h"
#include "dlpack.h"
#include "errors.h"

namespace fastpe::bindings {

PyTypeObject* ndarray_type = nullptr;

namespace {

using Numpy = pybind11::detail::npy_api;

// Loaded with the module. Loaded by the first call, they would be waited for with the interpreter's lock in hand, which
// the thread that loads them may have to take again.
Numpy api;
PyTypeObject *scalar_type = nullptr, *bool_type = nullptr;

constexpr int first_registered_type = 256;

// ml_dtypes registers its types at run time. Recognised by name, so that nothing need be imported.
std::atomic<int> type_bfloat16{-1};
std::atomic<bool> is_bfloat16_looked_for{false};
// Of arrays over tensors of that type where NumPy does not have it: they are no one else's.
PyObject* bits_of_bfloat16 = nullptr;

const pybind11::detail::PyArrayDescr_Proxy& facts_of(PyObject* dtype) {
  return *reinterpret_cast<pybind11::detail::PyArrayDescr_Proxy*>(dtype);
}

const pybind11::detail::PyArray_Proxy& parts_of(PyObject* array) {
  return *reinterpret_cast<pybind11::detail::PyArray_Proxy*>(array);
}

int axes_of(PyObject* array) { return parts_of(array).nd; }  // codespell:ignore nd

bool is_bfloat16(PyObject* dtype) {
  const int number = facts_of(dtype).type_num;
  if (number == type_bfloat16.load(std::memory_order_relaxed) || dtype == bits_of_bfloat16) return true;
  if (facts_of(dtype).kind != 'V' || number < first_registered_type) return false;
  const std::string_view name = reinterpret_cast<PyTypeObject*>(facts_of(dtype).typeobj)->tp_name;
  if (name.substr(name.rfind('.') + 1) != "bfloat16") return false;  // with or without its module
  type_bfloat16.store(number, std::memory_order_relaxed);
  return true;
}

// NumPy writes '=', but a dtype from `newbyteorder`, as zarr makes them, keeps the letter of the machine's own order.
bool has_native_order(PyObject* dtype) {
  const std::uint16_t one = 1;
  unsigned char first_byte = 0;
  std::memcpy(&first_byte, &one, 1);
  const char order = facts_of(dtype).byteorder;
  return order == '=' || order == '|' || order == (first_byte == 1 ? '<' : '>');
}

bool is_array(PyObject* object) { return is_ndarray(object) || PyObject_TypeCheck(object, ndarray_type) != 0; }

Object numpy_attribute(const char* name) {
  return not_null(PyObject_GetAttrString(not_null(PyImport_ImportModule("numpy")).ptr(), name));
}

Object dtype_made_of(PyObject* object) {
  return not_null(PyObject_CallFunctionObjArgs(numpy_attribute("dtype").ptr(), object, nullptr));
}

// NumPy's numbers, in the order of DType. Loaded with the module.
constexpr int none = -1;
int numpy_numbers[std::size(dtype_facts)];

// Of C's types of one size, such as long and long long, one number is left.
int numpy_number_of(PyObject* dtype) {
  const int number = facts_of(dtype).type_num;
  return 0 <= number && number <= Numpy::NPY_VOID_ ? pybind11::detail::normalized_dtype_num[number] : number;
}

// Empty for those that no argument has.
std::optional<DType> known_dtype_of(PyObject* dtype) {
  const int number = numpy_number_of(dtype);
  for (std::size_t i = 0; i < std::size(numpy_numbers); ++i) {
    if (numpy_numbers[i] == number) return static_cast<DType>(i);
  }
  return is_bfloat16(dtype) ? std::optional(DType::bfloat16) : std::nullopt;
}

Object numpy_dtype(DType dtype) {
  const int number = dtype == DType::bfloat16 ? type_bfloat16.load() : numpy_numbers[index_of(dtype)];
  if (number == none) {
    refuse_type("the result", {"would have dtype bfloat16"}, {"the package ml_dtypes, from which NumPy has it"},
                {"pip install ml_dtypes, or pass out="});
  }
  return not_null(api.PyArray_DescrFromType_(number));
}

// Imports what has bfloat16, if it is there.
void look_for_bfloat16() {
  if (type_bfloat16.load() != none) return;
  const Object package = py::reinterpret_steal<Object>(PyImport_ImportModule("ml_dtypes"));
  if (!package) {
    if (PyErr_ExceptionMatches(PyExc_ImportError) == 0) throw py::error_already_set();
    return PyErr_Clear();
  }
  is_bfloat16(dtype_made_of(not_null(PyObject_GetAttrString(package.ptr(), "bfloat16")).ptr()).ptr());
}

// numpy.asarray(object, dtype), with requirements: never a subclass, whose methods are a caller's code.
Object converted(PyObject* object, int flags = 0, Object dtype = Object()) {
  flags |= Numpy::NPY_ARRAY_ENSUREARRAY_;
  return not_null(api.PyArray_FromAny_(object, dtype.release().ptr(), 0, 0, flags, nullptr));
}

Object cast(PyObject* array, DType dtype) { return converted(array, Numpy::NPY_ARRAY_FORCECAST_, numpy_dtype(dtype)); }

// An array over a tensor's memory, which it keeps. It is writable if it is to be written.
Object array_by_dlpack(PyObject* object, const char* name, bool is_written) {
  Tensor tensor(object, name, is_written);
  const ArrayView& view = tensor.view;
  if (view.dtype == DType::bfloat16 && !is_bfloat16_looked_for.exchange(true)) look_for_bfloat16();
  const bool has_dtype = view.dtype != DType::bfloat16 || type_bfloat16.load() != none;
  Object dtype = has_dtype ? numpy_dtype(view.dtype) : shared(bits_of_bfloat16);
  // NumPy takes memory of its own where there is no address.
  void* const data = view.data != nullptr ? static_cast<void*>(view.data) : &api;
  Object array = not_null(api.PyArray_NewFromDescr_(ndarray_type, dtype.release().ptr(), view.axes, tensor.shape,
                                                    tensor.strides_bytes, data,
                                                    is_written ? Numpy::NPY_ARRAY_WRITEABLE_ : 0, nullptr));
  if (api.PyArray_SetBaseObject_(array.ptr(), tensor.owner.release().ptr()) != 0) throw py::error_already_set();
  return array;
}

bool is_masked_array(PyObject* array) {
  const Object type = not_null(PyObject_GetAttrString(numpy_attribute("ma").ptr(), "MaskedArray"));
  return py::isinstance(array, type);
}

// A ValueError for Python's integers of more than 64 bits, which make an array of objects.
void refuse_long_integers(PyObject* array, const char* name) {
  const Object elements = not_null(PyObject_GetAttrString(array, "flat"));
  for (Py_ssize_t index = 0;; ++index) {
    const Object element = py::reinterpret_steal<Object>(PyIter_Next(elements.ptr()));
    if (!element) break;
    const auto value = PyLong_Check(element.ptr()) ? integer_argument(element.ptr()) : std::nullopt;
    if (!value || (*value != INT64_MAX && *value != INT64_MIN)) continue;
    std::string place;
    for (int axis = axes_of(array) - 1; axis >= 0; --axis) {
      place = joined({index % parts_of(array).dimensions[axis], place.empty() ? "" : ", ", place});
      index /= parts_of(array).dimensions[axis];
    }
    refuse_value(name, {"[", place, "] is ", repr_of(element.ptr())}, {position_limit}, {why_limited});
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

}  // namespace

void load_numpy() {
  api = Numpy::get();
  ndarray_type = api.PyArray_Type_;
  scalar_type = reinterpret_cast<PyTypeObject*>(numpy_attribute("generic").release().ptr());
  bool_type = reinterpret_cast<PyTypeObject*>(numpy_attribute("bool_").release().ptr());
  const auto named = [](const char* name) { return dtype_made_of(not_null(PyUnicode_FromString(name)).ptr()); };
  bits_of_bfloat16 = named("V2").release().ptr();
  for (std::size_t i = 0; i < std::size(dtype_facts); ++i) {
    const bool is_numpys = i != static_cast<std::size_t>(DType::bfloat16);
    numpy_numbers[i] = is_numpys ? numpy_number_of(named(dtype_facts[i].name).ptr()) : none;
  }
}

bool is_numpy_scalar(PyObject* object) { return PyObject_TypeCheck(object, scalar_type) != 0; }
bool is_numpy_bool(PyObject* object) { return Py_TYPE(object) == bool_type; }

Object array_behind(PyObject* object, const char* name) {
  if (is_array(object)) {
    if (is_ndarray(object) || !is_masked_array(object)) return shared(object);
    refuse_type(name, {"is a masked array"}, {"a plain numpy.ndarray"},
                {"pass ", in_code(name),
                 std::string_view(name) == "x" ? ".data; to leave rows alone, give valid=, False for them"
                                               : ".filled(value), with the value of what is masked"});
  }
  if (has_attribute(object, "__dlpack__")) return array_by_dlpack(object, name, true);
  if (PyObject_CheckBuffer(object) != 0 || has_attribute(object, "__array_interface__")) return converted(object);
  const bool is_list = PyList_Check(object) != 0 || PyTuple_Check(object) != 0;
  refuse_type(name, {object == Py_None ? "is None" : "is " + a_type(object)}, {"an array"},
              {is_list ? "convert it by np.asarray, or give several arrays one by one, as in rotate_(q, k)" : ""});
}

Object array_to_read(PyObject* object, const char* name) {
  if (is_array(object)) return array_behind(object, name);
  const bool has_dlpack = has_attribute(object, "__dlpack__");
  const bool has_only_dlpack = has_dlpack && PyObject_CheckBuffer(object) == 0 && !has_attribute(object, "__array__") &&
                               !has_attribute(object, "__array_interface__");
  Object array;
  if (!has_only_dlpack) {
    try {
      array = converted(object);
    } catch (py::error_already_set& error) {
      if (!has_dlpack && error.matches(PyExc_ValueError)) {
        refuse_value(name, {"is ", a_type(object), " that cannot become an array"}, {"numbers in rows of one length"},
                     {"pass an array"});
      }
      error.restore();
      // NumPy has no bfloat16, for example, and torch makes no array of a tensor that requires a gradient.
      if (!has_dlpack || !is_error_of_object()) throw py::error_already_set();
      PyErr_Clear();
    }
  }
  if (!array) return array_by_dlpack(object, name, false);
  if (axes_of(array.ptr()) > 0 || facts_of(parts_of(array.ptr()).descr).kind != 'O') return array;
  refuse_type(name, {"is ", a_type(object)}, {"an array, or what np.asarray makes an array of numbers"});
}

Object bools_from(PyObject* object, const char* name) {
  Object array = array_to_read(object, name);
  const char kind = facts_of(parts_of(array.ptr()).descr).kind;
  if (kind != 'i' && kind != 'u') return array;
  array = numbers_from(array.ptr(), name, Numbers::integers);
  require_zeros_and_ones(view_of(array.ptr(), name));
  return cast(array.ptr(), DType::boolean);
}

Object numbers_from(PyObject* object, const char* name, Numbers numbers, Gaps gaps) {
  Object array = array_to_read(object, name);
  const auto is_empty = [](PyObject* of) {
    const ssize_t* const shape = parts_of(of).dimensions;
    return std::find(shape, shape + axes_of(of), 0) != shape + axes_of(of);
  };
  if (numbers == Numbers::integers && !is_array(object) && is_empty(array.ptr())) {  // of an empty list, for example
    array = cast(array.ptr(), DType::int64);
  }
  const auto& dtype = facts_of(parts_of(array.ptr()).descr);
  if (dtype.kind == 'O') refuse_long_integers(array.ptr(), name);
  if ((dtype.kind == 'i' || dtype.kind == 'u' || dtype.kind == 'f') && !has_native_order(parts_of(array.ptr()).descr)) {
    array = converted(array.ptr(), 0, not_null(api.PyArray_DescrFromType_(dtype.type_num)));
  }
  const bool is_contiguous =
      axes_of(array.ptr()) <= 1 || (parts_of(array.ptr()).flags & Numpy::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  if (gaps == Gaps::allowed || is_contiguous) return array;
  return converted(array.ptr(), Numpy::NPY_ARRAY_C_CONTIGUOUS_);
}

std::optional<DType> dtype_argument(PyObject* object) {
  if (!is_given(object)) return std::nullopt;
  if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "bfloat16") == 0) {
    look_for_bfloat16();
    return DType::bfloat16;  // without it, that of a tensor; where a new array would be made, it is refused
  }
  PyObject* converted = nullptr;
  if (api.PyArray_DescrConverter_(object, &converted) == 0) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
    PyErr_Clear();
    const std::string text = repr_of(object);  // such as torch.float16
    const std::string word = text.substr(text.rfind('.') + 1);
    const bool is_known = std::any_of(std::begin(dtype_facts), std::begin(dtype_facts) + written_dtype_count,
                                      [&](const DTypeFacts& facts) { return word == facts.name; });
    refuse_type("dtype", {"is ", text}, {written_dtypes}, {is_known ? joined({"pass '", word, "'"}) : ""});
  }
  const Object dtype = py::reinterpret_steal<Object>(converted);
  const std::optional<DType> known = known_dtype_of(converted);
  if (!known || !is_written(*known)) refuse_type("dtype", {"is ", str_of(converted)}, {written_dtypes});
  if (!has_native_order(converted)) refuse_type("dtype", {"is ", str_of(converted)}, {"native byte order"});
  return known;
}

ArrayView view_of(PyObject* array, const char* name) {
  const pybind11::detail::PyArray_Proxy& parts = parts_of(array);
  const std::optional<DType> dtype = known_dtype_of(parts.descr);
  if (!dtype) {
    const std::string text = str_of(parts.descr);
    refuse_type(name, {"has dtype ", text, ", which fastpe does not read"}, {},
                {text == "|V2" ? joined({"pass ", in_code(name), ".view(ml_dtypes.bfloat16) if it has those bits"})
                               : "convert it to float64 first, if all are numbers"});
  }
  ArrayView view;
  view.data = parts.data;
  view.shape = parts.dimensions;
  view.axes = axes_of(array);
  view.strides_bytes = view.is_empty() ? no_strides : parts.strides;
  view.name = name;
  view.dtype = *dtype;
  view.is_writable = (parts.flags & Numpy::NPY_ARRAY_WRITEABLE_) != 0;
  view.is_aligned = (parts.flags & Numpy::NPY_ARRAY_ALIGNED_) != 0;
  view.has_native_order = has_native_order(parts.descr);
  view.is_contiguous = (parts.flags & Numpy::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  return view;
}

Object new_array(DType dtype, const Shape& shape) {
  shape.require_bytes_countable(element_bytes(dtype));
  return not_null(api.PyArray_NewFromDescr_(ndarray_type, numpy_dtype(dtype).release().ptr(), shape.axes(),
                                            shape.begin(), nullptr, nullptr, 0, nullptr));
}

Object new_array(const double* values, std::int64_t count) {
  Object array = new_array(DType::float64, {count});
  if (count > 0) std::memcpy(parts_of(array.ptr()).data, values, static_cast<std::size_t>(count) * sizeof *values);
  return array;
}

}  // namespace fastpe::bindings
