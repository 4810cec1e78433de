// SPDX-License-Identifier: BSD-3-Clause
// One call, described: which rows, at which positions, encoded, added to or gathered.
#pragma once

#include <cstdint>

#include "array_view.h"
#include "encoder.h"

namespace fastpe {

// Row (batch, l) is at
//   first + offset + l                          by default,
//   first + offset + valid rows before l        when only valid rows count,
//   first + offset + l - its sequence's start   in a packed batch,
//   values[batch, l]                            when explicit.
// Positions and offsets are those of batch / batches_per_row: the other batch axes share them.
struct Positions {
  std::int64_t first = 0;
  NumbersView offsets;  // data null: none; per sequence in a packed batch
  NumbersView values;   // data null: not explicit
  bool values_per_batch = false;
  NumbersView sequence_starts;  // data null: not packed
  std::int64_t sequence_count = 0;
  bool count_valid_only = false;
  std::int64_t batches_per_row = 1;

  // A division would be a good part of what a row of a decoding step costs.
  std::int64_t row_of(std::int64_t batch) const { return batches_per_row == 1 ? batch : batch / batches_per_row; }
};

// Rows that are left alone.
struct Validity {
  const char* mask = nullptr;  // NumPy booleans; true: valid
  std::int64_t mask_batch_stride_bytes = 0, mask_seq_stride_bytes = 0;
  NumbersView lengths;  // data null: none
};

// A [rows, columns] array, row by row.
struct TableView {
  const char* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride_bytes = 0;
};

// out = PE, or x * scale + alpha * PE; x is an array, or rows of `vocabulary` chosen by ids. PE comes from the encoder,
// or from a learned table. All arrays' dtype is out's.
struct Job {
  const Encoder* encoder = nullptr;
  std::int64_t first_column = 0;  // of the encoding, in out's column 0
  bool use_cached_rows = true;
  TableView learned;
  RowsView out;
  const RowsView* x = nullptr;
  TableView vocabulary;
  NumbersView ids;
  Positions positions;
  Validity validity;
  double scale = 1.0, alpha = 1.0;
  int max_threads = 1;
};

}  // namespace fastpe
