// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <cassert>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <optional>

#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"

namespace fastpe::c_library {
namespace {

// Empty for a number that the header does not have.
constexpr std::optional<DType> dtype_numbered(int32_t number) {
  for (std::size_t i = 0; i < std::size(dtype_facts); ++i) {
    if (number != 0 && dtype_facts[i].c_number == number) return static_cast<DType>(i);
  }
  return std::nullopt;
}
static_assert(dtype_numbered(FASTPE_FLOAT32) == DType::float32 && dtype_numbered(FASTPE_BFLOAT16) == DType::bfloat16);
static_assert(dtype_numbered(FASTPE_INT64) == DType::int64 && dtype_numbered(FASTPE_BOOL) == DType::boolean);

// Of a fixed size: that there is no memory must be told without any.
struct LastError {
  char argument[64];
  char message[960];
};
thread_local LastError last_error{};

fastpe_status record(fastpe_status status, const char* argument, const char* message) {
  std::snprintf(last_error.argument, sizeof last_error.argument, "%s", argument);
  std::snprintf(last_error.message, sizeof last_error.message, "%s", message);
  return status;
}

}  // namespace

fastpe_status status_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      // The remedies are calls of Python's.
      const Error without_remedy(error.kind, error.argument, error.found, error.expected, "");
      return record(error.kind == ErrorKind::type ? FASTPE_INVALID_TYPE : FASTPE_INVALID_VALUE, error.argument.c_str(),
                    without_remedy.what());
    } catch (const std::bad_alloc&) {
      return record(FASTPE_OUT_OF_MEMORY, "", "there is not enough memory");
    } catch (const std::exception& error) {
      return record(FASTPE_INTERNAL_ERROR, "", error.what());
    }
  } catch (...) {
    return record(FASTPE_OUT_OF_MEMORY, "", "there is not enough memory to say what is wrong");
  }
}

void read_environment() {
  active_kernels();
  default_thread_count();
  streaming_threshold_bytes();
  l1_cache_bytes();
  l2_cache_bytes();
  is_last_level_cache_near();
}

void warm_up(const Encoding& encoding, int32_t dtype, int32_t num_threads) {
  const int max_threads = max_threads_of(num_threads);
  const std::optional<DType> known = dtype_numbered(dtype);
  if (!known || !is_written(*known)) {
    refuse_type("dtype", {"is ", dtype}, {"FASTPE_FLOAT32, _FLOAT64, _FLOAT16 or _BFLOAT16"});
  }
  encoding.warm_up(*known, max_threads, nullptr);
}

std::vector<double> copy_of(const double* numbers, std::int64_t count, std::int64_t wanted, const char* count_name) {
  if (numbers == nullptr && count != 0) refuse_value(count_name, {"is ", count}, {"0, because the pointer is NULL"});
  if (numbers != nullptr && count != wanted) refuse_value(count_name, {"is ", count}, {wanted});
  return {numbers, numbers + count};
}

void require_zeros(const char* struct_name, const int64_t (&reserved)[4], int32_t reserved_int32) {
  const auto require_zero = [&](const char* name, std::int64_t value) {
    if (value == 0) return;
    refuse_value(name, {"of ", struct_name, " is ", value}, {"0: this version does not use it"});
  };
  require_zero("reserved_int32", reserved_int32);
  for (const std::int64_t value : reserved) require_zero("reserved", value);
}

ArrayView Views::of(const fastpe_array* array, const char* name) {
  if (array == nullptr) return {};
  const fastpe_const_array same{array->data, array->shape, array->strides_bytes, array->ndim, array->dtype};
  ArrayView view = of(&same, name);
  view.is_writable = true;
  return view;
}

ArrayView Views::of(const fastpe_const_array* array, const char* name) {
  if (array == nullptr) return {};
  if (array->ndim < 0 || array->ndim > FASTPE_MAX_AXES) {
    refuse_value(name, {"has ", array->ndim, " axes"}, {"0 to ", FASTPE_MAX_AXES});
  }
  if (array->ndim > 0 && array->shape == nullptr) refuse_value(name, {"has no shape"}, {"the lengths of its axes"});
  const std::optional<DType> dtype = dtype_numbered(array->dtype);
  if (!dtype) refuse_type(name, {"has the dtype ", array->dtype}, {"FASTPE_FLOAT32 or another of the header's"});
  assert(count_ < most_arrays);
  char* const data = static_cast<char*>(const_cast<void*>(array->data));
  const int at = count_++;
  return described_view({data, *dtype, array->ndim, array->shape, array->strides_bytes, 1}, name, shapes_[at],
                        strides_bytes_[at]);
}

void Views::fill(Request& request, const fastpe_rows* rows, int32_t num_threads) {
  request.max_threads = max_threads_of(num_threads);
  if (rows == nullptr) return;
  require_zeros("fastpe_rows", rows->reserved);
  if (rows->offset != 0) request.offset = rows->offset;
  request.offsets = of(rows->offsets, "offsets");
  request.positions = of(rows->positions, "positions");
  request.valid = of(rows->valid, "valid");
  request.lengths = of(rows->lengths, "lengths");
  request.cu_seqlens = of(rows->cu_seqlens, "cu_seqlens");
}

int max_threads_of(int32_t num_threads) {
  if (num_threads < 0) refuse_value("num_threads", {"is ", num_threads}, {"1 or more, or 0 for the default"});
  return num_threads == 0 ? default_thread_count() : num_threads;
}

ArrayView CFrontEnd::new_array(DType, const Shape&) { refuse_value("out", {"is NULL"}, {"a pointer"}); }

}  // namespace fastpe::c_library

int32_t fastpe_version(void) { return FASTPE_VERSION; }

const char* fastpe_instruction_set(void) {
  const char* name = "";
  fastpe::c_library::status_of([&] { name = fastpe::active_instruction_set(); });
  return name;
}

const char* fastpe_error_message(void) { return fastpe::c_library::last_error.message; }
size_t fastpe_last_error(char* message, size_t size) {
  const char* const last = fastpe::c_library::last_error.message;
  if (message != nullptr && size > 0) std::snprintf(message, size, "%s", last);
  return std::strlen(last);
}

const char* fastpe_error_argument(void) { return fastpe::c_library::last_error.argument; }
