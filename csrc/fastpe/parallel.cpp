// SPDX-License-Identifier: BSD-3-Clause
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

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
// The calling thread waits this long at full attention for others to finish, then looks after them now and then.
constexpr auto attentive_wait = std::chrono::milliseconds(5);
constexpr auto nap = std::chrono::microseconds(100);

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

#if defined(_OPENMP) && defined(__linux__)
long long number_in(const std::string& path) {
  long long number = 0;
  if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%lld", &number) != 1) number = 0;
    std::fclose(file);
  }
  return number;
}

// The processor quota of one control group, rounded up; 0 where it has none.
int quota_in(const std::string& group) {
  long long quota = 0, period = 0;
  if (std::FILE* const file = std::fopen((group + "/cpu.max").c_str(), "re")) {
    if (std::fscanf(file, "%lld %lld", &quota, &period) != 2) quota = 0;
    std::fclose(file);
  } else {  // version 1
    quota = number_in(group + "/cpu.cfs_quota_us");
    period = number_in(group + "/cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? static_cast<int>(std::min((quota + period - 1) / period, 1LL << 16)) : 0;
}

// The smallest quota of this process's control groups and of the outermost ones, which are all that a container sees.
int quota_of_control_groups() {
  const std::string root = "/sys/fs/cgroup";
  std::string groups[] = {root, root + "/cpu", "", ""};
  if (std::FILE* const file = std::fopen("/proc/self/cgroup", "re")) {
    char line[4096];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      const std::string text(line, std::strcspn(line, "\n"));  // number:controllers:path
      const std::size_t first = text.find(':');
      const std::size_t second = text.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = "," + text.substr(first + 1, second - first - 1) + ",";
      const std::string path = text.substr(second + 1);
      if (controllers == ",,") groups[2] = root + path;
      if (controllers.find(",cpu,") != std::string::npos) groups[3] = root + "/cpu" + path;
    }
    std::fclose(file);
  }
  int smallest = 0;
  for (const std::string& group : groups) {
    const int quota = group.empty() ? 0 : quota_in(group);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}
#elif defined(_OPENMP)
int quota_of_control_groups() { return 0; }
#endif

int threads_of_openmp() {
#if defined(_OPENMP)
  int threads = omp_get_max_threads();
  // What the user says stands; otherwise the quota counts, which OpenMP does not know.
  static const int quota = std::getenv("OMP_NUM_THREADS") != nullptr ? 0 : quota_of_control_groups();
  if (quota > 0) threads = std::min(threads, quota);
  return std::max(threads, 1);
#else
  return 1;
#endif
}

}  // namespace

bool Interruption::look() {
  if (is_seen()) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_asked_ < interruption_interval) return false;
  last_asked_ = now;
  if (requested()) is_seen_.store(true, std::memory_order_relaxed);
  return is_seen();
}

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
  std::atomic<int> parts_done{0};
  const auto part = [&](int thread, int thread_count) {
    const std::int64_t begin = count / thread_count * thread + std::min<std::int64_t>(count % thread_count, thread);
    const std::int64_t end = begin + count / thread_count + (thread < count % thread_count ? 1 : 0);
    for (std::int64_t at = begin; at < end; at += step) {
      body(context, at, std::min(at + step, end), thread);
      if (interruption == nullptr) continue;
      if (thread == 0 && at + step < end) interruption->look();
      if (interruption->is_seen()) break;
    }
    if (interruption == nullptr || thread_count == 1) return;
    parts_done.fetch_add(1, std::memory_order_relaxed);
    if (thread > 0) return;
    // Others may have much more to do than this thread had: while they work, it looks.
    const auto start = std::chrono::steady_clock::now();
    while (parts_done.load(std::memory_order_relaxed) < thread_count && !interruption->look()) {
      if (std::chrono::steady_clock::now() - start < attentive_wait) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(nap);
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
  return interruption == nullptr || !interruption->is_seen();
}

}  // namespace fastpe
