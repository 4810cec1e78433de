// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace fastpe {

// A value that is made on first use, without a lock: a fork would leave a locked lock behind in the child. Threads that
// come at the same time each make a value, and the first one that is finished is kept.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  ~Lazy() { delete value_.load(); }
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;

  bool is_made() const { return value_.load(std::memory_order_acquire) != nullptr; }

  template <class Make>
  const T& get(const Make& make) const {
    if (const T* value = value_.load(std::memory_order_acquire)) return *value;
    std::unique_ptr<const T> made = std::make_unique<const T>(make());
    const T* expected = nullptr;
    if (value_.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *expected;
  }

 private:
  mutable std::atomic<const T*> value_{nullptr};
};

// The same for a number, not negative, of the process: it stands at namespace scope, where nothing need be initialised.
class LazyNumber {
 public:
  template <class Read>
  std::int64_t get(const Read& read) {
    std::int64_t number = number_.load(std::memory_order_relaxed);
    if (number < 0) number_.store(number = read(), std::memory_order_relaxed);
    return number;
  }

 private:
  std::atomic<std::int64_t> number_{-1};
};

}  // namespace fastpe
