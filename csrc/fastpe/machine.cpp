// SPDX-License-Identifier: BSD-3-Clause
#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "error.h"
#include "lazy.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <unistd.h>
#endif

namespace fastpe {
namespace {

// Returns 0 if the size is unknown. Linux counts L1's data cache as 0 and its instruction cache as 1.
std::int64_t cache_bytes([[maybe_unused]] int index) {
#if defined(__linux__)
  return 1024 * number_in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
#else
  return 0;
#endif
}

std::int64_t last_level_cache_bytes() {
  for (const int index : {3, 2}) {
    if (const std::int64_t bytes = cache_bytes(index); bytes > 0) return bytes;
  }
  return std::int64_t{16} * 1024 * 1024;
}

std::int64_t processor_count() {
#if defined(_WIN32)
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors;
#else
  return std::max<std::int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
#endif
}

// Server processors have 1.9 to 4 MiB of the last-level cache for each core.
constexpr std::int64_t processor_share_bytes = std::int64_t{4} * 1024 * 1024;

constexpr std::int64_t largest_near_cache_bytes = std::int64_t{64} * 1024 * 1024;

std::int64_t read_streaming_threshold_bytes() {
  const std::int64_t of_machine = std::min(last_level_cache_bytes(), processor_count() * processor_share_bytes);
  return number_in_environment("FASTPE_STREAMING_BYTES", 0, INT64_MAX, of_machine, "a number of bytes");
}

LazyNumber l1_bytes, l2_bytes, is_near, streaming_bytes;

}  // namespace

std::int64_t l1_cache_bytes() {
  return l1_bytes.get([] { return std::max(cache_bytes(0), std::int64_t{32} * 1024); });
}

std::int64_t l2_cache_bytes() {
  return l2_bytes.get([] { return std::max(cache_bytes(2), std::int64_t{512} * 1024); });
}

bool is_last_level_cache_near() {
  return is_near.get([] { return last_level_cache_bytes() <= largest_near_cache_bytes ? 1 : 0; }) != 0;
}

std::int64_t streaming_threshold_bytes() { return streaming_bytes.get(read_streaming_threshold_bytes); }

std::int64_t number_in_environment(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise,
                                   const char* expected) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  if (*end == '\0' && value >= least && value <= most && errno != ERANGE) return value;
  refuse_value(name, {"is '", text, "'"}, {expected}, {"correct it or unset it"});
}

std::int64_t number_in(const std::string& path) {
  long long number = 0;
  if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%lld", &number) != 1) number = 0;
    std::fclose(file);
  }
  return number;
}

std::int64_t memory_bytes() {
#if defined(_WIN32)
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? static_cast<std::int64_t>(status.ullTotalPhys) : 0;
#elif defined(_SC_PHYS_PAGES)
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : 0;
#else
  return 0;
#endif
}

}  // namespace fastpe
