// SPDX-License-Identifier: BSD-3-Clause
// interleave: out[2k] = first[k], out[2k + 1] = second[k]. It moves elements, and never changes a bit of one.
//
// Method: vectors of both are joined and stored, plainly or past the caches; what is left of a row moves one by one.
// Where vectors are parts of lines, only long rows that stand alone are streamed: each row's end leaves a line half
// written, which takes 3 times as long (Zen 5, AVX2).
// It reads and writes exactly `columns` and 2 * columns elements of each row, with any alignment; out is apart from
// both.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

template <class Element>
FASTPE_ALWAYS_INLINE void interleave_elements(Element* out, const Element* first, const Element* second,
                                              std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) {
    out[2 * k] = first[k];
    out[2 * k + 1] = second[k];
  }
}

// Interleaves the vectors between `begin` and `end`, and returns where they end.
template <class T, Access access>
FASTPE_ALWAYS_INLINE std::int64_t interleave_vectors(typename T::Element* out, const typename T::Element* first,
                                                     const typename T::Element* second, std::int64_t begin,
                                                     std::int64_t end) {
  std::int64_t k = begin;
  for (; k + float_lanes <= end; k += float_lanes) {
    auto a = in_pair_order(T::load(first + k));
    auto b = in_pair_order(T::load(second + k));
    join_pairs(a, b);
    put<T, access>(out + 2 * k, a);
    put<T, access>(out + 2 * k + float_lanes, b);
  }
  return k;
}

template <class T>
void interleave_rows(const Interleaving& i) {
  using Element = typename T::Element;
  for (std::int64_t row = 0; row < i.rows; ++row) {
    auto* const out = reinterpret_cast<Element*>(i.out + row * i.out_row_stride_bytes);
    const auto* const first = reinterpret_cast<const Element*>(i.first + row * i.row_stride_bytes);
    const auto* const second = reinterpret_cast<const Element*>(i.second + row * i.row_stride_bytes);
    std::int64_t done = 0;
    if constexpr (can_stream(T::dtype)) {
      const std::int64_t to_alignment = elements_to_alignment<T, line_bytes<T>>(out);
      constexpr std::int64_t most_columns_to_store = 32 * line_columns<T>;
      const bool has_few_ends = has_vectors_of_lines || (i.rows == 1 && i.columns > most_columns_to_store);
      if (has_wide_vectors && has_few_ends && i.streaming && to_alignment % 2 == 0) {
        constexpr std::int64_t line_pairs = line_columns<T> / 2;
        const std::int64_t lead_columns = to_alignment / 2 < i.columns ? to_alignment / 2 : i.columns;
        const std::int64_t whole_lines = (i.columns - lead_columns) / line_pairs * line_pairs;
        interleave_elements(out, first, second, 0, lead_columns);
        done = interleave_vectors<T, Access::streaming>(out, first, second, lead_columns, lead_columns + whole_lines);
      } else {
        done = interleave_vectors<T, Access::plain>(out, first, second, 0, i.columns);
      }
    }
    interleave_elements(out, first, second, done, i.columns);
  }
}

}  // namespace
}  // namespace fastpe
