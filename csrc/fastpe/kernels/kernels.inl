// SPDX-License-Identifier: BSD-3-Clause
// The kernels, written once over the vector types Doubles and Floats that each instruction set's file defines before it
// includes this one. Nothing of the standard library is instantiated here and nothing has external linkage: the linker
// could otherwise hand this file's copy of a shared function to a processor that cannot run it.
//
// Method
//   1. phase = position * frequency in quarter turns, the frequency as a double-double and the product exact:
//      whole turns drop out, at every position up to 2^53.
//   2. One polynomial sine and cosine on +-1/2 quarter turn for every frequency, at the centre of a group of
//      anchors (in float64 at every anchor).
//   3. The anchors by the angle addition theorem, and so the rows around each: +row and -row from the same two
//      products.
// The arithmetic is plain mul/add/sub in one fixed order, FMA serving only for exact products' errors, so every
// instruction set gives the same bits.
// Measured (tests/test_accuracy.py prints it): float32, float16 and bfloat16 never beyond 0.5 ulp in the sample;
// float64 1 ulp + 1.3e-16 at most, absolute 2.1e-16. Bounds: 0.5 ulp + 1e-15 and 1 ulp + 2e-16.
//
// What it costs, in cycles for 16 float32 values (AVX-512): on Zen 4 the arithmetic alone 5.2 to 5.9, 1.3 of them for
// each conversion of 8, storing to the second level 2 to 3, together 7 to 7.5; on Zen 5 3.3, 2.1 and 5.6: they overlap
// little.
//
// Tried, and not better in all (Zen 4 unless said):
// - rotate: pairs of (sin, cos) interleaved at the store, 0 to 12 % faster in the cache with AVX-512, 20 % slower with
//   AVX2, and each layout needs its own; tables of such pairs, spread as they are loaded (no change); one anchor at a
//   time (20 % slower), or three or four (up to 8 %); an anchor's columns in registers; blocks of 47 or 63 rows (3 %
//   either way, for larger tables); panels of 128, 384 or more columns (2 to 30 % slower); adding with FMA by 1 on the
//   multipliers' ports; starting each row's stores on a cache line (the tables then straddle them; placing the tables
//   to match, 3 % either way); halving the stores that straddle two lines (3 % either way); on Zen 5 halves joined for
//   one store (no change).
// - fetching ahead: a row's lines at once (a fifth slower than one by one), or for writing (a third slower; a tenth in
//   the cache on Zen 5); the fine tables (Zen 5, up to 8 % slower).
// - streaming: rows that are aligned differently, one by one (a third slower than fetching ahead); pieces of 16 bytes,
//   so as not to peel (half the speed); a row's ends by plain stores (a sixth slower than whole seams).
// - combine: prefetching the tile, or x into a first level that has no room for two segments of it beside the tile;
//   segments of a quarter or half of the first level in the cache (Zen 5, 3 to 6 % slower than three eighths); from
//   memory segments of 8 KiB, or of 16 whatever the row, instead of 12, x fetched two or four segments ahead (5 to 15 %
//   slower), or rows joined (Zen 5, up to 10 % slower).

#if defined(_MSC_VER)
#define FASTPE_ALWAYS_INLINE __forceinline
#define FASTPE_NEVER_INLINE __declspec(noinline)
#else
#define FASTPE_ALWAYS_INLINE inline __attribute__((always_inline))
#define FASTPE_NEVER_INLINE __attribute__((noinline))
#endif

// Into the first-level or second-level cache; any address will do.
#if defined(__GNUC__)
#define FASTPE_PREFETCH_FIRST_LEVEL(address) __builtin_prefetch((address), 0, 3)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) __builtin_prefetch((address), 0, 2)
#elif defined(_M_X64)
#define FASTPE_PREFETCH_FIRST_LEVEL(address) _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T1)
#else
#define FASTPE_PREFETCH_FIRST_LEVEL(address) static_cast<void>(address)
#define FASTPE_PREFETCH_SECOND_LEVEL(address) static_cast<void>(address)
#endif

