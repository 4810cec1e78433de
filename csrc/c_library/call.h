// SPDX-License-Identifier: BSD-3-Clause
// What every function does: exceptions become statuses, and what callers pass becomes the core's views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "fastpe/checks/rows.h"
#include "fastpe/error.h"
#include "fastpe/fastpe.h"
#include "fastpe/operations/operation.h"
#include "fastpe/sources/sinusoid/row_cache.h"
#include "fastpe/sources/source.h"

namespace fastpe::c_library {

// ---- Statuses

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

// Sets `*made` to what `make` returns, or to null where it throws.
template <class Handle, class Make>
fastpe_status make_handle(Handle** made, const char* name, const Make& make) noexcept {
  if (made != nullptr) *made = nullptr;
  return status_of([&] {
    if (made == nullptr) refuse_value(name, {"is NULL"}, {"where to put the handle"});
    *made = make().release();
  });
}

template <class T>
const T& required(const T* pointer, const char* name) {
  if (pointer == nullptr) refuse_value(name, {"is NULL"}, {"what the header asks for"});
  return *pointer;
}

// ---- Arguments

// A view, and its lengths and strides. Given no array, the view is not given.
class View {
 public:
  View() = default;
  View(const fastpe_array* array, const char* name) { set(array, name); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // Refuses what describes no memory.
  const ArrayView& set(const fastpe_array* array, const char* name);
  const ArrayView& operator*() const { return view_; }
  const ArrayView* operator->() const { return &view_; }

 private:
  ArrayView view_;
  std::ptrdiff_t shape_[FASTPE_MAX_AXES], strides_bytes_[FASTPE_MAX_AXES];
};

inline double or_else(double value, double if_zero) { return value != 0.0 ? value : if_zero; }

// Refuses arguments that exclude each other.
class RowsView {
 public:
  explicit RowsView(const fastpe_rows* rows);
  RowsView(const RowsView&) = delete;
  RowsView& operator=(const RowsView&) = delete;

  const RowArguments* operator->() const { return &arguments_; }
  const RowArguments& operator*() const { return arguments_; }

 private:
  View offsets_, positions_, mask_, lengths_, cu_seqlens_;
  RowArguments arguments_;
};

// A ValueError where one of these was given.
void refuse_given(std::initializer_list<const ArrayView*> arrays, const char* expected);

// Of a writable array whose axes are [L] or [B, L] and these columns, and which is apart from the arguments.
Extent written_extent(const ArrayView& out, const Shape& columns, const RowArguments& rows);

void run_call(const Source& source, const Operation& operation, const Placement& placement, int32_t threads);

// ---- Handles

// Throws an Error for a variable of the environment that is wrong, so that no later call has to.
void check_environment();
// A copy of `wanted` numbers; of none where there is no array.
template <class To, class From>
std::vector<To> copy_of(const From* numbers, std::int64_t count, std::int64_t wanted, const char* name_of_count) {
  const std::int64_t expected = numbers == nullptr ? 0 : wanted;
  if (count != expected) refuse_value(name_of_count, {"is ", count}, {expected});
  return {numbers, numbers + count};
}
void warm_up(const RowCache& rows, int32_t dtype, int32_t threads);

}  // namespace fastpe::c_library
