// SPDX-License-Identifier: BSD-3-Clause
// phasors: the sine and cosine of one position's phase, for every frequency.
//
// Method: phase = position * frequency in quarter turns. The frequency is a double-double and the product is exact, so
// whole turns drop out at every position up to 2^53. Then a polynomial each gives sine and cosine on +-1/2 quarter turn
// and a little beyond. It reads the frequency tables, which are padded, and writes frequency_count columns of sines and
// as many of cosines, with any alignment. Range: |anchor * block_rows + residual| <= 2^53. Error before rounding: see
// sincos_near_zero.
#pragma once

#include "elements.inl"

namespace fastpe {
namespace {

struct SinCos {
  Doubles sine, cosine, sine_low, cosine_low;
};

// sin and cos of x (+ x_low where compensated). tools/prove_polynomials.py proves the errors of the polynomials, before
// rounding: below 2^-54 for |x| <= 0.8012, and below 2^-57 for |x| <= 0.836 where compensated.
FASTPE_ALWAYS_INLINE SinCos sincos_near_zero(Doubles x) {
  const auto linear = [](double constant, Doubles z, double slope) {
    return Doubles::broadcast(constant) + z * Doubles::broadcast(slope);
  };
  // Estrin's scheme, because Horner's chain is longer than the processor looks ahead.
  const Doubles z = x * x;
  const Doubles z2 = z * z;
  const Doubles z4 = z2 * z2;
  const Doubles s = (linear(-0x1.5555555555555p-3, z, 0x1.1111111110bb2p-7) +
                     z2 * linear(-0x1.a01a019e83816p-13, z, 0x1.71de379654304p-19)) +
                    z4 * linear(-0x1.ae600aca92c64p-26, z, 0x1.5e0b05bff20f2p-33);
  const Doubles c =
      (linear(-0.5, z, 0x1.5555555555555p-5) + z2 * linear(-0x1.6c16c16c16967p-10, z, 0x1.a01a019f4e9b4p-16)) +
      z4 * (linear(-0x1.27e4fa17bf139p-22, z, 0x1.1eeb68cd22f56p-29) + z2 * Doubles::broadcast(-0x1.907d8f29fe831p-37));
  SinCos result;
  result.sine = x + x * z * s;
  result.cosine = Doubles::broadcast(1.0) + z * c;
  return result;
}

FASTPE_ALWAYS_INLINE SinCos sincos_near_zero(Doubles x, Doubles x_low) {
  const Doubles one = Doubles::broadcast(1.0);
  const Doubles half = Doubles::broadcast(0.5);
  const Doubles z = x * x;
  Doubles s = Doubles::broadcast(-0x1.ab17bdcbd3414p-41);
  s = s * z + Doubles::broadcast(0x1.61217ee5cca1bp-33);
  s = s * z + Doubles::broadcast(-0x1.ae64541295cdfp-26);
  s = s * z + Doubles::broadcast(0x1.71de3a54607a5p-19);
  s = s * z + Doubles::broadcast(-0x1.a01a01a019937p-13);
  s = s * z + Doubles::broadcast(0x1.1111111111110p-7);
  s = s * z + Doubles::broadcast(-0x1.5555555555555p-3);
  Doubles c = Doubles::broadcast(0x1.ab78473be59d7p-45);
  c = c * z + Doubles::broadcast(-0x1.9394b9eb4d56dp-37);
  c = c * z + Doubles::broadcast(0x1.1eed8deb82809p-29);
  c = c * z + Doubles::broadcast(-0x1.27e4fb7712ca2p-22);
  c = c * z + Doubles::broadcast(0x1.a01a01a019d0ap-16);
  c = c * z + Doubles::broadcast(-0x1.6c16c16c16c16p-10);
  c = c * z + Doubles::broadcast(0x1.5555555555555p-5);

  const Doubles half_z = half * z;
  const Doubles leading = one - half_z;
  const Doubles sine_rest = x * z * s + x_low * leading;
  const Doubles lost = half * two_product_error(x, x, z) + x * x_low;
  const Doubles cosine_rest = (((one - leading) - half_z) + z * z * c) - lost;
  SinCos result;
  result.sine = x + sine_rest;
  result.cosine = leading + cosine_rest;
  result.sine_low = (x - result.sine) + sine_rest;
  result.cosine_low = (leading - result.cosine) + cosine_rest;
  return result;
}

// A number of quarter turns below 2^51, split: adding 1.5 * 2^52 leaves its nearest integer in the low bits.
struct Quarters {
  Doubles shifted;
  Doubles fraction;  // exact
};
inline Quarters split_quarters(Doubles quarters) {
  const Doubles shift = Doubles::broadcast(0x1.8p52);
  const Doubles shifted = quarters + shift;
  return {shifted, quarters - (shifted - shift)};
}

// How a phase is reduced: that of an anchor; with what a fractional position has beyond it; or either, where the
// rest of the products, up to 1/6, may lead beyond the polynomials. The last gives the same bits elsewhere.
enum class Phase { anchor, fractional, far };

template <bool compensated, Phase phase>
FASTPE_ALWAYS_INLINE SinCos sincos_of_phase(const PhasorArguments& p, std::int64_t k, Doubles anchor,
                                            Doubles residual) {
  const Doubles high = Doubles::load(p.anchor_quarters_high + k);
  const Doubles product = anchor * high;
  Quarters quarters = split_quarters(product);
  Doubles rest = two_product_error(anchor, high, product) + anchor * Doubles::load(p.anchor_quarters_low + k);
  if constexpr (phase != Phase::anchor) {
    const Doubles residual_high = Doubles::load(p.quarters_high + k);
    const Doubles residual_product = residual * residual_high;
    const Quarters added = split_quarters(residual_product);
    rest = rest + (two_product_error(residual, residual_high, residual_product) +
                   residual * Doubles::load(p.quarters_low + k));
    const Doubles sum = quarters.fraction + added.fraction;
    rest = rest + two_sum_error(quarters.fraction, added.fraction, sum);
    const Quarters both = split_quarters(sum);
    quarters = {add_bits(add_bits(quarters.shifted, added.shifted), both.shifted), both.fraction};
  }
  const Doubles sum = quarters.fraction + rest;
  Doubles fraction = sum;
  if constexpr (phase == Phase::far) {
    // The polynomials end at the limit; up to there a fraction is left alone.
    constexpr double limit = compensated ? 0.532 : 0.51;
    const Doubles shift = Doubles::broadcast(0x1.8p52);
    const Doubles beyond = sum * Doubles::broadcast(0.5 / limit) + shift;
    quarters.shifted = add_bits(quarters.shifted, beyond);
    fraction = sum - (beyond - shift);
  }
  const Doubles half_pi = Doubles::broadcast(0x1.921fb54442d18p+0);
  const Doubles x = fraction * half_pi;
  SinCos result;
  if constexpr (compensated) {
    const Doubles x_low =
        two_product_error(fraction, half_pi, x) +
        (fraction * Doubles::broadcast(0x1.1a62633145c07p-54) + two_sum_error(quarters.fraction, rest, sum) * half_pi);
    result = sincos_near_zero(x, x_low);
    turn_by_quarters(quarters.shifted, result.sine_low, result.cosine_low);
  } else {
    result = sincos_near_zero(x);
  }
  turn_by_quarters(quarters.shifted, result.sine, result.cosine);
  return result;
}

// Stores `sines` from sine_column on and `cosines` from cosine_column on, as whole vectors but for the last.
template <bool interleaved>
FASTPE_ALWAYS_INLINE void store_columns(double* columns, std::int64_t k, std::int64_t sine_column,
                                        std::int64_t cosine_column, Doubles sines, Doubles cosines,
                                        std::int64_t count) {
  if constexpr (interleaved) {
    DoublePair pair = sine_column == 0 ? DoublePair{sines, cosines} : DoublePair{cosines, sines};
    interleave(pair.first, pair.second);
    if (count == double_lanes) {
      Float64::store(columns + 2 * k, pair);
    } else {
      store_partial<Float64>(columns + 2 * k, pair, 2 * count);
    }
  } else if (count == double_lanes) {
    sines.store(columns + sine_column + k);
    cosines.store(columns + cosine_column + k);
  } else {
    store_partial<Float64>(columns + sine_column + k, {sines, sines}, count);
    store_partial<Float64>(columns + cosine_column + k, {cosines, cosines}, count);
  }
}

template <bool compensated, Phase phase, bool interleaved>
void phasors_of(const PhasorArguments& p) {
  const PhasorArguments local = p;  // stores could alias p
  const Doubles anchor = Doubles::broadcast(local.anchor);
  const Doubles residual = Doubles::broadcast(local.residual);
  const Doubles zero = Doubles::broadcast(0.0);
  const auto store = [&](double* columns, std::int64_t k, Doubles sines, Doubles cosines, std::int64_t count) {
    store_columns<interleaved>(columns, k, local.sine_column, local.cosine_column, sines, cosines, count);
  };
  for (std::int64_t k = 0; k < local.frequency_count; k += double_lanes) {
    const std::int64_t left = local.frequency_count - k;
    const std::int64_t count = left < double_lanes ? left : double_lanes;
    const SinCos phasor = sincos_of_phase<compensated, phase>(local, k, anchor, residual);
    store(local.values, k, phasor.sine, phasor.cosine, count);
    store(local.slopes, k, phasor.cosine, zero - phasor.sine, count);
    if constexpr (compensated) {
      if (local.value_lows != nullptr) {
        store(local.value_lows, k, phasor.sine_low, phasor.cosine_low, count);
        store(local.slope_lows, k, phasor.cosine_low, zero - phasor.sine_low, count);
      }
    }
  }
}

template <bool compensated, Phase phase>
void phasors_in_layout(const PhasorArguments& p) {
  p.interleaved ? phasors_of<compensated, phase, true>(p) : phasors_of<compensated, phase, false>(p);
}

template <bool compensated>
void phasors_by_phase(const PhasorArguments& p) {
  // The rest is at most 1.5 * 2^-52 of the products: below 0.006 here, so that no sum is beyond the limits.
  constexpr double far_quarters = 0x1p44;
  const double anchor_quarters = 2.0 * (p.anchor < 0.0 ? -p.anchor : p.anchor);
  const double residual_quarters = p.largest_quarters * (p.residual < 0.0 ? -p.residual : p.residual);
  if (anchor_quarters + residual_quarters >= far_quarters) {
    phasors_in_layout<compensated, Phase::far>(p);
  } else if (p.residual != 0.0) {
    phasors_in_layout<compensated, Phase::fractional>(p);
  } else {
    phasors_in_layout<compensated, Phase::anchor>(p);
  }
}

void phasors(const PhasorArguments& p) { p.compensated ? phasors_by_phase<true>(p) : phasors_by_phase<false>(p); }

}  // namespace
}  // namespace fastpe