namespace fastpe {
namespace {

constexpr std::int64_t panel_columns = 256;
constexpr int double_lanes = Doubles::lanes;
constexpr int float_lanes = 2 * Doubles::lanes;

struct DoublePair {
  Doubles first, second;
};
inline DoublePair operator+(DoublePair a, DoublePair b) { return {a.first + b.first, a.second + b.second}; }
inline DoublePair operator-(DoublePair a, DoublePair b) { return {a.first - b.first, a.second - b.second}; }
inline DoublePair operator*(DoublePair a, DoublePair b) { return {a.first * b.first, a.second * b.second}; }

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
  // Rounding to odd first: the second rounding, to 11 or 8 bits, is then the only one.
  static Floats once(Doubles first, Doubles second) { return narrow(first.to_odd(), second.to_odd()); }
};
struct Float16 : Float16Of<Floats>, RoundedTwice {};
struct BFloat16 : BFloat16Of<Floats>, RoundedTwice {};

template <class Element>
inline void copy_elements(Element* to, const Element* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
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

template <class T>
constexpr auto vector_bytes = static_cast<std::int64_t>(sizeof(typename T::Element)) * float_lanes;

// Elements before p is aligned for streaming stores.
template <class T>
inline std::int64_t elements_to_alignment(const void* p) {
  constexpr auto alignment = static_cast<std::uintptr_t>(vector_bytes<T>);
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(p) % alignment;
  return static_cast<std::int64_t>((beyond == 0 ? 0 : alignment - beyond) / sizeof(typename T::Element));
}

template <class Element>
inline Element* advance(Element* p, std::int64_t bytes) {
  return reinterpret_cast<Element*>(reinterpret_cast<char*>(p) + bytes);
}
template <class Element>
inline const Element* advance(const Element* p, std::int64_t bytes) {
  return reinterpret_cast<const Element*>(reinterpret_cast<const char*>(p) + bytes);
}

// How memory is used: as it comes; fetching ahead x, or out where there is no x, into the second-level or first-level
// cache; or storing past the caches.
enum class Access { plain, fetching, fetching_close, streaming };

// What the vector of columns at `column` is to a row at `next`: one fetch for each cache line.
template <class T, Access access>
FASTPE_ALWAYS_INLINE void prefetch_columns(const char* next, std::int64_t column) {
  constexpr std::int64_t line_bytes = 64;
  const std::int64_t at = column * static_cast<std::int64_t>(sizeof(typename T::Element));
  if (vector_bytes<T> < line_bytes && at % line_bytes != 0) return;
  for (std::int64_t line = 0; line < vector_bytes<T>; line += line_bytes) {
    if constexpr (access == Access::fetching_close) {
      FASTPE_PREFETCH_FIRST_LEVEL(next + at + line);
    } else {
      FASTPE_PREFETCH_SECOND_LEVEL(next + at + line);
    }
  }
}

// ---- phasors

struct SinCos {
  Doubles sine, cosine, sine_low, cosine_low;
};

// sin and cos of x (+ x_low where compensated), |x| <= 0.89; error of the polynomials below 2^-55, below 2^-57 for the
// compensated ones up to pi/4.
FASTPE_ALWAYS_INLINE SinCos sincos_near_zero(Doubles x) {
  const auto linear = [](double constant, Doubles z, double slope) {
    return Doubles::broadcast(constant) + z * Doubles::broadcast(slope);
  };
  // Estrin's scheme: Horner's chain is longer than the processor looks ahead.
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

template <bool compensated, bool fractional>
FASTPE_ALWAYS_INLINE SinCos sincos_of_phase(const Phasors& p, std::int64_t k, Doubles anchor, Doubles residual) {
  const Doubles high = Doubles::load(p.anchor_quarters_high + k);
  const Doubles product = anchor * high;
  Quarters quarters = split_quarters(product);
  Doubles rest = two_product_error(anchor, high, product) + anchor * Doubles::load(p.anchor_quarters_low + k);
  if constexpr (fractional) {
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
  const Doubles fraction = quarters.fraction + rest;
  const Doubles half_pi = Doubles::broadcast(0x1.921fb54442d18p+0);
  const Doubles x = fraction * half_pi;
  SinCos result;
  if constexpr (compensated) {
    const Doubles x_low =
        two_product_error(fraction, half_pi, x) + (fraction * Doubles::broadcast(0x1.1a62633145c07p-54) +
                                                   two_sum_error(quarters.fraction, rest, fraction) * half_pi);
    result = sincos_near_zero(x, x_low);
    turn_by_quarters(quarters.shifted, result.sine_low, result.cosine_low);
  } else {
    result = sincos_near_zero(x);
  }
  turn_by_quarters(quarters.shifted, result.sine, result.cosine);
  return result;
}

// Columns of `sines` start at sine_column, of `cosines` at cosine_column; whole vectors but for the last.
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

template <bool compensated, bool fractional, bool interleaved>
void phasors_of(const Phasors& p) {
  const Phasors local = p;  // stores could alias p
  const Doubles anchor = Doubles::broadcast(local.anchor);
  const Doubles residual = Doubles::broadcast(local.residual);
  const Doubles zero = Doubles::broadcast(0.0);
  const auto store = [&](double* columns, std::int64_t k, Doubles sines, Doubles cosines, std::int64_t count) {
    store_columns<interleaved>(columns, k, local.sine_column, local.cosine_column, sines, cosines, count);
  };
  for (std::int64_t k = 0; k < local.frequency_count; k += double_lanes) {
    const std::int64_t left = local.frequency_count - k;
    const std::int64_t count = left < double_lanes ? left : double_lanes;
    const SinCos phasor = sincos_of_phase<compensated, fractional>(local, k, anchor, residual);
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

template <bool compensated, bool fractional>
void phasors_in_layout(const Phasors& p) {
  p.interleaved ? phasors_of<compensated, fractional, true>(p) : phasors_of<compensated, fractional, false>(p);
}

void phasors(const Phasors& p) {
  const bool fractional = p.residual != 0.0;
  if (p.compensated) {
    fractional ? phasors_in_layout<true, true>(p) : phasors_in_layout<true, false>(p);
  } else {
    fractional ? phasors_in_layout<false, true>(p) : phasors_in_layout<false, false>(p);
  }
}

// ---- anchors

// `columns` of them, from `begin` on.
void turn(const Anchor& anchor, std::int64_t begin, std::int64_t columns, double* values, double* slopes) {
  const Anchor from = anchor;  // stores could alias it
  const Doubles direction = Doubles::broadcast(from.turn.backwards ? -1.0 : 1.0);
  for (std::int64_t i = 0; i < columns; i += double_lanes) {
    const Doubles value = Doubles::load(from.values + begin + i);
    const Doubles slope = Doubles::load(from.slopes + begin + i);
    const Doubles cosine = Doubles::load(from.turn.cosines + begin + i);
    const Doubles sine = direction * Doubles::load(from.turn.sines + begin + i);
    (value * cosine + slope * sine).store(values + i);
    (slope * cosine - value * sine).store(slopes + i);
  }
}

// A rotation's anchors for the columns from `begin` to `end`, at most a panel, but indexed by column as the tables are.
// Turned where they are used they stay in the first-level cache, and what was streamed before drains meanwhile.
struct TurnedAnchors {
  TurnedAnchors(const Rotation& r, std::int64_t begin, std::int64_t end) {
    const std::int64_t columns = (end - begin + column_padding - 1) / column_padding * column_padding;
    const int count = r.last_row > block_radius ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      turn(r.anchors[i], begin, columns, values[i], slopes[i]);
      anchors[i] = {values[i] - begin, slopes[i] - begin, {}};
    }
  }

  alignas(64) double values[blocks_at_once][panel_columns + column_padding];
  alignas(64) double slopes[blocks_at_once][panel_columns + column_padding];
  Anchor anchors[blocks_at_once] = {};
};

// ---- rotate

enum class Mode { write, add, scale_and_add };

template <class T, Access access>
inline void put(typename T::Element* p, typename T::Vector v) {
  if constexpr (access == Access::streaming) {
    T::stream(p, v);
  } else {
    T::store(p, v);
  }
}

// Rows around two adjacent anchors that are as far from them, in the order of their positions. Those wanted are next to
// each other.
enum RowSet : int { before_first = 1, after_first = 2, before_second = 4, after_second = 8 };
constexpr int around_first = before_first | after_first;
constexpr int around_second = before_second | after_second;
constexpr int anchors_alone = after_first | after_second;  // row 0

constexpr int row_bit(int anchor, int side) { return 1 << (2 * anchor + side); }

// Columns of a rotation, from begin to end, and where they go to. What is fetched is ahead_bytes ahead. Never passed by
// value: copying it in other pieces than it was written in waits for every store before, which costs a tenth.
struct Part {
  char* out;  // column 0 of the first anchor's row
  std::int64_t out_row_stride_bytes;
  std::int64_t begin, end;
  std::int64_t ahead_bytes;
};

// What the loop over a row's columns needs, in locals: a store could alias the Rotation's own fields. Once inlined
// whole it is all in registers. `row` is the distance from the anchors, `first_anchor` the first one's number.
template <class T>
struct RowsAt {
  using Element = typename T::Element;
  static constexpr bool compensated = sizeof(Element) == sizeof(double);

  FASTPE_ALWAYS_INLINE RowsAt(const Rotation& r, const Anchor* anchors, const Part& part, std::int64_t first_anchor,
                              std::int64_t row)
      : cosines(r.cosines + row * r.table_stride),
        sines(r.sines + row * r.table_stride),
        scale(T::broadcast(r.scale)),
        alpha(T::broadcast(r.alpha)),
        bound(Doubles::broadcast(r.bound)),
        turn(anchors[first_anchor].turn),
        turn_direction(Doubles::broadcast(turn.backwards ? -1.0 : 1.0)) {
    if constexpr (compensated) {
      cosine_lows = r.cosine_lows + row * r.table_stride;
      sine_lows = r.sine_lows + row * r.table_stride;
    }
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      const Anchor& at = anchors[first_anchor == 0 ? anchor : 1];
      values[anchor] = at.values;
      slopes[anchor] = at.slopes;
      for (int side = 0; side < 2; ++side) {
        const std::int64_t at_row = (first_anchor + anchor) * block_rows + (side == 0 ? -row : row);
        out[anchor][side] = reinterpret_cast<Element*>(part.out + at_row * part.out_row_stride_bytes);
        x[anchor][side] = reinterpret_cast<const Element*>(r.x + at_row * r.x_row_stride_bytes);
      }
    }
  }

  const double* values[blocks_at_once];
  const double* slopes[blocks_at_once];
  const double* cosines;
  const double* sines;
  const double* cosine_lows = nullptr;
  const double* sine_lows = nullptr;
  Element* out[blocks_at_once][2];  // before and after each anchor
  const Element* x[blocks_at_once][2];
  typename T::Vector scale, alpha;
  Doubles bound;
  AnchorTurn turn;
  Doubles turn_direction;
};

// Whether the phasors are the anchor's, or its group's centre's and turned as they are read.
enum class From { anchor, centre };

// The encoding of one row, from its two products (and what they lack, in float64).
template <class T, Mode mode>
inline typename T::Vector sum_of_products(DoublePair even, DoublePair odd, DoublePair even_low, DoublePair odd_low,
                                          bool plus, Doubles bound) {
  Doubles first = plus ? even.first + odd.first : even.first - odd.first;
  Doubles second = plus ? even.second + odd.second : even.second - odd.second;
  if constexpr (sizeof(typename T::Element) == sizeof(double)) {
    first = first + (plus ? even_low.first + odd_low.first : even_low.first - odd_low.first);
    second = second + (plus ? even_low.second + odd_low.second : even_low.second - odd_low.second);
    first = first.clamped(bound);  // the last addition may leave 1 + ulp
    second = second.clamped(bound);
  }
  return mode == Mode::write ? T::once(first, second) : T::addend(first, second);
}

// float_lanes columns, or the first `count` of them, of a set of rows: they share each load of the fine tables.
template <class T, Mode mode, Access access, From from, int row_set, bool partial>
FASTPE_ALWAYS_INLINE void rotate_columns(const RowsAt<T>& rows, std::int64_t column, std::int64_t count,
                                         std::int64_t ahead_bytes) {
  constexpr bool compensated = RowsAt<T>::compensated;
  const DoublePair c = Float64::load(rows.cosines + column);
  const DoublePair s = Float64::load(rows.sines + column);
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    if ((row_set & (anchor == 0 ? around_first : around_second)) == 0) continue;
    DoublePair value = Float64::load(rows.values[anchor] + column);
    DoublePair slope = Float64::load(rows.slopes[anchor] + column);
    if constexpr (from == From::centre) {
      const DoublePair cosine = Float64::load(rows.turn.cosines + column);
      const DoublePair direction{rows.turn_direction, rows.turn_direction};
      const DoublePair sine = direction * Float64::load(rows.turn.sines + column);
      const DoublePair turned = value * cosine + slope * sine;
      slope = slope * cosine - value * sine;
      value = turned;
    }
    const DoublePair even = value * c;
    const DoublePair odd = slope * s;
    DoublePair even_low = even, odd_low = odd;
    if constexpr (compensated) {
      even_low = value * Float64::load(rows.cosine_lows + column);
      odd_low = slope * Float64::load(rows.sine_lows + column);
    }
    for (int side = 0; side < 2; ++side) {
      if ((row_set & row_bit(anchor, side)) == 0) continue;
      auto result = sum_of_products<T, mode>(even, odd, even_low, odd_low, side == 1, rows.bound);
      if constexpr (mode != Mode::write) {
        const auto* x = rows.x[anchor][side] + column;
        const auto embedding = partial ? load_partial<T>(x, count) : T::load(x);
        result = mode == Mode::add ? embedding + result : embedding * rows.scale + result * rows.alpha;
      }
      auto* out = rows.out[anchor][side] + column;
      if constexpr (access == Access::fetching) {
        const auto* read = mode == Mode::write ? rows.out[anchor][side] : rows.x[anchor][side];
        prefetch_columns<T, access>(reinterpret_cast<const char*>(read) + ahead_bytes, column);
      }
      if constexpr (partial) {
        store_partial<T>(out, result, count);
      } else {
        put<T, access>(out, result);
      }
    }
  }
}

// The columns from `column` on, fewer than a vector's: a row at a time, so that there is little code.
template <class T, Mode mode, From from>
FASTPE_NEVER_INLINE void rotate_tails(const Rotation& r, const Anchor* anchors, const Part& part,
                                      std::int64_t first_anchor, std::int64_t row, std::int64_t column, int row_set) {
  for (int anchor = 0; anchor < blocks_at_once; ++anchor, row_set >>= 2) {
    if ((row_set & around_first) == 0) continue;
    const RowsAt<T> rows(r, anchors, part, first_anchor + anchor, row);
    const std::int64_t count = part.end - column;
    if ((row_set & before_first) != 0) {
      rotate_columns<T, mode, Access::plain, from, before_first, true>(rows, column, count, 0);
    }
    if ((row_set & after_first) != 0) {
      rotate_columns<T, mode, Access::plain, from, after_first, true>(rows, column, count, 0);
    }
  }
}

template <class T, Mode mode, Access access, From from, int row_set>
inline void rotate_rows_at(const Rotation& r, const Anchor* anchors, const Part& part, std::int64_t first_anchor,
                           std::int64_t row) {
  const RowsAt<T> rows(r, anchors, part, first_anchor, row);
  const std::int64_t end = part.end;
  const std::int64_t ahead_bytes = part.ahead_bytes;
  std::int64_t column = part.begin;
  for (; column + float_lanes <= end; column += float_lanes) {
    rotate_columns<T, mode, access, from, row_set, false>(rows, column, float_lanes, ahead_bytes);
  }
  if (column < end) rotate_tails<T, mode, from>(r, anchors, part, first_anchor, row, column, row_set);
}

// A row alone, turned as it is written.
template <class T, Mode mode, Access access>
inline void rotate_one_row(const Rotation& r, const Part& part) {
  if (r.first_row >= 0) {
    rotate_rows_at<T, mode, access, From::centre, after_first>(r, r.anchors, part, 0, r.first_row);
  } else {
    rotate_rows_at<T, mode, access, From::centre, before_first>(r, r.anchors, part, 0, -r.first_row);
  }
}

// Those of the rows at this distance from the anchors that are wanted.
inline int row_set_at(const Rotation& r, std::int64_t row) {
  const auto wanted = [&r](std::int64_t at, int bit) { return r.first_row <= at && at <= r.last_row ? bit : 0; };
  const int after = wanted(row, after_first) | wanted(block_rows + row, after_second);
  return row == 0 ? after : after | wanted(-row, before_first) | wanted(block_rows - row, before_second);
}

// All rows wanted.
template <class T, Mode mode, Access access>
inline void rotate_rows(const Rotation& r, const Anchor* anchors, const Part& part) {
  // Large arrays, for which fetching pays, are almost all of whole pairs of blocks.
  constexpr Access of_parts = access == Access::fetching ? Access::plain : access;
  constexpr From from = From::anchor;
  for (std::int64_t row = 0; row <= block_radius; ++row) {
    const int row_set = row_set_at(r, row);
    // Rows of the second block alone are done as those of a first one.
    const bool is_second = (row_set & around_first) == 0;
    const std::int64_t first_anchor = is_second ? 1 : 0;
    switch (is_second ? row_set >> 2 : row_set) {
      case before_first:
        rotate_rows_at<T, mode, of_parts, from, before_first>(r, anchors, part, first_anchor, row);
        break;
      case after_first:
        rotate_rows_at<T, mode, of_parts, from, after_first>(r, anchors, part, first_anchor, row);
        break;
      case around_first:
        rotate_rows_at<T, mode, of_parts, from, around_first>(r, anchors, part, first_anchor, row);
        break;
      case after_first | before_second:
        rotate_rows_at<T, mode, of_parts, from, after_first | before_second>(r, anchors, part, 0, row);
        break;
      case around_first | before_second:
        rotate_rows_at<T, mode, of_parts, from, around_first | before_second>(r, anchors, part, 0, row);
        break;
      case after_first | around_second:
        rotate_rows_at<T, mode, of_parts, from, after_first | around_second>(r, anchors, part, 0, row);
        break;
      case anchors_alone: rotate_rows_at<T, mode, access, from, anchors_alone>(r, anchors, part, 0, row); break;
      case around_first | around_second:
        rotate_rows_at<T, mode, access, from, around_first | around_second>(r, anchors, part, 0, row);
        break;
      default: break;
    }
  }
}

// A part of at most panel_columns, for which TurnedAnchors has room. A row alone, which uses no table twice, is turned
// as it is written and may have any number.
template <class T, Mode mode, Access access>
inline void rotate_panel(const Rotation& r, const Part& part) {
  if constexpr (sizeof(typename T::Element) < sizeof(double)) {
    if (r.anchors[0].turn.cosines != nullptr) {
      if (r.first_row == r.last_row) {
        constexpr Access of_one = access == Access::fetching ? Access::plain : access;
        return rotate_one_row<T, mode, of_one>(r, part);
      }
      const TurnedAnchors turned(r, part.begin, part.end);
      return rotate_rows<T, mode, access>(r, turned.anchors, part);
    }
  }
  rotate_rows<T, mode, access>(r, r.anchors, part);
}

template <class T, Mode mode, Access access>
void rotate_panels(const Rotation& r, std::int64_t first, std::int64_t last) {
  constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(typename T::Element));
  const std::int64_t rows = r.last_row - r.first_row + 1;
  const std::int64_t columns = rows == 1 ? last - first : panel_columns;
  const std::int64_t row_stride_bytes = mode == Mode::write ? r.out_row_stride_bytes : r.x_row_stride_bytes;
  for (std::int64_t begin = first; begin < last; begin += columns) {
    // After the last panel come the first columns of the next call's rows.
    const bool is_last = begin + columns >= last;
    const std::int64_t ahead =
        is_last ? rows * row_stride_bytes - (begin - first) * element_bytes : columns * element_bytes;
    const Part part{r.out, r.out_row_stride_bytes, begin, is_last ? last : begin + columns, ahead};
    rotate_panel<T, mode, access>(r, part);
  }
}

// Of rows without a gap between them, the vectors that one row ends in and the next begins in: made from both, so that
// they are stored whole. Written in halves, such a line would have to be read from memory first.
template <class T, Mode mode>
void rotate_seams(const Rotation& r, std::int64_t head) {
  using Element = typename T::Element;
  constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(Element));
  constexpr std::int64_t most_rows = blocks_at_once * block_rows;
  constexpr std::int64_t seam = 2 * float_lanes;
  const std::int64_t tail = float_lanes - head;
  const std::int64_t rows = r.last_row - r.first_row + 1;
  // From k * seam on: `tail` columns of row k - 1, then `head` columns of row k. Each come in a whole vector; what it
  // has beside them goes into the room between two seams.
  alignas(64) Element seams[(most_rows + 1) * seam];
  const auto rotate_to = [&r](Element* to, std::int64_t column) {
    char* const out = reinterpret_cast<char*>(to) - (r.first_row * seam + column) * element_bytes;
    const Part part{out, seam * element_bytes, column, column + float_lanes, 0};
    rotate_panel<T, mode, Access::plain>(r, part);
  };
  rotate_to(seams + tail, 0);
  rotate_to(seams + seam + tail - float_lanes, r.columns - float_lanes);
  auto* const out = reinterpret_cast<Element*>(r.out + r.first_row * r.out_row_stride_bytes);
  copy_elements(out, seams + tail, head);
  for (std::int64_t row = 1; row < rows; ++row) {
    T::stream(advance(out, row * r.out_row_stride_bytes) - tail, T::load(seams + row * seam));
  }
  copy_elements(advance(out, rows * r.out_row_stride_bytes) - tail, seams + rows * seam, tail);
}

// Rows of the same alignment: the columns before the first aligned one are peeled.
template <class T, Mode mode>
void rotate_streaming(const Rotation& r) {
  const std::int64_t aligned = elements_to_alignment<T>(r.out);
  const std::int64_t head = aligned < r.columns ? aligned : r.columns;
  const bool has_seams =
      head != 0 && r.out_row_stride_bytes == r.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  if (has_seams) {
    rotate_seams<T, mode>(r, head);
  } else if (head != 0) {
    rotate_panel<T, mode, Access::plain>(r, {r.out, r.out_row_stride_bytes, 0, head, 0});
  }
  rotate_panels<T, mode, Access::streaming>(r, head, has_seams ? r.columns - float_lanes + head : r.columns);
  streaming_fence();
}

template <class T, Mode mode>
void rotate_in_mode(const Rotation& r) {
  if constexpr (can_stream(T::dtype)) {
    const bool same_alignment = r.out_row_stride_bytes % vector_bytes<T> == 0;
    if (r.streaming && same_alignment) return rotate_streaming<T, mode>(r);
  }
  if (r.fetches_ahead) {
    rotate_panels<T, mode, Access::fetching>(r, 0, r.columns);
  } else {
    rotate_panels<T, mode, Access::plain>(r, 0, r.columns);
  }
}

template <class T>
void rotate(const Rotation& r) {
  if (r.x == nullptr) {
    rotate_in_mode<T, Mode::write>(r);
  } else if (r.scale == 1.0 && r.alpha == 1.0) {
    rotate_in_mode<T, Mode::add>(r);
  } else {
    rotate_in_mode<T, Mode::scale_and_add>(r);
  }
}

// ---- combine

template <class T, class Addend, bool scaled>
struct CombinedRow {
  using Element = typename T::Element;
  using Vector = typename T::Vector;

