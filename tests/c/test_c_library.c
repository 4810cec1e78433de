/* SPDX-License-Identifier: BSD-3-Clause
 * What only C shows: null pointers, contiguous arrays without strides, handles of two kinds. */
#include <stdio.h>
#include <string.h>

#include "fastpe/fastpe.h"

static int failures = 0;

#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (condition) break;                                                                                \
    ++failures;                                                                                          \
    fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, fastpe_error_message()); \
  } while (0)
#define REFUSED(call, name) CHECK((call) == FASTPE_INVALID_VALUE && strcmp(fastpe_error_argument(), name) == 0)

enum { L = 7, D = 16 };

static fastpe_encoding* new_encoding(void) {
  fastpe_encoding_options options = {0};
  options.d_model = D;
  options.convention = FASTPE_VASWANI;
  fastpe_encoding* encoding = NULL;
  CHECK(fastpe_encoding_create(&options, &encoding) == FASTPE_OK && encoding != NULL);
  return encoding;
}

static void null_pointers_are_refused(void) {
  fastpe_encoding* const encoding = new_encoding();
  float data[L * D] = {0};
  const int64_t shape[] = {L, D};
  const fastpe_array x = {data, shape, NULL, 2, FASTPE_FLOAT32};
  fastpe_array broken = x;
  REFUSED(fastpe_encoding_create(NULL, NULL), "encoding");
  fastpe_encoding* none = encoding;
  REFUSED(fastpe_encoding_create(NULL, &none), "options");
  CHECK(none == NULL);
  REFUSED(fastpe_encode(NULL, &x, NULL, 1), "encoding");
  REFUSED(fastpe_encode(encoding, NULL, NULL, 1), "out");
  REFUSED(fastpe_add(encoding, NULL, NULL, -2, NULL, 1.0, 1.0, 1), "x");
  REFUSED(fastpe_rotate(NULL, &x, NULL, 1, -2, NULL, 0, 1), "rotary");
  REFUSED(fastpe_encoding_warm_up(NULL, FASTPE_FLOAT32, 1), "encoding");
  broken.data = NULL;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  broken = x;
  broken.shape = NULL;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  broken = x;
  broken.ndim = FASTPE_MAX_AXES + 1;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  broken.ndim = -1;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  broken = x;
  broken.dtype = 0;
  CHECK(fastpe_encode(encoding, &broken, NULL, 1) == FASTPE_INVALID_TYPE);
  broken.dtype = FASTPE_BOOL + 1;
  CHECK(fastpe_encode(encoding, &broken, NULL, 1) == FASTPE_INVALID_TYPE);
  CHECK(fastpe_encoding_warm_up(encoding, FASTPE_INT8, 1) == FASTPE_INVALID_TYPE);
  const int64_t huge[] = {INT64_MAX / 8, D}, negative[] = {-1, D};
  broken = x;
  broken.shape = huge;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  broken.shape = negative;
  REFUSED(fastpe_encode(encoding, &broken, NULL, 1), "out");
  for (int i = 0; i < L * D; ++i) CHECK(data[i] == 0.0f);
  fastpe_encoding_destroy(encoding);
  fastpe_encoding_destroy(NULL);
  fastpe_rotary_destroy(NULL);
}

static void empty_arrays_need_no_data(void) {
  fastpe_encoding* const encoding = new_encoding();
  const int64_t shape[] = {0, D};
  const fastpe_array x = {NULL, shape, NULL, 2, FASTPE_FLOAT32};
  CHECK(fastpe_encode(encoding, &x, NULL, 0) == FASTPE_OK);
  CHECK(fastpe_add(encoding, &x, NULL, -2, NULL, 1.0, 1.0, 0) == FASTPE_OK);
  fastpe_encoding_destroy(encoding);
}

static void arguments_have_the_names_of_their_fields(void) {
  fastpe_encoding* const encoding = new_encoding();
  float data[L * D] = {0};
  int64_t far = INT64_MAX;
  const int64_t shape[] = {L, D}, one[] = {1};
  const fastpe_array x = {data, shape, NULL, 2, FASTPE_FLOAT32};
  const fastpe_const_array offsets = {&far, one, NULL, 1, FASTPE_INT64};
  fastpe_rows rows = {0};
  rows.offsets = &offsets;
  REFUSED(fastpe_add(encoding, &x, NULL, -2, &rows, 1.0, 1.0, 1), "offsets");
  rows.offsets = NULL;
  rows.offset = INT64_C(1) << 53;
  REFUSED(fastpe_add(encoding, &x, NULL, -2, &rows, 1.0, 1.0, 1), "offset");
  fastpe_encoding_destroy(encoding);
}

