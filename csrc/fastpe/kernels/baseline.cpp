// SPDX-License-Identifier: BSD-3-Clause
// What every processor of the target architecture runs: SSE2 on x86-64, plain C++ elsewhere or with FASTPE_SIMD=OFF.
#if !defined(FASTPE_NO_SIMD) && (defined(__SSE2__) || defined(_M_X64))
#define FASTPE_SSE2 1
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "half_floats.inl"
#include "kernels.h"

namespace fastpe {
namespace {

#ifdef FASTPE_SSE2

struct Doubles {
  static constexpr int lanes = 2;
  __m128d v;

  static Doubles load(const double* p) { return {_mm_loadu_pd(p)}; }
  static Doubles broadcast(double value) { return {_mm_set1_pd(value)}; }
  void store(double* p) const { _mm_storeu_pd(p, v); }
  void stream(double* p) const { _mm_stream_pd(p, v); }
  Doubles clamped(Doubles bound) const {
    return {_mm_max_pd(_mm_min_pd(v, bound.v), _mm_sub_pd(_mm_setzero_pd(), bound.v))};
  }
  Doubles to_odd() const {
    const __m128i bits = _mm_castpd_si128(v);
    const __m128i dropped = _mm_set1_epi64x(0x1fffffff);
    const __m128i sticky =
        _mm_and_si128(_mm_add_epi64(_mm_and_si128(bits, dropped), dropped), _mm_set1_epi64x(0x20000000));
    return {_mm_castsi128_pd(_mm_andnot_si128(dropped, _mm_or_si128(bits, sticky)))};
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {_mm_add_pd(a.v, b.v)}; }
inline Doubles operator-(Doubles a, Doubles b) { return {_mm_sub_pd(a.v, b.v)}; }
inline Doubles operator*(Doubles a, Doubles b) { return {_mm_mul_pd(a.v, b.v)}; }
// (sine, cosine) turned by the quarter turns in the low bits of `shifted`.
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const __m128i k = _mm_castpd_si128(shifted.v);
  const __m128d sign = _mm_set1_pd(-0.0);
  const __m128i one = _mm_set1_epi64x(1);
  const __m128d odd = _mm_castsi128_pd(_mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(k, one)));
  const __m128d sine_sign = _mm_and_pd(_mm_castsi128_pd(_mm_slli_epi64(k, 62)), sign);
  const __m128d cosine_sign = _mm_and_pd(_mm_castsi128_pd(_mm_slli_epi64(_mm_add_epi64(k, one), 62)), sign);
  const __m128d first = _mm_or_pd(_mm_and_pd(odd, cosine.v), _mm_andnot_pd(odd, sine.v));
  const __m128d second = _mm_or_pd(_mm_and_pd(odd, sine.v), _mm_andnot_pd(odd, cosine.v));
  sine.v = _mm_xor_pd(first, sine_sign);
  cosine.v = _mm_xor_pd(second, cosine_sign);
}
inline Doubles add_bits(Doubles a, Doubles b) {
  return {_mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(a.v), _mm_castpd_si128(b.v)))};
}
inline void interleave(Doubles& a, Doubles& b) {
  const __m128d first = _mm_unpacklo_pd(a.v, b.v);
  b.v = _mm_unpackhi_pd(a.v, b.v);
  a.v = first;
}
inline void split_pairs(Doubles& a, Doubles& b) { interleave(a, b); }
inline void join_pairs(Doubles& a, Doubles& b) { interleave(a, b); }
inline Doubles in_pair_order(Doubles a) { return a; }

struct Floats {
  __m128 v;

