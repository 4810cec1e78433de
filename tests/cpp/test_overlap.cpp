// SPDX-License-Identifier: BSD-3-Clause
// Which arrays share memory: all strides of two small views, against the sets of their bytes.
#include <bitset>
#include <cstdint>
#include <vector>

#include "check.h"
#include "fastpe/checks/array_view.h"

namespace {

using namespace fastpe;

constexpr std::size_t memory_bytes = 128, middle = memory_bytes / 2;
char memory[memory_bytes];

struct View {
  std::ptrdiff_t shape[2], strides_bytes[2];
  DType dtype;
  std::bitset<memory_bytes> bytes;
  bool has_repeated_bytes = false;

  View(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, DType e)
      : shape{rows, columns}, strides_bytes{row_stride, column_stride}, dtype(e) {
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      for (std::ptrdiff_t j = 0; j < columns; ++j) {
        for (std::ptrdiff_t byte = 0; byte < element_bytes(e); ++byte) {
          const auto at =
              static_cast<std::size_t>(static_cast<std::ptrdiff_t>(middle) + i * row_stride + j * column_stride + byte);
          has_repeated_bytes = has_repeated_bytes || bytes[at];
          bytes.set(at);
        }
      }
    }
  }
  ArrayView at(std::ptrdiff_t offset) const {
    ArrayView view;
    view.data = memory + middle + offset;
    view.shape = shape;
    view.strides_bytes = strides_bytes;
    view.name = "x";
    view.axes = 2;
    view.dtype = dtype;
    return view;
  }
};

std::vector<View> all_views(DType dtype, std::ptrdiff_t largest_stride) {
  std::vector<View> views;
  for (std::ptrdiff_t rows = 0; rows <= 3; ++rows) {
    for (std::ptrdiff_t columns = 1; columns <= 3; ++columns) {
      for (std::ptrdiff_t row_stride = -largest_stride; row_stride <= largest_stride; ++row_stride) {
        for (std::ptrdiff_t column_stride = -largest_stride; column_stride <= largest_stride; ++column_stride) {
          views.emplace_back(rows, columns, row_stride, column_stride, dtype);
        }
      }
    }
  }
  return views;
}

}  // namespace

int main() {
  const std::vector<View> bytes = all_views(DType::int8, 5), halves = all_views(DType::float16, 5);
  for (const std::vector<View>* views : {&bytes, &halves}) {
    for (const View& view : *views) CHECK(!is_nested(view.at(0)) || !view.has_repeated_bytes);
  }
  CHECK(is_nested(View(2, 3, -3, 1, DType::int8).at(0)));
  CHECK(is_nested(View(3, 2, 2, 6, DType::float16).at(0)));
  for (const View& a : bytes) {
    for (std::size_t i = 0; i < halves.size(); i += 7) {  // a number prime to those of shapes and strides
      const View& b = halves[i];
      for (std::ptrdiff_t offset = -12; offset <= 12; ++offset) {
        const auto shifted =
            offset < 0 ? b.bytes >> static_cast<std::size_t>(-offset) : b.bytes << static_cast<std::size_t>(offset);
        const Overlap model = (a.bytes & shifted).any() ? Overlap::some : Overlap::none;
        const bool is_right = overlap_of(a.at(0), b.at(offset)) == model && overlap_of(b.at(offset), a.at(0)) == model;
        CHECK(is_right);
      }
    }
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
