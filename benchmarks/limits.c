// SPDX-License-Identifier: BSD-3-Clause
// What the machine allows: plain loops that write a constant or add one, and careful ones that add a table at hand.
// Compiled when the benchmarks run. Everything is done `calls` times: calling from Python costs more than small work.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__SSE__)
#include <immintrin.h>
#endif

// A streaming store, a vector of floats from two of doubles, and both halves of a vector with each value twice.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define LANES 16
#define STREAM(to, vector) _mm512_stream_ps(to, vector)
#define ALL(value) _mm512_set1_ps(value)
#define NARROWED(first, second) \
  _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first)), _mm512_cvtpd_ps(second), 1)
#define LOWER_TWICE(v) _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), v)
#define UPPER_TWICE(v) \
  _mm512_permutexvar_ps(_mm512_setr_epi32(8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15), v)
#elif defined(__AVX__)
#define LANES 8
#define STREAM(to, vector) _mm256_stream_ps(to, vector)
#define ALL(value) _mm256_set1_ps(value)
#define NARROWED(first, second) _mm256_set_m128(_mm256_cvtpd_ps(second), _mm256_cvtpd_ps(first))
#define LOWER_TWICE(v) _mm256_permute2f128_ps(_mm256_unpacklo_ps(v, v), _mm256_unpackhi_ps(v, v), 0x20)
#define UPPER_TWICE(v) _mm256_permute2f128_ps(_mm256_unpacklo_ps(v, v), _mm256_unpackhi_ps(v, v), 0x31)
#elif defined(__SSE2__)
#define LANES 4
#define STREAM(to, vector) _mm_stream_ps(to, vector)
#define ALL(value) _mm_set1_ps(value)
#define NARROWED(first, second) _mm_movelh_ps(_mm_cvtpd_ps(first), _mm_cvtpd_ps(second))
#define LOWER_TWICE(v) _mm_unpacklo_ps(v, v)
#define UPPER_TWICE(v) _mm_unpackhi_ps(v, v)
#endif

// Between two passes over the same memory: the compiler must not make one of them.
#define NEXT_PASS() __asm__ volatile("" ::: "memory")

int has_streaming_stores(void) {
#if defined(STREAM)
  return 1;
#else
  return 0;
#endif
}

int has_float16(void) {
#if defined(__F16C__)
  return 1;
#else
  return 0;
#endif
}

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
static void repeat(Body body, const void* work, int threads, size_t calls) {
  for (size_t call = 0; call < calls; ++call) {
    if (threads == 1) {
      body(work, 0, 1);
    } else {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
      body(work, (size_t)omp_get_thread_num(), (size_t)omp_get_num_threads());
#endif
    }
    NEXT_PASS();
  }
}

// ---- Plain loops

static void store(float* data, size_t count, float value) {
  for (size_t i = 0; i < count; ++i) data[i] = value;
}

static void stream(float* data, size_t count, float value) {
#if defined(STREAM)
  while (count > 0 && (size_t)data % (LANES * sizeof(float)) != 0) {
    *data++ = value;
    --count;
  }
  for (; count >= LANES; count -= LANES, data += LANES) STREAM(data, ALL(value));
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
void store_constant(float* data, size_t count, float value, int threads, size_t calls) {
  const Pass pass = {store, data, count, value};
  repeat(pass_of_thread, &pass, threads, calls);
}
void stream_constant(float* data, size_t count, float value, int threads, size_t calls) {
  const Pass pass = {stream, data, count, value};
  repeat(pass_of_thread, &pass, threads, calls);
}
void add_constant(float* data, size_t count, float value, int threads, size_t calls) {
  const Pass pass = {increment, data, count, value};
  repeat(pass_of_thread, &pass, threads, calls);
}

// ---- Careful loops: a segment at a time, while every line of the next one is fetched, into the first-level cache or,
// in segments that have no room there, into the second

#define LINE 64
#define STEP 32  // values: whole lines of float32 and of 16 bits

typedef enum { FIRST_LEVEL, SECOND_LEVEL } Level;
static size_t segment_bytes(Level level) { return (level == FIRST_LEVEL ? 12 : 48) * 1024; }

__attribute__((always_inline)) static inline void fetch_into(Level level, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += LINE) {
    if (level == FIRST_LEVEL) {
      __builtin_prefetch((const char*)from + i, 0, 3);
    } else {
      __builtin_prefetch((const char*)from + i, 0, 2);
    }
  }
}
static inline void fetch(const void* from, size_t bytes) { fetch_into(FIRST_LEVEL, from, bytes); }

