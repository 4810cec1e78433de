/* SPDX-License-Identifier: BSD-3-Clause
 * The tables of one position, by the options that a GGUF file has: gguf MODEL.gguf POSITION [CONTEXT_LENGTH] */
#include <fastpe/fastpe.h>
#include <stdio.h>
#include <stdlib.h>

#include "gguf_rotary.h"

static void fail(const char* what) {
  fprintf(stderr, "gguf: %s\n", what);
  exit(1);
}

int main(int count, char** arguments) {
  if (count != 3 && count != 4) fail("usage: gguf MODEL.gguf POSITION [CONTEXT_LENGTH]");
  gguf_rotary model;
  fastpe_rotary* rotary = NULL;
  if (!gguf_rotary_read(arguments[1], count == 4 ? strtoll(arguments[3], NULL, 10) : 0, &model)) fail(model.message);
  if (fastpe_rotary_create(&model.options, &rotary) != FASTPE_OK) fail(fastpe_error_message());
  gguf_rotary_free(&model); /* the handle has numbers of its own */

  const int64_t shape[] = {1, model.options.rotary_dim / 2};
  double* tables = (double*)malloc(2 * sizeof(double) * (size_t)shape[1]);
  const fastpe_array cos = {tables, shape, NULL, 2, FASTPE_FLOAT64};
  const fastpe_array sin = {tables + shape[1], shape, NULL, 2, FASTPE_FLOAT64};
  fastpe_rows rows = FASTPE_ZERO;
  rows.offset = strtoll(arguments[2], NULL, 10);
  if (fastpe_tables(rotary, FASTPE_TABLES_HALVES, &cos, &sin, &rows, 1) != FASTPE_OK) fail(fastpe_error_message());
  printf("%lld %lld %s\n", (long long)model.options.head_dim, (long long)model.options.rotary_dim,
         model.options.pairing == FASTPE_PAIRING_HALVES ? "halves" : "interleaved");
  for (int64_t k = 0; k < shape[1]; ++k) printf("%.17g %.17g\n", tables[k], tables[shape[1] + k]);
  fastpe_rotary_destroy(rotary);
  free(tables);
  return 0;
}
