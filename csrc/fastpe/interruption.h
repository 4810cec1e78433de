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
  // The same, once in `elements_at_once` elements of arrays that are read from end to end, which take some
  // milliseconds.
  bool poll_after(std::int64_t elements) {
    passed_ += elements;
    if (passed_ < elements_at_once) return false;
    passed_ = 0;
    return poll();
  }
  bool is_seen() const { return is_seen_.load(std::memory_order_relaxed); }

  static constexpr std::int64_t elements_at_once = 1 << 20;

 protected:
  ~Interruption() = default;
  virtual bool requested() = 0;

 private:
  static constexpr auto interval = std::chrono::milliseconds(50);
  std::atomic<bool> is_seen_{false};
  std::int64_t passed_ = 0;
  inline static thread_local std::chrono::steady_clock::time_point last_asked_{};  // in any call of this thread
};

struct Interrupted {};

inline void throw_if_interrupted(Interruption* interruption, std::int64_t elements = Interruption::elements_at_once) {
  if (interruption != nullptr && interruption->poll_after(elements)) throw Interrupted{};
}

}  // namespace fastpe
