/* SPDX-License-Identifier: BSD-3-Clause
 * The cosines and sines that a decoder passes to a graph, and its queries and keys rotated in place: C99, and C++. */
#include <fastpe/fastpe.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 5, HEADS = 4, KV_HEADS = 2, HEAD_DIM = 64, PAST = 1000 };

static void check(fastpe_status status) {
  if (status == FASTPE_OK) return;
  fprintf(stderr, "fastpe: %s\n", fastpe_error_message());
  exit(1);
}

int main(void) {
  fastpe_rotary_options options = FASTPE_ZERO; /* what is 0 is not used */
  options.rotary_dim = HEAD_DIM;
  options.head_dim = HEAD_DIM;
  options.base = 500000.0; /* rope_theta of config.json */
  options.pairing = FASTPE_PAIRING_HALVES;
  options.max_len = 4096;
  fastpe_rotary* rotary = NULL;
  check(fastpe_rotary_create(&options, &rotary));
  check(fastpe_rotary_warm_up(rotary, FASTPE_FLOAT32, 0)); /* 0: as many threads as there are processors */

  fastpe_rows rows = FASTPE_ZERO;
  rows.offset = PAST; /* the position of the first token */

  static float cos[TOKENS][HEAD_DIM / 2], sin[TOKENS][HEAD_DIM / 2];
  const int64_t table_shape[] = {TOKENS, HEAD_DIM / 2};
  const fastpe_array cos_array = {cos, table_shape, NULL, 2, FASTPE_FLOAT32};
  const fastpe_array sin_array = {sin, table_shape, NULL, 2, FASTPE_FLOAT32};
  check(fastpe_tables(rotary, FASTPE_TABLES_HALVES, &cos_array, &sin_array, &rows, 0));

  static float q[TOKENS][HEADS][HEAD_DIM], k[TOKENS][KV_HEADS][HEAD_DIM];
  for (int i = 0; i < TOKENS * HEADS * HEAD_DIM; ++i) (&q[0][0][0])[i] = 1.0f;
  for (int i = 0; i < TOKENS * KV_HEADS * HEAD_DIM; ++i) (&k[0][0][0])[i] = 1.0f;
  const int64_t q_shape[] = {TOKENS, HEADS, HEAD_DIM}, k_shape[] = {TOKENS, KV_HEADS, HEAD_DIM};
  const fastpe_array q_and_k[] = {{q, q_shape, NULL, 3, FASTPE_FLOAT32}, {k, k_shape, NULL, 3, FASTPE_FLOAT32}};
  check(fastpe_rotate(rotary, q_and_k, NULL, 2, -3, &rows, 0, 0)); /* -3: the axis of the tokens */

  printf("cos %.7f, sin %.7f, q %.7f\n", cos[0][0], sin[0][0], q[0][0][0]);
  fastpe_rotary_destroy(rotary);
  return q[0][0][0] == cos[0][0] - sin[0][0] ? 0 : 1;
}