// x += table, STEP values. In 16 bits the sum is one of float32, rounded to nearest even; a NaN stays one.
static inline void add_float32(void* restrict x, const float* restrict table) {
  float* restrict sums = x;
  for (size_t i = 0; i < STEP; ++i) sums[i] += table[i];
}
static inline void add_bfloat16(void* restrict x, const float* restrict table) {
  uint16_t* restrict sums = x;
  for (size_t i = 0; i < STEP; ++i) {
    uint32_t bits = (uint32_t)sums[i] << 16;
    float sum;
    memcpy(&sum, &bits, sizeof sum);
    sum += table[i];
    memcpy(&bits, &sum, sizeof bits);
    const uint32_t half = sum == sum ? 0x7fff + (bits >> 16 & 1) : 0;
    sums[i] = (uint16_t)((bits + half) >> 16);
  }
}
static inline void add_float16(void* restrict x, const float* restrict table) {
#if defined(__F16C__)
  for (size_t i = 0; i < STEP; i += 8) {
    __m128i* halves = (__m128i*)((uint16_t*)x + i);
    const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_loadu_ps(table + i));
    _mm_storeu_si128(halves, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  (void)x, (void)table;
#endif
}

// x [batch_count, row_count, row_bytes] += table [row_count, columns].
typedef enum { FLOAT32, FLOAT16, BFLOAT16 } DType;
typedef struct {
  char* x;
  const float* table;
  DType dtype;
  size_t batch_count, row_count, columns, segment_rows;
  Level level;
} TableSum;
__attribute__((always_inline)) static inline void add_rows(const TableSum* s, size_t thread, size_t threads,
                                                           void (*add)(void*, const float*), const size_t value_bytes,
                                                           const Level level) {
  const Part rows = part_of(s->row_count, 1, thread, threads);
  const size_t item_bytes = s->row_count * s->columns * value_bytes;
  for (size_t row = rows.begin; row < rows.end; row += s->segment_rows) {
    const size_t left = rows.end - row, count = (left < s->segment_rows ? left : s->segment_rows) * s->columns;
    const float* table = s->table + row * s->columns;
    for (size_t batch = 0; batch < s->batch_count; ++batch) {
      const int is_last = batch + 1 == s->batch_count;
      char* x = s->x + batch * item_bytes + row * s->columns * value_bytes;
      const char* next = is_last ? s->x + (row + s->segment_rows) * s->columns * value_bytes : x + item_bytes;
      for (size_t i = 0; i < count; i += STEP) {
        fetch_into(level, next + i * value_bytes, STEP * value_bytes);
        if (is_last) fetch_into(level, table + count + i, STEP * sizeof(float));
        add(x + i * value_bytes, table + i);
      }
      // Rows begin anywhere in a line.
      fetch_into(level, next + count * value_bytes - 1, 1);
    }
  }
}
__attribute__((always_inline)) static inline void add_rows_at(const TableSum* sum, size_t thread, size_t threads,
                                                              const Level level) {
  switch (sum->dtype) {
    case FLOAT32: add_rows(sum, thread, threads, add_float32, 4, level); break;
    case FLOAT16: add_rows(sum, thread, threads, add_float16, 2, level); break;
    case BFLOAT16: add_rows(sum, thread, threads, add_bfloat16, 2, level); break;
  }
}
static void add_table_of_thread(const void* work, size_t thread, size_t threads) {
  const TableSum* sum = work;
  if (sum->level == FIRST_LEVEL) {
    add_rows_at(sum, thread, threads, FIRST_LEVEL);
  } else {
    add_rows_at(sum, thread, threads, SECOND_LEVEL);
  }
}
void add_table(void* x, const float* table, int dtype, int level, size_t batch_count, size_t row_count, size_t columns,
               int threads, size_t calls) {
  const size_t rows = segment_bytes((Level)level) / (columns * sizeof(float)), segment_rows = rows > 0 ? rows : 1;
  const TableSum sum = {x, table, (DType)dtype, batch_count, row_count, columns, segment_rows, (Level)level};
  repeat(add_table_of_thread, &sum, threads, calls);
}

// Rows of sines and cosines from anchors at hand: 31 rows around each of two anchors at once, by the angle addition
// theorem, in panels of columns. Then the anchors are turned to the next rows. Each row begins on a cache line's
// boundary.
#define ROWS_TO_A_SIDE 15
#define ROWS_AROUND (2 * ROWS_TO_A_SIDE + 1)
#define PANEL 256
#define LINE_VALUES (LINE / sizeof(float))

// A row's columns lie in one array, or each half of them in one of two: once, twice side by side, or each value twice.
typedef enum { ONE_ARRAY, HALVES, TILE, REPEAT } Placing;
typedef struct {
  float* out[2];          // rows + 1 rows: the last one takes what lies beyond the others
  const double* anchors;  // of each thread: values and slopes of the first one, then those of the second
  double* turned;         // the same, after turns
  const double* cosines;  // of the turns by 0 .. ROWS_TO_A_SIDE rows, and by 2 * ROWS_AROUND rows
  const double* sines;
  size_t rows, columns, stride;  // the stride is that of anchors and turns
  Placing placing;
  int streams;
} Expansion;

#if defined(STREAM)
typedef double Doubles __attribute__((vector_size(LANES / 2 * sizeof(double)), aligned(8)));
typedef __typeof__(ALL(0)) Floats;

static inline Doubles at(const double* from) { return *(const Doubles*)from; }

// A line of a row, `count` values behind it again if there is such a distance.
__attribute__((always_inline)) static inline void put(float* to, const Floats* line, size_t again, int streams) {
  for (size_t copy = 0; copy <= (again > 0); ++copy) {
    for (size_t v = 0; v < LINE_VALUES / LANES; ++v) {
      float* const place = to + copy * again + v * LANES;
      if (streams) {
        STREAM(place, line[v]);
      } else {
        *(Floats*)place = line[v];
      }
    }
  }
}
__attribute__((always_inline)) static inline void place(const Expansion* e, size_t row, size_t column,
                                                        const Floats* line, Placing placing, int streams) {
  const size_t half = e->columns / 2, table = column >= half, in_table = column - table * half;
  if (placing == ONE_ARRAY) {
    put(e->out[0] + row * e->columns + column, line, 0, streams);
  } else if (placing == HALVES) {
    put(e->out[table] + row * half + in_table, line, 0, streams);
  } else if (placing == TILE) {
    put(e->out[table] + row * e->columns + in_table, line, half, streams);
  } else {
    Floats twice[2 * LINE_VALUES / LANES];
    for (size_t v = 0; v < LINE_VALUES / LANES; ++v) {
      twice[2 * v] = LOWER_TWICE(line[v]);
      twice[2 * v + 1] = UPPER_TWICE(line[v]);
    }
    put(e->out[table] + row * e->columns + 2 * in_table, twice, 0, streams);
    put(e->out[table] + row * e->columns + 2 * in_table + LINE_VALUES, twice + LINE_VALUES / LANES, 0, streams);
  }
}

// Columns [begin, end) of the rows at one distance from both anchors.
__attribute__((always_inline)) static inline void expand_columns(const Expansion* e, const double* anchors,
                                                                 size_t distance, const size_t rows[4], size_t begin,
                                                                 size_t end, Placing placing, int streams) {
  const double *cosines = e->cosines + distance * e->stride, *sines = e->sines + distance * e->stride;
  for (size_t c = begin; c < end; c += LINE_VALUES) {
    for (size_t i = 0; i < 4; i += 2) {
      const double *values = anchors + i * e->stride, *slopes = values + e->stride;
      Floats lines[2][LINE_VALUES / LANES];
      for (size_t v = 0; v < LINE_VALUES / LANES; ++v) {
        const size_t first = c + v * LANES, second = first + LANES / 2;
        const Doubles even0 = at(values + first) * at(cosines + first), odd0 = at(slopes + first) * at(sines + first);
        const Doubles even1 = at(values + second) * at(cosines + second);
        const Doubles odd1 = at(slopes + second) * at(sines + second);
        lines[0][v] = NARROWED(even0 + odd0, even1 + odd1);
        lines[1][v] = NARROWED(even0 - odd0, even1 - odd1);
      }
      // The halves of a line would leave the processor apart if the other row's came between.
      for (size_t side = 0; side < 2; ++side) place(e, rows[i + side], c, lines[side], placing, streams);
    }
  }
}
__attribute__((always_inline)) static inline void expand(const Expansion* e, size_t thread, size_t threads,
                                                         Placing placing, int streams) {
  const Part part = part_of(e->rows, 2 * ROWS_AROUND, thread, threads);
  double* const anchors = e->turned + thread * 4 * e->stride;
  memcpy(anchors, e->anchors + thread * 4 * e->stride, 4 * e->stride * sizeof(double));
  for (size_t first = part.begin; first < part.end; first += 2 * ROWS_AROUND) {
    for (size_t begin = 0; begin < e->columns; begin += PANEL) {
      const size_t end = begin + PANEL < e->columns ? begin + PANEL : e->columns;
      for (size_t distance = 0; distance <= ROWS_TO_A_SIDE; ++distance) {
        size_t rows[4];
        for (size_t i = 0; i < 4; ++i) {
          const size_t centre = first + ROWS_TO_A_SIDE + (i / 2) * ROWS_AROUND;
          const size_t row = i % 2 == 0 ? centre + distance : centre - distance;
          rows[i] = row < e->rows ? row : e->rows;
        }
        if (rows[1] == e->rows && rows[3] == e->rows) continue;
        expand_columns(e, anchors, distance, rows, begin, end, placing, streams);
      }
    }
    const double* cosines = e->cosines + (ROWS_TO_A_SIDE + 1) * e->stride;
    const double* sines = e->sines + (ROWS_TO_A_SIDE + 1) * e->stride;
    for (size_t anchor = 0; anchor < 2; ++anchor) {
      double *values = anchors + anchor * 2 * e->stride, *slopes = values + e->stride;
      for (size_t c = 0; c < e->columns; ++c) {
        const double turned = values[c] * cosines[c] + slopes[c] * sines[c];
        slopes[c] = slopes[c] * cosines[c] - values[c] * sines[c];
        values[c] = turned;
      }
    }
  }
  if (streams) _mm_sfence();
}
__attribute__((always_inline)) static inline void expand_placed(const Expansion* e, size_t thread, size_t threads,
                                                                Placing placing) {
  if (e->streams) {
    expand(e, thread, threads, placing, 1);
  } else {
    expand(e, thread, threads, placing, 0);
  }
}
static void expand_of_thread(const void* work, size_t thread, size_t threads) {
  const Expansion* e = work;
  switch (e->placing) {
    case ONE_ARRAY: expand_placed(e, thread, threads, ONE_ARRAY); break;
    case HALVES: expand_placed(e, thread, threads, HALVES); break;
    case TILE: expand_placed(e, thread, threads, TILE); break;
    case REPEAT: expand_placed(e, thread, threads, REPEAT); break;
  }
}
#endif

void expand_rows(float* out, float* second_out, const double* anchors, double* turned, const double* cosines,
                 const double* sines, size_t rows, size_t columns, size_t stride, int placing, int streams, int threads,
                 size_t calls) {
#if defined(STREAM)
  const Expansion expansion = {{out, second_out}, anchors, turned,           cosines, sines, rows,
                               columns,           stride,  (Placing)placing, streams};
  repeat(expand_of_thread, &expansion, threads, calls);
#endif
}

// Rows of angles, of positions 0, 1, .., each of whose rows begins on a cache line's boundary.
typedef struct {
  float* out;
  const double* radians;  // of each column
  size_t rows, columns;
  int streams;
} AngleRows;

#if defined(STREAM)
__attribute__((always_inline)) static inline void multiply(const AngleRows* a, Part rows, int streams) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const double position = (double)row;
    for (size_t c = 0; c < a->columns; c += LINE_VALUES) {
      Floats line[LINE_VALUES / LANES];
      for (size_t v = 0; v < LINE_VALUES / LANES; ++v) {
        const Doubles first = position * at(a->radians + c + v * LANES);
        const Doubles second = position * at(a->radians + c + v * LANES + LANES / 2);
        line[v] = NARROWED(first, second);
      }
      put(a->out + row * a->columns + c, line, 0, streams);
    }
  }
  if (streams) _mm_sfence();
}
static void angles_of_thread(const void* work, size_t thread, size_t threads) {
  const AngleRows* a = work;
  const Part rows = part_of(a->rows, 1, thread, threads);
  if (a->streams) {
    multiply(a, rows, 1);
  } else {
    multiply(a, rows, 0);
  }
}
#endif

