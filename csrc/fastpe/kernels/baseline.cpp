// SPDX-License-Identifier: BSD-3-Clause
// Plain C++, which every processor runs.
#include <cstdint>
#include <cstring>

#include "half_floats.inl"
#include "kernels.h"

namespace fastpe {
namespace {

inline std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline double double_of(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Doubles {
  static constexpr int lanes = 1;
  double v;

  static Doubles load(const double* p) { return {*p}; }
  static Doubles broadcast(double value) { return {value}; }
  void store(double* p) const { *p = v; }
  Doubles clamped(Doubles bound) const {
    const double least = 0.0 - bound.v, not_above = v < bound.v ? v : bound.v;
    return {not_above > least ? not_above : least};
  }
  Doubles to_odd() const {
    const std::uint64_t bits = bits_of(v), dropped = 0x1fffffff;
    return {double_of((bits | (((bits & dropped) + dropped) & 0x20000000u)) & ~dropped)};
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {a.v + b.v}; }
inline Doubles operator-(Doubles a, Doubles b) { return {a.v - b.v}; }
inline Doubles operator*(Doubles a, Doubles b) { return {a.v * b.v}; }
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const std::uint64_t k = bits_of(shifted.v) & 3;
  const Doubles s = sine, c = cosine;
  sine.v = k == 0 ? s.v : k == 1 ? c.v : k == 2 ? -s.v : -c.v;
  cosine.v = k == 0 ? c.v : k == 1 ? -s.v : k == 2 ? -c.v : s.v;
}
inline Doubles add_bits(Doubles a, Doubles b) { return {double_of(bits_of(a.v) + bits_of(b.v))}; }
inline void interleave(Doubles&, Doubles&) {}
inline void split_pairs(Doubles&, Doubles&) {}
inline void join_pairs(Doubles&, Doubles&) {}
inline Doubles in_pair_order(Doubles a) { return a; }

struct Floats {
  float first, second;

  static Floats load(const float* p) { return {p[0], p[1]}; }
  static Floats broadcast(float value) { return {value, value}; }
  void store(float* p) const {
    p[0] = first;
    p[1] = second;
  }
};
inline Floats operator+(Floats a, Floats b) { return {a.first + b.first, a.second + b.second}; }
inline Floats operator-(Floats a, Floats b) { return {a.first - b.first, a.second - b.second}; }
inline Floats operator*(Floats a, Floats b) { return {a.first * b.first, a.second * b.second}; }
inline void split_pairs(Floats& a, Floats& b) {
  const float second = a.second;
  a.second = b.first;
  b.first = second;
}
inline void join_pairs(Floats& a, Floats& b) { split_pairs(a, b); }
inline Floats in_pair_order(Floats a) { return a; }
inline Floats narrow(Doubles first, Doubles second) {
  return {static_cast<float>(first.v), static_cast<float>(second.v)};
}
inline void widen(Floats f, Doubles& first, Doubles& second) {
  first.v = static_cast<double>(f.first);
  second.v = static_cast<double>(f.second);
}

// Dekker's exact product: halves of 26 bits.
inline Doubles two_product_error(Doubles a, Doubles b, Doubles product) {
  const Doubles splitter = Doubles::broadcast(134217729.0);
  const Doubles a_scaled = a * splitter;
  const Doubles a_high = a_scaled - (a_scaled - a);
  const Doubles a_low = a - a_high;
  const Doubles b_scaled = b * splitter;
  const Doubles b_high = b_scaled - (b_scaled - b);
  const Doubles b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

inline Floats load_float16(const std::uint16_t* p) { return {float32_of_float16(p[0]), float32_of_float16(p[1])}; }
inline void store_float16(std::uint16_t* p, Floats f) {
  p[0] = float16_of_float32(f.first);
  p[1] = float16_of_float32(f.second);
}
inline Floats load_bfloat16(const std::uint16_t* p) { return {float32_of_bfloat16(p[0]), float32_of_bfloat16(p[1])}; }
inline void store_bfloat16(std::uint16_t* p, Floats f) {
  p[0] = bfloat16_of_float32(f.first);
  p[1] = bfloat16_of_float32(f.second);
}

inline void store_fence() {}

}  // namespace
}  // namespace fastpe

#include "kernels.inl"

namespace fastpe {
constexpr Kernels kernels_baseline = make_kernels();
}  // namespace fastpe
