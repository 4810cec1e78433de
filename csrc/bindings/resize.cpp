// SPDX-License-Identifier: BSD-3-Clause
// The sums of resized grids. What they are sums of is computed in Python.
#include "fastpe/requests/resize.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <utility>

#include "call.h"
#include "interruptible.h"

namespace fastpe::bindings {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;
using Axis = std::pair<py::object, py::object>;  // indices and weights

void take_axis(PythonCall& call, ResizedAxis& axis, std::int64_t side, const Axis& given) {
  axis.side = side;
  call.to_read(axis.indices, given.first.ptr(), "indices");
  call.to_read(axis.weights, given.second.ptr(), "weights");
}

void resize(const py::object& table, const py::object& out, const Pair& sides, const Axis& rows, const Axis& columns,
            std::int64_t class_tokens, std::int64_t merge_size, const py::object& num_threads) {
  PythonCall call;
  ResizeRequest request{};
  call.to_read(request.table, table.ptr(), "table");
  call.to_write(request.out, out.ptr(), "out");
  take_axis(call, request.rows, sides.first, rows);
  take_axis(call, request.columns, sides.second, columns);
  request.class_tokens = class_tokens;
  request.merge_size = merge_size;
  request.max_threads = threads_argument(num_threads.ptr());

  call.take_views();
  run_interruptibly(true, "interrupted: the output array was partly written; compute it again before using it",
                    [&](Interruption* interruption) { resize_rows(request, interruption); });
}

}  // namespace

void add_resizing(py::handle module) {
  using py::literals::operator""_a;
  py::reinterpret_borrow<py::module_>(module).def("resize_rows", resize, "table"_a, "out"_a, py::kw_only(), "sides"_a,
                                                  "rows"_a, "columns"_a, "class_tokens"_a, "merge_size"_a,
                                                  "num_threads"_a);
}

}  // namespace fastpe::bindings
