// SPDX-License-Identifier: BSD-3-Clause
// What an x86 processor says about itself.
#pragma once

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define FASTPE_HAVE_CPUID

#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace fastpe {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero where the processor does not know the leaf.
inline Registers cpuid(unsigned leaf) {
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

}  // namespace fastpe

#endif
