// SPDX-License-Identifier: BSD-3-Clause
// What the machine allows: the plainest loops that write, or read and write, an array, and the arithmetic alone.
// Compiled when the benchmarks run. Everything is done `calls` times: calling from Python costs more than small work.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

// Between two passes over the same memory: the compiler must not make one of them.
#if defined(__GNUC__)
#define NEXT_PASS() __asm__ volatile("" ::: "memory")
#else
#define NEXT_PASS()
#endif

// A thread's part of `count`, in multiples of `unit`.
typedef struct {
  size_t begin, end;
} Part;
static Part part_of(size_t count, size_t unit, size_t thread, size_t threads) {
  const size_t units = (count + unit - 1) / unit;
  const size_t begin = units * thread / threads * unit, end = units * (thread + 1) / threads * unit;
  const Part part = {begin < count ? begin : count, end < count ? end : count};
  return part;
}

// One thread stays out of OpenMP: opening a team costs more than small work.
typedef void (*Body)(const void* work, size_t thread, size_t threads);
static void parallel(Body body, const void* work, int threads) {
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    body(work, (size_t)omp_get_thread_num(), (size_t)omp_get_num_threads());
    return;
  }
#endif
  body(work, 0, (size_t)(threads > 0));
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

typedef struct {
  void (*loop)(float* data, size_t count, float value);
  float* data;
  size_t count;
  float value;
} Pass;
static void pass_of_thread(const void* work, size_t thread, size_t threads) {
  const Pass* pass = work;
  const Part part = part_of(pass->count, 16, thread, threads);
  pass->loop(pass->data + part.begin, part.end - part.begin, pass->value);
}
static void split(void (*loop)(float*, size_t, float), float* data, size_t count, float value, int threads,
                  size_t calls) {
  const Pass pass = {loop, data, count, value};
  for (size_t call = 0; call < calls; ++call) {
    parallel(pass_of_thread, &pass, threads);
    NEXT_PASS();
  }
}

void store_constant(float* data, size_t count, float value, int threads, size_t calls) {
  split(store, data, count, value, threads, calls);
}
void stream_constant(float* data, size_t count, float value, int threads, size_t calls) {
  split(stream, data, count, value, threads, calls);
}
void add_constant(float* data, size_t count, float value, int threads, size_t calls) {
  split(increment, data, count, value, threads, calls);
}

// The angle addition theorem for four rows, before and after two anchors: a value's cosine part and its slope's sine
// part, added and subtracted in double and rounded. Anchors, which the same theorem makes from one that is known, stay
// in the first-level cache; the cosines and sines come from where they fit: TABLE_ROWS for the rows, TURNS for the
// anchors.
#define PANEL 256
#define TABLE_ROWS 15
#define GROUP_ROWS (4 * TABLE_ROWS)
#define TURNS 8
static void turn(double* anchor, const double* values, const double* slopes, const double* cosines, const double* sines,
                 size_t count) {
  for (size_t i = 0; i < count; ++i) {
    anchor[i] = values[i] * cosines[i] + slopes[i] * sines[i];
    anchor[PANEL + i] = slopes[i] * cosines[i] - values[i] * sines[i];
  }
}
static inline void rotate_set(float* const rows[4], const double* anchors, const double* cosines, const double* sines,
                              size_t count, int adds) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 8 <= count; i += 8) {
    const __m512d cosine = _mm512_loadu_pd(cosines + i), sine = _mm512_loadu_pd(sines + i);
    for (size_t anchor = 0; anchor < 2; ++anchor) {
      float *before = rows[2 * anchor] + i, *after = rows[2 * anchor + 1] + i;
      const double* values = anchors + 2 * anchor * PANEL + i;
      const __m512d even = _mm512_mul_pd(_mm512_loadu_pd(values), cosine);
      const __m512d odd = _mm512_mul_pd(_mm512_loadu_pd(values + PANEL), sine);
      const __m256 difference = _mm512_cvtpd_ps(_mm512_sub_pd(even, odd));
      const __m256 sum = _mm512_cvtpd_ps(_mm512_add_pd(even, odd));
      _mm256_storeu_ps(before, adds ? _mm256_add_ps(_mm256_loadu_ps(before), difference) : difference);
      _mm256_storeu_ps(after, adds ? _mm256_add_ps(_mm256_loadu_ps(after), sum) : sum);
    }
  }
#endif
  for (size_t anchor = 0; anchor < 2; ++anchor) {
    float* restrict before = rows[2 * anchor], * restrict after = rows[2 * anchor + 1];
    const double* values = anchors + 2 * anchor * PANEL;
    for (size_t column = i; column < count; ++column) {
      const double even = values[column] * cosines[column], odd = values[PANEL + column] * sines[column];
      before[column] = (float)(even - odd) + (adds ? before[column] : 0.0f);
      after[column] = (float)(even + odd) + (adds ? after[column] : 0.0f);
    }
  }
}

