// SPDX-License-Identifier: BSD-3-Clause
#include "angles.h"

#include "fastpe/dispatch.h"

namespace fastpe {

void AngleRows::expand(const Run& run, const Sink& sink, char* /*scratch*/) const {
  const DoubleDoubles& radians = encoder_.frequencies().radians;
  Angles angles{};
  angles.radians_high = radians.high.data() + sink.columns.first;
  angles.radians_low = radians.low.data() + sink.columns.first;
  angles.columns = sink.columns.count;
  angles.out_row_stride_bytes = sink.out_row_stride_bytes;
  angles.rows = run.count;
  const auto kernel = active_kernels().angles[index_of(sink.dtype)];
  if (run.coordinates == nullptr) {
    angles.out = sink.out;
    angles.streaming = sink.memory.streaming;
    angles.position = run.position.is_integer ? static_cast<double>(run.position.integer) : run.position.value;
    kernel(angles);
    return;
  }
  // Adjacent columns of one coordinate are made together.
  for (std::int64_t begin = 0; begin < sink.columns.count;) {
    const int axis = axes_[sink.columns.first + begin];
    std::int64_t end = begin + 1;
    while (end < sink.columns.count && axes_[sink.columns.first + end] == axis) ++end;
    Angles part = angles;
    part.out = sink.out + begin * element_bytes(sink.dtype);
    part.radians_high += begin;
    part.radians_low += begin;
    part.columns = end - begin;
    part.position = run.coordinates[axis].value;
    kernel(part);
    begin = end;
  }
}

}  // namespace fastpe
