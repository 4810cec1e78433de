/* SPDX-License-Identifier: BSD-3-Clause
 * Calls on warm handles allocate nothing. glibc's malloc is counted, and made to fail: calls of Python's tests, on the
 * same core, fail at each allocation. */
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
  failing = allocations;
  CHECK(fastpe_encoding_create(&encoding_options, &encoding) == FASTPE_OUT_OF_MEMORY && encoding == NULL);
  failing = -1;
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
  return failures > 0 ? 1 : 0;
}
