// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch.h"

#include <atomic>
#include <cstdlib>
#include <iterator>

#include "error.h"

#if defined(FASTPE_HAVE_AVX2)
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace fastpe {
namespace {

struct InstructionSet {
  const char* name;
  const Kernels* kernels;
  bool (*is_supported)();
};

bool always() { return true; }

#if defined(FASTPE_HAVE_AVX2)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// What the processor says about itself; all zero where it does not know the leaf.
Registers cpuid(unsigned leaf) {
  Registers r;
#if defined(_MSC_VER)
  int values[4];
  __cpuidex(values, static_cast<int>(leaf), 0);
  r = {static_cast<unsigned>(values[0]), static_cast<unsigned>(values[1]), static_cast<unsigned>(values[2]),
       static_cast<unsigned>(values[3])};
#else
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
#endif
  return r;
}

// Which register states the operating system saves; the processor's own word for AVX is not enough.
unsigned long long saved_states() {
  constexpr unsigned osxsave = 1u << 27;
  if ((cpuid(1).ecx & osxsave) == 0) return 0;
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
#endif
}

bool has_all(unsigned long long bits, unsigned long long wanted) { return (bits & wanted) == wanted; }

bool supports_avx2() {
  constexpr unsigned fma = 1u << 12, avx = 1u << 28, f16c = 1u << 29;
  constexpr unsigned avx2 = 1u << 5;
  return has_all(saved_states(), 0x06) && has_all(cpuid(1).ecx, fma | avx | f16c) && has_all(cpuid(7).ebx, avx2);
}

bool supports_avx512() {
  constexpr unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  return supports_avx2() && has_all(saved_states(), 0xe6) && has_all(cpuid(7).ebx, f | dq | bw | vl);
}

#endif

// Best first: the first supported one is used, and the last one always is.
constexpr InstructionSet instruction_sets[] = {
#if defined(FASTPE_HAVE_AVX512)
    {"avx512", &kernels_avx512, supports_avx512},
#endif
#if defined(FASTPE_HAVE_AVX2)
    {"avx2", &kernels_avx2, supports_avx2},
#endif
#if defined(FASTPE_HAVE_NEON)
    {"neon", &kernels_neon, always},
#endif
    {"baseline", &kernels_baseline, always},
};

std::atomic<const InstructionSet*> active{nullptr};

const InstructionSet& find(const std::string& name, const char* argument, Text remedy = {}) {
  std::string names;
  for (const InstructionSet& set : instruction_sets) {
    if (!set.is_supported()) continue;
    if (name == set.name) return set;
    names += (names.empty() ? "" : ", ") + std::string(set.name);
  }
  refuse_value(argument, {"is '", name, "'"}, {"an instruction set that this machine has: ", names}, remedy);
}

const InstructionSet& choose() {
  const char* wanted = std::getenv("FASTPE_ISA");
  if (wanted != nullptr && *wanted != '\0') return find(wanted, "FASTPE_ISA", {"correct it or unset it"});
  const InstructionSet* set = std::begin(instruction_sets);
  while (!set->is_supported()) ++set;
  return *set;
}

const InstructionSet& active_set() {
  const InstructionSet* set = active.load(std::memory_order_acquire);
  if (set == nullptr) {
    set = &choose();
    active.store(set, std::memory_order_release);
  }
  return *set;
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : instruction_sets) {
    if (set.is_supported()) names.emplace_back(set.name);
  }
  return names;
}

const char* active_instruction_set() { return active_set().name; }
const Kernels& active_kernels() { return *active_set().kernels; }
void use_instruction_set(const std::string& name) { active.store(&find(name, "name"), std::memory_order_release); }

}  // namespace fastpe
