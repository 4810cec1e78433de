// SPDX-License-Identifier: BSD-3-Clause
// Every index is done once whatever the threads and callers; teams that lose time are left out for a while; calls can
// be stopped. How many threads there are, and that forked children do not hang, tests/reliability tries.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

#include "check.h"
#include "fastpe/parallel.h"

#if defined(_OPENMP)
#include <omp.h>
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
              if (end > count || end - begin > step || thread < 0 || thread >= threads) {
                wrong = true;
                return;
              }
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

void many_callers_do_their_own_work() {
  constexpr int callers = 32;
  std::atomic<int> failures{0}, ready{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < callers) std::this_thread::yield();
      for (int repeat = 0; repeat < 50; ++repeat) failures += !sums_are_right(4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(failures.load(), 0);
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
    const bool completed = parallel_for(2000, 1, threads, &interruption, [&](std::int64_t, std::int64_t, int) {
      ++steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    CHECK(!completed);
    CHECK_EQUAL(interruption.asked, 1);
    CHECK(steps < 2000);
  }
}

int processors() {
#if defined(_OPENMP)
  return omp_get_num_procs();
#else
  return 1;
#endif
}

template <class Condition>
bool comes_true(const Condition& condition, std::chrono::seconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Calls attempt(has_come) until it sets has_come, which says that a team's second thread came while the first one
// waited for it: after a team that lost time there is none for up to a second.
template <class Attempt>
void with_a_second_thread(const Attempt& attempt) {
  std::atomic<bool> has_come{false};
  for (int i = 0; i < 100 && !has_come; ++i) attempt(has_come);
  CHECK(has_come);
}

bool is_true_soon(const std::atomic<bool>& condition) {
  return comes_true([&condition] { return condition.load(); }, std::chrono::seconds(1));
}

void a_call_can_be_stopped_after_its_callers_part() {
  if (processors() == 1) return;  // the caller's part is the whole
  with_a_second_thread([](std::atomic<bool>& has_come) {
    StopAtOnce interruption;
    bool stopped = true;
    parallel_for(64, 1, 2, &interruption, [&](std::int64_t, std::int64_t, int thread) {
      if (thread == 0) {
        is_true_soon(has_come);
      } else {
        has_come = true;
        stopped = comes_true([&] { return interruption.is_seen(); }, std::chrono::seconds(20));
      }
    });
    CHECK(stopped);
    CHECK_EQUAL(interruption.asked, 1);
  });
}

void shares_of_a_thread_that_is_held_up_are_done_by_others() {
  if (processors() == 1) return;
  with_a_second_thread([](std::atomic<bool>& has_come) {
    std::atomic<int> done{0};
    bool all_others_done = true;
    parallel_for(64, 1, 2, nullptr, [&](std::int64_t, std::int64_t, int thread) {
      if (thread == 0) {
        if (done == 0) is_true_soon(has_come);
      } else if (!has_come.exchange(true)) {
        all_others_done = comes_true([&] { return done == 63; }, std::chrono::seconds(20));
      }
      ++done;
    });
    CHECK(all_others_done);
    CHECK_EQUAL(done.load(), 64);
  });
}

using std::chrono::microseconds;
using std::chrono::milliseconds;

int members_of_next_team() {
  std::atomic<int> members{1};
#if defined(_OPENMP)
  parallel_for(2, 1, 2, nullptr, [&](std::int64_t, std::int64_t, int) { members = omp_get_num_threads(); });
#endif
  return members;
}

#if defined(CLOCK_THREAD_CPUTIME_ID)
void a_caller_without_a_processor_has_not_worked() {
  if (processors() == 1) return;
  with_a_second_thread([](std::atomic<bool>& has_come) {
    std::atomic<bool> has_begun{false};
    parallel_for(2, 1, 2, nullptr, [&](std::int64_t, std::int64_t, int thread) {
      if (thread > 0) {
        has_come = true;
        is_true_soon(has_begun);
      } else if (!has_begun.exchange(true) && is_true_soon(has_come)) {
        std::this_thread::sleep_for(milliseconds(50));
      }
    });
    if (has_come) CHECK_EQUAL(members_of_next_team(), 1);
  });
}
#endif

const TeamPolicy::Clock::time_point noon{std::chrono::hours(12)};

// How long calls do without teams from `now` on.
microseconds pause_of(const TeamPolicy& policy, TeamPolicy::Clock::time_point now) {
  microseconds pause{0};
  while (!policy.wants_team(now + pause)) pause += microseconds(100);
  return pause;
}

microseconds pause_after(TeamPolicy& policy, TeamPolicy::Clock::time_point now, microseconds team, microseconds alone) {
  policy.record(now, team, alone);
  return pause_of(policy, now);
}

void teams_that_gain_time_are_followed_by_others() {
  TeamPolicy policy;
  CHECK(policy.wants_team(noon));
  for (int i = 0; i < 3; ++i) CHECK(pause_after(policy, noon, microseconds(60), microseconds(100)) == microseconds(0));
  CHECK(pause_after(policy, noon, microseconds(100), microseconds(100)) == microseconds(0));
}

void pauses_after_lost_slices_double_up_to_a_second() {
  TeamPolicy policy;
  const auto lose = [&policy] { return pause_after(policy, noon, milliseconds(5), milliseconds(1)); };
  for (const int expected_ms : {16, 32, 64, 128, 256, 512, 1000, 1000}) CHECK(lose() == milliseconds(expected_ms));
  // A larger loss is not waited out for less than four times as long.
  TeamPolicy other;
  CHECK(pause_after(other, noon, milliseconds(3), milliseconds(1)) == milliseconds(8));
  CHECK(pause_after(other, noon, milliseconds(21), milliseconds(1)) == milliseconds(80));
  CHECK(pause_after(other, noon, std::chrono::hours(1), milliseconds(1)) == std::chrono::seconds(1));
}

void pauses_shrink_while_teams_gain_time() {
  TeamPolicy policy;
  const auto lose = [&policy] { return pause_after(policy, noon, milliseconds(5), milliseconds(1)); };
  const auto later = noon + std::chrono::seconds(2);
  for (int i = 0; i < 10; ++i) lose();
  CHECK(lose() == std::chrono::seconds(1));
  CHECK(policy.wants_team(later));
  for (int i = 0; i < 3; ++i) CHECK(pause_after(policy, later, microseconds(60), microseconds(100)).count() == 0);
  CHECK(lose() == milliseconds(250));
  for (int i = 0; i < 64; ++i) policy.record(later, microseconds(60), microseconds(100));
  CHECK(lose() == milliseconds(16));
}

// On a quiet machine a pause lets the other threads fall asleep: were the next team's loss one more reason to pause,
// there would be no end to it.
void a_loss_that_waking_explains_ends_the_doubling() {
  TeamPolicy policy;
  for (int i = 0; i < 10; ++i) policy.record(noon, milliseconds(5), milliseconds(1));
  const auto later = noon + std::chrono::seconds(2);
  CHECK(pause_after(policy, later, microseconds(200), microseconds(100)) == microseconds(400));
  CHECK(pause_after(policy, later, microseconds(200), microseconds(100)) == microseconds(400));
  CHECK(pause_after(policy, later, milliseconds(5), milliseconds(1)) == milliseconds(500));
}

void a_call_within_a_call_is_serial() {
  std::atomic<int> wrong{0};
  parallel_for(4, 1, 2, nullptr, [&](std::int64_t, std::int64_t, int) {
    if (!sums_are_right(4)) ++wrong;
  });
  CHECK_EQUAL(wrong.load(), 0);
}

}  // namespace

int main() {
  every_index_is_done_once();
  a_call_within_a_call_is_serial();
  a_long_call_can_be_stopped();
  a_call_can_be_stopped_after_its_callers_part();
  shares_of_a_thread_that_is_held_up_are_done_by_others();
#if defined(CLOCK_THREAD_CPUTIME_ID)
  a_caller_without_a_processor_has_not_worked();
#endif
  teams_that_gain_time_are_followed_by_others();
  pauses_after_lost_slices_double_up_to_a_second();
  pauses_shrink_while_teams_gain_time();
  a_loss_that_waking_explains_ends_the_doubling();
  many_callers_do_their_own_work();
  return testing::failures() > 0 ? 1 : 0;
}