static void no_strides_stand_for_contiguous_ones(void) {
  fastpe_encoding* const encoding = new_encoding();
  float plain[2 * L * D], strided[2 * L * D];
  const int64_t shape[] = {2, L, D}, strides[] = {L * D * 4, D * 4, 4};
  const fastpe_array x = {plain, shape, NULL, 3, FASTPE_FLOAT32}, y = {strided, shape, strides, 3, FASTPE_FLOAT32};
  CHECK(fastpe_encode(encoding, &x, NULL, 1) == FASTPE_OK);
  CHECK(fastpe_encode(encoding, &y, NULL, 1) == FASTPE_OK);
  CHECK(memcmp(plain, strided, sizeof plain) == 0);
  CHECK(plain[0] == 0.0f && plain[1] == 1.0f && plain[D] > 0.84f && plain[D] < 0.85f);
  CHECK(memcmp(plain, plain + L * D, sizeof plain / 2) == 0);
  fastpe_encoding_destroy(encoding);
}

static void rows_without_room_are_refused(void) {
  fastpe_rotary_options options = {0};
  options.rotary_dim = 1 << 20;
  options.base = 10000.0;
  options.pairing = FASTPE_PAIRING_HALVES;
  options.max_len = INT64_MAX;
  fastpe_rotary* rotary = NULL;
  REFUSED(fastpe_rotary_create(&options, &rotary), "max_len");
  CHECK(rotary == NULL);
  options.max_len = 0;
  options.pairing = 0;
  REFUSED(fastpe_rotary_create(&options, &rotary), "pairing");
}

static void what_stands_beside_queries_and_keys(void) {
  float slopes[8];
  int8_t mask[] = {0, 1, 1, 0, 1}, relative[] = {-128, -9, 0, 1, 127};
  int32_t ids[5] = {0}, buckets[5] = {0};
  int64_t heads[] = {8}, five[] = {5}, two[] = {2};
  const int32_t expected_ids[] = {1, 0, 1, 1, 2}, expected_buckets[] = {15, 8, 0, 17, 31};
  const fastpe_array slopes_out = {slopes, heads, NULL, 1, FASTPE_FLOAT32};
  const fastpe_array ids_out = {ids, five, NULL, 1, FASTPE_INT32}, last_ids = {ids, two, NULL, 1, FASTPE_INT32};
  const fastpe_array buckets_out = {buckets, five, NULL, 1, FASTPE_INT32};
  const fastpe_const_array given_mask = {mask, five, NULL, 1, FASTPE_INT8};
  const fastpe_const_array positions = {relative, five, NULL, 1, FASTPE_INT8};
  CHECK(fastpe_alibi_slopes(8.0, &slopes_out) == FASTPE_OK);
  for (int head = 0; head < 8; ++head) CHECK(slopes[head] == 1.0f / (float)(2 << head));
  CHECK(fastpe_position_ids(&given_mask, &ids_out) == FASTPE_OK);
  CHECK(memcmp(ids, expected_ids, sizeof ids) == 0);
  CHECK(fastpe_position_ids(&given_mask, &last_ids) == FASTPE_OK && ids[0] == 1 && ids[1] == 2);
  CHECK(fastpe_relative_buckets(&positions, 1, 32, 128, &buckets_out) == FASTPE_OK);
  CHECK(memcmp(buckets, expected_buckets, sizeof buckets) == 0);
  REFUSED(fastpe_alibi_slopes(8.0, NULL), "out");
  REFUSED(fastpe_position_ids(NULL, &ids_out), "mask");
  REFUSED(fastpe_position_ids(&given_mask, NULL), "out");
  REFUSED(fastpe_relative_buckets(NULL, 1, 32, 128, &buckets_out), "relative_positions");
  REFUSED(fastpe_rotary_frequencies(NULL, NULL, 0, NULL), "rotary");
}

int main(void) {
  CHECK(fastpe_version() == FASTPE_VERSION);
  CHECK(strcmp(fastpe_error_message(), "") == 0);
  null_pointers_are_refused();
  empty_arrays_need_no_data();
  arguments_have_the_names_of_their_fields();
  no_strides_stand_for_contiguous_ones();
  rows_without_room_are_refused();
  what_stands_beside_queries_and_keys();
  return failures > 0 ? 1 : 0;
}