void angle_rows(float* out, const double* radians, size_t rows, size_t columns, int streams, int threads,
                size_t calls) {
#if defined(STREAM)
  const AngleRows angles = {out, radians, rows, columns, streams};
  repeat(angles_of_thread, &angles, threads, calls);
#endif
}

// Pairs (k, k + columns / 2), or (2k, 2k + 1), of a row turned by its cosines and sines. out may be x.
__attribute__((always_inline)) static inline void turn_row(float* out, const float* x, const float* cosines,
                                                           const float* sines, size_t pairs, int interleaved) {
  if (interleaved) {
#pragma GCC ivdep
    for (size_t k = 0; k < pairs; ++k) {
      const float first = x[2 * k], second = x[2 * k + 1];
      out[2 * k] = first * cosines[k] - second * sines[k];
      out[2 * k + 1] = second * cosines[k] + first * sines[k];
    }
  } else {
#pragma GCC ivdep
    for (size_t k = 0; k < pairs; ++k) {
      const float first = x[k], second = x[k + pairs];
      out[k] = first * cosines[k] - second * sines[k];
      out[k + pairs] = second * cosines[k] + first * sines[k];
    }
  }
}
// x [item_count, row_count, heads, 2 * pairs]: heads lie inside of the sequence, or are items and one inside.
typedef struct {
  float* out;
  const float* x;
  const float* cosines;
  const float* sines;
  size_t item_count, row_count, heads, pairs;
  int interleaved;
  Level level;
} Turn;
__attribute__((always_inline)) static inline void turn_at(const Turn* t, size_t thread, size_t threads,
                                                          const Level level) {
  const Part rows = part_of(t->row_count, 1, thread, threads);
  const size_t columns = 2 * t->pairs, row_values = t->heads * columns;
  const size_t rows_at_once = segment_bytes(level) / (row_values * sizeof(float));
  const size_t segment_rows = rows_at_once > 0 ? rows_at_once : 1;
  for (size_t row = rows.begin; row < rows.end; row += segment_rows) {
    const size_t end = row + segment_rows < rows.end ? row + segment_rows : rows.end;
    for (size_t item = 0; item < t->item_count; ++item) {
      size_t at = (item * t->row_count + row) * row_values;
      size_t next = item + 1 < t->item_count ? at + t->row_count * row_values : (row + segment_rows) * row_values;
      for (size_t r = row; r < end; ++r) {
        const float *cosines = t->cosines + r * t->pairs, *sines = t->sines + r * t->pairs;
        for (size_t head = 0; head < t->heads; ++head, at += columns, next += columns) {
          fetch_into(level, t->x + next, columns * sizeof(float));
          if (t->out != t->x) fetch_into(level, t->out + next, columns * sizeof(float));
          if (t->interleaved) {
            turn_row(t->out + at, t->x + at, cosines, sines, t->pairs, 1);
          } else {
            turn_row(t->out + at, t->x + at, cosines, sines, t->pairs, 0);
          }
        }
      }
    }
  }
}
static void turn_of_thread(const void* work, size_t thread, size_t threads) {
  const Turn* t = work;
  if (t->level == FIRST_LEVEL) {
    turn_at(t, thread, threads, FIRST_LEVEL);
  } else {
    turn_at(t, thread, threads, SECOND_LEVEL);
  }
}
void turn_rows(float* out, const float* x, const float* cosines, const float* sines, int level, size_t item_count,
               size_t row_count, size_t heads, size_t pairs, int interleaved, int threads, size_t calls) {
  const Turn turn = {out, x, cosines, sines, item_count, row_count, heads, pairs, interleaved, (Level)level};
  repeat(turn_of_thread, &turn, threads, calls);
}

