// SPDX-License-Identifier: BSD-3-Clause
// What the machine allows: the plainest loops that write, or read and write, an array, and the arithmetic of encoding
// alone. Compiled when the benchmarks run.
#include <stddef.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#define STREAM(to, value) _mm512_stream_ps(to, _mm512_set1_ps(value))
#elif defined(__AVX__)
#include <immintrin.h>
#define LANES 8
#define STREAM(to, value) _mm256_stream_ps(to, _mm256_set1_ps(value))
#elif defined(__SSE__)
#include <xmmintrin.h>
#define LANES 4
#define STREAM(to, value) _mm_stream_ps(to, _mm_set1_ps(value))
#endif

typedef void (*Loop)(float* data, size_t count, float value);

static void store(float* data, size_t count, float value) {
  for (size_t i = 0; i < count; ++i) data[i] = value;
}

static void stream(float* data, size_t count, float value) {
#if defined(STREAM)
  while (count > 0 && (size_t)data % (LANES * sizeof(float)) != 0) {
    *data++ = value;
    --count;
  }
  for (; count >= LANES; count -= LANES, data += LANES) STREAM(data, value);
  _mm_sfence();
#endif
  store(data, count, value);
}

static void increment(float* data, size_t count, float value) {
  for (size_t i = 0; i < count; ++i) data[i] += value;
}

// Two rows from the angle addition theorem: a value's cosine part and its slope's sine part, added and subtracted in
// double and rounded. All of it stays in the first-level cache.
#define COLUMNS 256
static void rotate(float* rows, const double* tables, size_t row_pairs) {
  const double *values = tables, *cosines = values + COLUMNS, *slopes = cosines + COLUMNS, *sines = slopes + COLUMNS;
  for (size_t pair = 0; pair < row_pairs; ++pair) {
#if defined(__AVX512F__)
    for (size_t i = 0; i < COLUMNS; i += 8) {
      const __m512d even = _mm512_mul_pd(_mm512_loadu_pd(values + i), _mm512_loadu_pd(cosines + i));
      const __m512d odd = _mm512_mul_pd(_mm512_loadu_pd(slopes + i), _mm512_loadu_pd(sines + i));
      _mm256_storeu_ps(rows + i, _mm512_cvtpd_ps(_mm512_add_pd(even, odd)));
      _mm256_storeu_ps(rows + COLUMNS + i, _mm512_cvtpd_ps(_mm512_sub_pd(even, odd)));
    }
#else
    for (size_t i = 0; i < COLUMNS; ++i) {
      const double even = values[i] * cosines[i];
      const double odd = slopes[i] * sines[i];
      rows[i] = (float)(even + odd);
      rows[COLUMNS + i] = (float)(even - odd);
    }
#endif
#if defined(__GNUC__)
    __asm__ volatile("" ::: "memory");
#endif
  }
}

static void split(Loop loop, float* data, size_t count, float value, int threads) {
  if (threads == 1) {
    loop(data, count, value);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  {
    const size_t part = (count / (size_t)omp_get_num_threads() + 15) / 16 * 16;
    const size_t begin = part * (size_t)omp_get_thread_num();
    if (begin < count) loop(data + begin, count - begin < part ? count - begin : part, value);
  }
#endif
}

int has_streaming_stores(void) {
#if defined(STREAM)
  return 1;
#else
  return 0;
#endif
}

int has_threads(void) {
#if defined(_OPENMP)
  return 1;
#else
  return 0;
#endif
}

void store_constant(float* data, size_t count, float value, int threads) { split(store, data, count, value, threads); }
void stream_constant(float* data, size_t count, float value, int threads) {
  split(stream, data, count, value, threads);
}
void add_constant(float* data, size_t count, float value, int threads) {
  split(increment, data, count, value, threads);
}

// rows: two for each thread, tables: four, of rotation_columns() each.
int rotation_columns(void) { return COLUMNS; }
void rotate_rows(float* rows, const double* tables, size_t row_pairs, int threads) {
  if (threads == 1) {
    rotate(rows, tables, row_pairs);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  {
    const size_t thread = (size_t)omp_get_thread_num(), count = (size_t)omp_get_num_threads();
    rotate(rows + thread * 2 * COLUMNS, tables, row_pairs / count + (thread < row_pairs % count));
  }
#endif
}
