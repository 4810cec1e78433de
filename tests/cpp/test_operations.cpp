// SPDX-License-Identifier: BSD-3-Clause
// Sums and rotations of any part of an array, as work units take them, in every order of its axes and of those of where
// the results go: against plain loops over small integers, which are exact.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/copy.h"
#include "fastpe/operations/rotate.h"

namespace {

using namespace fastpe;

// A sequence of float32 fills more than a cache line, so that transposed arrays count as such.
constexpr std::int64_t outer = 2, inner = 3, seq_len = 18, columns = 4, items = outer * inner;

// [outer, inner, seq_len, columns], with these axes in another order in memory.
struct Array {
  std::vector<float> numbers;
  std::int64_t strides[4];

  explicit Array(const int* order) : numbers(outer * inner * seq_len * columns) {
    constexpr std::int64_t lengths[] = {outer, inner, seq_len, columns};
    std::int64_t stride = 1;
    for (int i = 3; i >= 0; stride *= lengths[order[i--]]) strides[order[i]] = stride;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 31);
  }
  std::size_t at(std::int64_t item, std::int64_t l, std::int64_t c) const {
    return static_cast<std::size_t>(item / inner * strides[0] + item % inner * strides[1] + l * strides[2] +
                                    c * strides[3]);
  }
  Rows rows() {
    Rows rows;
    rows.data = reinterpret_cast<char*>(numbers.data());
    rows.seq_len = seq_len;
    rows.seq_stride_bytes = strides[2] * 4;
    rows.columns = columns;
    rows.column_stride_bytes = strides[3] * 4;
    rows.add_items(outer, strides[0] * 4);
    rows.add_items(inner, strides[1] * 4);
    rows.walk_inside();
    return rows;
  }
};

// Whether of_element(item, l, c) is what the operation makes of each part's elements, and the others stay.
template <class Make, class OfElement>
void check_parts(const int* order, const int* out_order, const Make& make, const OfElement& of_element) {
  float table[seq_len][columns];
  std::int64_t offsets_bytes[seq_len];
  for (int l = 0; l < seq_len; ++l) offsets_bytes[l] = l * columns * 4;
  for (int i = 0; i < seq_len * columns; ++i) table[i / columns][i % columns] = static_cast<float>(i % 7 - 3);
  for (std::int64_t begin = 0; begin < items; ++begin) {
    for (std::int64_t end = begin + 1; end <= items; ++end) {
      for (const std::int64_t l : {0, 1, 17}) {
        for (const std::int64_t count : {1, 16, 17, 18}) {
          if (l + count > seq_len || (order != out_order && (l > 0 || end < items))) continue;
          const Array x(order);
          Array out(out_order), in_place(order);
          std::fill(out.numbers.begin(), out.numbers.end(), -1.0F);
          Array apart = out, model = out, model_in_place = x;
          for (std::int64_t item = begin; item < end; ++item) {
            for (std::int64_t row = l; row < l + count; ++row) {
              for (std::int64_t c = 0; c < columns; ++c) {
                model.numbers[out.at(item, row, c)] = of_element(x, table[row], item, row, c);
                model_in_place.numbers[x.at(item, row, c)] = of_element(x, table[row], item, row, c);
              }
            }
          }
          alignas(64) char scratch[transposed_bytes];
          for (const bool has_offsets : {false, true}) {
            const Tile tile = {{reinterpret_cast<const char*>(table[has_offsets ? 0 : l]), columns * 4, 4,
                                has_offsets ? offsets_bytes + l : nullptr},
                               DType::float32,
                               {l, count},
                               {0, columns}};
            const Access access{false, has_offsets};
            Array source = x;
            apart = out;
            in_place = x;
            make(source.rows(), apart.rows(),
                 [&](const Operation& operation) { operation.apply(tile, {begin, end - begin}, access, scratch); });
            make(in_place.rows(), in_place.rows(),
                 [&](const Operation& operation) { operation.apply(tile, {begin, end - begin}, access, scratch); });
            CHECK(apart.numbers == model.numbers);
            CHECK(in_place.numbers == model_in_place.numbers);
          }
        }
      }
    }
  }
}

// In arrays of these orders.
void check_operations(const int* order, const int* out_order) {
  check_parts(
      order, out_order,
      [](const Rows& x, const Rows& out, const auto& use) { use(Add({read_only(x), out}, outer, {2.0, 3.0}, false)); },
      [](const Array& x, const float* table, std::int64_t item, std::int64_t l, std::int64_t c) {
        return 2.0F * x.numbers[x.at(item, l, c)] + 3.0F * table[c];
      });
  for (const bool interleaved : {false, true}) {
    constexpr std::int64_t pairs = columns / 2;
    const Pairing pairing{pairs, interleaved, false, {{0, pairs}}};
    check_parts(
        order, out_order,
        [&pairing](const Rows& x, const Rows& out, const auto& use) {
          const ReadWrite array = heads_of(read_only(x), out);
          use(Rotate({&array, 1}, outer, pairing, false));
        },
        [interleaved](const Array& x, const float* table, std::int64_t item, std::int64_t l, std::int64_t c) {
          const std::int64_t k = interleaved ? c / 2 : c % pairs, step = interleaved ? 1 : pairs;
          const std::int64_t first = interleaved ? 2 * k : k;
          const float a = x.numbers[x.at(item, l, first)], b = x.numbers[x.at(item, l, first + step)];
          const float cosine = table[k], sine = table[pairs + k];
          return c == first ? a * cosine - b * sine : b * cosine + a * sine;
        });
  }
}

// From rows in any order to columns, whole cache lines and parts of them, at strides that take each other's place in L1
// and others.
template <class Element>
void check_copies() {
  constexpr std::int64_t rows = 70, row_elements = 75, bytes = sizeof(Element);
  std::vector<Element> from(rows * row_elements);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<Element>(i * 2654435761U);
  std::int64_t offsets_bytes[rows];
  for (std::int64_t row = 0; row < rows; ++row) offsets_bytes[row] = row * 29 % rows * row_elements * bytes;
  for (const std::int64_t stride_bytes : {1024, 648}) {
    for (const std::int64_t copied : {1, 33, 75}) {
      std::vector<char> to(static_cast<std::size_t>(row_elements * stride_bytes), 7), model = to;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < copied; ++c) {
          std::memcpy(model.data() + row * bytes + c * stride_bytes,
                      reinterpret_cast<const char*>(from.data()) + offsets_bytes[row] + c * bytes, sizeof(Element));
        }
      }
      const Block<const char> source{reinterpret_cast<const char*>(from.data()), 0, bytes, offsets_bytes};
      copy_block({to.data(), bytes, stride_bytes}, source, rows, copied, bytes);
      CHECK(to == model);
    }
  }
}

}  // namespace

int main() {
  check_copies<std::uint16_t>();
  check_copies<std::uint32_t>();
  check_copies<std::uint64_t>();
  int order[] = {0, 1, 2, 3}, out_order[] = {0, 1, 2, 3};
  do {
    check_operations(order, order);
    do check_operations(order, out_order);
    while (std::next_permutation(out_order, out_order + 4));
  } while (std::next_permutation(order, order + 4));
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