  FASTPE_ALWAYS_INLINE CombinedRow(const Combination& c, std::int64_t row)
      : out(reinterpret_cast<Element*>(c.out + row * c.out_row_stride_bytes)),
        x(reinterpret_cast<const Element*>(c.x + row * c.x_row_stride_bytes)),
        addend(reinterpret_cast<const typename Addend::Element*>(c.addend + row * c.addend_row_stride_bytes)),
        next_x((c.next_x == nullptr ? c.x : c.next_x) + row * c.x_row_stride_bytes),
        scale(T::broadcast(c.scale)),
        alpha(T::broadcast(c.alpha)) {}

  FASTPE_ALWAYS_INLINE Vector sum(Vector embedding, typename Addend::Vector other) const {
    return scaled ? embedding * scale + other * alpha : embedding + other;
  }
  FASTPE_ALWAYS_INLINE Vector at(std::int64_t column) const {
    return sum(T::load(x + column), Addend::load(addend + column));
  }
  template <Access access>
  FASTPE_ALWAYS_INLINE std::int64_t put_vectors(std::int64_t begin, std::int64_t end) const {
    std::int64_t column = begin;
    for (; column + float_lanes <= end; column += float_lanes) {
      if constexpr (access != Access::plain) prefetch_columns<T, access>(next_x, column - begin);
      put<T, access>(out + column, at(column));
    }
    return column;
  }
  FASTPE_ALWAYS_INLINE void put_partial(std::int64_t begin, std::int64_t end) const {
    const std::int64_t count = end - begin;
    store_partial<T>(out + begin, sum(load_partial<T>(x + begin, count), load_partial<Addend>(addend + begin, count)),
                     count);
  }

