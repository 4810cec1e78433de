// SPDX-License-Identifier: BSD-3-Clause
// A process forks while another thread is inside of the first reading of the machine's files: its child reads them
// anew, and waits for nothing.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "check.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"

namespace {

std::atomic<bool> is_reading{false}, may_read{true};

void l1() { fastpe::l1_cache_bytes(); }
void l2() { fastpe::l2_cache_bytes(); }
void last_level() { fastpe::is_last_level_cache_near(); }
void threshold() { fastpe::streaming_threshold_bytes(); }
void quota() { fastpe::default_thread_count(); }

constexpr unsigned most_seconds = 20;  // SIGALRM ends whoever waits for longer

// The status with which a child ends that calls body().
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(most_seconds);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// In a process of its own, which has read nothing yet.
void fork_while_reading(void (*read)()) {
  may_read = false;
  std::thread reader(read);
  while (!is_reading) std::this_thread::yield();
  const int status = status_of_child([read] {
    may_read = true;
    read();
  });
  may_read = true;
  reader.join();
  _exit(status == 0 ? 0 : 1);
}

}  // namespace

// The C library's, of which the core's calls come here first.
extern "C" FILE* fopen(const char* path, const char* mode) {
  is_reading = true;
  while (!may_read) std::this_thread::yield();
  using Open = FILE*(const char*, const char*);
  return reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "fopen"))(path, mode);
}

int main() {
  unsetenv("FASTPE_STREAMING_BYTES");
  unsetenv("FASTPE_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  for (void (*const read)() : {l1, l2, last_level, threshold, quota}) {
    if (read == quota && !fastpe::has_openmp()) continue;  // nobody asks for it
    CHECK_EQUAL(status_of_child([read] { fork_while_reading(read); }), 0);
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
