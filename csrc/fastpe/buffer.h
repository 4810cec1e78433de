// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "cache_line.h"

namespace fastpe {

// Memory that the core owns. It begins on a cache line's boundary, and is zeroed or uninitialized.
template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t count) : AlignedBuffer(uninitialized(count)) {
    std::memset(static_cast<void*>(data()), 0, bytes_of(count));
  }
  static AlignedBuffer uninitialized(std::int64_t count) {
    AlignedBuffer buffer;
    buffer.memory_.reset(static_cast<T*>(::operator new(bytes_of(count), alignment)));
    return buffer;
  }
  T* data() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t alignment{cache_line_bytes};
  // No object is larger than PTRDIFF_MAX bytes; on a 32-bit machine that is far less than an int64 can count.
  static std::size_t bytes_of(std::int64_t count) {
    constexpr std::int64_t most = PTRDIFF_MAX / static_cast<std::int64_t>(sizeof(T));
    if (count < 0 || count > most) throw std::bad_alloc();
    return static_cast<std::size_t>(count) * sizeof(T);
  }
  struct Delete {
    void operator()(T* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<T, Delete> memory_;
};

}  // namespace fastpe
