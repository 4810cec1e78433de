// SPDX-License-Identifier: BSD-3-Clause
// How vectors reach memory: alignment, fetching ahead, and stores past the caches.
#pragma once

#include "elements.inl"
#include "fastpe/cache_line.h"

// Fetches into the first-level or second-level cache. The address may lie outside of every array.
#if defined(__GNUC__)
#define FASTPE_PREFETCH_FIRST_LEVEL(address) __builtin_prefetch((address), 0, 3)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) __builtin_prefetch((address), 0, 2)
#elif defined(_M_X64)
#define FASTPE_PREFETCH_FIRST_LEVEL(address) _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T1)
#else
#define FASTPE_PREFETCH_FIRST_LEVEL(address) static_cast<void>(address)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) static_cast<void>(address)
#endif

namespace fastpe {
namespace {

template <class T>
constexpr auto vector_bytes = static_cast<std::int64_t>(sizeof(typename T::Element)) * float_lanes;

// Narrow vectors straddle few cache lines, and would need much code to store whole ones.
constexpr bool has_wide_vectors = float_lanes >= 8;
// Whether a vector of float32 is a whole cache line.
constexpr bool has_vectors_of_lines = vector_bytes<WideFloat32> == cache_line_bytes;

// A streaming store's unit: a cache line, or a vector where that is longer.
template <class T>
constexpr std::int64_t line_bytes = has_wide_vectors && vector_bytes<T> < 64 ? 64 : vector_bytes<T>;
template <class T>
constexpr std::int64_t line_columns = line_bytes<T> / static_cast<std::int64_t>(sizeof(typename T::Element));

// How many elements lie between p and the next multiple of `alignment` bytes: by default, one for streaming stores.
template <class T, std::int64_t alignment_bytes = vector_bytes<T>>
inline std::int64_t elements_to_alignment(const void* p) {
  constexpr auto alignment = static_cast<std::uintptr_t>(alignment_bytes);
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(p) % alignment;
  return static_cast<std::int64_t>((beyond == 0 ? 0 : alignment - beyond) / sizeof(typename T::Element));
}

template <class Element>
inline Element* advance(Element* p, std::int64_t bytes) {
  return reinterpret_cast<Element*>(reinterpret_cast<char*>(p) + bytes);
}
template <class Element>
inline const Element* advance(const Element* p, std::int64_t bytes) {
  return reinterpret_cast<const Element*>(reinterpret_cast<const char*>(p) + bytes);
}

// How memory is used: as it comes; fetching ahead what is read, and what is written elsewhere, into the second-level
// cache; fetching ahead what is read into the first level; or storing past the caches.
enum class Access { plain, fetching, fetching_close, streaming };

// Fetches the line of an address that will be read soon.
template <Access access>
FASTPE_ALWAYS_INLINE void prefetch_line(const char* address) {
  if constexpr (access == Access::fetching_close) {
    FASTPE_PREFETCH_FIRST_LEVEL(address);
  } else {
    FASTPE_PREFETCH_SECOND_LEVEL(address);
  }
}

// While the vector at `column` is computed, fetches the same columns of the row at `next`, once for each cache line.
// The row's first vector may begin within a line, as it does where rows are stored on vectors' boundaries.
template <class T, Access access>
FASTPE_ALWAYS_INLINE void prefetch_columns(const char* next, std::int64_t column) {
  const std::int64_t at = column * static_cast<std::int64_t>(sizeof(typename T::Element));
  if (vector_bytes<T> < cache_line_bytes && at % cache_line_bytes >= vector_bytes<T>) return;
  for (std::int64_t line = 0; line < vector_bytes<T>; line += cache_line_bytes) prefetch_line<access>(next + at + line);
}

template <class T, Access access>
inline void put(typename T::Element* p, typename T::Vector v) {
  if constexpr (access == Access::streaming) {
    T::stream(p, v);
  } else {
    T::store(p, v);
  }
}

// A streaming store's unit where the elements do not matter.
constexpr std::int64_t byte_line = line_bytes<WideFloat32>;

inline void stream_byte_line(char* out, const char* from) {
  using T = WideFloat32;
  for (std::int64_t i = 0; i < byte_line; i += vector_bytes<T>) {
    T::stream(reinterpret_cast<float*>(out + i), T::load(reinterpret_cast<const float*>(from + i)));
  }
}

}  // namespace
}  // namespace fastpe
