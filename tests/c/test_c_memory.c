/* SPDX-License-Identifier: BSD-3-Clause
 * Calls on warm handles allocate nothing. Calls in which an allocation fails, whichever it is, change nothing. glibc's
 * malloc is counted, and made to fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastpe/fastpe.h"

static volatile long allocations = 0;
static volatile long failing = -1; /* the number of the allocation that fails */

static int fails(void) { return __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED) == failing; }

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  if (fails()) return NULL;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  if (fails()) return NULL;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  if (fails()) return NULL;
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  if (fails()) return NULL;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

static int failures = 0;

#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (condition) break;                                                                                \
    ++failures;                                                                                          \
    fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, fastpe_error_message()); \
  } while (0)

#define CHECK_ALLOCATES_NOTHING(call)                                                                              \
  do {                                                                                                             \
    const long before = allocations;                                                                               \
    const fastpe_status status = call;                                                                             \
    const long count = allocations - before;                                                                       \
    if (status == FASTPE_OK && count == 0) break;                                                                  \
    ++failures;                                                                                                    \
    fprintf(stderr, "%s:%d: status %d, %ld allocations: %s (%s)\n", __FILE__, __LINE__, (int)status, count, #call, \
            fastpe_error_message());                                                                               \
  } while (0)

/* Columns that lie far apart, of which some are done at a time. */
enum { FAR_ROWS = 64, FAR_WIDTH = 6400 };

/* Each try begins with the same bytes, and a handle that has made nothing where `is_new`. */
static void check_failures(int32_t call, int32_t num_threads, int is_new) {
  const size_t bytes = (size_t)FAR_ROWS * FAR_WIDTH * sizeof(float);
  float *const x = malloc(bytes), *const out = malloc(bytes), *const before = malloc(bytes);
  CHECK(x != NULL && out != NULL && before != NULL);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) before[i] = (float)(i % 97);
  const int64_t shape[] = {FAR_ROWS, FAR_WIDTH}, strides[] = {sizeof(float), FAR_ROWS * sizeof(float)};
  const int64_t heads_shape[] = {FAR_ROWS, FAR_WIDTH / 128, 128};
  const int64_t heads_strides[] = {sizeof(float), 128 * FAR_ROWS * sizeof(float), FAR_ROWS * sizeof(float)};
  const fastpe_array rows = {x, shape, NULL, 2, FASTPE_FLOAT32}, columns = {out, shape, strides, 2, FASTPE_FLOAT32};
  const fastpe_array in_columns = {x, shape, strides, 2, FASTPE_FLOAT32};
  const fastpe_array heads[] = {{x, heads_shape, heads_strides, 3, FASTPE_FLOAT32},
                                {out, heads_shape, NULL, 3, FASTPE_FLOAT32}};
  fastpe_encoding_options encoding_options = {0};
  encoding_options.d_model = FAR_WIDTH;
  encoding_options.convention = FASTPE_CONCAT;
  fastpe_rotary_options rotary_options = {0};
  rotary_options.rotary_dim = 128;
  rotary_options.base = 10000.0;
  rotary_options.pairing = FASTPE_PAIRING_HALVES;
  fastpe_encoding* encoding = NULL;
  fastpe_rotary* rotary = NULL;
  long first = -1;
  for (long n = -1;; ++n) { /* the first call fails nowhere: the team of threads is there then */
    if (is_new || encoding == NULL) {
      fastpe_encoding_destroy(encoding);
      fastpe_rotary_destroy(rotary);
      CHECK(fastpe_encoding_create(&encoding_options, &encoding) == FASTPE_OK);
      CHECK(fastpe_rotary_create(&rotary_options, &rotary) == FASTPE_OK);
    }
    memcpy(x, before, bytes);
    memcpy(out, before, bytes);
    first = allocations;
    failing = n < 0 ? -1 : first + n;
    const fastpe_status status = call == 0   ? fastpe_encode(encoding, &columns, NULL, num_threads)
                                 : call == 1 ? fastpe_add(encoding, &in_columns, NULL, -2, NULL, 1.0, 1.0, num_threads)
                                 : call == 2 ? fastpe_add(encoding, &rows, &columns, -2, NULL, 1.0, 1.0, num_threads)
                                             : fastpe_rotate(rotary, heads, NULL, 2, 0, NULL, 0, num_threads);
    const int is_last = n >= 0 && allocations <= failing; /* none has failed */
    failing = -1;
    if (status == FASTPE_OUT_OF_MEMORY) {
      CHECK(memcmp(x, before, bytes) == 0 && memcmp(out, before, bytes) == 0);
    } else {
      CHECK(status == FASTPE_OK); /* done without what would not fit */
    }
    if (is_last) break;
  }
  CHECK(!is_new || allocations > first);
  fastpe_encoding_destroy(encoding);
  fastpe_rotary_destroy(rotary);
  free(x);
  free(out);
  free(before);
}