  Element* out;
  const Element* x;
  const typename Addend::Element* addend;
  const char* next_x;
  Vector scale, alpha;
};

template <class T, class Addend, bool scaled, Access access>
void combine_rows(const Combination& c, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const CombinedRow<T, Addend, scaled> r(c, row);
    const std::int64_t aligned = elements_to_alignment<T>(r.out);
    const std::int64_t head = aligned < columns ? aligned : columns;
    if constexpr (access == Access::streaming) {
      for (std::int64_t begin = 0; begin < head; begin += float_lanes) r.put_partial(begin, head);
      const std::int64_t end = r.template put_vectors<access>(head, columns);
      if (end < columns) r.put_partial(end, columns);
    } else if (columns < float_lanes) {
      r.put_partial(0, columns);
    } else {
      // The vectors at both ends may overlap those between, which lie on cache lines: summed before x is written.
      const auto first = r.at(0);
      const auto last = r.at(columns - float_lanes);
      r.template put_vectors<access>(head, columns);
      T::store(r.out, first);
      T::store(r.out + columns - float_lanes, last);
    }
  }
}

using WideFloat32 = Float32Of<WideFloats>;
using WideFloat16 = Float16Of<WideFloats>;
using WideBFloat16 = BFloat16Of<WideFloats>;

