// SPDX-License-Identifier: BSD-3-Clause
// What every function does: exceptions become statuses, and what callers pass becomes the core's views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fastpe/error.h"
#include "fastpe/fastpe.h"
#include "fastpe/requests/request.h"
#include "fastpe/sources/sinusoid/encoding.h"

namespace fastpe::c_library {

// The status of the exception that is being handled. Its message becomes that of this thread.
fastpe_status status_of_exception() noexcept;

template <class Body>
fastpe_status status_of(const Body& body) noexcept {
  try {
    body();
    return FASTPE_OK;
  } catch (...) {
    return status_of_exception();
  }
}

template <class T>
const T& required(const T* pointer, const char* name) {
  if (pointer == nullptr) refuse_value(name, {"is NULL"}, {"a pointer"});
  return *pointer;
}

// ---- Handles

// Reads what is read once. Throws an Error for a variable of the environment that is wrong, so that no call has to.
void read_environment();

// Sets `*handle` to null if it throws.
template <class Handle, class Options>
fastpe_status create(const Options* options, Handle** handle, const char* name) noexcept {
  return status_of([&] {
    required(handle, name);
    *handle = nullptr;
    read_environment();
    *handle = new Handle(required(options, "options"));
  });
}

void warm_up(const Encoding& encoding, int32_t dtype, int32_t num_threads);

inline double or_else(double value, double if_zero) { return value != 0.0 ? value : if_zero; }

// A copy of `wanted` numbers; of none if `numbers` is null.
std::vector<double> copy_of(const double* numbers, std::int64_t count, std::int64_t wanted, const char* count_name);

// Fields that a later version may use: a program that sets one needs that version.
void require_zeros(const char* struct_name, const int64_t (&reserved)[4], int32_t reserved_int32 = 0);

// ---- Arguments

// The arrays of a call as the core sees them. Their lengths and strides are kept here.
class Views {
 public:
  Views() = default;
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  // Refuses what describes no memory. If `array` is null, the view is not given.
  ArrayView of(const fastpe_const_array* array, const char* name);
  ArrayView of(const fastpe_array* array, const char* name);
  // What every call has.
  void fill(Request& request, const fastpe_rows* rows, int32_t num_threads);

 private:
  static constexpr int most_arrays = 2 * FASTPE_MAX_ROTATED + 7;  // a rotation's, its tables, and those of fastpe_rows

  std::ptrdiff_t shapes_[most_arrays][FASTPE_MAX_AXES], strides_bytes_[most_arrays][FASTPE_MAX_AXES];
  int count_ = 0;
};

int max_threads_of(int32_t num_threads);

// All arrays are the caller's.
class CFrontEnd final : public FrontEnd {
 public:
  ArrayView new_array(DType dtype, const Shape& shape) override;
  void run(const Call& call) override { fastpe::run(call, nullptr); }
};

}  // namespace fastpe::c_library
