// SPDX-License-Identifier: BSD-3-Clause
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define FASTPE_HAS_FORK 1
#endif

namespace fastpe {
namespace {

constexpr std::int64_t bytes_per_thread = 512 * 1024;
constexpr auto interruption_interval = std::chrono::milliseconds(50);

// GNU OpenMP keeps a pool of threads for every thread that ever opened a team. At most this many threads may become
// owners of one; the calls of all others run serially, as do calls that find a team at work.
constexpr int max_team_owners = 4;

std::atomic<int> team_owners{0};
std::atomic<bool> team_is_busy{false};

struct TeamOwnership {
  bool owned = false;
  ~TeamOwnership() {
    if (owned) team_owners.fetch_sub(1);
  }
};
thread_local TeamOwnership ownership;

// In a forked child the forking thread's pool is gone, but GNU OpenMP would wait for it: this thread stays serial.
// Threads that the child starts afterwards are not affected.
thread_local bool survived_fork = false;

#if defined(FASTPE_HAS_FORK)
void after_fork_in_child() {
  survived_fork = true;
  team_is_busy.store(false);
  team_owners.store(0);
  ownership.owned = false;
}

// From load time on, whoever opens teams: other libraries of the process may share the OpenMP run-time, and with it
// this thread's pool.
[[maybe_unused]] const int watches_forks = pthread_atfork(nullptr, nullptr, after_fork_in_child);
#endif

class Team {
 public:
  explicit Team(int threads) {
#if defined(_OPENMP)
    if (threads <= 1 || survived_fork || omp_in_parallel() != 0) return;
    if (team_is_busy.exchange(true, std::memory_order_acquire)) return;
    if (!ownership.owned) {
      if (team_owners.fetch_add(1) >= max_team_owners) {
        team_owners.fetch_sub(1);
        team_is_busy.store(false, std::memory_order_release);
        return;
      }
      ownership.owned = true;
    }
    is_open_ = true;
#else
    static_cast<void>(threads);
#endif
  }
  ~Team() {
    if (is_open_) team_is_busy.store(false, std::memory_order_release);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  bool is_open() const { return is_open_; }

 private:
  bool is_open_ = false;
};

int positive_integer(const char* name, const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1 || value > 1 << 16) {
    throw std::invalid_argument(std::string(name) + " is '" + text +
                                "', expected a positive integer; correct it or unset it");
  }
  return static_cast<int>(value);
}

// The control group's processor quota, rounded up; 0 where there is none.
int quota_of_control_group() {
#if defined(__linux__)
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return 0;
  long long quota = 0, period = 0;
  const int fields = std::fscanf(file, "%lld %lld", &quota, &period);
  std::fclose(file);
  if (fields == 2 && quota > 0 && period > 0) return static_cast<int>((quota + period - 1) / period);
#endif
  return 0;
}

int threads_of_openmp() {
#if defined(_OPENMP)
  int threads = omp_get_max_threads();
  // What the user says stands; otherwise the quota counts, which OpenMP does not know.
  static const int quota = std::getenv("OMP_NUM_THREADS") != nullptr ? 0 : quota_of_control_group();
  if (quota > 0) threads = std::min(threads, quota);
  return std::max(threads, 1);
#else
  return 1;
#endif
}

}  // namespace

bool has_openmp() {
#if defined(_OPENMP)
  return true;
#else
  return false;
#endif
}

int default_thread_count() {
  // Read once: a server's environment does not change under it.
  static const int from_environment = [] {
    const char* text = std::getenv("FASTPE_NUM_THREADS");
    return text == nullptr || *text == '\0' ? 0 : positive_integer("FASTPE_NUM_THREADS", text);
  }();
  if (from_environment > 0) return has_openmp() ? from_environment : 1;
  return threads_of_openmp();
}

int threads_for(std::int64_t bytes, int max_threads) {
  if (bytes < 2 * bytes_per_thread) return 1;
  return static_cast<int>(std::min<std::int64_t>(bytes / bytes_per_thread, max_threads));
}

bool parallel_for(std::int64_t count, std::int64_t step, int threads, Interruption* interruption,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context) {
  std::atomic<bool> stop{false};
  const auto part = [&](int thread, int thread_count) {
    const std::int64_t begin = count / thread_count * thread + std::min<std::int64_t>(count % thread_count, thread);
    const std::int64_t end = begin + count / thread_count + (thread < count % thread_count ? 1 : 0);
    auto last_asked = std::chrono::steady_clock::now();
    for (std::int64_t at = begin; at < end; at += step) {
      body(context, at, std::min(at + step, end), thread);
      if (stop.load(std::memory_order_relaxed)) return;
      if (thread == 0 && interruption != nullptr && at + step < end) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_asked >= interruption_interval) {
          last_asked = now;
          if (interruption->requested()) stop.store(true, std::memory_order_relaxed);
        }
      }
    }
  };
  const Team team(threads);
  if (team.is_open()) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
    part(omp_get_thread_num(), omp_get_num_threads());
#endif
  } else {
    part(0, 1);
  }
  return !stop.load();
}

}  // namespace fastpe
