// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "fastpe/call/run.h"
#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"

namespace fastpe::c_library {
namespace {

constexpr int most_threads = 1 << 16;

// In the order of the header's numbers, from 1 on.
constexpr Element elements[] = {Element::float32, Element::float64, Element::float16, Element::bfloat16,
                                Element::int8,    Element::int16,   Element::int32,   Element::int64,
                                Element::uint8,   Element::uint16,  Element::uint32,  Element::uint64,
                                Element::boolean};
static_assert(FASTPE_FLOAT32 == 1 && FASTPE_BOOL == std::size(elements));

std::ptrdiff_t countable(const char* name, std::int64_t length_or_stride) {
  const auto result = static_cast<std::ptrdiff_t>(length_or_stride);
  if (result != length_or_stride) refuse_value(name, {"has an axis of ", length_or_stride}, {"less"});
  return result;
}

int max_threads_of(int32_t threads) {
  if (threads < 0) refuse_value("threads", {"is ", threads}, {"1 or more, or 0 for the default"});
  return threads == 0 ? default_thread_count() : std::min<int>(threads, most_threads);
}

}  // namespace

const ArrayView& View::set(const fastpe_array* array, const char* name) {
  if (array == nullptr) return view_;
  if (array->axes < 0 || array->axes > FASTPE_MAX_AXES || (array->axes > 0 && array->shape == nullptr)) {
    refuse_value(name, {"has ", array->axes, " axes"}, {"0 to ", FASTPE_MAX_AXES, ", and a shape"});
  }
  if (array->dtype < 1 || array->dtype > FASTPE_BOOL) {
    refuse_type(name, {"has the dtype ", array->dtype}, {"FASTPE_FLOAT32 or another of the header's"});
  }
  view_.data = static_cast<char*>(array->data);
  view_.shape = shape_;
  view_.strides_bytes = strides_bytes_;
  view_.name = name;
  view_.axes = array->axes;
  view_.element = elements[array->dtype - 1];
  view_.is_writable = true;
  const std::ptrdiff_t bytes = element_bytes(view_.element);
  std::ptrdiff_t contiguous = bytes;
  view_.is_contiguous = true;
  view_.is_aligned = reinterpret_cast<std::uintptr_t>(array->data) % static_cast<std::uintptr_t>(bytes) == 0;
  for (int axis = array->axes - 1; axis >= 0; --axis) {
    shape_[axis] = countable(name, array->shape[axis]);
    if (shape_[axis] < 0) refuse_value(name, {"has an axis of length ", array->shape[axis]}, {"0 or more"});
    strides_bytes_[axis] = array->strides_bytes == nullptr ? contiguous : countable(name, array->strides_bytes[axis]);
    if (shape_[axis] > 1) {
      view_.is_contiguous = view_.is_contiguous && strides_bytes_[axis] == contiguous;
      view_.is_aligned = view_.is_aligned && strides_bytes_[axis] % bytes == 0;
    }
    if (shape_[axis] > PTRDIFF_MAX / contiguous) {
      refuse_value(name, {"has more elements than can be counted"}, {"less than 2**63 bytes"});
    }
    contiguous *= std::max<std::ptrdiff_t>(shape_[axis], 1);
  }
  if (array->data == nullptr && !view_.is_empty()) refuse_value(name, {"has no data"}, {"a pointer to its elements"});
  return view_;
}

RowsView::RowsView(const fastpe_rows* rows) {
  if (rows == nullptr) return;
  RowArguments& a = arguments_;
  a.offsets = offsets_.set(rows->offsets, "offsets");
  a.positions = positions_.set(rows->positions, "positions");
  a.mask = mask_.set(rows->mask, "mask");
  a.lengths = lengths_.set(rows->lengths, "lengths");
  a.cu_seqlens = cu_seqlens_.set(rows->cu_seqlens, "cu_seqlens");
  if (rows->offset != 0) {
    if (rows->offset > max_position || rows->offset < -max_position) {
      refuse_value("offset", {"is ", rows->offset}, {"a number of magnitude at most 2**53"});
    }
    if (a.offsets.is_given()) refuse_both("offset", "offsets");
    if (a.positions.is_given()) refuse_both("positions", "offset");
    a.offset = rows->offset;
  }
  if (a.cu_seqlens.is_given()) refuse_given({&a.positions, &a.mask, &a.lengths}, "NULL, with cu_seqlens");
  if (a.positions.is_given() && a.offsets.is_given()) refuse_both("positions", "offsets");
  if (a.mask.is_given() && a.lengths.is_given()) refuse_both("mask", "lengths");
}

void refuse_given(std::initializer_list<const ArrayView*> arrays, const char* expected) {
  for (const ArrayView* const array : arrays) {
    if (array->is_given()) refuse_value(array->name, {"was given"}, {expected});
  }
}

Extent written_extent(const ArrayView& out, const Shape& columns, const RowArguments& rows) {
  dtype_of(out);
  const int seq_axis = out.axes - columns.axes() - 1;
  if (seq_axis < 0 || seq_axis > 1 || !std::equal(columns.begin(), columns.end(), out.shape + seq_axis + 1)) {
    refuse_value(out.name, {"has shape ", shape_text(out)}, {"[L] or [B, L] and columns ", shape_text(columns)});
  }
  require_writable(out, nullptr);
  require_disjoint(out, rows);
  return {seq_axis == 1 ? out.shape[0] : 1, out.shape[seq_axis], seq_axis == 1};
}

void run_call(const Source& source, const Operation& operation, const Placement& placement, int32_t threads) {
  run({source, operation, placement.positions, placement.validity, max_threads_of(threads)}, nullptr);
}

void check_environment() {
  active_kernels();
  default_thread_count();
  streaming_threshold_bytes();
  l1_cache_bytes();
  l2_cache_bytes();
}

void warm_up(const RowCache& rows, int32_t dtype, int32_t threads) {
  const int max_threads = max_threads_of(threads);
  const bool is_known = 1 <= dtype && dtype <= FASTPE_BOOL;
  const std::optional<DType> written = is_known ? float_dtype(elements[dtype - 1]) : std::nullopt;
  if (!written) refuse_type("dtype", {"is ", dtype}, {"FASTPE_FLOAT32, _FLOAT64, _FLOAT16 or _BFLOAT16"});
  rows.encoder().prepare(*written, nullptr);
  rows.fill_promised(row_dtype(*written), max_threads, nullptr);
}

}  // namespace fastpe::c_library
