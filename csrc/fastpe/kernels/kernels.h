// SPDX-License-Identifier: BSD-3-Clause
// The interface between the core and the code compiled for one instruction set: plain pointers, sizes and strides. A
// kernel allocates nothing, throws nothing and knows no threads. Each kernel has one struct of arguments.
#pragma once

#include <cstdint>

#include "fastpe/dtype.h"

namespace fastpe {

// The block of an anchor reaches block_radius positions to either side of it.
constexpr std::int64_t block_radius = 15;
constexpr std::int64_t block_rows = 2 * block_radius + 1;

// A group has its centre, which is an anchor, and group_radius anchors to either side.
constexpr std::int64_t group_radius = 8;
constexpr std::int64_t group_anchors = 2 * group_radius + 1;

// One expansion may make two adjacent blocks, a pair, which share each load of the fine tables.
constexpr int blocks_at_once = 2;
constexpr std::int64_t rows_of_two_blocks = blocks_at_once * block_rows;

// Tables of doubles are padded to a multiple of this and have as many columns more, so that kernels may load (never
// store) beyond the last column.
constexpr std::int64_t column_padding = 16;

// phasors writes sin and cos of one position for every frequency, in the order of the output's columns:
// values[c] is the encoding's value in column c, slopes[c] its derivative with respect to the phase.
// phase of frequency k, in quarter turns = anchor * anchor_quarters[k] + residual * quarters[k]; both as high + low.
struct PhasorArguments {
  double anchor;    // an integer: the position's anchor, counted in blocks
  double residual;  // 0, or what a fractional position has beyond its anchor
  std::int64_t frequency_count;
  const double* anchor_quarters_high;  // padded with zeros, see column_padding
  const double* anchor_quarters_low;
  const double* quarters_high;
  const double* quarters_low;
  double largest_quarters;  // of quarters_high, in magnitude
  double* values;           // 2 * frequency_count columns
  double* slopes;
  double* value_lows;  // null, or, if `compensated`, what rounding took from values and slopes: both or neither
  double* slope_lows;
  std::int64_t sine_column, cosine_column;  // of frequency 0
  bool interleaved;                         // column step 2, else 1
  bool compensated;                         // errors near half an ulp, for float64 outputs
};

// angles writes (position + row) * (high + low) * unit, for each of the frequencies.
struct AngleArguments {
  char* out;
  std::int64_t out_row_stride_bytes, rows, columns;
  double position;     // an integer where there are several rows
  double unit;         // a power of two
  const double* high;  // padded
  const double* low;
};

// An anchor's values and slopes, from the first wanted column on; or those of its group's centre, with the cosines and
// sines of the angle between the two. The latter never for float64.
struct AnchorPhasors {
  const double* values;
  const double* slopes;
  const double* cosines;  // null: values and slopes are the anchor's own
  const double* sines;
  double angle_sign;  // 1 or -1
};

// Cosines and sines of 0 .. block_radius positions' angles, times the output scale, in the order of the columns.
struct FineTables {
  const double* cosines;  // [0 .. block_radius][stride]
  const double* sines;
  const double* cosine_lows;  // what rounding took from them; float64 only
  const double* sine_lows;
  std::int64_t stride;
};

// Rows that are written: those of an encoding, or with x, sums of both, x * scale + alpha * PE.
struct SumRows {
  char* out;
  std::int64_t out_row_stride_bytes;
  const char* x = nullptr;  // null: only the encoding
  std::int64_t x_row_stride_bytes = 0;
  double scale = 1.0, alpha = 1.0;

