// SPDX-License-Identifier: BSD-3-Clause
// How a long call is stopped: the calling thread checks now and then whether to stop, and all threads see the answer.
// When they have stopped, the calling thread throws Interrupted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fastpe {

// The calling thread may poll as often as it likes: its caller is asked now and then.
class Interruption {
 public:
  bool poll() {
    if (is_seen()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_asked_ < interval) return false;
    last_asked_ = now;
    if (requested()) is_seen_.store(true, std::memory_order_relaxed);
    return is_seen();
  }
  bool is_seen() const { return is_seen_.load(std::memory_order_relaxed); }

 protected:
  ~Interruption() = default;
  virtual bool requested() = 0;

 private:
  static constexpr auto interval = std::chrono::milliseconds(50);
  std::atomic<bool> is_seen_{false};
  inline static thread_local std::chrono::steady_clock::time_point last_asked_{};  // in any call of this thread
};

struct Interrupted {};

inline void throw_if_interrupted(Interruption* interruption) {
  if (interruption != nullptr && interruption->poll()) throw Interrupted{};
}

// Checks for an interruption once in `elements_at_once` elements of an array that is read from end to end. They take
// some milliseconds.
class Poller {
 public:
  static constexpr std::int64_t elements_at_once = 1 << 20;

  explicit Poller(Interruption* interruption) : interruption_(interruption) {}

  void pass(std::int64_t elements) {
    passed_ += elements;
    if (passed_ < elements_at_once) return;
    passed_ = 0;
    throw_if_interrupted(interruption_);
  }

 private:
  Interruption* interruption_;
  std::int64_t passed_ = 0;
};

}  // namespace fastpe
