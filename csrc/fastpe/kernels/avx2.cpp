// SPDX-License-Identifier: BSD-3-Clause
// AVX2 with FMA and F16C.
#include <immintrin.h>

#include <cstdint>

#include "kernels.h"

namespace fastpe {
namespace {

struct Doubles {
  static constexpr int lanes = 4;
  __m256d v;

  static Doubles load(const double* p) { return {_mm256_loadu_pd(p)}; }
  static Doubles broadcast(double value) { return {_mm256_set1_pd(value)}; }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
  void stream(double* p) const { _mm256_stream_pd(p, v); }
  Doubles clamped(Doubles bound) const {
    return {_mm256_max_pd(_mm256_min_pd(v, bound.v), _mm256_sub_pd(_mm256_setzero_pd(), bound.v))};
  }
  Doubles to_odd() const {
    const __m256i bits = _mm256_castpd_si256(v);
    const __m256i dropped = _mm256_set1_epi64x(0x1fffffff);
    const __m256i sticky =
        _mm256_and_si256(_mm256_add_epi64(_mm256_and_si256(bits, dropped), dropped), _mm256_set1_epi64x(0x20000000));
    return {_mm256_castsi256_pd(_mm256_andnot_si256(dropped, _mm256_or_si256(bits, sticky)))};
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {_mm256_add_pd(a.v, b.v)}; }
inline Doubles operator-(Doubles a, Doubles b) { return {_mm256_sub_pd(a.v, b.v)}; }
inline Doubles operator*(Doubles a, Doubles b) { return {_mm256_mul_pd(a.v, b.v)}; }
inline Doubles two_product_error(Doubles a, Doubles b, Doubles product) {
  return {_mm256_fmsub_pd(a.v, b.v, product.v)};
}
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const __m256i k = _mm256_castpd_si256(shifted.v);
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m256d odd = _mm256_castsi256_pd(_mm256_slli_epi64(k, 63));
  const __m256i next = _mm256_add_epi64(k, _mm256_set1_epi64x(1));
  const __m256d sine_sign = _mm256_and_pd(_mm256_castsi256_pd(_mm256_slli_epi64(k, 62)), sign);
  const __m256d cosine_sign = _mm256_and_pd(_mm256_castsi256_pd(_mm256_slli_epi64(next, 62)), sign);
  const __m256d first = _mm256_blendv_pd(sine.v, cosine.v, odd);
  const __m256d second = _mm256_blendv_pd(cosine.v, sine.v, odd);
  sine.v = _mm256_xor_pd(first, sine_sign);
  cosine.v = _mm256_xor_pd(second, cosine_sign);
}
inline Doubles add_bits(Doubles a, Doubles b) {
  return {_mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a.v), _mm256_castpd_si256(b.v)))};
}
inline void interleave(Doubles& a, Doubles& b) {
  const __m256d even = _mm256_unpacklo_pd(a.v, b.v);
  const __m256d odd = _mm256_unpackhi_pd(a.v, b.v);
  a.v = _mm256_permute2f128_pd(even, odd, 0x20);
  b.v = _mm256_permute2f128_pd(even, odd, 0x31);
}
inline void split_pairs(Doubles& a, Doubles& b) {
  const __m256d firsts = _mm256_unpacklo_pd(a.v, b.v);
  b.v = _mm256_unpackhi_pd(a.v, b.v);
  a.v = firsts;
}
inline void join_pairs(Doubles& a, Doubles& b) { split_pairs(a, b); }
inline Doubles in_pair_order(Doubles a) { return {_mm256_permute4x64_pd(a.v, 0xd8)}; }

struct Floats {
  __m256 v;

  static Floats load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Floats broadcast(float value) { return {_mm256_set1_ps(value)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void stream(float* p) const { _mm256_stream_ps(p, v); }
};
inline Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline void split_pairs(Floats& a, Floats& b) {
  const __m256 firsts = _mm256_shuffle_ps(a.v, b.v, 0x88);
  b.v = _mm256_shuffle_ps(a.v, b.v, 0xdd);
  a.v = firsts;
}
inline void join_pairs(Floats& a, Floats& b) {
  const __m256 first = _mm256_unpacklo_ps(a.v, b.v);
  b.v = _mm256_unpackhi_ps(a.v, b.v);
  a.v = first;
}
inline Floats in_pair_order(Floats a) { return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(a.v), 0xd8))}; }
inline Floats narrow(Doubles first, Doubles second) {
  return {_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(first.v)), _mm256_cvtpd_ps(second.v), 1)};
}
inline void widen(Floats f, Doubles& first, Doubles& second) {
  first.v = _mm256_cvtps_pd(_mm256_castps256_ps128(f.v));
  second.v = _mm256_cvtps_pd(_mm256_extractf128_ps(f.v, 1));
}

inline Floats load_float16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline void store_float16(std::uint16_t* p, Floats f) {
  const __m128i halves = _mm256_cvtps_ph(f.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
}
inline Floats load_bfloat16(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline void store_bfloat16(std::uint16_t* p, Floats f) {
  const __m256i bits = _mm256_castps_si256(f.v);
  const __m256i tie = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(tie, _mm256_set1_epi32(0x7fff));
  // A NaN keeps its payload and is quiet, as every result of arithmetic is.
  const __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(f.v, f.v, _CMP_ORD_Q));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_and_si256(half, is_number));
  const __m256i upper_words =
      _mm256_broadcastsi128_si256(_mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 15, 14, 11, 10, 7, 6, 3, 2));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(rounded, upper_words), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}

inline void store_fence() { _mm_sfence(); }

}  // namespace
}  // namespace fastpe

#include "kernels.inl"

namespace fastpe {
constexpr Kernels kernels_avx2 = make_kernels();
}  // namespace fastpe
