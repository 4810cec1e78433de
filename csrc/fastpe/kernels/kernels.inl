// SPDX-License-Identifier: BSD-3-Clause
// The kernels, written once over the vector types Doubles and Floats that each instruction set's file
// defines before it includes this one. Nothing of the standard library is instantiated here and nothing has external
// linkage: the linker could otherwise hand this file's copy of a shared function to a processor that cannot run it. FMA
// computes only the errors of products, which are exact, so that every instruction set gives the same bits.
#include "angles.inl"
#include "combine.inl"
#include "elements.inl"
#include "expand.inl"
#include "fastpe/arithmetic_checks.h"
#include "memory.inl"
#include "phasors.inl"
#include "resize.inl"
#include "rotate.inl"

namespace fastpe {
namespace {

// T has a dtype's elements, Row those of the rows that are combined with them.
template <class T, class Row>
constexpr void add_dtype(Kernels& kernels) {
  constexpr int dtype = index_of(T::dtype);
  static_assert(Row::dtype == row_dtype(T::dtype));
  if constexpr (!is_16_bit(T::dtype)) kernels.angles[dtype] = angles<T>;
  kernels.expand[dtype] = expand<T>;
  kernels.combine[dtype] = combine<T, Row>;
  kernels.combine_same_dtype[dtype] = combine<T, T>;
  kernels.rotate[dtype] = rotate<T, Row>;
  kernels.resize_to_float64[dtype] = resize<T, Float64>;
  kernels.resize_from_float64[dtype] = resize<Float64, T>;
  kernels.has_non_temporal_stores[dtype] = can_stream<T>;
}

constexpr Kernels make_kernels() {
  Kernels kernels;
  kernels.phasors = phasors;
  kernels.store_fence = store_fence;
  if constexpr (can_stream<Float32>) kernels.copy_non_temporal = copy_non_temporal<Float32>;
  add_dtype<Float32, Float32>(kernels);
  add_dtype<Float64, Float64>(kernels);
  add_dtype<Float16, Float32>(kernels);
  add_dtype<BFloat16, Float32>(kernels);
  return kernels;
}

}  // namespace
}  // namespace fastpe
