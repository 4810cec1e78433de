/* SPDX-License-Identifier: BSD-3-Clause
 * Calls in the place of loops that hosts have, beside their times, with one thread each: a table in Markdown. The
 * error is the largest difference between the two, and fastpe's numbers are exact. */
#include <fastpe/fastpe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host_loops.h"

enum { TOKENS = 512, HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAST = 10000, COUNT = TOKENS * HEADS * HEAD_DIM };
enum { COLUMNS = (HEADS + 2 * KV_HEADS) * HEAD_DIM }; /* queries, keys and values of a token */
enum { FRAMES = 71, FEATURES = 560, IMAGE_ROWS = 64 * 64, TABLE_ROWS = 500, TABLE_WIDTH = 1024, TURNS = 15 };

static fastpe_encoding *paraformer, *transformer;
static fastpe_rotary *norm, *norm_kept, *neox_kept, *flux;
static float *x, *theirs, *ours, *cosines, *sines;
static float ids[3 * IMAGE_ROWS];
static const int widths[] = {16, 56, 56};
static const fastpe_rows past = {PAST, NULL, NULL, NULL, NULL, NULL, {0}};

static void check(fastpe_status status) {
  if (status == FASTPE_OK) return;
  fprintf(stderr, "fastpe: %s\n", fastpe_error_message());
  exit(1);
}

/* ggml counts axes from the last one on: ne = {head_dim, heads, tokens}, nb = the strides in bytes. */
static const int64_t projected[] = {sizeof(float) * COLUMNS, sizeof(float) * HEAD_DIM, sizeof(float)};
static const int64_t tokens_first[] = {TOKENS, HEADS, HEAD_DIM}, heads_first[] = {HEADS, TOKENS, HEAD_DIM};

static void rotate(const fastpe_rotary* rotary, float* from, const int64_t* strides, float* to, const int64_t* shape,
                   const fastpe_rows* rows) {
  const fastpe_array view = {from, shape, strides, 3, FASTPE_FLOAT32}, out = {to, shape, NULL, 3, FASTPE_FLOAT32};
  check(fastpe_rotate(rotary, &view, &out, 1, shape[0] == HEADS ? -2 : -3, rows, 0, 1));
}

static void ggml_apart(void) { host_loop(x, theirs, TOKENS, HEADS, HEAD_DIM, COLUMNS, 500000.0f, PAST); }
static void norm_apart(void) { rotate(norm, x, projected, ours, tokens_first, &past); }
static void kept_apart(void) { rotate(norm_kept, x, projected, ours, tokens_first, &past); }
static void ggml_in_place(void) {
  host_loop(theirs, theirs, TOKENS, HEADS, HEAD_DIM, HEADS * HEAD_DIM, 500000.0f, PAST);
}
static void norm_in_place(void) { rotate(norm, ours, NULL, ours, tokens_first, &past); }
static void ggml_token(void) { host_loop(x, theirs, 1, HEADS, HEAD_DIM, COLUMNS, 500000.0f, PAST); }
static void norm_token(void) {
  static const int64_t shape[] = {1, HEADS, HEAD_DIM};
  rotate(norm_kept, x, projected, ours, shape, &past);
}
static void sherpa(void) { loop_of_sherpa_onnx(theirs, FRAMES, FEATURES, PAST); }
static void sherpa_by_fastpe(void) {
  static const int64_t shape[] = {FRAMES, FEATURES};
  const fastpe_array view = {ours, shape, NULL, 2, FASTPE_FLOAT32};
  check(fastpe_add(paraformer, &view, NULL, -2, &past, 1.0, 1.0, 1));
}
static void diffusion(void) { loop_of_stable_diffusion_cpp(ids, theirs, IMAGE_ROWS, widths, 10000.0f); }
static void diffusion_by_fastpe(void) {
  static const int64_t shape[] = {IMAGE_ROWS, 64, 2, 2}, ids_shape[] = {IMAGE_ROWS, 3};
  const fastpe_const_array positions = {ids, ids_shape, NULL, 2, FASTPE_FLOAT32};
  fastpe_rows rows = FASTPE_ZERO;
  rows.positions = &positions;
  const fastpe_array out = {ours, shape, NULL, 4, FASTPE_FLOAT32};
  check(fastpe_tables(flux, FASTPE_TABLES_MATRICES, &out, NULL, &rows, 1));
}
static void table(void) { table_of_ctranslate2(theirs, TABLE_ROWS, TABLE_WIDTH); }
static void table_by_fastpe(void) {
  static const int64_t shape[] = {TABLE_ROWS, TABLE_WIDTH};
  const fastpe_array out = {ours, shape, NULL, 2, FASTPE_FLOAT32};
  check(fastpe_encode(transformer, &out, NULL, 1));
}
static void rotation(void) { rotation_of_ctranslate2(x, cosines, sines, theirs, HEADS, TOKENS, HEAD_DIM); }
static void neox_apart(void) { rotate(neox_kept, x, NULL, ours, heads_first, NULL); }
static void neox_in_place(void) { rotate(neox_kept, ours, NULL, ours, heads_first, NULL); }

