// SPDX-License-Identifier: BSD-3-Clause
// AVX-512 (F, DQ, BW, VL) with AVX2, FMA and F16C.
#include <immintrin.h>

#include <cstdint>

#include "kernels.h"

namespace fastpe {
namespace {

struct Doubles {
  static constexpr int lanes = 8;
  __m512d v;

  static Doubles load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static Doubles broadcast(double value) { return {_mm512_set1_pd(value)}; }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
  void stream(double* p) const { _mm512_stream_pd(p, v); }
  Doubles clamped(Doubles bound) const {
    return {_mm512_max_pd(_mm512_min_pd(v, bound.v), _mm512_sub_pd(_mm512_setzero_pd(), bound.v))};
  }
  Doubles to_odd() const {
    const __m512i bits = _mm512_castpd_si512(v);
    const __m512i dropped = _mm512_set1_epi64(0x1fffffff);
    const __m512i sticky =
        _mm512_and_si512(_mm512_add_epi64(_mm512_and_si512(bits, dropped), dropped), _mm512_set1_epi64(0x20000000));
    return {_mm512_castsi512_pd(_mm512_andnot_si512(dropped, _mm512_or_si512(bits, sticky)))};
  }
};
inline Doubles operator+(Doubles a, Doubles b) { return {_mm512_add_pd(a.v, b.v)}; }
inline Doubles operator-(Doubles a, Doubles b) { return {_mm512_sub_pd(a.v, b.v)}; }
inline Doubles operator*(Doubles a, Doubles b) { return {_mm512_mul_pd(a.v, b.v)}; }
inline Doubles two_product_error(Doubles a, Doubles b, Doubles product) {
  return {_mm512_fmsub_pd(a.v, b.v, product.v)};
}
inline void turn_by_quarters(Doubles shifted, Doubles& sine, Doubles& cosine) {
  const __m512i k = _mm512_castpd_si512(shifted.v);
  const __m512i one = _mm512_set1_epi64(1);
  const __m512i sign = _mm512_slli_epi64(one, 63);
  const __mmask8 odd = _mm512_test_epi64_mask(k, one);
  const __m512i sine_sign = _mm512_and_si512(_mm512_slli_epi64(k, 62), sign);
  const __m512i cosine_sign = _mm512_and_si512(_mm512_slli_epi64(_mm512_add_epi64(k, one), 62), sign);
  const __m512d first = _mm512_mask_blend_pd(odd, sine.v, cosine.v);
  const __m512d second = _mm512_mask_blend_pd(odd, cosine.v, sine.v);
  sine.v = _mm512_xor_pd(first, _mm512_castsi512_pd(sine_sign));
  cosine.v = _mm512_xor_pd(second, _mm512_castsi512_pd(cosine_sign));
}
inline Doubles add_bits(Doubles a, Doubles b) {
  return {_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a.v), _mm512_castpd_si512(b.v)))};
}
inline void interleave(Doubles& a, Doubles& b) {
  const __m512i low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
  const __m512i high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  const __m512d first = _mm512_permutex2var_pd(a.v, low, b.v);
  b.v = _mm512_permutex2var_pd(a.v, high, b.v);
  a.v = first;
}
inline __m512i pair_order() { return _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0); }
inline void split_pairs(Doubles& a, Doubles& b) {
  const __m512d firsts = _mm512_unpacklo_pd(a.v, b.v);
  b.v = _mm512_unpackhi_pd(a.v, b.v);
  a.v = firsts;
}
inline void join_pairs(Doubles& a, Doubles& b) { split_pairs(a, b); }
inline Doubles in_pair_order(Doubles a) { return {_mm512_permutexvar_pd(pair_order(), a.v)}; }

struct Floats {
  __m512 v;

  static Floats load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Floats broadcast(float value) { return {_mm512_set1_ps(value)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void stream(float* p) const { _mm512_stream_ps(p, v); }
};
inline Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline void split_pairs(Floats& a, Floats& b) {
  const __m512 firsts = _mm512_shuffle_ps(a.v, b.v, 0x88);
  b.v = _mm512_shuffle_ps(a.v, b.v, 0xdd);
  a.v = firsts;
}
inline void join_pairs(Floats& a, Floats& b) {
  const __m512 first = _mm512_unpacklo_ps(a.v, b.v);
  b.v = _mm512_unpackhi_ps(a.v, b.v);
  a.v = first;
}
inline Floats in_pair_order(Floats a) {
  return {_mm512_castpd_ps(_mm512_permutexvar_pd(pair_order(), _mm512_castps_pd(a.v)))};
}

inline Floats narrow(Doubles first, Doubles second) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first.v)), _mm512_cvtpd_ps(second.v), 1)};
}

inline void widen(Floats f, Doubles& first, Doubles& second) {
  first.v = _mm512_cvtps_pd(_mm512_castps512_ps256(f.v));
  second.v = _mm512_cvtps_pd(_mm512_extractf32x8_ps(f.v, 1));
}

inline Floats load_float16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline void store_float16(std::uint16_t* p, Floats f) {
  const __m256i halves = _mm512_cvtps_ph(f.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves);
}
inline Floats load_bfloat16(const std::uint16_t* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m512i spread = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0,  //
                                          7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
  constexpr __mmask32 upper_words = 0xaaaaaaaa;
  return {_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(upper_words, spread, _mm512_castsi256_si512(words)))};
}
// AVX512_BF16's conversion is not used, since it flushes subnormals to zero.
inline void store_bfloat16(std::uint16_t* p, Floats f) {
  const __m512i bits = _mm512_castps_si512(f.v);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i half = _mm512_mask_blend_epi32(odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000));
  // A NaN keeps its payload and is quiet, as every result of arithmetic is.
  const __mmask16 is_number = _mm512_cmp_ps_mask(f.v, f.v, _CMP_ORD_Q);
  const __m512i rounded = _mm512_mask_add_epi32(bits, is_number, bits, half);
  const __m256i upper = _mm256_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i packed = _mm512_permutexvar_epi16(_mm512_castsi256_si512(upper), rounded);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(packed));
}

inline void store_fence() { _mm_sfence(); }

}  // namespace
}  // namespace fastpe

#include "kernels.inl"

namespace fastpe {
constexpr Kernels kernels_avx512 = make_kernels();
}  // namespace fastpe