// As what sums are fastest where x comes from memory: whole vectors of float32 are a fifth slower than halves.
template <class T, class Addend>
struct FromMemory {
  using X = T;
  using Other = Addend;
};
template <>
struct FromMemory<WideFloat32, WideFloat32> {
  using X = Float32;
  using Other = Float32;
};

template <class T, class Addend, bool scaled>
void combine_scaled(const Combination& c) {
  if constexpr (can_stream(T::dtype)) {
    if (c.streaming) {
      combine_rows<T, Addend, scaled, Access::streaming>(c, c.rows, c.columns);
      return streaming_fence();
    }
  }
  if (c.next_x != nullptr) {
    using X = typename FromMemory<T, Addend>::X;
    using Other = typename FromMemory<T, Addend>::Other;
    c.fetches_close ? combine_rows<X, Other, scaled, Access::fetching_close>(c, c.rows, c.columns)
                    : combine_rows<X, Other, scaled, Access::fetching>(c, c.rows, c.columns);
    return;
  }
  // Rows without a gap between them are one long row.
  const std::int64_t row_bytes = c.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const std::int64_t addend_row_bytes = c.columns * static_cast<std::int64_t>(sizeof(typename Addend::Element));
  const bool is_one_row = c.out_row_stride_bytes == row_bytes && c.x_row_stride_bytes == row_bytes &&
                          c.addend_row_stride_bytes == addend_row_bytes;
  combine_rows<T, Addend, scaled, Access::plain>(c, is_one_row ? 1 : c.rows,
                                                 is_one_row ? c.rows * c.columns : c.columns);
}

template <class T, class Addend>
void combine(const Combination& c) {
  c.scale == 1.0 && c.alpha == 1.0 ? combine_scaled<T, Addend, false>(c) : combine_scaled<T, Addend, true>(c);
}

}  // namespace
}  // namespace fastpe

#define FASTPE_KERNELS                                                                                  \
  {                                                                                                     \
      phasors,                                                                                          \
      {rotate<Float32>, rotate<Float64>, rotate<Float16>, rotate<BFloat16>},                            \
      {combine<WideFloat32, WideFloat32>, combine<Float64, Float64>, combine<WideFloat16, WideFloat32>, \
       combine<WideBFloat16, WideFloat32>},                                                             \
      {combine<WideFloat32, WideFloat32>, combine<Float64, Float64>, combine<WideFloat16, WideFloat16>, \
       combine<WideBFloat16, WideBFloat16>},                                                            \
  }
