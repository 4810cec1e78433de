// SPDX-License-Identifier: BSD-3-Clause
#include "hardware.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "cpuid.h"

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

// Returns 0 if the size is unknown. Linux counts the first level's data cache as 0 and its instruction cache as 1.
std::int64_t cache_bytes([[maybe_unused]] int index) {
#if defined(__linux__)
  const std::string path = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size";
  if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
    long long kibibytes = 0;
    const int fields = std::fscanf(file, "%lldK", &kibibytes);
    std::fclose(file);
    if (fields == 1 && kibibytes > 0) return kibibytes * 1024;
  }
#endif
  return 0;
}

std::int64_t last_level_cache_bytes() {
  for (const int index : {3, 2}) {
    if (const std::int64_t bytes = cache_bytes(index); bytes > 0) return bytes;
  }
  return std::int64_t{16} * 1024 * 1024;
}

// Server processors have 1.9 to 4 MiB of the last-level cache for each core.
constexpr std::int64_t processor_share_bytes = std::int64_t{4} * 1024 * 1024;

// Kinds that were found to differ. Zen 1 and 2 count as Zen 3, and so does an AMD processor whose AVX-512 is hidden, as
// a hypervisor may do. Intel's processors and Zen 5 are among the others.
enum class Kind { zen3, zen4, other };

Kind kind_of_processor() {
#if defined(FASTPE_HAVE_CPUID)
  const Registers vendor = cpuid(0);  // "AuthenticAMD", in this order of registers
  if (vendor.ebx != 0x68747541 || vendor.edx != 0x69746e65 || vendor.ecx != 0x444d4163) return Kind::other;
  constexpr unsigned avx512f = 1u << 16;
  if ((cpuid(7).ebx & avx512f) == 0) return Kind::zen3;
  constexpr unsigned family_of_zen4 = 0x19;
  const unsigned version = cpuid(1).eax;
  const unsigned family = ((version >> 8) & 0xf) + ((version >> 20) & 0xff);
  if (family == family_of_zen4) return Kind::zen4;
#endif
  return Kind::other;
}

}  // namespace

std::int64_t first_level_cache_bytes() {
  static const std::int64_t bytes = std::max(cache_bytes(0), std::int64_t{32} * 1024);
  return bytes;
}

std::int64_t second_level_cache_bytes() {
  static const std::int64_t bytes = std::max(cache_bytes(2), std::int64_t{512} * 1024);
  return bytes;
}

std::int64_t streaming_threshold_bytes() {
  static const std::int64_t bytes = [] {
    const char* text = std::getenv("FASTPE_STREAMING_BYTES");
    if (text == nullptr || *text == '\0') {
      const std::int64_t processors = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
      return std::min(last_level_cache_bytes(), processors * processor_share_bytes);
    }
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text, &end, 10);
    if (*end != '\0' || value < 0 || errno == ERANGE) {
      throw std::invalid_argument("FASTPE_STREAMING_BYTES is '" + std::string(text) +
                                  "', expected a number of bytes; correct it or unset it");
    }
    return static_cast<std::int64_t>(value);
  }();
  return bytes;
}

const ProcessorTraits& processor_traits() {
  static const ProcessorTraits traits = [] {
    const std::int64_t streaming = std::min<std::int64_t>(streaming_threshold_bytes(), INT64_MAX / 4);
    const std::int64_t last_level = last_level_cache_bytes();
    ProcessorTraits t;
    t.cached_array_bytes = streaming / 2;
    t.resident_tile_bytes = first_level_cache_bytes() / 8 * 3;
    t.largest_read_bytes = t.cached_array_bytes;
    t.largest_plain_bytes = t.largest_plain_bytes_of_team = streaming;
    switch (kind_of_processor()) {
      case Kind::zen3:
        t.cached_array_bytes = t.largest_read_bytes = std::min(streaming / 2 * 3, last_level / 8 * 3);
        // The second level is as fast as the first, and x is read sooner the longer it runs on: sums and rotations take
        // 0.87 to 1 of the time. On Zen 4, sums would take up to 1.3.
        t.resident_tile_bytes = second_level_cache_bytes() / 4;
        t.reads_rows_from_last_level = true;
        t.streams_row_by_row = true;
        t.fetches_batches_itself = true;
        break;
      case Kind::zen4:
        // Of 12 MiB, sums take from 0.7 to twice of the time without fetching, by what others use of the last level.
        t.cached_array_bytes = std::min(streaming, last_level);
        t.largest_read_bytes = std::min(streaming / 2 * 3, last_level / 8 * 3);
        t.reads_rows_from_last_level = true;
        t.fetches_sequences_itself = true;
        // Encodings that are stored plainly take, of the time of streaming: with one thread 0.8 to 1.2 for 12 to 17
        // MiB, and 1 to 1.5 from 32 MiB on; with two 0.44 to 0.85 for 12 to 24 MiB, and 0.6 to 1 for 32 MiB, which the
        // last level may hold. From 48 MiB on, two threads take 0.9 to 1.4 with AVX-512. With AVX2, whose streaming
        // stores are halves of lines, they take 0.65 to 1 up to 64 MiB, and then 0.95 to 1.05. Angles take 0.85 to 1.05
        // with one thread, up to 16 MiB, and 0.55 to 0.95 with two, up to 32 MiB.
        t.largest_plain_bytes = streaming < last_level ? 2 * streaming : streaming;
        t.largest_plain_bytes_of_team = std::max(streaming, std::min(4 * streaming, last_level));
        t.fetches_items_close = false;
        t.has_unaligned_sums = true;
        t.adds_ready_rows_in_halves = true;
        t.rotates_in_halves = true;
        t.streams_rotations = true;
        break;
      case Kind::other: break;
    }
    return t;
  }();
  return traits;
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
