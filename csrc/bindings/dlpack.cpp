// SPDX-License-Identifier: BSD-3-Clause
#include "dlpack.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "arguments.h"
#include "errors.h"

namespace fastpe::bindings {
namespace {

// ---- What DLPack 1.0 publishes, by its own names. The version comes first in all that follow it.

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;  // codespell:ignore ndim
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null where there are no gaps
  std::uint64_t byte_offset;
};
struct DLManagedTensor {  // before 1.0
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
constexpr std::uint64_t flag_read_only = 1, flag_is_copied = 2;
constexpr std::int32_t reached_devices[] = {1, 3, 11, 13};  // the host's memory, pinned by CUDA or ROCm, and managed

// ----

// torch exports what lies in memory, of which such a tensor is the negative.
void require_no_negative_bit(PyObject* object, const char* name) {
  if (!has_attribute(object, "is_neg")) return;
  if (PyObject_IsTrue(not_null(PyObject_CallMethod(object, "is_neg", nullptr)).ptr()) != 1) return;
  refuse_type(name, {"is ", a_type(object), " with a negative bit"}, {"the numbers themselves in memory"},
              {"pass ", in_code(name), ".resolve_neg() and keep that tensor"});
}

// For what a library says of an object of its own.
[[noreturn]] void refuse_export(PyObject* object, const char* name) {
  if (!is_error_of_object()) throw py::error_already_set();
  refuse_type(name, {"is ", a_type(object), " that gives no memory (", taken_error(), ")"}, {"an array"});
}

Object capsule_of(PyObject* object, const char* name) {
  const Object method = not_null(PyObject_GetAttrString(object, "__dlpack__"));
  const Object nothing = not_null(PyTuple_New(0)), version = not_null(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
  PyObject* capsule = PyObject_Call(method.ptr(), nothing.ptr(), version.ptr());
  if (capsule == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {  // from before 1.0
    PyErr_Clear();
    capsule = PyObject_Call(method.ptr(), nothing.ptr(), nullptr);
  }
  if (capsule == nullptr) refuse_export(object, name);
  return py::reinterpret_steal<Object>(capsule);
}

// Of an owner that nobody holds any more. Its library's code leaves Python's error of this moment as it is.
template <class Managed>
void give_back(PyObject* owner) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(owner, nullptr));
  if (managed->deleter != nullptr) managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

// The capsule's tensor, which belongs to `owner` from here on, as the capsule's new name says.
template <class Managed>
const Managed& taken(const Object& capsule, const char* name, const char* used_name, Object& owner) {
  void* const managed = PyCapsule_GetPointer(capsule.ptr(), name);
  owner = not_null(PyCapsule_New(managed, nullptr, give_back<Managed>));
  PyCapsule_SetName(capsule.ptr(), used_name);
  return *static_cast<const Managed*>(managed);
}

DType dtype_of(const DLDataType& type, const char* name) {
  for (std::size_t i = 0; i < std::size(dtype_facts); ++i) {
    const DTypeFacts& facts = dtype_facts[i];
    const bool is_it = type.code == facts.dlpack_code && type.bits == 8 * facts.element_bytes && type.lanes == 1;
    if (is_it) return static_cast<DType>(i);
  }
  refuse_type(name,
              {"has numbers of DLPack's type ", static_cast<int>(type.code), " of ", static_cast<int>(type.bits),
               " bits and ", static_cast<int>(type.lanes), " lanes"},
              {"float32, float64, float16, bfloat16, integers or bool"}, {"convert it to one of them first"});
}

void fill_in(Tensor& tensor, const DLTensor& given, const char* name) {
  const auto* const reached =
      std::find(std::begin(reached_devices), std::end(reached_devices), given.device.device_type);
  if (reached == std::end(reached_devices)) {
    refuse_type(name, {"is on the DLPack device (", given.device.device_type, ", ", given.device.device_id, ")"},
                {"memory of the CPU, device 1"}, {"copy it there first"});
  }
  if (given.ndim < 0 || given.ndim > Tensor::most_axes) {
    refuse_value(name, {"has ", given.ndim, " axes"}, {"at most ", Tensor::most_axes});
  }
  const DType dtype = dtype_of(given.dtype, name);
  char* const data = given.data == nullptr ? nullptr : static_cast<char*>(given.data) + given.byte_offset;
  tensor.view = described_view({data, dtype, given.ndim, given.shape, given.strides, element_bytes(dtype)}, name,
                               tensor.shape, tensor.strides_bytes);
}

}  // namespace

Tensor::Tensor(PyObject* object, const char* name, bool is_written) {
  require_no_negative_bit(object, name);
  const Object capsule = capsule_of(object, name);
  bool is_read_only = false, is_copied = false;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const DLPackVersion version =
        *static_cast<const DLPackVersion*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (version.major != 1) {
      refuse_type(name, {"is ", a_type(object), " of DLPack ", static_cast<long long>(version.major)},
                  {"DLPack 1 or before"});
    }
    const auto& managed =
        taken<DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned", owner);
    is_read_only = (managed.flags & flag_read_only) != 0;
    is_copied = (managed.flags & flag_is_copied) != 0;
    fill_in(*this, managed.dl_tensor, name);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    fill_in(*this, taken<DLManagedTensor>(capsule, "dltensor", "used_dltensor", owner).dl_tensor, name);
    // It has no flag, and may be of an immutable array, as all of Arrow's are: JAX's have the buffer protocol.
    is_read_only = PyObject_CheckBuffer(object) != 0 || has_attribute(object, "__arrow_c_array__");
  } else {
    refuse_type(name, {"is ", a_type(object), " whose __dlpack__ gives no new DLPack capsule"}, {"one"});
  }
  if (is_written && (is_read_only || is_copied)) {
    refuse_value(
        name, {"is ", a_type(object), is_copied ? " that gives a copy of its memory" : ", and read-only"},
        {"memory that may be written"},
        {has_attribute(object, "__array__") ? joined({"pass np.array(", in_code(name), ") and keep that array"}) : ""});
  }
}

}  // namespace fastpe::bindings
