// SPDX-License-Identifier: BSD-3-Clause
// Refuses to compile if arithmetic is not IEEE 754's, rounded after every operation: values would be wrong.
// CMakeLists.txt overrides such flags; these checks are for what it cannot override, and for builds without it.
#pragma once

#if defined(__FAST_MATH__)
#error "fastpe: -ffast-math (also a part of -Ofast) makes values wrong; remove it"
#elif defined(__ASSOCIATIVE_MATH__)
#error "fastpe: -fassociative-math (also a part of -funsafe-math-optimizations) makes values wrong; remove it"
#elif defined(__RECIPROCAL_MATH__)
#error "fastpe: -freciprocal-math makes values wrong; remove it"
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "fastpe: -ffinite-math-only makes infinities and NaNs wrong; remove it"
#elif defined(__NO_SIGNED_ZEROS__)
#error "fastpe: -fno-signed-zeros makes the sign of zero wrong; remove it"
#elif defined(_M_FP_FAST)
#error "fastpe: /fp:fast makes values wrong; remove it"
#elif defined(_M_FP_CONTRACT)
#error "fastpe: /fp:contract makes values depend on the instruction set; remove it"
#elif defined(_M_IX86_FP) && _M_IX86_FP < 2
#error "fastpe: /arch:IA32 and /arch:SSE keep more digits than a double has; compile with /arch:SSE2"
// The value 16 concerns only numbers of 16 bits.
#elif defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "fastpe: x87 arithmetic (-mfpmath=387) keeps more digits than a double has; compile with -msse2 -mfpmath=sse"
#endif

static_assert(sizeof(1.0) == sizeof(double),
              "fastpe: -fsingle-precision-constant rounds constants to float; remove it");
