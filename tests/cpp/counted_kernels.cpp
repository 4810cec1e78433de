// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the instruction set that COUNTED_FILE is for, whose streaming stores and fences are counted.
#include "counted_kernels.h"

#include <immintrin.h>

#define _mm_stream_ps(...) (fastpe::testing::count_store(), _mm_stream_ps(__VA_ARGS__))
#define _mm_stream_pd(...) (fastpe::testing::count_store(), _mm_stream_pd(__VA_ARGS__))
#define _mm256_stream_ps(...) (fastpe::testing::count_store(), _mm256_stream_ps(__VA_ARGS__))
#define _mm256_stream_pd(...) (fastpe::testing::count_store(), _mm256_stream_pd(__VA_ARGS__))
#define _mm512_stream_ps(...) (fastpe::testing::count_store(), _mm512_stream_ps(__VA_ARGS__))
#define _mm512_stream_pd(...) (fastpe::testing::count_store(), _mm512_stream_pd(__VA_ARGS__))
#define _mm_sfence() (fastpe::testing::count_fence(), _mm_sfence())

// Names beside those of the core's own kernels.
#define kernels_baseline counted_baseline
#define kernels_avx2 counted_avx2
#define kernels_avx512 counted_avx512

#include COUNTED_FILE
