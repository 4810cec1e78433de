// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <algorithm>

namespace fastpe::bindings {
namespace {

constexpr std::int64_t bytes_worth_releasing_the_gil = 64 * 1024;

}  // namespace

void PythonCall::fill(Request& request, const Arguments& a, Gaps gaps) {
  if (is_given(a.cu_seqlens)) numbers(request.cu_seqlens, a.cu_seqlens, "cu_seqlens", Numbers::integers);
  if (is_given(a.offset)) {
    if (PyFloat_Check(a.offset) || PyBool_Check(a.offset)) {
      const std::string fractional = joined({"pass positions=", str_of(a.offset), " + np.arange(L) for L rows"});
      refuse_type("offset", {"is ", repr_of(a.offset)}, {"an int or an int array"},
                  {PyFloat_Check(a.offset) ? fractional : ""});
    }
    request.offset = integer_argument(a.offset);
    if (!request.offset) numbers(request.offsets, a.offset, "offset", Numbers::integers);
  }
  if (is_given(a.positions)) {
    numbers(request.positions, a.positions, "positions", Numbers::integers_or_floats, gaps);
  }
  if (is_given(a.valid)) keep(request.valid, bools_from(a.valid, "valid"), "valid");
  if (is_given(a.lengths)) numbers(request.lengths, a.lengths, "lengths", Numbers::integers);
  request.max_threads = threads_argument(a.num_threads);
}

void PythonCall::fill_written(Request& request, Arguments a) {
  request.count = position_count(a.positions);
  if (request.count) a.positions = nullptr;
  fill(request, a, Gaps::removed);
}

PyObject* PythonCall::returned(PyObject* given) {
  if (is_given(given)) return shared(given).release().ptr();
  if (!made_[1]) return made_[0].release().ptr();
  return not_null(PyTuple_Pack(2, made_[0].ptr(), made_[1].ptr())).release().ptr();
}

void PythonCall::run(const Call& call) {
  const OperationShape& shape = call.operation.shape();
  // Rows that have no columns are only checked.
  const bool is_small = std::max(shape.bytes_written, shape.items() * shape.seq_len) < bytes_worth_releasing_the_gil;
  // A small call may have to make the encoder's tables. It is interruptible then, but keeps the interpreter's lock, so
  // that not every thread makes them.
  if (is_small && call.source.is_prepared(shape.tile_dtype)) return fastpe::run(call, nullptr);
  // The arrays are alive meanwhile: the caller and the call hold them.
  run_interruptibly(
      !is_small,
      "interrupted: a part may be written; before a second call, restore from a copy what was to be changed "
      "in place, since that call would change this part again",
      [&call](Interruption* interruption) { fastpe::run(call, interruption); });
}

}  // namespace fastpe::bindings
