// SPDX-License-Identifier: BSD-3-Clause
#include "team.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "cache_line.h"
#include "lazy.h"
#include "machine.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define FASTPE_HAS_FORK 1
#endif

namespace fastpe {
namespace {

// The calling thread checks for this long without a pause whether the others have finished, and then now and then.
constexpr auto attentive_wait = std::chrono::milliseconds(5);
constexpr auto nap = std::chrono::microseconds(100);

// GNU OpenMP keeps a pool of threads for every thread that ever opened a team. At most this many threads may become
// owners of one; the calls of all others run serially, as do calls that find a team at work.
constexpr int max_team_owners = 4;

std::atomic<int> team_owners{0};
std::atomic<bool> team_is_busy{false};
TeamPolicy policy;  // changed only by the thread that holds team_is_busy

struct TeamOwnership {
  int pool_threads = 0;  // threads of this thread's last team; 0: it owns none
  ~TeamOwnership() {
    if (pool_threads > 0) team_owners.fetch_sub(1);
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
  ownership.pool_threads = 0;
}

// This watches forks from load time on, whichever library opens teams: other libraries of the process may share the
// OpenMP run-time, and with it this thread's pool.
[[maybe_unused]] const int watches_forks = pthread_atfork(nullptr, nullptr, after_fork_in_child);
#endif

// Whether `count` threads can be started at this moment: GNU OpenMP ends the process if one cannot.
bool can_start_threads(int count) {
  std::mutex all_started;
  std::vector<std::thread> threads;
  bool can_start = true;
#if defined(__linux__)
  std::vector<std::atomic<long>> ids;
#endif
  {
    const std::lock_guard<std::mutex> hold(all_started);
    try {
#if defined(__linux__)
      ids = std::vector<std::atomic<long>>(static_cast<std::size_t>(count));
#endif
      threads.reserve(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
#if defined(__linux__)
          ids[static_cast<std::size_t>(i)].store(syscall(SYS_gettid));
#endif
          const std::lock_guard<std::mutex> wait(all_started);
        });
      }
    } catch (const std::exception&) {
      can_start = false;
    }
  }
  for (std::thread& thread : threads) thread.join();
#if defined(__linux__)
  // A thread that has been joined still counts against the limits for a moment. Another one may get its number.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
  for (const std::atomic<long>& id : ids) {
    while (id.load() != 0 && syscall(SYS_tgkill, getpid(), id.load(), 0) == 0) {
      if (std::chrono::steady_clock::now() > deadline) break;
      std::this_thread::yield();
    }
  }
#endif
  return can_start;
}

#if defined(CLOCK_THREAD_CPUTIME_ID)
TeamPolicy::Clock::duration duration_of(const timespec& time) {
  return std::chrono::duration_cast<TeamPolicy::Clock::duration>(std::chrono::seconds(time.tv_sec) +
                                                                 std::chrono::nanoseconds(time.tv_nsec));
}
#endif

// The processor time that this thread has used; always 0 on systems without such a clock.
TeamPolicy::Clock::duration processor_time() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) return duration_of(time);
#endif
  return TeamPolicy::Clock::duration(0);
}

// How much processor_time() may lack: a tick of that clock, which some systems count in many milliseconds.
TeamPolicy::Clock::duration processor_time_step() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  timespec step;
  if (clock_getres(CLOCK_THREAD_CPUTIME_ID, &step) == 0) return duration_of(step);
#endif
  return std::chrono::hours(24);  // longer than any call
}

// The right to open a team of at most `threads` threads.
class Team {
 public:
  explicit Team(int threads) {
    if (threads <= 1 || survived_fork || omp_in_parallel() != 0) return;
    opened_ = TeamPolicy::Clock::now();
    if (!policy.wants_team(opened_)) return;
    if (threads > ownership.pool_threads) threads = std::min(threads, omp_get_num_procs());
    if (threads <= 1 || team_is_busy.exchange(true, std::memory_order_acquire)) return;
    processor_time_before_ = processor_time();
    if (take_ownership(threads)) {
      threads_ = threads;
    } else {
      team_is_busy.store(false, std::memory_order_release);
    }
  }
  ~Team() {
    if (!is_open()) return;
    const auto now = TeamPolicy::Clock::now();
    policy.record(now, now - opened_, alone_);
    team_is_busy.store(false, std::memory_order_release);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  bool is_open() const { return threads_ > 1; }
  int threads() const { return threads_; }

  // Estimates how long the calling thread alone would have taken, from the share of the work that it has done by `now`.
  // The time in which it had no processor does not count: a helper that was woken on it may be the reason.
  void set_callers_share(TeamPolicy::Clock::time_point now, double share) {
    const auto used = std::min<TeamPolicy::Clock::duration>(
        now - opened_, processor_time() - processor_time_before_ + processor_time_step());
    const std::chrono::duration<double, TeamPolicy::Clock::period> alone = used / share;
    alone_ = std::chrono::duration_cast<TeamPolicy::Clock::duration>(alone);
  }

 private:
  // A team that is larger than the last one starts threads, and a smaller one ends some.
  bool take_ownership(int threads) {
    const bool is_new = ownership.pool_threads == 0;
    if (is_new && team_owners.fetch_add(1) >= max_team_owners) {
      team_owners.fetch_sub(1);
      return false;
    }
    if (threads > ownership.pool_threads && !can_start_threads(threads - 1)) {
      if (is_new) team_owners.fetch_sub(1);
      const auto now = TeamPolicy::Clock::now();
      policy.record(now, now - opened_, TeamPolicy::Clock::duration(0));
      return false;
    }
    ownership.pool_threads = threads;
    return true;
  }

  int threads_ = 1;
  TeamPolicy::Clock::time_point opened_;
  TeamPolicy::Clock::duration processor_time_before_{0};
  TeamPolicy::Clock::duration alone_{0};  // still 0 where it has done nothing: such a team is a loss
};

// The steps of [0, count), in contiguous shares. There may be no memory for them.
class Shares {
 public:
  Shares(std::int64_t count, std::int64_t step, int shares)
      : step_(step), count_(shares), shares_(new (std::nothrow) Share[static_cast<std::size_t>(shares)]) {
    if (!are_made()) return;
    const std::int64_t each = count / shares, rest = count % shares;
    for (int i = 0; i < shares; ++i) {
      Share& share = at(i);
      share.next = each * i + std::min<std::int64_t>(rest, i);
      share.end = share.next + each + (i < rest ? 1 : 0);
    }
  }
  bool are_made() const { return shares_ != nullptr; }