  SumRows from_row(std::int64_t row) const {
    SumRows rows = *this;
    rows.out += row * out_row_stride_bytes;
    if (x != nullptr) rows.x += row * x_row_stride_bytes;
    return rows;
  }
};

// expand makes the rows first_row .. last_row around an anchor, which may reach into the next block:
//   out[row] = value * cos(row) + slope * sin(row), rounded once, or x[row] * scale + alpha * that.
struct Expansion : SumRows {              // from first_row on
  AnchorPhasors anchors[blocks_at_once];  // the second counts only if last_row is in its block
  FineTables fine;
  std::int64_t first_row, last_row;  // -block_radius .. block_radius + block_rows
  std::int64_t columns;
  double bound;       // of the encoding's magnitude: the output scale's
  bool prefetch;      // the rows behind these, of x or else of out, into L2
  bool non_temporal;  // store past the caches, where rows are aligned alike; out is not x
};

// Rows whose columns have no gaps, where their results go, and as many rows of the encoding.
struct RowsAtOnce {
  char* out;  // may be x
  const char* x;
  const char* tile;  // of the encoding
  std::int64_t out_row_stride_bytes, x_row_stride_bytes, tile_row_stride_bytes;
  // The offset of each row of x from `x` on, then that of a row that is only prefetched; null: rows have a stride.
  const std::int64_t* x_offsets_bytes;
  const std::int64_t* tile_offsets_bytes;  // of each row from `tile` on; null: they have a stride
  DType tile_dtype;                        // row_dtype, or where rows were found, that of x
  std::int64_t rows, columns;
  const char* next_x = nullptr;    // rows to prefetch into L2 meanwhile; null: none
  const char* next_out = nullptr;  // the same of out, with next_x; null: none
};

// out[row] = x[row] * scale + tile[row] * alpha, in float32 for the 16-bit dtypes, else in the dtype itself.
struct Combination : RowsAtOnce {
  double scale, alpha;
  bool non_temporal;  // store past the caches; out is not x
};

// rotate multiplies pairs of columns, as complex numbers, by given cosines and sines:
//   out1 = x1 * cosine - x2 * sine, out2 = x2 * cosine + x1 * sine, in float32 for the 16-bit dtypes, else in the
//   dtype.
// A pair is (2k, 2k + 1) if interleaved, else (k, k + half). Rows of x, which have a stride, may have more columns than
// these pairs.
struct Rotation : RowsAtOnce {  // `tile` has the cosines, of row_dtype
  const char* sines;            // in rows as those of `tile`
  std::int64_t pairs;
  std::int64_t half;
  bool interleaved;
  bool conjugate;  // by the negative angles
};

// resize sums rows with weights, in the order of the taps, in float64, and rounds once. For row r, tap t is the row at
// x + r * x_row_stride_bytes + tap_numbers[t] * tap_stride_bytes.
struct Resizing {
  char* out;
  const char* x;
  const std::int64_t* tap_numbers;
  const double* weights;
  std::int64_t taps, tap_stride_bytes;
  std::int64_t out_row_stride_bytes, x_row_stride_bytes;
  std::int64_t rows, columns;
};

// copy_non_temporal copies past the caches, but for what fills no cache line of `out` at both ends.
struct Copying {
  char* out;
  const char* x;
  std::int64_t bytes;  // a multiple of 4, as the addresses are
};

struct Kernels {
  void (*phasors)(const PhasorArguments&) = nullptr;
  void (*angles[written_dtype_count])(const AngleArguments&) = {};  // float32 and float64
  void (*expand[written_dtype_count])(const Expansion&) = {};
  void (*combine[written_dtype_count])(const Combination&) = {};             // tile: of row_dtype
  void (*combine_same_dtype[written_dtype_count])(const Combination&) = {};  // tile: of the dtype itself
  void (*rotate[written_dtype_count])(const Rotation&) = {};
  void (*resize_to_float64[written_dtype_count])(const Resizing&) = {};    // from rows of the dtype
  void (*resize_from_float64[written_dtype_count])(const Resizing&) = {};  // to rows of the dtype
  bool has_non_temporal_stores[written_dtype_count] = {};  // else Expansion and Combination ignore that wish
  void (*copy_non_temporal)(const Copying&) = nullptr;     // null where no dtype has them
  // Kernels do not wait for their non-temporal stores. Call this before another thread is told that they are done.
  void (*store_fence)() = nullptr;
};

// Each instruction set has one table, in the file of its name. dispatch.cpp lists those that are compiled.
extern const Kernels kernels_baseline;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
extern const Kernels kernels_neon;

}  // namespace fastpe
