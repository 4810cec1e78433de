// SPDX-License-Identifier: BSD-3-Clause
// AArch64 Advanced SIMD, which every 64-bit Arm processor has.
#include <arm_neon.h>

#include <cstdint>

#include "kernels.h"

namespace fastpe {
namespace {

struct Doubles {
  static constexpr int lanes = 2;
  float64x2_t v;

  static Doubles load(const double* p) { return {vld1q_f64(p)}; }
  static Doubles broadcast(double value) { return {vdupq_n_f64(value)}; }
  void store(double* p) const { vst1q_f64(p, v); }
  Doubles clamped(Doubles bound) const {
    const float64x2_t least = vsubq_f64(vdupq_n_f64(0.0), bound.v);
    const float64x2_t not_above = vbslq_f64(vcltq_f64(v, bound.v), v, bound.v);
    return {vbslq_f64(vcgtq_f64(not_above, least), not_above, least)};
  }
  Doubles to_odd() const {
    const uint64x2_t bits = vreinterpretq_u64_f64(v);
    const uint64x2_t dropped = vdupq_n_u64(0x1fffffff);
    const uint64x2_t sticky = vandq_u64(vaddq_u64(vandq_u64(bits, dropped), dropped), vdupq_n_u64(0x20000000));
    return {vreinterpretq_f64_u64(vbicq_u64(vorrq_u64(bits, sticky), dropped))};
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {vaddq_f64(a.v, b.v)}; }
inline Doubles operator-(Doubles a, Doubles b) { return {vsubq_f64(a.v, b.v)}; }
inline Doubles operator*(Doubles a, Doubles b) { return {vmulq_f64(a.v, b.v)}; }
inline Doubles two_product_error(Doubles a, Doubles b, Doubles product) {
  return {vfmaq_f64(vnegq_f64(product.v), a.v, b.v)};
}
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const uint64x2_t k = vreinterpretq_u64_f64(shifted.v);
  const uint64x2_t one = vdupq_n_u64(1);
  const uint64x2_t sign = vshlq_n_u64(one, 63);
  const uint64x2_t odd = vtstq_u64(k, one);
  const uint64x2_t sine_sign = vandq_u64(vshlq_n_u64(k, 62), sign);
  const uint64x2_t cosine_sign = vandq_u64(vshlq_n_u64(vaddq_u64(k, one), 62), sign);
  const uint64x2_t first = vreinterpretq_u64_f64(vbslq_f64(odd, cosine.v, sine.v));
  const uint64x2_t second = vreinterpretq_u64_f64(vbslq_f64(odd, sine.v, cosine.v));
  sine.v = vreinterpretq_f64_u64(veorq_u64(first, sine_sign));
  cosine.v = vreinterpretq_f64_u64(veorq_u64(second, cosine_sign));
}
inline Doubles add_bits(Doubles a, Doubles b) {
  return {vreinterpretq_f64_u64(vaddq_u64(vreinterpretq_u64_f64(a.v), vreinterpretq_u64_f64(b.v)))};
}
inline void interleave(Doubles& a, Doubles& b) {
  const float64x2_t first = vzip1q_f64(a.v, b.v);
  b.v = vzip2q_f64(a.v, b.v);
  a.v = first;
}
inline void split_pairs(Doubles& a, Doubles& b) { interleave(a, b); }
inline void join_pairs(Doubles& a, Doubles& b) { interleave(a, b); }
inline Doubles in_pair_order(Doubles a) { return a; }

struct Floats {
  float32x4_t v;

  static Floats load(const float* p) { return {vld1q_f32(p)}; }
  static Floats broadcast(float value) { return {vdupq_n_f32(value)}; }
  void store(float* p) const { vst1q_f32(p, v); }
};
inline Floats operator+(Floats a, Floats b) { return {vaddq_f32(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {vsubq_f32(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {vmulq_f32(a.v, b.v)}; }
inline void split_pairs(Floats& a, Floats& b) {
  const float32x4_t firsts = vuzp1q_f32(a.v, b.v);
  b.v = vuzp2q_f32(a.v, b.v);
  a.v = firsts;
}
inline void join_pairs(Floats& a, Floats& b) {
  const float32x4_t first = vzip1q_f32(a.v, b.v);
  b.v = vzip2q_f32(a.v, b.v);
  a.v = first;
}
inline Floats in_pair_order(Floats a) { return a; }
inline Floats narrow(Doubles first, Doubles second) { return {vcvt_high_f32_f64(vcvt_f32_f64(first.v), second.v)}; }
inline void widen(Floats f, Doubles& first, Doubles& second) {
  first.v = vcvt_f64_f32(vget_low_f32(f.v));
  second.v = vcvt_high_f64_f32(f.v);
}

inline Floats load_float16(const std::uint16_t* p) { return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))}; }
inline void store_float16(std::uint16_t* p, Floats f) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(f.v))); }
inline Floats load_bfloat16(const std::uint16_t* p) { return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))}; }
inline void store_bfloat16(std::uint16_t* p, Floats f) {
  const uint32x4_t bits = vreinterpretq_u32_f32(f.v);
  const uint32x4_t high = vshrq_n_u32(bits, 16);
  const uint32x4_t tie = vandq_u32(high, vdupq_n_u32(1));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, vaddq_u32(tie, vdupq_n_u32(0x7fff))), 16);
  const uint32x4_t is_number = vceqq_f32(f.v, f.v);
  vst1_u16(p, vmovn_u32(vbslq_u32(is_number, rounded, vorrq_u32(high, vdupq_n_u32(0x40)))));
}

inline void store_fence() {}

}  // namespace
}  // namespace fastpe

#include "kernels.inl"

namespace fastpe {
constexpr Kernels kernels_neon = make_kernels();
}  // namespace fastpe
