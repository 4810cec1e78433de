// SPDX-License-Identifier: BSD-3-Clause
// stream: copies elements past the caches, whole cache lines at a time.
//
// It reads and writes exactly `count` elements, with any alignment; out is apart from in. The parts of lines at both
// ends are stored as usual. Narrow rows that have no gap between them are made in the cache and then streamed as one
// range: with a seam for each of them, rows of 256 bytes would take half as long again.
#pragma once

#include "elements.inl"
#include "memory.inl"

namespace fastpe {
namespace {

template <class T>
inline void stream_elements(typename T::Element* out, const typename T::Element* in, std::int64_t count) {
  const std::int64_t aligned = elements_to_alignment<T, line_bytes<T>>(out);
  std::int64_t i = aligned < count ? aligned : count;
  copy_elements(out, in, i);
  for (; i + line_columns<T> <= count; i += line_columns<T>) {
    for (std::int64_t j = i; j < i + line_columns<T>; j += float_lanes) T::stream(out + j, T::load(in + j));
  }
  copy_elements(out + i, in + i, count - i);
}

template <class T>
void stream(const Streaming& s) {
  using Element = typename T::Element;
  stream_elements<T>(reinterpret_cast<Element*>(s.out), reinterpret_cast<const Element*>(s.in), s.count);
}

}  // namespace
}  // namespace fastpe