static fastpe_rotary* new_rotary(int32_t pairing, double base, int64_t max_len) {
  fastpe_rotary_options options = FASTPE_ZERO;
  fastpe_rotary* rotary = NULL;
  options.rotary_dim = HEAD_DIM;
  options.base = base;
  options.pairing = pairing;
  options.max_len = max_len;
  check(fastpe_rotary_create(&options, &rotary));
  return rotary;
}

static fastpe_encoding* new_encoding(int64_t d_model) {
  fastpe_encoding_options options = FASTPE_ZERO;
  fastpe_encoding* encoding = NULL;
  options.d_model = d_model;
  options.convention = FASTPE_OPENNMT_TF; /* positions from 1 */
  check(fastpe_encoding_create(&options, &encoding));
  return encoding;
}

/* Frequencies of three coordinates, each counted anew. */
static fastpe_rotary* new_flux(void) {
  double frequencies[64];
  int32_t axes[64];
  for (int axis = 0, at = 0; axis < 3; ++axis) {
    for (int k = 0; k < widths[axis] / 2; ++k, ++at) {
      frequencies[at] = pow(10000.0, -2.0 * k / widths[axis]);
      axes[at] = axis;
    }
  }
  fastpe_rotary_options options = FASTPE_ZERO;
  fastpe_rotary* rotary = NULL;
  options.rotary_dim = HEAD_DIM;
  options.pairing = FASTPE_PAIRING_INTERLEAVED;
  options.frequencies = frequencies;
  options.frequency_count = 64;
  options.frequency_axes = axes;
  options.max_len = 64; /* the largest coordinate, and 1 */
  check(fastpe_rotary_create(&options, &rotary));
  return rotary;
}

static double microseconds(void (*work)(void)) {
  int repeats = 0;
  const clock_t start = clock();
  do {
    work();
    ++repeats;
  } while (clock() - start < CLOCKS_PER_SEC / 500);
  return (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / repeats;
}

static int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0.0) - (difference < 0.0);
}

static double median(double* values) {
  qsort(values, TURNS, sizeof *values, compare);
  return values[TURNS / 2];
}

static void report(const char* host, const char* work, const char* call, void (*loop)(void), void (*by_fastpe)(void),
                   size_t count) {
  double largest = 0.0, loop_times[TURNS], times[TURNS], ratios[TURNS];
  for (size_t i = 0; i < COUNT; ++i) theirs[i] = ours[i] = x[i];
  loop();
  by_fastpe();
  for (size_t i = 0; i < count; ++i) largest = fmax(largest, fabs((double)theirs[i] - (double)ours[i]));
  if (!(largest < 0.01)) {
    fprintf(stderr, "%s: the two are %g apart\n", host, largest);
    exit(1);
  }
  for (int turn = 0; turn < TURNS; ++turn) {
    loop_times[turn] = microseconds(loop);
    times[turn] = microseconds(by_fastpe);
    ratios[turn] = loop_times[turn] / times[turn];
  }
  printf("| %s | %s | %s | %.3g | %.3g | %.2g | %.0e |\n", host, work, call, median(loop_times), median(times),
         median(ratios), largest);
}

