// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the instruction set that COUNTED_FILE is for, whose non-temporal stores and fences are counted. They
// take the place of those in the core's library, which the linker leaves out.
#include "counted_kernels.h"

#include <immintrin.h>

#define _mm256_stream_ps(...) (fastpe::testing::count_store(), _mm256_stream_ps(__VA_ARGS__))
#define _mm256_stream_pd(...) (fastpe::testing::count_store(), _mm256_stream_pd(__VA_ARGS__))
#define _mm512_stream_ps(...) (fastpe::testing::count_store(), _mm512_stream_ps(__VA_ARGS__))
#define _mm512_stream_pd(...) (fastpe::testing::count_store(), _mm512_stream_pd(__VA_ARGS__))
#define _mm_sfence() (fastpe::testing::count_fence(), _mm_sfence())

#include COUNTED_FILE
