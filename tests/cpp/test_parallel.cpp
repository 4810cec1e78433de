// SPDX-License-Identifier: BSD-3-Clause
// Every index is done once whatever the threads and callers; calls can be stopped; forked children do not hang.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/parallel.h"

#if defined(__unix__) || defined(__APPLE__)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#define FASTPE_TEST_FORK 1
#endif

namespace {

using namespace fastpe;

void every_index_is_done_once() {
  for (const std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
    for (const std::int64_t step : {1, 3, 1000}) {
      for (const int threads : {1, 2, 3, 16}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
        std::atomic<bool> wrong{false};
        const bool completed =
            parallel_for(count, step, threads, nullptr, [&](std::int64_t begin, std::int64_t end, int thread) {
              if (end - begin > step || thread < 0 || thread >= threads) wrong = true;
              for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
            });
        CHECK(completed && !wrong);
        for (const auto& each : done) CHECK_EQUAL(each.load(), 1);
      }
    }
  }
}

bool sums_are_right(int threads) {
  constexpr std::int64_t count = 1000;
  std::atomic<std::int64_t> sum{0};
  parallel_for(count, 10, threads, nullptr, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum == count * (count - 1) / 2;
}

int operating_system_threads() {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  int threads = 0;
  for (char line[256]; std::fgets(line, sizeof line, file) != nullptr;) {
    if (std::sscanf(line, "Threads: %d", &threads) == 1) break;
  }
  std::fclose(file);
  return threads;
}

void many_callers_share_few_threads() {
  constexpr int callers = 32, threads_of_each = 4, owners = 4;
  std::atomic<int> failures{0}, most_threads{0}, ready{0};
  const int before = operating_system_threads();
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < callers) std::this_thread::yield();
      for (int repeat = 0; repeat < 50; ++repeat) {
        if (!sums_are_right(threads_of_each)) ++failures;
        const int now = operating_system_threads();
        for (int most = most_threads; now > most && !most_threads.compare_exchange_weak(most, now);) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(failures.load(), 0);
  std::printf("%d callers of %d threads: at most %d threads in all\n", callers, threads_of_each, most_threads.load());
  CHECK(most_threads <= before + callers + owners * (threads_of_each - 1));
}

class StopAtOnce final : public Interruption {
 public:
  int asked = 0;

 private:
  bool requested() override {
    ++asked;
    return true;
  }
};

void a_long_call_can_be_stopped() {
  for (const int threads : {1, 2}) {
    StopAtOnce interruption;
    std::atomic<std::int64_t> steps{0};
    const auto start = std::chrono::steady_clock::now();
    const bool completed = parallel_for(2000, 1, threads, &interruption, [&](std::int64_t, std::int64_t, int) {
      ++steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    const auto elapsed = std::chrono::steady_clock::now() - start;
    CHECK(!completed);
    CHECK_EQUAL(interruption.asked, 1);
    CHECK(steps < 2000);
    CHECK(elapsed < std::chrono::seconds(1));
  }
}

void a_call_can_be_stopped_after_its_callers_part() {
  if (!has_openmp()) return;  // the caller's part is the whole
  StopAtOnce interruption;
  std::atomic<std::int64_t> steps{0};
  const bool completed = parallel_for(4000, 1, 2, &interruption, [&](std::int64_t, std::int64_t, int thread) {
    if (thread == 0) return;
    ++steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  CHECK(!completed);
  CHECK_EQUAL(interruption.asked, 1);
  CHECK(steps < 1000);
}

void a_call_within_a_call_is_serial() {
  std::atomic<int> wrong{0};
  parallel_for(4, 1, 2, nullptr, [&](std::int64_t, std::int64_t, int) {
    if (!sums_are_right(4)) ++wrong;
  });
  CHECK_EQUAL(wrong.load(), 0);
}

#if defined(FASTPE_TEST_FORK)

// Whether a forked child's `body` returns true within 20 seconds.
template <class Body>
bool child_succeeds(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  for (int i = 0; i < 2000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

bool works_after_fork() {
  if (!sums_are_right(2)) return false;
  bool in_new_thread = false;
  std::thread([&] { in_new_thread = sums_are_right(2); }).join();
  return in_new_thread;
}

void children_of_a_process_with_other_openmp_regions_work() {
  int members = 0;
#if defined(_OPENMP)
#pragma omp parallel num_threads(2) reduction(+ : members)
#endif
  members += 1;
  CHECK(members >= 1);
  CHECK(child_succeeds(works_after_fork));
}

void children_and_grandchildren_work() {
  CHECK(sums_are_right(2));
  for (int i = 0; i < 20; ++i) {
    CHECK(child_succeeds([] { return works_after_fork() && child_succeeds(works_after_fork); }));
  }
}

void children_work_while_another_thread_is_in_a_team() {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      parallel_for(8, 1, 2, nullptr, [](std::int64_t, std::int64_t, int) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      });
    }
  });
  for (int i = 0; i < 20; ++i) CHECK(child_succeeds(works_after_fork));
  stop = true;
  other.join();
}

#endif

}  // namespace

int main(int argc, char**) {
  // With an argument, no forks: user-mode QEMU ends a child that starts threads where its parent had some.
#if defined(FASTPE_TEST_FORK)
  const bool forks = argc == 1;
  if (forks) children_of_a_process_with_other_openmp_regions_work();
#else
  static_cast<void>(argc);
#endif
  every_index_is_done_once();
  a_call_within_a_call_is_serial();
  a_long_call_can_be_stopped();
  a_call_can_be_stopped_after_its_callers_part();
#if defined(FASTPE_TEST_FORK)
  if (forks) {
    children_and_grandchildren_work();
    children_work_while_another_thread_is_in_a_team();
  }
#endif
  many_callers_share_few_threads();
  return testing::failures() > 0 ? 1 : 0;
}
