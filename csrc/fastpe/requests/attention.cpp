// SPDX-License-Identifier: BSD-3-Clause
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fastpe/checks/placement.h"
#include "fastpe/error.h"
#include "fastpe/sources/sinusoid/wide.h"

namespace fastpe {
namespace {

template <class Value>
void store(char* at, Value value) {
  std::memcpy(at, &value, sizeof value);
}

// Of any strides, to be read, or with `is_out`, written: int32 or int64.
class Integers {
 public:
  explicit Integers(const ArrayView& array, bool is_out = false)
      : data_(array.data), dtype_(array.dtype), axes_(axes_of(array)) {
    if (is_out && dtype_ != DType::int32 && dtype_ != DType::int64) refuse_dtype(array, {"int32 or int64"});
    if (dtype_ != DType::boolean) require_numbers(array, Numbers::integers);
    is_out ? require_writable(array, nullptr) : require_readable(array);
  }
  std::int64_t operator[](std::int64_t index) const {
    const char* const at = data_ + axes_.offset_of(index);
    return dtype_ == DType::boolean ? *at != 0 : NumbersView{at, dtype_, 0, 0}.integer_at(0, 0);
  }
  void set(std::int64_t index, std::int64_t value) const {
    char* const at = data_ + axes_.offset_of(index);
    dtype_ == DType::int32 ? store(at, static_cast<std::int32_t>(value)) : store(at, value);
  }

 private:
  char* data_;
  DType dtype_;
  Axes axes_;
};

void require_number(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) refuse_value(name, {"is ", value}, {least, " to ", most});
}

// The least distance of each bucket but the first. Powers of integers are compared by their logarithms, whose error is
// below 2^-170; those of powers that differ are taken to differ by more than 2^-128.
std::vector<std::int64_t> bucket_starts(std::int64_t single, std::int64_t steps, std::int64_t max_distance) {
  const auto log = [](std::int64_t integer) { return log2_of(static_cast<double>(integer)); };
  std::vector<std::int64_t> starts;
  for (std::int64_t distance = 1; distance <= single; ++distance) starts.push_back(distance);
  const SignedWide log_single = log(single), log_farthest = log(max_distance);
  for (std::int64_t t = 1; t < steps; ++t) {
    const SignedWide least = log_farthest * Wide::of_integer(t) + log_single * Wide::of_integer(steps - t);
    const auto reaches = [&](std::int64_t distance) {
      const SignedWide above = log(distance) * Wide::of_integer(steps) - least;
      return !above.negative || above.magnitude < Wide::of_integer(1).scaled(-128);
    };
    const double ratio = static_cast<double>(max_distance) / static_cast<double>(single);
    const double near =
        static_cast<double>(single) * std::pow(ratio, static_cast<double>(t) / static_cast<double>(steps));
    std::int64_t start = std::clamp(static_cast<std::int64_t>(near), single, max_distance);
    while (!reaches(start)) ++start;
    while (start > single && reaches(start - 1)) --start;
    starts.push_back(start);
  }
  return starts;
}

float nearest_float(Wide number) {
  const double leading = number.take_leading_double();
  return static_cast<float>(number.is_zero() ? leading : Wide::made_odd(leading));
}

}  // namespace

void relative_buckets(const BucketsRequest& request) {
  const std::int64_t directions = request.is_bidirectional ? 2 : 1;
  require_number("num_buckets", request.num_buckets, 2 * directions, 1 << 12);
  const std::int64_t count = request.num_buckets / directions, single = count / 2, farthest = request.max_distance;
  require_number("max_distance", farthest, single + 1, std::int64_t{1} << 31);
  const Integers positions(request.relative_positions), out(request.out, true);
  require_shape(request.out, Shape(request.relative_positions));
  require_disjoint(request.out, request.relative_positions);
  const std::vector<std::int64_t> starts = bucket_starts(single, count - single, farthest);
  for (std::int64_t i = 0; i < request.out.element_count(); ++i) {
    const std::int64_t position = std::clamp(positions[i], -farthest, farthest);
    const std::int64_t distance = request.is_bidirectional ? std::abs(position) : std::max<std::int64_t>(-position, 0);
    const auto bucket = std::upper_bound(starts.begin(), starts.end(), distance) - starts.begin();
    out.set(i, bucket + (request.is_bidirectional && position > 0 ? count : 0));
  }
}

void alibi_slopes(double max_bias, const ArrayView& out) {
  constexpr double largest_bias = 100.0;
  if (!(0.0 < max_bias && max_bias <= largest_bias)) {
    refuse_value("max_bias", {"is ", max_bias}, {"a number above 0, up to ", largest_bias});
  }
  if (out.dtype != DType::float32 && out.dtype != DType::float64) refuse_dtype(out, {"float32 or float64"});
  if (out.axes != 1 || out.last() < 1 || out.last() > 1 << 20) {
    refuse_shape(out, {"[number of heads], 1 to 2**20"});
  }
  require_writable(out, nullptr);
  const std::int64_t heads = out.last();
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t step = head < power ? 2 * (head + 1) : 2 * (head - power) + 1;
    const Wide exponent = Wide::of_double(max_bias) * Wide::of_integer(step) / Wide::of_integer(2 * power);
    const Wide slope = exp2_of({exponent, true}).value();
    char* const at = out.data + head * out.last_stride_bytes();
    out.dtype == DType::float32 ? store(at, nearest_float(slope)) : store(at, slope.nearest_double());
  }
}

void position_ids(const ArrayView& mask, const ArrayView& out) {
  const Integers valid(mask), ids(out, true);
  if (mask.axes != 1 && mask.axes != 2) refuse_shape(mask, {"[L] or [B, S]"});
  const bool has_same_rows = mask.axes == 1 || (out.axes == 2 && out.shape[0] == mask.shape[0]);
  if (out.axes != mask.axes || !has_same_rows || out.last() > mask.last()) {
    refuse_shape(out, {"that of the mask, ", shape_text(mask), ", or its last columns"});
  }
  if (out.dtype == DType::int32 && mask.last() > INT32_MAX) refuse_dtype(out, {"int64"});
  require_disjoint(out, mask);
  require_zeros_and_ones(mask);
  const std::int64_t columns = out.last(), before = mask.last() - columns, rows = mask.axes == 2 ? mask.shape[0] : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t counted = 0;
    for (std::int64_t l = -before; l < columns; ++l) {
      const bool is_valid = valid[row * mask.last() + before + l] != 0;
      if (l >= 0) ids.set(row * columns + l, is_valid ? counted : 1);
      counted += is_valid ? 1 : 0;
    }
  }
}

}  // namespace fastpe
