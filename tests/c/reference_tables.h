/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REFERENCE_TABLES_H
#define REFERENCE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line of tests/data/reference_sums.txt, but for its sum. */
typedef struct reference_table {
  const char *operation, *convention, *dtype;
  int64_t first, rows, d_model;
} reference_table;

/* How many bytes the table has. */
size_t reference_table_bytes(const reference_table* table);
/* Writes it. `out` holds the embeddings already, where the table is a sum or a rotation. 0 on success. */
int write_reference_table(const reference_table* table, int32_t threads, void* out);

#ifdef __cplusplus
}
#endif
#endif