  static Floats load(const float* p) { return {_mm_loadu_ps(p)}; }
  static Floats broadcast(float value) { return {_mm_set1_ps(value)}; }
  void store(float* p) const { _mm_storeu_ps(p, v); }
  void stream(float* p) const { _mm_stream_ps(p, v); }
};
inline Floats operator+(Floats a, Floats b) { return {_mm_add_ps(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm_sub_ps(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm_mul_ps(a.v, b.v)}; }
inline void split_pairs(Floats& a, Floats& b) {
  const __m128 firsts = _mm_shuffle_ps(a.v, b.v, 0x88);
  b.v = _mm_shuffle_ps(a.v, b.v, 0xdd);
  a.v = firsts;
}
inline void join_pairs(Floats& a, Floats& b) {
  const __m128 first = _mm_unpacklo_ps(a.v, b.v);
  b.v = _mm_unpackhi_ps(a.v, b.v);
  a.v = first;
}
inline Floats in_pair_order(Floats a) { return a; }
inline Floats narrow(Doubles first, Doubles second) {
  return {_mm_movelh_ps(_mm_cvtpd_ps(first.v), _mm_cvtpd_ps(second.v))};
}

inline void store_fence() { _mm_sfence(); }

#else

struct Doubles {
  static constexpr int lanes = 1;
  double v;

  static Doubles load(const double* p) { return {*p}; }
  static Doubles broadcast(double value) { return {value}; }
  void store(double* p) const { *p = v; }
  void stream(double* p) const { *p = v; }
  Doubles clamped(Doubles bound) const {
    const double least = 0.0 - bound.v, not_above = v < bound.v ? v : bound.v;
    return {not_above > least ? not_above : least};
  }
  Doubles to_odd() const {
    std::uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    const std::uint64_t dropped = 0x1fffffff;
    bits = (bits | (((bits & dropped) + dropped) & 0x20000000u)) & ~dropped;
    Doubles result;
    std::memcpy(&result.v, &bits, sizeof bits);
    return result;
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {a.v + b.v}; }
inline Doubles operator-(Doubles a, Doubles b) { return {a.v - b.v}; }
inline Doubles operator*(Doubles a, Doubles b) { return {a.v * b.v}; }
inline std::uint64_t bits_of(Doubles d) {
  std::uint64_t bits;
  std::memcpy(&bits, &d.v, sizeof bits);
  return bits;
}
// (sine, cosine) turned by the quarter turns in the low bits of `shifted`.
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const std::uint64_t k = bits_of(shifted) & 3;
  const Doubles s = sine, c = cosine;
  sine.v = k == 0 ? s.v : k == 1 ? c.v : k == 2 ? -s.v : -c.v;
  cosine.v = k == 0 ? c.v : k == 1 ? -s.v : k == 2 ? -c.v : s.v;
}
inline Doubles add_bits(Doubles a, Doubles b) {
  const std::uint64_t sum = bits_of(a) + bits_of(b);
  Doubles result;
  std::memcpy(&result.v, &sum, sizeof sum);
  return result;
}
inline void interleave(Doubles&, Doubles&) {}
inline void split_pairs(Doubles&, Doubles&) {}
inline void join_pairs(Doubles&, Doubles&) {}
inline Doubles in_pair_order(Doubles a) { return a; }

struct Floats {
  float first, second;

  static Floats load(const float* p) { return {p[0], p[1]}; }
  static Floats broadcast(float value) { return {value, value}; }
  void store(float* p) const { p[0] = first, p[1] = second; }
  void stream(float* p) const { store(p); }
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

inline void store_fence() {}

#endif

using WideFloats = Floats;

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

template <float (*convert)(std::uint16_t)>
inline void load_halves(const std::uint16_t* p, Floats& f) {
  float buffer[2 * Doubles::lanes];
  for (int i = 0; i < 2 * Doubles::lanes; ++i) buffer[i] = convert(p[i]);
  f = Floats::load(buffer);
}
template <std::uint16_t (*convert)(float)>
inline void store_halves(std::uint16_t* p, Floats f) {
  float buffer[2 * Doubles::lanes];
  f.store(buffer);
  for (int i = 0; i < 2 * Doubles::lanes; ++i) p[i] = convert(buffer[i]);
}
inline void load_float16(const std::uint16_t* p, Floats& f) { load_halves<float32_of_float16>(p, f); }
inline void store_float16(std::uint16_t* p, Floats f) { store_halves<float16_of_float32>(p, f); }

#ifdef FASTPE_SSE2
inline void load_bfloat16(const std::uint16_t* p, Floats& f) {
  const __m128i words = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  f.v = _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), words));
}
inline void store_bfloat16(std::uint16_t* p, Floats f) {
  const __m128i bits = _mm_castps_si128(f.v);
  const __m128i tie = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i half = _mm_add_epi32(tie, _mm_set1_epi32(0x7fff));
  // A NaN keeps its payload and is quiet, as every result of arithmetic is.
  const __m128i is_number = _mm_castps_si128(_mm_cmpord_ps(f.v, f.v));
  const __m128i rounded = _mm_srai_epi32(_mm_add_epi32(bits, _mm_and_si128(half, is_number)), 16);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi32(rounded, rounded));
}
#else
inline void load_bfloat16(const std::uint16_t* p, Floats& f) { load_halves<float32_of_bfloat16>(p, f); }
inline void store_bfloat16(std::uint16_t* p, Floats f) { store_halves<bfloat16_of_float32>(p, f); }
#endif

}  // namespace
}  // namespace fastpe

#include "kernels.inl"

namespace fastpe {
constexpr Kernels kernels_baseline = make_kernels();
}  // namespace fastpe
