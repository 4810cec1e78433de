// SPDX-License-Identifier: BSD-3-Clause
// Overlap of strided arrays against the sets of their bytes.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "fastpe/overlap.h"

namespace {

using fastpe::is_nested;
using fastpe::Overlap;
using fastpe::overlap_of;
using fastpe::StridedArray;

char memory[1 << 20];

// Owns its shape and strides; data is an offset into `memory`.
struct View {
  std::ptrdiff_t offset;
  std::size_t item_bytes;
  std::vector<std::ptrdiff_t> shape, strides;

  StridedArray array() const {
    return {memory + offset, item_bytes, static_cast<std::ptrdiff_t>(shape.size()), shape.data(), strides.data()};
  }

  std::multiset<std::ptrdiff_t> bytes() const {
    std::multiset<std::ptrdiff_t> elements{offset};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::multiset<std::ptrdiff_t> longer;
      for (const std::ptrdiff_t element : elements) {
        for (std::ptrdiff_t i = 0; i < shape[axis]; ++i) longer.insert(element + i * strides[axis]);
      }
      elements = longer;
    }
    std::multiset<std::ptrdiff_t> result;
    for (const std::ptrdiff_t element : elements) {
      for (std::size_t byte = 0; byte < item_bytes; ++byte) result.insert(element + static_cast<std::ptrdiff_t>(byte));
    }
    return result;
  }
};

Overlap expected_overlap(const View& a, const View& b) {
  const std::multiset<std::ptrdiff_t> of_a = a.bytes();
  for (const std::ptrdiff_t byte : b.bytes()) {
    if (of_a.count(byte) > 0) return Overlap::some;
  }
  return Overlap::none;
}

bool has_bytes_of_their_own(const View& view) {
  const std::multiset<std::ptrdiff_t> bytes = view.bytes();
  return std::set<std::ptrdiff_t>(bytes.begin(), bytes.end()).size() == bytes.size();
}

void random_views_overlap_where_they_have_a_byte_in_common() {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int counts[2] = {0, 0};
  for (int trial = 0; trial < 30'000; ++trial) {
    const int unit = 1 << pick(0, 2);
    const auto view = [&] {
      View v{pick(400, 460), std::size_t{1} << pick(0, 3), {}, {}};
      for (int axes = pick(0, 3); axes > 0; --axes) {
        v.shape.push_back(pick(0, 60) == 0 ? 0 : pick(1, 4));
        v.strides.push_back(unit * pick(-24, 24));
      }
      return v;
    };
    const View a = view(), b = view();
    const Overlap expected = expected_overlap(a, b);
    CHECK(overlap_of(a.array(), b.array()) == expected);
    CHECK(overlap_of(b.array(), a.array()) == expected);
    ++counts[expected == Overlap::some ? 1 : 0];
    if (is_nested(a.array())) CHECK(has_bytes_of_their_own(a));
  }
  CHECK(counts[0] > 1000 && counts[1] > 1000);
}

void slices_of_one_buffer_are_told_apart_exactly() {
  // Columns and heads of [batch, row, 3, head, width], as one projection of queries, keys and values has them.
  std::mt19937 random(2);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const std::ptrdiff_t extents[] = {2, 3, 3, 2, 6};
  int counts[2] = {0, 0};
  for (int trial = 0; trial < 5'000; ++trial) {
    const auto slice = [&] {
      View v{4096, 4, {}, {}};
      std::ptrdiff_t stride = 4 * 2 * 3 * 3 * 2 * 6;
      for (const std::ptrdiff_t extent : extents) {
        stride /= extent;
        const int begin = pick(0, static_cast<int>(extent) - 1), end = pick(begin + 1, static_cast<int>(extent));
        const bool is_descending = pick(0, 3) == 0;
        v.offset += (is_descending ? end - 1 : begin) * stride;
        v.shape.push_back(end - begin);
        v.strides.push_back(is_descending ? -stride : stride);
      }
      return v;
    };
    const View a = slice(), b = slice();
    const Overlap expected = expected_overlap(a, b);
    CHECK(overlap_of(a.array(), b.array()) == expected);
    CHECK(is_nested(a.array()));
    ++counts[expected == Overlap::some ? 1 : 0];
  }
  CHECK(counts[0] > 500 && counts[1] > 500);
}

// Each stride is one more than what the smaller ones cover: two such arrays branch at every one of their ten axes.
void ten_nested_axes_are_decided() {
  View a{0, 1, {}, {}};
  std::ptrdiff_t stride = 3;
  for (int axis = 0; axis < 10; ++axis) {
    a.shape.push_back(2);
    a.strides.push_back(stride);
    stride = 2 * stride + 1;
  }
  CHECK(is_nested(a.array()));
  int counts[2] = {0, 0};
  for (std::ptrdiff_t shift = 0; shift < stride; ++shift) {
    View b = a;
    b.offset = shift;
    const Overlap found = overlap_of(a.array(), b.array());
    CHECK(found != Overlap::unknown);
    ++counts[found == Overlap::some ? 1 : 0];
    if (shift % 97 == 0) CHECK(found == expected_overlap(a, b));
  }
  CHECK(counts[0] > 0 && counts[1] > 0);
}

constexpr bool has_64_bits = sizeof(std::ptrdiff_t) == 8;

void irregular_strides_take_bounded_work() {
  // A subset-sum problem: exponential for an exact search. The addresses are never read.
  View a{0, 1, {}, {}}, b{0, 1, {}, {}};
  std::mt19937_64 random(3);
  for (View* const view : {&a, &b}) {
    for (int axis = 0; axis < 16; ++axis) {
      view->shape.push_back(2);
      view->strides.push_back(static_cast<std::ptrdiff_t>(random() % (std::uint64_t{1} << 40)) + 2);
    }
  }
  int unknown = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::ptrdiff_t shift = 0; shift < 40; ++shift) {
    View moved = b;
    moved.offset = shift * 501 + 1;
    if (overlap_of(a.array(), moved.array()) == Overlap::unknown) ++unknown;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  // Sums of 32 bits lie so close together that the search ends soon.
  CHECK(unknown > 0 || !has_64_bits);
  CHECK(taken.count() < 4.0);
}

void strides_beyond_any_memory_are_unknown() {
  const std::ptrdiff_t huge = PTRDIFF_MAX / 2;
  const View a{0, 4, {3, 3}, {huge, -huge}}, b{0, 4, {4}, {4}};
  CHECK(overlap_of(a.array(), b.array()) == Overlap::unknown || !has_64_bits);
  const View one{64, 4, {1, 2}, {huge, 4}}, empty{0, 4, {0, 3}, {huge, huge}};
  CHECK(overlap_of(one.array(), b.array()) == Overlap::none);
  CHECK(overlap_of(empty.array(), b.array()) == Overlap::none);
  CHECK(is_nested(one.array()) && is_nested(empty.array()));
}

}  // namespace

int main() {
  random_views_overlap_where_they_have_a_byte_in_common();
  slices_of_one_buffer_are_told_apart_exactly();
  ten_nested_axes_are_decided();
  irregular_strides_take_bounded_work();
  strides_beyond_any_memory_are_unknown();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
