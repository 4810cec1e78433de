// SPDX-License-Identifier: BSD-3-Clause
// What every function does: exceptions become statuses, and what callers pass becomes the core's views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "fastpe/checks/placement.h"
#include "fastpe/error.h"
#include "fastpe/fastpe.h"
#include "fastpe/operations/operation.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "fastpe/sources/source.h"

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

void warm_up(const RowCache& rows, int32_t dtype, int32_t num_threads);

inline double or_else(double value, double if_zero) { return value != 0.0 ? value : if_zero; }

// A copy of `wanted` numbers; of none if `numbers` is null.
std::vector<double> copy_of(const double* numbers, std::int64_t count, std::int64_t wanted, const char* count_name);

// ---- Arguments

// The arrays of a call as the core sees them. Their lengths and strides are kept here.
class Views {
 public:
  Views() = default;
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  // Refuses what describes no memory. If `array` is null, the view is not given.
  ArrayView of(const fastpe_array* array, const char* name);
  // Refuses arguments that exclude each other.
  PlacementArguments rows(const fastpe_rows* rows);

 private:
  static constexpr int most_arrays = FASTPE_MAX_ROTATED + 5;  // a rotation's, and those of fastpe_rows

  std::ptrdiff_t shapes_[most_arrays][FASTPE_MAX_AXES], strides_bytes_[most_arrays][FASTPE_MAX_AXES];
  int count_ = 0;
};

void refuse_given(std::initializer_list<const ArrayView*> arrays, const char* expected);

// ---- Calls

// An array [L] or [B, L] of `columns` columns, or of pairs of them: [.., columns, 2].
struct Written {
  Written(const ArrayView& out, std::int64_t columns, bool are_pairs, const PlacementArguments& arguments);

  Extent extent;
  Rows rows;
};

struct CallRows {
  const PlacementArguments& arguments;
  const Extent& extent;
  std::int64_t first_position = 0;  // of an offset of 0
};
void run_call(const Source& source, const Operation& operation, const CallRows& rows, int32_t num_threads);

}  // namespace fastpe::c_library
