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

// How many adjacent blocks one expansion may make together: they share each load of the fine tables.
constexpr std::int64_t blocks_at_once = 2;

// An expansion makes so many columns at once.
constexpr std::int64_t panel_columns = 256;

// Tables are padded to a multiple of this, so that kernels may load (never store) past the last column. Of an
// expansion's tables and anchors, they may load so many columns more behind the last column and before the first one.
constexpr std::int64_t column_padding = 16;

// A line has at most so many bytes: a cache line, or a vector of an instruction set, where that is longer.
constexpr std::int64_t most_line_bytes = 128;

// phasors writes sin and cos of one position for every frequency, in the order of the output's columns:
// values[c] is the encoding's value in column c, slopes[c] its derivative with respect to the phase.
// phase of frequency k, in quarter turns = anchor * anchor_quarters[k] + residual * quarters[k]; both as high + low.
struct Phasors {
  double anchor;    // an integer: the position's anchor, counted in blocks
  double residual;  // 0, or what a fractional position has beyond its anchor
  std::int64_t frequency_count;
  const double* anchor_quarters_high;  // padded with zeros to a multiple of column_padding
  const double* anchor_quarters_low;
  const double* quarters_high;
  const double* quarters_low;
  double largest_quarters;  // of quarters_high, in magnitude
  double* values;           // room for 2 * frequency_count columns and column_padding more
  double* slopes;
  double* value_lows;  // null, or what rounding took from values and slopes
  double* slope_lows;
  std::int64_t sine_column, cosine_column;  // of frequency 0
  bool interleaved;                         // column step 2, else 1
  bool compensated;                         // errors near half an ulp, for float64 outputs
};

// The turn from the centre of a group to one of its anchors.
struct AnchorTurn {
  const double* cosines;  // of the distance, repeated like the fine tables; null: the anchor is given, not a centre
  const double* sines;
  bool backwards;
};

// An anchor's values and slopes, or those of its group's centre and the turn from there, at the first wanted column.
struct Anchor {
  const double* values;
  const double* slopes;
  AnchorTurn turn;  // never in float64
};

// Cosines and sines of the turns by 0 .. block_radius positions, times the output scale, in the order of the columns.
struct FineTables {
  const double* cosines;  // [0 .. block_radius][stride]
  const double* sines;
  const double* cosine_lows;  // what rounding took from them; float64 only
  const double* sine_lows;
  std::int64_t stride;
  std::int64_t columns_to_repeat;  // columns so far apart turn alike; so do column_padding columns behind the last one
};

// expand makes the rows first_row .. last_row around an anchor, which may reach into the next block:
//   out[row] = value * cos(row) + slope * sin(row), rounded once, or x[row] * scale + alpha * that.
struct Expansion {
  Anchor anchors[blocks_at_once];  // the second counts only if last_row is in its block
  FineTables fine;
  std::int64_t first_row, last_row;  // -block_radius .. block_radius + block_rows
  std::int64_t columns;
  char* out;  // of first_row
  std::int64_t out_row_stride_bytes;
  std::int64_t jump_column, jump_bytes;  // where x is null: columns from jump_column on are written jump_bytes further
  const char* x;                         // of first_row; null: write the encoding alone
  std::int64_t x_row_stride_bytes;
  double scale, alpha;
  double bound;             // of the encoding's magnitude: the output scale's
  bool fetches_ahead;       // x, or out where there is no x, into the second-level cache
  bool streaming;           // bypass the cache, where rows are aligned alike
  bool streams_row_by_row;  // a panel's rows one after the other, not a line of each in turn
  // If the next expansion goes on behind the last row, and both are whole pairs of blocks, this one may leave the ends
  // of its last row there, and the next one takes them and streams the seam.
  char* ends_between;  // room for a line, on a line's boundary
  bool takes_ends, leaves_ends;
};

