// SPDX-License-Identifier: BSD-3-Clause
// expand: the rows around an anchor, from its phasors.
//
// Method: the angle addition theorem gives first the anchor itself from its group's centre, then the rows around it.
// The rows at +row and -row come from the same two products. The arithmetic is plain multiplication and addition in
// one fixed order.
// It reads the fine tables and anchors, which are padded, and x. It writes exactly the rows' columns, with any
// alignment. Rows may have any stride, and out may be x.
// Error: docs/accuracy.md has the bounds, and the largest errors that tests/oracles/weak_spots.py finds.
//
// NumPy's large arrays start 16 bytes behind a cache line, so all stores of a row would straddle two lines. Rows of
// float32 are therefore stored on vectors' boundaries, but for a vector at each end, which overlaps the others. On an
// Intel server [512, 512] then takes half of the time with AVX-512 (11 to 21 GB/s) and two thirds with AVX2 (10 to 15);
// a seventh is saved in the rows that are in no whole pair of blocks. On Zen 4 it made 3 % of difference either way.
//
// Cost, in cycles for 16 float32 values (AVX-512). On Zen 4 the arithmetic alone takes 5.2 to 5.9, of which each
// conversion of 8 values takes 1.3; storing to the second level takes 2 to 3, and both together 7 to 7.5. On Zen 5
// these are 3.3, 2.1 and 5.6, so they overlap little.
//
// Where x or out is fetched ahead, panels are about as wide as each other, and the last one fetches the first one of
// the next rows. With panels of 256 columns and a narrow last one, a third of the columns of rows of 384 came
// unfetched: sums of one sequence from memory took 1.4 to 1.7 times as long (1.3 for 640 columns, 1.5 to 1.9 for 320;
// Zen 4).
//
// These were no better on the whole (on Zen 4, if nothing else is said):
// - pairs of (sin, cos) interleaved at the store (0 to 12 % faster in the cache with AVX-512, 20 % slower with AVX2,
//   and each layout needs its own); tables of such pairs, spread as they are loaded (no change); one anchor at a time
//   (20 % slower), or three or four (up to 8 %); an anchor's columns in registers; blocks of 47 or 63 rows (3 % either
//   way, for larger tables); panels of 128, 384 or more columns (2 to 30 % slower); adding with FMA by 1 on the
//   multipliers' ports; halving the stores that straddle two lines (3 % either way); on Zen 5 halves joined for one
//   store (no change).
// - tables that start 32 bytes behind a boundary, so that rows of NumPy's large arrays load them from a boundary (on an
//   Intel server 7 % faster for these, 10 % slower for others).
// - stores on vectors' boundaries: one loop for all columns, so that there is less code (a quarter slower, for want of
//   registers); in rows of 64 columns (a tenth slower).
// - fetching ahead: a row's lines at once (a fifth slower than one by one), or for writing (a third slower; a tenth in
//   the cache on Zen 5); the fine tables (Zen 5, up to 8 % slower).
// - for sums of [8, 8192, 1024], of whose time tiles take an eighth: tiles of two blocks (2 % faster with one thread,
//   not with two); while these are made, fetching an item's rows of x (1 to 3 % slower) or the fine tables (3 % either
//   way).
// expand_streaming.inl says what was tried for streaming.
#pragma once

#include "expand_rows.inl"
#include "expand_streaming.inl"

namespace fastpe {
namespace {

template <class T, Mode mode>
void expand_in_mode(const Expansion& e) {
  // Streaming halves of lines does not pay. For sums of float32, streaming whole ones would take a twentieth of the
  // module for AVX2, and as much for the baseline, which few processors run.
  constexpr bool streams_sums = has_wide_vectors && line_columns<T> == float_lanes;
  if constexpr (can_stream(T::dtype) && (mode == Mode::write || streams_sums)) {
    if (e.streaming && e.jump_bytes == 0 && expand_streaming<T, mode>(e)) return;
  }
  if (e.fetches_ahead) {
    expand_panels<T, mode, Access::fetching>(e, 0, e.columns);
  } else {
    expand_panels<T, mode, Access::plain>(e, 0, e.columns);
  }
}

template <class T>
void expand(const Expansion& e) {
  constexpr Mode plain_sum = has_code_for_plain_sums ? Mode::add : Mode::scale_and_add;
  if (e.x == nullptr) {
    expand_in_mode<T, Mode::write>(e);
  } else if (e.scale == 1.0 && e.alpha == 1.0) {
    expand_in_mode<T, plain_sum>(e);
  } else {
    expand_in_mode<T, Mode::scale_and_add>(e);
  }
}

}  // namespace
}  // namespace fastpe
