// SPDX-License-Identifier: BSD-3-Clause
// How vectors reach memory: alignment, prefetches and non-temporal stores.
#pragma once

#include "elements.inl"
#include "fastpe/cache_line.h"

namespace fastpe {
namespace {

template <class T>
constexpr auto vector_bytes = static_cast<std::int64_t>(sizeof(typename T::Element)) * float_lanes;

// Prefetches a vector of a row, if it begins a cache line. GCC drops calls of functions that only prefetch, unless they
// are always inlined.
template <class T>
FASTPE_ALWAYS_INLINE void prefetch_vector(const char* row, std::int64_t column) {
  const std::int64_t at_byte = column * static_cast<std::int64_t>(sizeof(typename T::Element));
  if (vector_bytes<T> < cache_line_bytes && at_byte % cache_line_bytes >= vector_bytes<T>) return;
  for (std::int64_t line = 0; line < vector_bytes<T>; line += cache_line_bytes) {
    FASTPE_PREFETCH_TO_READ(row + at_byte + line);
  }
}

// Narrow vectors straddle few cache lines, and would need much code to store whole ones: `expand` does not align them,
// and the files that define them need no stream().
constexpr bool has_wide_vectors = float_lanes >= 8;

// Non-temporal stores write whole lines: a cache line, or a vector where that is longer.
template <class T>
constexpr std::int64_t line_bytes = vector_bytes<T> < cache_line_bytes ? cache_line_bytes : vector_bytes<T>;
template <class T>
constexpr std::int64_t line_columns = line_bytes<T> / static_cast<std::int64_t>(sizeof(typename T::Element));
template <class T>
constexpr bool can_stream = has_wide_vectors && !is_16_bit(T::dtype);

// How many elements lie between p and the next multiple of `alignment_bytes`.
template <class T>
inline std::int64_t elements_to_alignment(const void* p, std::int64_t alignment_bytes) {
  const auto alignment = static_cast<std::uintptr_t>(alignment_bytes);
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(p) % alignment;
  return static_cast<std::int64_t>((beyond == 0 ? 0 : alignment - beyond) / sizeof(typename T::Element));
}

template <class T>
void copy_non_temporal(const Copying& c) {
  using Element = typename T::Element;
  auto* const out = reinterpret_cast<Element*>(c.out);
  const auto* const x = reinterpret_cast<const Element*>(c.x);
  const std::int64_t count = c.bytes / static_cast<std::int64_t>(sizeof(Element));
  const std::int64_t aligned = elements_to_alignment<T>(out, line_bytes<T>);
  std::int64_t at = aligned < count ? aligned : count;
  copy_elements(out, x, at);
  for (; at + line_columns<T> <= count; at += line_columns<T>) {
    for (std::int64_t i = at; i < at + line_columns<T>; i += float_lanes) T::stream(out + i, T::load(x + i));
  }
  copy_elements(out + at, x + at, count - at);
}

}  // namespace
}  // namespace fastpe