// out[row] = x[row] * scale + addend[row] * alpha, in float32 for the 16-bit dtypes, else in the dtype itself.
struct Combination {
  char* out;
  const char* x;
  const char* next_x;  // rows that will be read soon and are fetched meanwhile; null: none
  char* next_out;      // rows that will be written soon and are fetched with next_x; null: none
  // The offset of each row of x from `x` on, then that of the row after the last one, which is only fetched; null: rows
  // have a stride.
  const std::int64_t* x_offsets_bytes;
  const char* addend;
  const std::int64_t* addend_offsets_bytes;  // of each row's addend from `addend` on; null: it has a stride
  std::int64_t out_row_stride_bytes, x_row_stride_bytes, addend_row_stride_bytes;
  std::int64_t rows, columns;
  double scale, alpha;
  bool streaming;
  bool fetches_close;  // next_x into the first-level cache; else, or if there is next_out, into the second
  bool unaligned;      // where next_x is fetched, stores begin where rows do, and not on a vector's boundary
  bool in_halves;      // where nothing is fetched, vectors of 64 bytes are added in halves
};

// Rotated rows that are streamed have at most so many bytes each, and at least so many together.
constexpr std::int64_t most_streamed_row_bytes = 2048;

// rotate turns pairs of columns by angles whose cosines and sines are given:
//   out1 = x1 * cosine - x2 * sine, out2 = x2 * cosine + x1 * sine, in float32 for the 16-bit dtypes, else in the
//   dtype.
// A pair is (2k, 2k + 1) if interleaved, else (k, k + half).
struct Rotation {
  char* out;  // may be x
  const char* x;
  const char* next_x;   // rows that will be read soon and are fetched meanwhile; null: none
  char* next_out;       // rows that will be written soon and are fetched with next_x; null: none
  const char* cosines;  // of row_dtype
  const char* sines;
  std::int64_t out_row_stride_bytes, x_row_stride_bytes, table_row_stride_bytes;
  std::int64_t rows, pairs;
  std::int64_t half;
  bool interleaved;
  bool backwards;      // by the negative angles
  bool streaming;      // bypass the cache: all columns are turned, out is apart from x, and its rows have no gaps
  bool fetches_close;  // next_x into the first-level cache; else, or if there is next_out, into the second
  bool in_halves;      // where nothing is fetched, vectors of 64 bytes may be turned in halves
};

// out[2k] = first[k], out[2k + 1] = second[k]
struct Interleaving {
  char* out;
  const char* first;
  const char* second;
  std::int64_t out_row_stride_bytes, row_stride_bytes;
  std::int64_t rows, columns;  // columns of first and second
  bool streaming;
};

// out[row] = row, row: each row twice, one copy behind the other. No rows have gaps between them.
struct Duplication {
  char* out;
  const char* from;
  std::int64_t rows, row_bytes;
  bool streaming;
};

// out[row][k] = (position + row) * radians[k], rounded once.
struct Angles {
  char* out;
  std::int64_t out_row_stride_bytes;
  double position;             // of the first row; an integer where there are several
  const double* radians_high;  // column_padding more than `columns` may be read
  const double* radians_low;
  std::int64_t rows, columns;
  bool streaming;  // bypass the cache, where there is no gap between rows
};

struct Kernels {
  void (*phasors)(const Phasors&) = nullptr;
  void (*expand[dtype_count])(const Expansion&) = {};
  void (*combine[dtype_count])(const Combination&) = {};             // addend: of row_dtype
  void (*combine_same_dtype[dtype_count])(const Combination&) = {};  // addend: of the dtype itself
  void (*rotate[dtype_count])(const Rotation&) = {};
  void (*interleave[dtype_count])(const Interleaving&) = {};
  void (*angles[dtype_count])(const Angles&) = {};  // float32 and float64 alone
  void (*duplicate)(const Duplication&) = nullptr;
  // Kernels do not wait for their streaming stores. Call this before another thread is told that they are done.
  void (*streaming_fence)() = nullptr;
};

// Each instruction set has one table, in the file of its name. dispatch.cpp lists those that are compiled.
extern const Kernels kernels_baseline;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
extern const Kernels kernels_neon;

}  // namespace fastpe
