// SPDX-License-Identifier: BSD-3-Clause
// The kernels, written once over the vector types Doubles and Floats that each instruction set's file defines before it
// includes this one. Nothing of the standard library is instantiated here and nothing has external linkage: the linker
// could otherwise hand this file's copy of a shared function to a processor that cannot run it.
//
// Method
//   1. phase = frac(position * turns) with the frequency as a double-double and an exact product: no range reduction
//      problem at any position up to 2^53.
//   2. One polynomial sine and cosine on +-1/8 turn per frequency and anchor.
//   3. Rows around the anchor by the angle addition theorem, +row and -row from the same two products.
// The arithmetic is plain mul/add/sub in one fixed order, FMA serving only for exact products' errors, so every
// instruction set gives the same bits.
// Measured error before the final rounding (tests/test_accuracy.py): 3.6e-16 (float32), 2.2e-16 (float64, compensated).
//
// Tried, and no faster: pairs of (sin, cos) interleaved at the store (equal with AVX-512, 20 % slower with AVX2, and
// each layout needs its own); one anchor at a time (20 % slower: the fine tables are read twice as often); column tiles
// narrower than 256 (4 KiB strides then thrash the first-level cache).

namespace fastpe {
namespace {

constexpr std::int64_t panel_columns = 256;
constexpr int double_lanes = Doubles::lanes;
constexpr int float_lanes = 2 * Doubles::lanes;

struct DoublePair {
  Doubles first, second;
};
inline DoublePair operator+(DoublePair a, DoublePair b) { return {a.first + b.first, a.second + b.second}; }
inline DoublePair operator*(DoublePair a, DoublePair b) { return {a.first * b.first, a.second * b.second}; }

// a + b = sum + error exactly, whichever is larger.
inline Doubles two_sum_error(Doubles a, Doubles b, Doubles sum) {
  const Doubles b_rounded = sum - a;
  return (a - (sum - b_rounded)) + (b - b_rounded);
}

// float_lanes elements in memory of type T; `Vector` is the type in which arithmetic on them is done.
struct Float32 {
  using Element = float;
  using Vector = Floats;
  static Vector load(const float* p) { return Floats::load(p); }
  static void store(float* p, Vector v) { v.store(p); }
  static void stream(float* p, Vector v) { v.stream(p); }
  static Vector broadcast(double v) { return Floats::broadcast(static_cast<float>(v)); }
  static Vector addend(Doubles first, Doubles second) { return narrow(first, second); }
  static Vector once(Doubles first, Doubles second) { return narrow(first, second); }
};

struct Float64 {
  using Element = double;
  using Vector = DoublePair;
  static Vector load(const double* p) { return {Doubles::load(p), Doubles::load(p + double_lanes)}; }
  static void store(double* p, Vector v) { v.first.store(p), v.second.store(p + double_lanes); }
  static void stream(double* p, Vector v) { v.first.stream(p), v.second.stream(p + double_lanes); }
  static Vector broadcast(double v) { return {Doubles::broadcast(v), Doubles::broadcast(v)}; }
  static Vector addend(Doubles first, Doubles second) { return {first, second}; }
  static Vector once(Doubles first, Doubles second) { return {first, second}; }
};

struct Float16 {
  using Element = std::uint16_t;
  using Vector = Floats;
  static Vector load(const std::uint16_t* p) { return load_float16(p); }
  static void store(std::uint16_t* p, Vector v) { store_float16(p, v); }
  static void stream(std::uint16_t* p, Vector v) { store_float16(p, v); }
  static Vector broadcast(double v) { return Float32::broadcast(v); }
  static Vector addend(Doubles first, Doubles second) { return narrow(first, second); }
  // Rounding to odd first: the second rounding, to 11 or 8 bits, is then the only one.
  static Vector once(Doubles first, Doubles second) { return narrow(first.to_odd(), second.to_odd()); }
};

struct BFloat16 : Float16 {
  static Vector load(const std::uint16_t* p) { return load_bfloat16(p); }
  static void store(std::uint16_t* p, Vector v) { store_bfloat16(p, v); }
  static void stream(std::uint16_t* p, Vector v) { store_bfloat16(p, v); }
};

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

// Elements before p is aligned for streaming stores.
template <class T>
inline std::int64_t elements_to_alignment(const void* p) {
  constexpr std::uintptr_t alignment = sizeof(typename T::Element) * float_lanes;
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

// ---- phasors

struct SinCos {
  Doubles sine, cosine, sine_low, cosine_low;
};

// x + low, |x| <= pi/4; absolute error of the polynomials below 2^-57.
template <bool compensated>
inline SinCos sincos_eighth_turn(Doubles x, Doubles x_low) {
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
  Doubles c = Doubles::broadcast(-0x1.907d8f29fe831p-37);
  c = c * z + Doubles::broadcast(0x1.1eeb68cd22f56p-29);
  c = c * z + Doubles::broadcast(-0x1.27e4fa17bf139p-22);
  c = c * z + Doubles::broadcast(0x1.a01a019f4e9b4p-16);
  c = c * z + Doubles::broadcast(-0x1.6c16c16c16967p-10);
  c = c * z + Doubles::broadcast(0x1.5555555555555p-5);

  const Doubles half_z = half * z;
  const Doubles leading = one - half_z;
  Doubles sine_rest = x * z * s;
  Doubles cosine_rest = ((one - leading) - half_z) + z * z * c;
  if constexpr (compensated) {
    sine_rest = sine_rest + x_low * leading;
    cosine_rest = cosine_rest - (half * two_product_error(x, x, z) + x * x_low);
  }
  SinCos result;
  result.sine = x + sine_rest;
  result.cosine = leading + cosine_rest;
  if constexpr (compensated) {
    result.sine_low = (x - result.sine) + sine_rest;
    result.cosine_low = (leading - result.cosine) + cosine_rest;
  }
  return result;
}

template <bool compensated, bool fractional>
inline SinCos sincos_of_turns(const Phasors& p, std::int64_t k, Doubles anchor, Doubles residual) {
  const Doubles high = Doubles::load(p.anchor_turns_high + k);
  const Doubles product = anchor * high;
  Doubles turns = product - product.rounded();
  Doubles rest = two_product_error(anchor, high, product) + anchor * Doubles::load(p.anchor_turns_low + k);
  if constexpr (fractional) {
    const Doubles residual_high = Doubles::load(p.turns_high + k);
    const Doubles residual_product = residual * residual_high;
    const Doubles added = residual_product - residual_product.rounded();
    rest = rest + (two_product_error(residual, residual_high, residual_product) +
                   residual * Doubles::load(p.turns_low + k));
    const Doubles sum = turns + added;
    rest = rest + two_sum_error(turns, added, sum);
    turns = sum;
  }
  const Doubles sum = turns + rest;
  const Doubles reduced = sum - sum.rounded();  // exact, as is the next reduction
  const Doubles quarters = (reduced * Doubles::broadcast(4.0)).rounded();
  const Doubles eighth = reduced - quarters * Doubles::broadcast(0.25);

  const Doubles tau = Doubles::broadcast(0x1.921fb54442d18p+2);
  const Doubles x = eighth * tau;
  Doubles x_low = eighth;
  if constexpr (compensated) {
    x_low = two_product_error(eighth, tau, x) + (eighth * Doubles::broadcast(0x1.1a62633145c07p-52) +
                                                 two_sum_error(turns, rest, sum) * tau);
  }
  const SinCos base = sincos_eighth_turn<compensated>(x, x_low);

  // Quarter turns -2..2: (sin, cos) is turned by exact multiplications with -1, 0 and 1.
  const Doubles magnitude = quarters.absolute();
  const Doubles even = Doubles::broadcast(1.0) - magnitude;
  const Doubles odd = quarters * (Doubles::broadcast(2.0) - magnitude);
  SinCos result;
  result.sine = even * base.sine + odd * base.cosine;
  result.cosine = even * base.cosine - odd * base.sine;
  if constexpr (compensated) {
    result.sine_low = even * base.sine_low + odd * base.cosine_low;
    result.cosine_low = even * base.cosine_low - odd * base.sine_low;
  }
  return result;
}

// Columns of `sines` start at sine_column, of `cosines` at cosine_column; whole vectors but for the last.
inline void store_columns(const Phasors& p, double* columns, std::int64_t k, Doubles sines, Doubles cosines) {
  const std::int64_t count = p.frequency_count - k < double_lanes ? p.frequency_count - k : double_lanes;
  if (p.interleaved) {
    DoublePair pair = p.sine_column == 0 ? DoublePair{sines, cosines} : DoublePair{cosines, sines};
    interleave(pair.first, pair.second);
    if (count == double_lanes) {
      Float64::store(columns + 2 * k, pair);
    } else {
      store_partial<Float64>(columns + 2 * k, pair, 2 * count);
    }
  } else if (count == double_lanes) {
    sines.store(columns + p.sine_column + k);
    cosines.store(columns + p.cosine_column + k);
  } else {
    store_partial<Float64>(columns + p.sine_column + k, {sines, sines}, count);
    store_partial<Float64>(columns + p.cosine_column + k, {cosines, cosines}, count);
  }
}

template <bool compensated, bool fractional>
void phasors_of(const Phasors& p) {
  const Doubles anchor = Doubles::broadcast(p.anchor);
  const Doubles residual = Doubles::broadcast(p.residual);
  const Doubles zero = Doubles::broadcast(0.0);
  for (std::int64_t k = 0; k < p.frequency_count; k += double_lanes) {
    const SinCos phasor = sincos_of_turns<compensated, fractional>(p, k, anchor, residual);
    store_columns(p, p.values, k, phasor.sine, phasor.cosine);
    store_columns(p, p.slopes, k, phasor.cosine, zero - phasor.sine);
    if constexpr (compensated) {
      if (p.value_lows != nullptr) {
        store_columns(p, p.value_lows, k, phasor.sine_low, phasor.cosine_low);
        store_columns(p, p.slope_lows, k, phasor.cosine_low, zero - phasor.sine_low);
      }
    }
  }
}

void phasors(const Phasors& p) {
  const bool fractional = p.residual != 0.0;
  if (p.compensated) {
    fractional ? phasors_of<true, true>(p) : phasors_of<true, false>(p);
  } else {
    fractional ? phasors_of<false, true>(p) : phasors_of<false, false>(p);
  }
}

// ---- rotate

template <class T, bool streaming>
inline void put(typename T::Element* p, typename T::Vector v) {
  if constexpr (streaming) {
    T::stream(p, v);
  } else {
    T::store(p, v);
  }
}

// float_lanes columns of the rows +row and -row around one anchor.
template <class T>
struct Products {
  Doubles first_even, first_odd, second_even, second_odd;
  Doubles first_even_low, first_odd_low, second_even_low, second_odd_low;

  typename T::Vector encoding(bool plus, bool rounded_once, Doubles bound) const {
    Doubles first = plus ? first_even + first_odd : first_even - first_odd;
    Doubles second = plus ? second_even + second_odd : second_even - second_odd;
    if constexpr (sizeof(typename T::Element) == sizeof(double)) {
      first = first + (plus ? first_even_low + first_odd_low : first_even_low - first_odd_low);
      second = second + (plus ? second_even_low + second_odd_low : second_even_low - second_odd_low);
      first = first.clamped(bound);  // the last addition may leave 1 + ulp
      second = second.clamped(bound);
    }
    return rounded_once ? T::once(first, second) : T::addend(first, second);
  }
};

// One anchor's row pair, or one row of it, from column `begin` to `end`; the anchors share each load of the tables.
template <class T, bool add, bool streaming, int anchors, bool plus, bool minus>
inline void rotate_row(const Rotation& r, std::int64_t row, std::int64_t begin, std::int64_t end) {
  using Element = typename T::Element;
  constexpr bool compensated = sizeof(Element) == sizeof(double);
  const double* const cosines = r.cosines + row * r.table_stride;
  const double* const sines = r.sines + row * r.table_stride;
  const double* const cosine_lows = compensated ? r.cosine_lows + row * r.table_stride : nullptr;
  const double* const sine_lows = compensated ? r.sine_lows + row * r.table_stride : nullptr;
  const auto scale = T::broadcast(r.scale);
  const auto alpha = T::broadcast(r.alpha);
  const Doubles bound = Doubles::broadcast(r.bound);
  for (std::int64_t column = begin; column < end; column += float_lanes) {
    const std::int64_t count = end - column < float_lanes ? end - column : float_lanes;
    const DoublePair c = Float64::load(cosines + column);
    const DoublePair s = Float64::load(sines + column);
    for (int anchor = 0; anchor < anchors; ++anchor) {
      const DoublePair value = Float64::load(r.values + anchor * r.table_stride + column);
      const DoublePair slope = Float64::load(r.slopes + anchor * r.table_stride + column);
      Products<T> products;
      products.first_even = value.first * c.first;
      products.second_even = value.second * c.second;
      products.first_odd = slope.first * s.first;
      products.second_odd = slope.second * s.second;
      if constexpr (compensated) {
        const DoublePair c_low = Float64::load(cosine_lows + column);
        const DoublePair s_low = Float64::load(sine_lows + column);
        products.first_even_low = value.first * c_low.first;
        products.second_even_low = value.second * c_low.second;
        products.first_odd_low = slope.first * s_low.first;
        products.second_odd_low = slope.second * s_low.second;
      }
      const auto emit = [&](std::int64_t at_row, bool is_plus) {
        Element* const out = advance(reinterpret_cast<Element*>(r.out), at_row * r.out_row_stride_bytes) + column;
        auto result = products.encoding(is_plus, !add, bound);
        if constexpr (add) {
          const Element* const x =
              advance(reinterpret_cast<const Element*>(r.x), at_row * r.x_row_stride_bytes) + column;
          const auto embedding = count == float_lanes ? T::load(x) : load_partial<T>(x, count);
          result = embedding * scale + result * alpha;
        }
        if (count == float_lanes) {
          put<T, streaming>(out, result);
        } else {
          store_partial<T>(out, result, count);
        }
      };
      if constexpr (plus) emit(anchor * block_rows + row, true);
      if constexpr (minus) emit(anchor * block_rows - row, false);
    }
  }
}

template <class T, bool add, bool streaming>
inline void rotate_one_row(const Rotation& r, std::int64_t signed_row, std::int64_t begin, std::int64_t end) {
  if (signed_row >= 0) {
    rotate_row<T, add, streaming, 1, true, false>(r, signed_row, begin, end);
  } else {
    rotate_row<T, add, streaming, 1, false, true>(r, -signed_row, begin, end);
  }
}

// All rows wanted, from column `begin` to `end`.
template <class T, bool add, bool streaming>
inline void rotate_panel(const Rotation& r, std::int64_t begin, std::int64_t end) {
  const std::int64_t symmetric = -r.first_row < r.last_row ? -r.first_row : r.last_row;
  if (symmetric < 0) {
    for (std::int64_t row = r.first_row; row <= r.last_row; ++row) {
      rotate_one_row<T, add, streaming>(r, row, begin, end);
    }
    return;
  }
  if (r.anchor_count == 2) {
    rotate_row<T, add, streaming, 2, true, false>(r, 0, begin, end);
    for (std::int64_t row = 1; row <= symmetric; ++row) {
      rotate_row<T, add, streaming, 2, true, true>(r, row, begin, end);
    }
    return;
  }
  rotate_row<T, add, streaming, 1, true, false>(r, 0, begin, end);
  for (std::int64_t row = 1; row <= symmetric; ++row) {
    rotate_row<T, add, streaming, 1, true, true>(r, row, begin, end);
  }
  for (std::int64_t row = r.first_row; row < -symmetric; ++row) rotate_one_row<T, add, streaming>(r, row, begin, end);
  for (std::int64_t row = symmetric + 1; row <= r.last_row; ++row) {
    rotate_one_row<T, add, streaming>(r, row, begin, end);
  }
}

template <class T, bool add>
void rotate_plain(const Rotation& r) {
  for (std::int64_t begin = 0; begin < r.columns; begin += panel_columns) {
    rotate_panel<T, add, false>(r, begin, begin + panel_columns < r.columns ? begin + panel_columns : r.columns);
  }
}

// Streaming stores want aligned addresses: the columns before are peeled. Rows that are aligned differently are peeled
// one by one.
template <class T, bool add>
void rotate_streaming(const Rotation& r) {
  constexpr std::int64_t alignment = sizeof(typename T::Element) * float_lanes;
  const auto peel = [&r](const char* row) {
    const std::int64_t head = elements_to_alignment<T>(row);
    return head < r.columns ? head : r.columns;
  };
  if (r.out_row_stride_bytes % alignment == 0) {
    const std::int64_t head = peel(r.out);
    rotate_panel<T, add, false>(r, 0, head);
    for (std::int64_t begin = head; begin < r.columns; begin += panel_columns) {
      rotate_panel<T, add, true>(r, begin, begin + panel_columns < r.columns ? begin + panel_columns : r.columns);
    }
  } else {
    Rotation one = r;
    one.anchor_count = 1;
    for (std::int64_t anchor = 0; anchor < r.anchor_count; ++anchor) {
      for (std::int64_t row = r.first_row; row <= r.last_row; ++row) {
        const std::int64_t head = peel(one.out + row * r.out_row_stride_bytes);
        rotate_one_row<T, add, false>(one, row, 0, head);
        rotate_one_row<T, add, true>(one, row, head, r.columns);
      }
      one.values += r.table_stride;
      one.slopes += r.table_stride;
      one.out += block_rows * r.out_row_stride_bytes;
      if (add) one.x += block_rows * r.x_row_stride_bytes;
    }
  }
  streaming_fence();
}

template <class T>
void rotate(const Rotation& r) {
  if (r.x != nullptr) {
    r.streaming ? rotate_streaming<T, true>(r) : rotate_plain<T, true>(r);
  } else {
    r.streaming ? rotate_streaming<T, false>(r) : rotate_plain<T, false>(r);
  }
}

// ---- combine

template <class T, class Addend, bool streaming>
inline void combine_row(typename T::Element* out, const typename T::Element* x, const typename Addend::Element* addend,
                        std::int64_t columns, typename T::Vector scale, typename T::Vector alpha) {
  std::int64_t column = 0;
  for (; column + float_lanes <= columns; column += float_lanes) {
    put<T, streaming>(out + column, T::load(x + column) * scale + Addend::load(addend + column) * alpha);
  }
  if (column < columns) {
    const std::int64_t count = columns - column;
    const auto embedding = load_partial<T>(x + column, count);
    store_partial<T>(out + column, embedding * scale + load_partial<Addend>(addend + column, count) * alpha, count);
  }
}

template <class T, class Addend>
void combine(const Combination& c) {
  const auto scale = T::broadcast(c.scale);
  const auto alpha = T::broadcast(c.alpha);
  for (std::int64_t row = 0; row < c.rows; ++row) {
    auto* out = reinterpret_cast<typename T::Element*>(c.out + row * c.out_row_stride_bytes);
    const auto* x = reinterpret_cast<const typename T::Element*>(c.x + row * c.x_row_stride_bytes);
    const auto* addend = reinterpret_cast<const typename Addend::Element*>(c.addend + row * c.addend_row_stride_bytes);
    if (c.streaming) {
      std::int64_t head = elements_to_alignment<T>(out);
      head = head < c.columns ? head : c.columns;
      combine_row<T, Addend, false>(out, x, addend, head, scale, alpha);
      combine_row<T, Addend, true>(out + head, x + head, addend + head, c.columns - head, scale, alpha);
    } else {
      combine_row<T, Addend, false>(out, x, addend, c.columns, scale, alpha);
    }
  }
  if (c.streaming) streaming_fence();
}

}  // namespace
}  // namespace fastpe

#define FASTPE_KERNELS                                                                                        \
  {                                                                                                           \
    phasors, {rotate<Float32>, rotate<Float64>, rotate<Float16>, rotate<BFloat16>},                           \
        {combine<Float32, Float32>, combine<Float64, Float64>, combine<Float16, Float32>,                     \
         combine<BFloat16, Float32>},                                                                         \
        {combine<Float32, Float32>, combine<Float64, Float64>, combine<Float16, Float16>,                     \
         combine<BFloat16, BFloat16>},                                                                        \
  }
