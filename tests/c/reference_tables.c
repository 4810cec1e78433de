/* SPDX-License-Identifier: BSD-3-Clause
 * The tables whose sums are stored, by the C library. */
#include "reference_tables.h"

#include <stdlib.h>
#include <string.h>

#include "fastpe/fastpe.h"

static int32_t number_of(const char* const* names, int32_t count, const char* name) {
  for (int32_t i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0) return i + 1;
  }
  return 0;
}

static int32_t dtype_of(const reference_table* table) {
  static const char* const names[] = {"float32", "float64", "float16", "bfloat16"};
  return number_of(names, 4, table->dtype);
}

/* 0: the table is no table of cosines and sines. */
static int32_t form_of(const reference_table* table) {
  static const char* const names[] = {"halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "angles"};
  const int is_rotary = strncmp(table->operation, "rotary_", 7) == 0;
  return is_rotary && strcmp(table->operation, "rotary_rotation") != 0 ? number_of(names, 7, table->convention) : 0;
}

/* Of one array. */
static int64_t columns_of(const reference_table* table) {
  const int32_t form = form_of(table);
  return form == FASTPE_TABLES_HALVES || form == FASTPE_TABLES_ANGLES ? table->d_model / 2 : table->d_model;
}

static size_t array_bytes(const reference_table* table) {
  const size_t element_bytes = table->dtype[0] == 'b' ? 2 : (size_t)atoi(table->dtype + 5) / 8;
  return (size_t)(table->rows * columns_of(table)) * element_bytes;
}

static int has_two_arrays(const reference_table* table) {
  const int32_t form = form_of(table);
  return FASTPE_TABLES_HALVES <= form && form <= FASTPE_TABLES_REPEAT;
}

size_t reference_table_bytes(const reference_table* table) {
  return array_bytes(table) * (has_two_arrays(table) ? 2 : 1);
}

static int32_t convention_of(const reference_table* table) {
  if (strcmp(table->convention, "vaswani") == 0) return FASTPE_VASWANI;
  if (strcmp(table->convention, "tensor2tensor") == 0) return FASTPE_TENSOR2TENSOR;
  return strcmp(table->convention, "timestep") == 0 ? FASTPE_TIMESTEP : 0;
}

static fastpe_status write_encoding(const reference_table* table, const fastpe_array* out, const fastpe_rows* rows,
                                    int32_t threads) {
  fastpe_encoding_options options = {0};
  options.d_model = table->d_model;
  options.convention = convention_of(table);
  fastpe_encoding* encoding = NULL;
  fastpe_status status = fastpe_encoding_create(&options, &encoding);
  if (status == FASTPE_OK) {
    status = strcmp(table->operation, "add") == 0 ? fastpe_add(encoding, out, NULL, -2, rows, 1.25, 0.75, threads)
                                                  : fastpe_encode(encoding, out, rows, threads);
  }
  fastpe_encoding_destroy(encoding);
  return status;
}

static fastpe_status write_rotary(const reference_table* table, const fastpe_array* out, const fastpe_rows* rows,
                                  int32_t threads) {
  fastpe_rotary_options options = {0};
  options.rotary_dim = table->d_model;
  options.base = 10000.0;
  options.pairing = strcmp(table->convention, "interleaved") == 0 ? FASTPE_PAIRING_INTERLEAVED : FASTPE_PAIRING_HALVES;
  fastpe_rotary* rotary = NULL;
  fastpe_status status = fastpe_rotary_create(&options, &rotary);
  if (status == FASTPE_OK) {
    const int32_t form = form_of(table);
    status = form == 0 ? fastpe_rotate(rotary, out, 1, -2, rows, 0, threads)
                       : fastpe_tables(rotary, form, out, has_two_arrays(table) ? out + 1 : NULL, rows, threads);
  }
  fastpe_rotary_destroy(rotary);
  return status;
}

int write_reference_table(const reference_table* table, int32_t threads, void* out) {
  const int is_pairs = form_of(table) == FASTPE_TABLES_PAIRS;
  const int64_t shape[] = {table->rows, is_pairs ? table->d_model / 2 : columns_of(table), 2};
  fastpe_array arrays[2];
  for (int i = 0; i < 2; ++i) {
    arrays[i].data = (char*)out + (size_t)i * array_bytes(table);
    arrays[i].shape = shape;
    arrays[i].strides_bytes = NULL;
    arrays[i].axes = is_pairs ? 3 : 2;
    arrays[i].dtype = dtype_of(table);
  }
  fastpe_rows rows = {0};
  double* const fractions = malloc((size_t)table->rows * sizeof *fractions);
  if (fractions == NULL) return 1;
  for (int64_t i = 0; i < table->rows; ++i) fractions[i] = (double)table->first + 0.375 * (double)i;
  const fastpe_array positions = {fractions, shape, NULL, 1, FASTPE_FLOAT64};
  if (strstr(table->operation, "fractional") != NULL) {
    rows.positions = &positions;
  } else {
    rows.offset = table->first;
  }
  const int is_rotary = strncmp(table->operation, "rotary_", 7) == 0;
  const fastpe_status status = (is_rotary ? write_rotary : write_encoding)(table, arrays, &rows, threads);
  free(fractions);
  return status != FASTPE_OK;
}