typedef struct {
  float* rows;
  // In values. Of rows 0: four next to each other take all. Of threads 0: each has its part of all rows.
  size_t row_stride, group_stride, thread_stride;
  size_t row_count, columns;
  const double *known, *turns, *tables;
  int adds;
} Rotation;
static void rotate_of_thread(const void* work, size_t thread, size_t threads) {
  const Rotation* r = work;
  const Part sets = part_of(r->row_count / 4, 1, thread, threads);
  float* group = r->rows + (r->thread_stride > 0 ? thread * r->thread_stride : 4 * sets.begin * r->row_stride);
  double anchors[4 * PANEL];
  size_t turned = 0;
  for (size_t done = sets.begin; done < sets.end; done += TABLE_ROWS, group += r->group_stride) {
    const size_t count = sets.end - done < TABLE_ROWS ? sets.end - done : TABLE_ROWS;
    for (size_t panel = 0; panel < r->columns; panel += PANEL) {
      const size_t columns = r->columns - panel < PANEL ? r->columns - panel : PANEL;
      for (size_t anchor = 0; anchor < 2; ++anchor) {
        const double* cosines = r->turns + (turned + anchor) % TURNS * 2 * r->columns + panel;
        turn(anchors + anchor * 2 * PANEL, r->known + panel, r->known + r->columns + panel, cosines,
             cosines + r->columns, columns);
      }
      for (size_t row = 0; row < count; ++row) {
        float* rows[4];
        for (size_t i = 0; i < 4; ++i) {
          const size_t place = (i * count + (i % 2 == 0 ? count - 1 - row : row)) * r->row_stride;
          rows[i] = group + panel + (r->row_stride > 0 ? place : i * r->columns);
        }
        const double* cosines = r->tables + row * r->columns + panel;
        const double* sines = cosines + TABLE_ROWS * r->columns;
        r->adds ? rotate_set(rows, anchors, cosines, sines, columns, 1)
                : rotate_set(rows, anchors, cosines, sines, columns, 0);
        NEXT_PASS();
      }
    }
    turned += 2;
  }
}
// known: values and slopes of an anchor; turns: cosines and sines of each; tables: all cosines, then all sines.
int turns_made(void) { return TURNS; }
int table_rows(void) { return TABLE_ROWS; }
int group_rows(void) { return GROUP_ROWS; }
void rotate_rows(float* rows, const double* known, const double* turns, const double* tables, size_t row_count,
                 size_t columns, size_t row_stride, size_t group_stride, size_t thread_stride, int adds, int threads,
                 size_t calls) {
  const Rotation rotation = {rows,    row_stride, group_stride, thread_stride, row_count,
                             columns, known,      turns,        tables,        adds};
  for (size_t call = 0; call < calls; ++call) parallel(rotate_of_thread, &rotation, threads);
}

// Rows of a tile, which a group of them fits, added to all batch items, as many at a time as the first-level cache
// holds.
typedef struct {
  float* x;
  const float* tile;
  size_t batch_count, row_count, columns, segment_rows;
} BatchSums;
static void add_tile_of_thread(const void* work, size_t thread, size_t threads) {
  const BatchSums* s = work;
  const Part rows = part_of(s->row_count, 1, thread, threads);
  for (size_t row = rows.begin; row < rows.end; row += s->segment_rows) {
    const size_t count = (rows.end - row < s->segment_rows ? rows.end - row : s->segment_rows) * s->columns;
    const float* tile = s->tile + (row - rows.begin) % (GROUP_ROWS - s->segment_rows) * s->columns;
    for (size_t batch = 0; batch < s->batch_count; ++batch) {
      float* x = s->x + (batch * s->row_count + row) * s->columns;
      for (size_t i = 0; i < count; ++i) x[i] += tile[i];
    }
    NEXT_PASS();
  }
}
void add_tile(float* x, const float* tile, size_t batch_count, size_t row_count, size_t columns, size_t segment_rows,
              int threads, size_t calls) {
  const BatchSums sums = {x, tile, batch_count, row_count, columns, segment_rows};
  for (size_t call = 0; call < calls; ++call) parallel(add_tile_of_thread, &sums, threads);
}

// A row of the table for each row of x.
void add_table_rows(float* x, const float* table, const int64_t* positions, size_t rows, size_t columns, size_t calls) {
  for (size_t call = 0; call < calls; ++call) {
    for (size_t row = 0; row < rows; ++row) {
      float* sum = x + row * columns;
      const float* addend = table + (size_t)positions[row] * columns;
      for (size_t i = 0; i < columns; ++i) sum[i] += addend[i];
    }
    NEXT_PASS();
  }
}

// bfloat16 + float32, rounded to nearest even, `passes` times over an array for each thread.
static void add_bfloat16(uint16_t* x, const float* addend, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t wide = (uint32_t)x[i] << 16;
    float sum;
    memcpy(&sum, &wide, sizeof sum);
    sum += addend[i];
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    x[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}
typedef struct {
  uint16_t* x;
  const float* addend;
  size_t count, passes;
} BFloat16Sums;
static void add_bfloat16_of_thread(const void* work, size_t thread, size_t threads) {
  const BFloat16Sums* sums = work;
  const Part part = part_of(sums->passes, 1, thread, threads);
  for (size_t pass = part.begin; pass < part.end; ++pass) {
    add_bfloat16(sums->x + thread * sums->count, sums->addend, sums->count);
    NEXT_PASS();
  }
}
void add_bfloat16_passes(uint16_t* x, const float* addend, size_t count, size_t passes, int threads, size_t calls) {
  const BFloat16Sums sums = {x, addend, count, passes};
  for (size_t call = 0; call < calls; ++call) parallel(add_bfloat16_of_thread, &sums, threads);
}
