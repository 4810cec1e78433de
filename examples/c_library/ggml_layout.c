/* SPDX-License-Identifier: BSD-3-Clause
 * Replaces the loop of a host in the style of ggml: queries and keys are columns of one projection, [tokens, heads,
 * head_dim] with strides, and are rotated out of it into arrays of their own. Prints the time of both, and how far the
 * loop is off. */
#include <fastpe/fastpe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TOKENS = 512, HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAST = 100000, REPEATS = 20 };
enum { COLUMNS = (HEADS + 2 * KV_HEADS) * HEAD_DIM }; /* queries, keys and values of a token */
static const double base = 500000.0;

/* In host_loop.c. */
void host_loop(const float* x, float* out, int tokens, int heads, int head_dim, int columns, float base, int past);

static void check(fastpe_status status) {
  if (status == FASTPE_OK) return;
  fprintf(stderr, "fastpe: %s\n", fastpe_error_message());
  exit(1);
}

static double milliseconds_since(clock_t start) { return (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC / REPEATS; }

/* The largest difference from rotations in float64. */
static double error_of(const float* x, const float* out, int heads) {
  double largest = 0.0;
  for (int token = 0; token < TOKENS; ++token) {
    for (int i = 0; i < HEAD_DIM; i += 2) {
      const double angle = (PAST + token) * pow(base, -(double)i / HEAD_DIM), cosine = cos(angle), sine = sin(angle);
      for (int head = 0; head < heads; ++head) {
        const float* from = x + (size_t)token * COLUMNS + (size_t)head * HEAD_DIM + i;
        const float* to = out + ((size_t)token * (size_t)heads + (size_t)head) * HEAD_DIM + i;
        const double first = fabs((double)to[0] - ((double)from[0] * cosine - (double)from[1] * sine));
        const double second = fabs((double)to[1] - ((double)from[0] * sine + (double)from[1] * cosine));
        largest = fmax(largest, fmax(first, second));
      }
    }
  }
  return largest;
}

int main(void) {
  float* x = (float*)malloc(sizeof(float) * TOKENS * COLUMNS);
  float* q = (float*)malloc(sizeof(float) * TOKENS * HEADS * HEAD_DIM);
  float* k = (float*)malloc(sizeof(float) * TOKENS * KV_HEADS * HEAD_DIM);
  for (int i = 0; i < TOKENS * COLUMNS; ++i) x[i] = (float)(i % 251) / 125.0f - 1.0f;

  clock_t start = clock();
  for (int i = 0; i < REPEATS; ++i) {
    host_loop(x, q, TOKENS, HEADS, HEAD_DIM, COLUMNS, (float)base, PAST);
    host_loop(x + HEADS * HEAD_DIM, k, TOKENS, KV_HEADS, HEAD_DIM, COLUMNS, (float)base, PAST);
  }
  const double loop_time = milliseconds_since(start), loop_error = error_of(x, q, HEADS);

  fastpe_rotary_options options = FASTPE_ZERO;
  options.rotary_dim = HEAD_DIM;
  options.base = base;
  options.pairing = FASTPE_PAIRING_INTERLEAVED; /* as GGUF files of Llama have it */
  fastpe_rotary* rotary = NULL;
  check(fastpe_rotary_create(&options, &rotary));
  /* ggml counts axes from the last one on: ne = {head_dim, heads, tokens}, nb = the strides in bytes. */
  const int64_t strides[] = {sizeof(float) * COLUMNS, sizeof(float) * HEAD_DIM, sizeof(float)};
  const int64_t q_shape[] = {TOKENS, HEADS, HEAD_DIM}, k_shape[] = {TOKENS, KV_HEADS, HEAD_DIM};
  const fastpe_array views[] = {{x, q_shape, strides, 3, FASTPE_FLOAT32},
                                {x + HEADS * HEAD_DIM, k_shape, strides, 3, FASTPE_FLOAT32}};
  const fastpe_array out[] = {{q, q_shape, NULL, 3, FASTPE_FLOAT32}, {k, k_shape, NULL, 3, FASTPE_FLOAT32}};
  fastpe_rows rows = FASTPE_ZERO;
  rows.offset = PAST;
  start = clock();
  for (int i = 0; i < REPEATS; ++i) check(fastpe_rotate(rotary, views, out, 2, -3, &rows, 0, 1));
  const double time = milliseconds_since(start);
  const double error = fmax(error_of(x, q, HEADS), error_of(x + HEADS * HEAD_DIM, k, KV_HEADS));

  printf("plain loop: %.2f ms, error %.1e\nfastpe: %.2f ms, error %.1e\n", loop_time, loop_error, time, error);
  fastpe_rotary_destroy(rotary);
  free(x);
  free(q);
  free(k);
  return error < 1e-6 ? 0 : 1;
}
