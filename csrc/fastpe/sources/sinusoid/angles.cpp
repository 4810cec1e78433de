// SPDX-License-Identifier: BSD-3-Clause
#include "angles.h"

#include "fastpe/dispatch.h"

namespace fastpe {

void AngleRows::write_rows(const Span& span, const Target& target, char* /*scratch*/) const {
  const DoubleDoubles& radians = encoder_.frequencies().radians;
  Angles angles{};
  angles.radians_high = radians.high.data() + target.columns.first;
  angles.radians_low = radians.low.data() + target.columns.first;
  angles.columns = target.columns.count;
  angles.out_row_stride_bytes = target.out_row_stride_bytes;
  angles.rows = span.count;
  const std::vector<int>& of_frequency = coordinates_.of_frequency;
  const auto kernel = active_kernels().angles[index_of(target.dtype)];
  if (span.coordinates == nullptr) {
    angles.out = target.out;
    angles.position = span.position.is_integer ? static_cast<double>(span.position.integer) : span.position.value;
    kernel(angles);
    return;
  }
  // Adjacent columns of one coordinate are made together.
  for (std::int64_t begin = 0; begin < target.columns.count;) {
    const int coordinate = of_frequency[static_cast<std::size_t>(target.columns.first + begin)];
    std::int64_t end = begin + 1;
    while (end < target.columns.count &&
           of_frequency[static_cast<std::size_t>(target.columns.first + end)] == coordinate)
      ++end;
    Angles part = angles;
    part.out = target.out + begin * element_bytes(target.dtype);
    part.radians_high += begin;
    part.radians_low += begin;
    part.columns = end - begin;
    part.position = span.coordinates[coordinate].value;
    kernel(part);
    begin = end;
  }
}

}  // namespace fastpe
