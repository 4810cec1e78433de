// SPDX-License-Identifier: BSD-3-Clause
// Elements of each dtype: a vector of them in memory, and the type in which arithmetic on them is done. The vector
// types Doubles and Floats are those of the file that includes this one.
#pragma once

#include <cstring>

#if defined(_MSC_VER)
#define FASTPE_ALWAYS_INLINE __forceinline
#define FASTPE_NEVER_INLINE __declspec(noinline)
#else
#define FASTPE_ALWAYS_INLINE inline __attribute__((always_inline))
#define FASTPE_NEVER_INLINE __attribute__((noinline))
#endif

namespace fastpe {
namespace {

constexpr int double_lanes = Doubles::lanes;
constexpr int float_lanes = 2 * Doubles::lanes;

// A class template, so that Doubles need stream() only where it is called.
template <class V>
struct Pair {
  V first, second;

  static Pair load(const double* p) { return {V::load(p), V::load(p + V::lanes)}; }
  static Pair broadcast(double value) { return {V::broadcast(value), V::broadcast(value)}; }
  void store(double* p) const {
    first.store(p);
    second.store(p + V::lanes);
  }
  void stream(double* p) const {
    first.stream(p);
    second.stream(p + V::lanes);
  }
};
using DoublePair = Pair<Doubles>;
inline DoublePair operator+(DoublePair a, DoublePair b) { return {a.first + b.first, a.second + b.second}; }
inline DoublePair operator-(DoublePair a, DoublePair b) { return {a.first - b.first, a.second - b.second}; }
inline DoublePair operator*(DoublePair a, DoublePair b) { return {a.first * b.first, a.second * b.second}; }

// Each instruction set's file defines what baseline.cpp does, and stream() where it has non-temporal stores.
// turn_by_quarters turns (sine, cosine) by the quarter turns in the low bits of `shifted`. Doubles::clamped(bound) is
// from 0 - bound to bound; of equal numbers, it takes the bound, so that 0 has the same sign everywhere. For Doubles
// and Floats:
//   split_pairs(a, b): of a[0], a[1] .. b[0], b[1] .., pair after pair, a becomes the pairs' first elements and b their
//                      second ones, both in the order of pairs that costs least;
//   join_pairs(a, b):  the inverse;
//   in_pair_order(v):  one element for each pair, brought into that order.
inline void split_pairs(DoublePair& a, DoublePair& b) {
  split_pairs(a.first, a.second);
  split_pairs(b.first, b.second);
  const Doubles second = a.second;
  a.second = b.first;
  b.first = second;
}
inline void join_pairs(DoublePair& a, DoublePair& b) {
  const Doubles second = a.second;
  a.second = b.first;
  b.first = second;
  join_pairs(a.first, a.second);
  join_pairs(b.first, b.second);
}
inline DoublePair in_pair_order(DoublePair a) { return {in_pair_order(a.first), in_pair_order(a.second)}; }

// a + b = sum + error exactly, whichever is larger.
inline Doubles two_sum_error(Doubles a, Doubles b, Doubles sum) {
  const Doubles b_rounded = sum - a;
  return (a - (sum - b_rounded)) + (b - b_rounded);
}

// float_lanes elements in memory of a dtype; `Vector` is the type in which arithmetic on them is done. addend() rounds
// exact values to that type, and rounded_once() so that store() gives their nearest elements.
template <class ElementType, class VectorType, DType type>
struct Elements {
  using Element = ElementType;
  using Vector = VectorType;
  static constexpr DType dtype = type;
  static Vector load(const Element* p) { return Vector::load(p); }
  static void store(Element* p, Vector v) { v.store(p); }
  static void stream(Element* p, Vector v) { v.stream(p); }
  static Vector broadcast(double v) { return Vector::broadcast(static_cast<Element>(v)); }
};
struct Float32 : Elements<float, Floats, DType::float32> {
  static Floats addend(Doubles first, Doubles second) { return narrow(first, second); }
  static Floats rounded_once(Doubles first, Doubles second) { return narrow(first, second); }
};
struct Float64 : Elements<double, DoublePair, DType::float64> {
  static DoublePair addend(Doubles first, Doubles second) { return {first, second}; }
  static DoublePair rounded_once(Doubles first, Doubles second) { return {first, second}; }
};

// Float32's vectors, in 16 bits in memory.
template <DType type>
struct SixteenBits {
  using Element = std::uint16_t;
  using Vector = Floats;
  static constexpr DType dtype = type;
  static Floats load(const Element* p) { return type == DType::float16 ? load_float16(p) : load_bfloat16(p); }
  static void store(Element* p, Floats v) { type == DType::float16 ? store_float16(p, v) : store_bfloat16(p, v); }
  static Floats broadcast(double v) { return Float32::broadcast(v); }
  static Floats addend(Doubles first, Doubles second) { return narrow(first, second); }
  // This rounds to odd first, so that the second rounding, to 11 or 8 bits, gives what one rounding would.
  static Floats rounded_once(Doubles first, Doubles second) { return narrow(first.to_odd(), second.to_odd()); }
};
using Float16 = SixteenBits<DType::float16>;
using BFloat16 = SixteenBits<DType::bfloat16>;

template <class Element>
inline void copy_elements(Element* to, const Element* from, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Element));
}

template <class T>
inline typename T::Vector load_partial(const typename T::Element* p, std::int64_t count) {
  typename T::Element buffer[float_lanes] = {};
  copy_elements(buffer, p, count);
  return T::load(buffer);
}

template <class T>
inline void store_partial(typename T::Element* p, typename T::Vector v, std::int64_t count) {
  typename T::Element buffer[float_lanes];
  T::store(buffer, v);
  copy_elements(p, buffer, count);
}

}  // namespace
}  // namespace fastpe