int main(void) {
  x = (float*)malloc(sizeof(float) * TOKENS * COLUMNS);
  theirs = (float*)malloc(sizeof(float) * COUNT);
  ours = (float*)malloc(sizeof(float) * COUNT);
  cosines = (float*)malloc(sizeof(float) * TOKENS * HEAD_DIM);
  sines = (float*)malloc(sizeof(float) * TOKENS * HEAD_DIM);
  for (int i = 0; i < TOKENS * COLUMNS; ++i) x[i] = (float)(i % 251) / 125.0f - 1.0f;
  for (int i = 0; i < IMAGE_ROWS; ++i) ids[3 * i + 1] = (float)(i / 64), ids[3 * i + 2] = (float)(i % 64);
  norm = new_rotary(FASTPE_PAIRING_INTERLEAVED, 500000.0, 0);
  norm_kept = new_rotary(FASTPE_PAIRING_INTERLEAVED, 500000.0, 2 * PAST);
  neox_kept = new_rotary(FASTPE_PAIRING_HALVES, 10000.0, TOKENS);
  flux = new_flux();
  paraformer = new_encoding(FEATURES);
  transformer = new_encoding(TABLE_WIDTH);
  check(fastpe_rotary_warm_up(norm_kept, FASTPE_FLOAT32, 1));
  const int64_t table_shape[] = {TOKENS, HEAD_DIM};
  const fastpe_array cos_view = {cosines, table_shape, NULL, 2, FASTPE_FLOAT32};
  const fastpe_array sin_view = {sines, table_shape, NULL, 2, FASTPE_FLOAT32};
  check(fastpe_tables(neox_kept, FASTPE_TABLES_TILE, &cos_view, &sin_view, NULL, 1));

  printf(
      "| host | its loop | in its place | loop, us | fastpe, us | times as fast | loop's error |\n"
      "|---|---|---|---|---|---|---|\n");
  report("ggml", "rotates q [512, 32, 128] out of a projection, at 10,000", "`fastpe_rotate`", ggml_apart, norm_apart,
         COUNT);
  report("ggml", "the same", "`fastpe_rotate`, rows kept", ggml_apart, kept_apart, COUNT);
  report("ggml", "the same, in place", "`fastpe_rotate`", ggml_in_place, norm_in_place, COUNT);
  report("ggml", "one token, [1, 32, 128]", "`fastpe_rotate`, rows kept", ggml_token, norm_token, HEADS * HEAD_DIM);
  report("sherpa-onnx", "adds to features [71, 560], at 10,000", "`fastpe_add`", sherpa, sherpa_by_fastpe,
         FRAMES * FEATURES);
  report("stable-diffusion.cpp", "matrices of Flux for 64 x 64 tokens", "`fastpe_tables`, `frequency_axes`", diffusion,
         diffusion_by_fastpe, (size_t)IMAGE_ROWS * 256);
  report("CTranslate2", "table [500, 1024]", "`fastpe_encode`", table, table_by_fastpe,
         (size_t)TABLE_ROWS * TABLE_WIDTH);
  report("CTranslate2", "rotates [32, 512, 128] by tables, into another array", "`fastpe_rotate`, rows kept", rotation,
         neox_apart, COUNT);
  report("CTranslate2", "the same", "`fastpe_rotate` in place, rows kept", rotation, neox_in_place, COUNT);
  return 0;
}
