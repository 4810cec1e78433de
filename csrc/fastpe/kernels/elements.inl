// SPDX-License-Identifier: BSD-3-Clause
// Elements of each dtype: a vector of them in memory, and the type in which arithmetic on them is done. The vector
// types Doubles, Floats and WideFloats are those of the file that includes this one.
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

struct DoublePair {
  Doubles first, second;
};
inline DoublePair operator+(DoublePair a, DoublePair b) { return {a.first + b.first, a.second + b.second}; }
inline DoublePair operator-(DoublePair a, DoublePair b) { return {a.first - b.first, a.second - b.second}; }
inline DoublePair operator*(DoublePair a, DoublePair b) { return {a.first * b.first, a.second * b.second}; }

// Each instruction set's file defines Doubles::clamped(bound), from 0 - bound to bound. Of equal numbers, it takes the
// bound: 0 then has the same sign everywhere. And for Doubles, Floats and WideFloats:
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

// float_lanes elements in memory of type T; `Vector` is the type in which arithmetic on them is done.
template <class V>
struct Float32Of {
  using Element = float;
  using Vector = V;
  static constexpr DType dtype = DType::float32;
  static Vector load(const float* p) { return V::load(p); }
  static void store(float* p, Vector v) { v.store(p); }
  static void stream(float* p, Vector v) { v.stream(p); }
  static Vector broadcast(double v) { return V::broadcast(static_cast<float>(v)); }
};

struct Float32 : Float32Of<Floats> {
  static Vector addend(Doubles first, Doubles second) { return narrow(first, second); }
  static Vector once(Doubles first, Doubles second) { return narrow(first, second); }
};

struct Float64 {
  using Element = double;
  using Vector = DoublePair;
  static constexpr DType dtype = DType::float64;
  static Vector load(const double* p) { return {Doubles::load(p), Doubles::load(p + double_lanes)}; }
  static void store(double* p, Vector v) { v.first.store(p), v.second.store(p + double_lanes); }
  static void stream(double* p, Vector v) { v.first.stream(p), v.second.stream(p + double_lanes); }
  static Vector broadcast(double v) { return {Doubles::broadcast(v), Doubles::broadcast(v)}; }
  static Vector addend(Doubles first, Doubles second) { return {first, second}; }
  static Vector once(Doubles first, Doubles second) { return {first, second}; }
};

template <class V>
struct Float16Of {
  using Element = std::uint16_t;
  using Vector = V;
  static constexpr DType dtype = DType::float16;
  static Vector load(const std::uint16_t* p) {
    Vector v;
    load_float16(p, v);
    return v;
  }
  static void store(std::uint16_t* p, Vector v) { store_float16(p, v); }
  static Vector broadcast(double v) { return V::broadcast(static_cast<float>(v)); }
};

template <class V>
struct BFloat16Of {
  using Element = std::uint16_t;
  using Vector = V;
  static constexpr DType dtype = DType::bfloat16;
  static Vector load(const std::uint16_t* p) {
    Vector v;
    load_bfloat16(p, v);
    return v;
  }
  static void store(std::uint16_t* p, Vector v) { store_bfloat16(p, v); }
  static Vector broadcast(double v) { return V::broadcast(static_cast<float>(v)); }
};

// Encodings of 16 bits.
struct RoundedTwice {
  static Floats addend(Doubles first, Doubles second) { return narrow(first, second); }
  // This rounds to odd first, so that the second rounding, to 11 or 8 bits, gives what one rounding would.
  static Floats once(Doubles first, Doubles second) { return narrow(first.to_odd(), second.to_odd()); }
};
struct Float16 : Float16Of<Floats>, RoundedTwice {};
struct BFloat16 : BFloat16Of<Floats>, RoundedTwice {};

using WideFloat32 = Float32Of<WideFloats>;
using WideFloat16 = Float16Of<WideFloats>;
using WideBFloat16 = BFloat16Of<WideFloats>;

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