enum { ROWS = 2048, WIDTH = 1024, HEADS = 4, HEAD = 128 };

int main(void) {
  /* This test can fail. */
  const long before = allocations;
  void* volatile memory = malloc(1);
  free(memory);
  CHECK(allocations == before + 1);

  fastpe_encoding_options encoding_options = {0};
  encoding_options.d_model = WIDTH;
  encoding_options.max_len = ROWS;
  encoding_options.convention = FASTPE_VASWANI;
  fastpe_encoding* encoding = NULL;
  CHECK(fastpe_encoding_create(&encoding_options, &encoding) == FASTPE_OK);
  fastpe_rotary_options rotary_options = {0};
  rotary_options.rotary_dim = HEAD;
  rotary_options.max_len = ROWS;
  rotary_options.base = 10000.0;
  rotary_options.pairing = FASTPE_PAIRING_HALVES;
  fastpe_rotary* rotary = NULL;
  CHECK(fastpe_rotary_create(&rotary_options, &rotary) == FASTPE_OK);
  CHECK(fastpe_encoding_warm_up(encoding, FASTPE_FLOAT32, 1) == FASTPE_OK);
  CHECK(fastpe_rotary_warm_up(rotary, FASTPE_FLOAT32, 1) == FASTPE_OK);

  float* const data = calloc((size_t)2 * ROWS * WIDTH, sizeof *data);
  int32_t positions[ROWS];
  int64_t offsets[2] = {5, 900};
  uint8_t valid[ROWS];
  for (int i = 0; i < ROWS; ++i) {
    positions[i] = ROWS - 1 - i;
    valid[i] = i % 3 != 1;
  }
  for (int64_t length = 1; length <= ROWS; length *= 2) {
    const int64_t shape[] = {2, length, WIDTH}, heads_shape[] = {2, length, HEADS, HEAD};
    const int64_t table_shape[] = {length, HEAD / 2};
    const int64_t positions_shape[] = {length}, offsets_shape[] = {2};
    const fastpe_array x = {data, shape, NULL, 3, FASTPE_FLOAT32};
    const fastpe_array half = {data, shape, NULL, 3, FASTPE_BFLOAT16};
    const fastpe_array q_and_k[] = {{data, heads_shape, NULL, 4, FASTPE_FLOAT32},
                                    {data + ROWS * WIDTH, heads_shape, NULL, 4, FASTPE_FLOAT32}};
    const fastpe_array cosines = {data, table_shape, NULL, 2, FASTPE_FLOAT32};
    const fastpe_array sines = {data + ROWS * WIDTH, table_shape, NULL, 2, FASTPE_FLOAT32};
    const fastpe_const_array given_positions = {positions, positions_shape, NULL, 1, FASTPE_INT32};
    const fastpe_const_array given_offsets = {offsets, offsets_shape, NULL, 1, FASTPE_INT64};
    const fastpe_const_array given_valid = {valid, positions_shape, NULL, 1, FASTPE_BOOL};
    fastpe_rows rows[4] = {{0}, {0}, {0}, {0}};
    rows[1].positions = &given_positions;
    rows[2].offsets = &given_offsets;
    rows[3].valid = &given_valid;
    const int is_small = 2 * length * WIDTH * 4 <= 256 * 1024;
    for (int i = 0; i < 4; ++i) {
      if (i == 2 && length + offsets[1] > ROWS) continue; /* beyond the rows that are kept */
      CHECK_ALLOCATES_NOTHING(fastpe_rotate(rotary, q_and_k, NULL, 2, 1, &rows[i], 0, 1));
      CHECK_ALLOCATES_NOTHING(fastpe_rotate(rotary, q_and_k, NULL, 2, 1, &rows[i], 1, 1));
      if (!is_small) continue;
      CHECK_ALLOCATES_NOTHING(fastpe_add(encoding, &x, NULL, -2, &rows[i], 1.0, 1.0, 1));
      CHECK_ALLOCATES_NOTHING(fastpe_add(encoding, &half, NULL, -2, &rows[i], 1.0, 1.0, 1));
      CHECK_ALLOCATES_NOTHING(fastpe_encode(encoding, &x, &rows[i], 1));
      if (i < 2) CHECK_ALLOCATES_NOTHING(fastpe_tables(rotary, FASTPE_TABLES_HALVES, &cosines, &sines, &rows[i], 1));
    }
  }
  free(data);
  fastpe_encoding_destroy(encoding);
  fastpe_rotary_destroy(rotary);

  for (int32_t call = 0; call < 4; ++call) {
    for (int32_t num_threads = 1; num_threads <= 2; ++num_threads) {
      check_failures(call, num_threads, 0);
      check_failures(call, num_threads, 1);
    }
  }
  return failures > 0 ? 1 : 0;
}