// out[row] = embeddings[ids[row]] * scale + table[row % row_count].
typedef struct {
  float* out;
  const float* embeddings;
  const int64_t* ids;
  const float* table;
  size_t rows, row_count, columns;
  float scale;
} Gather;
static void gather_of_thread(const void* work, size_t thread, size_t threads) {
  const Gather* g = work;
  const Part rows = part_of(g->rows, 1, thread, threads);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    float* restrict out = g->out + row * g->columns;
    const float* restrict table = g->table + row % g->row_count * g->columns;
    const float* restrict from = g->embeddings + (size_t)g->ids[row] * g->columns;
    const float* next = g->embeddings + (size_t)g->ids[row + 1 < rows.end ? row + 1 : row] * g->columns;
    for (size_t i = 0; i < g->columns; i += STEP) {
      fetch(next + i, STEP * sizeof(float));
      fetch(out + g->columns + i, STEP * sizeof(float));
      for (size_t j = i; j < i + STEP; ++j) out[j] = from[j] * g->scale + table[j];
    }
    __builtin_prefetch(next + g->columns - 1);
  }
}
void gather_and_add(float* out, const float* embeddings, const int64_t* ids, const float* table, size_t rows,
                    size_t row_count, size_t columns, float scale, int threads, size_t calls) {
  const Gather gather = {out, embeddings, ids, table, rows, row_count, columns, scale};
  repeat(gather_of_thread, &gather, threads, calls);
}
void add_table_rows(float* x, const float* table, const int64_t* positions, size_t rows, size_t columns, size_t calls) {
  for (size_t call = 0; call < calls; ++call) {
    for (size_t row = 0; row < rows; ++row) {
      const float* addend = table + (size_t)positions[row] * columns;
      const float* next = table + (size_t)positions[row + 1 < rows ? row + 1 : row] * columns;
      for (size_t i = 0; i < columns; i += STEP) {
        fetch(next + i, STEP * sizeof(float));
        add_float32(x + row * columns + i, addend + i);
      }
    }
    NEXT_PASS();
  }
}