  // Calls on_step(begin, end) with steps that nobody has claimed, those of share `first` first, until it returns false.
  template <class OnStep>
  void claim(int first, const OnStep& on_step) {
    for (int i = 0; i < count_; ++i) {
      Share& share = at((first + i) % count_);
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const std::int64_t begin = share.next.fetch_add(step_, std::memory_order_relaxed);
        if (begin < share.end && !on_step(begin, std::min(begin + step_, share.end))) return;
      }
    }
  }

 private:
  struct alignas(cache_line_bytes) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  Share& at(int i) { return shares_[static_cast<std::size_t>(i)]; }

  std::int64_t step_;
  int count_;
  std::unique_ptr<Share[]> shares_;
};

#if defined(__linux__)
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
    char line[4096], controllers[4096], path[4096];
    while (std::fgets(line, sizeof line, file) != nullptr) {  // number:controllers:path
      if (std::sscanf(line, "%*d::%[^\n]", path) == 1) groups[2] = root + path;
      if (std::sscanf(line, "%*d:%[^:]:%[^\n]", controllers, path) != 2) continue;
      if (("," + std::string(controllers) + ",").find(",cpu,") != std::string::npos) groups[3] = root + "/cpu" + path;
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
#else
int quota_of_control_groups() { return 0; }
#endif

// 0 where no quota counts. Read once: a server's environment does not change under it.
LazyNumber quota;

}  // namespace

int threads_of_openmp() {
  // What the user says stands; otherwise the quota counts, which OpenMP does not know.
  const auto most = static_cast<int>(
      quota.get([] { return std::getenv("OMP_NUM_THREADS") != nullptr ? 0 : quota_of_control_groups(); }));
  const int threads = omp_get_max_threads();
  return std::max(1, most > 0 ? std::min(threads, most) : threads);
}

TeamRun run_by_team(std::int64_t count, std::int64_t step, int threads, Interruption* interruption,
                    void (*body)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context) {
  Team team(threads);
  if (!team.is_open()) return TeamRun::not_opened;
  Shares shares(count, step, threads);
  if (!shares.are_made()) return TeamRun::not_opened;

  std::atomic<std::int64_t> done{0};
  std::atomic<int> finished{0};
  const auto member = [&](int thread, int thread_count) {
    std::int64_t done_here = 0;
    const auto first = static_cast<int>(static_cast<std::int64_t>(threads) * thread / thread_count);
    shares.claim(first, [&](std::int64_t begin, std::int64_t end) {
      body(context, begin, end, thread);
      done_here += end - begin;
      const std::int64_t done_by_all = done.fetch_add(end - begin, std::memory_order_relaxed) + end - begin;
      if (interruption == nullptr) return true;
      if (thread == 0 && done_by_all < count) interruption->poll();
      return !interruption->is_seen();
    });
    finished.fetch_add(1, std::memory_order_relaxed);
    if (thread > 0) return;
    const auto end_of_work = TeamPolicy::Clock::now();
    if (done_here > 0) {
      team.set_callers_share(end_of_work, static_cast<double>(done_here) / static_cast<double>(count));
    }
    // Others may still be at a long step, or not have come: this thread looks, and leaves the processor to them.
    while (finished.load(std::memory_order_relaxed) < thread_count) {
      if (interruption != nullptr && done.load(std::memory_order_relaxed) < count && interruption->poll()) return;
      if (TeamPolicy::Clock::now() - end_of_work < attentive_wait) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(nap);
      }
    }
  };
#pragma omp parallel num_threads(team.threads())
  member(omp_get_thread_num(), omp_get_num_threads());
  return interruption == nullptr || !interruption->is_seen() ? TeamRun::done : TeamRun::stopped;
}

}  // namespace fastpe
