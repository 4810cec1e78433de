// SPDX-License-Identifier: BSD-3-Clause
// Each kernel of each instruction set but those of phasors, angles and copies, of which there are stored sums and whole
// calls: every number of columns up to beyond two vectors, misaligned starts, every dtype, against the same arithmetic
// written as a scalar loop. Bytes around what a kernel may write stay as they are.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/dispatch.h"

namespace {

using namespace fastpe;

constexpr std::int64_t most_columns = 2 * 32 + 1;  // of the widest vector, one more than two
constexpr std::int64_t most_pairs = 2 * 16 + 1;    // the same of two vectors that hold pairs
constexpr DType dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16};

// Numbers in (-1, 1) without a pattern that a mistake in the order of elements could keep.
double number(std::int64_t i) {
  return std::fmod(static_cast<double>(i * 7919 % 10007) * 0.618033988749895, 2.0) - 1.0;
}

std::vector<double> numbers(std::int64_t count, std::int64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(static_cast<std::int64_t>(i) + seed);
  return values;
}

// Correctly rounded to `significant` bits, by way of neither dtype's own conversion.
double rounded(double value, int significant) {
  if (value == 0.0) return value;
  int exponent;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, exponent - significant);
  return std::nearbyint(value / unit) * unit;
}

double rounded_to(DType dtype, double value) {
  switch (dtype) {
    case DType::float32: return static_cast<double>(static_cast<float>(value));
    case DType::float16:
      return std::fabs(value) < 0x1p-14 ? std::nearbyint(value * 0x1p24) * 0x1p-24 : rounded(value, 11);
    case DType::bfloat16: return rounded(value, 8);
    default: return value;
  }
}

double element(DType dtype, const char* p) {
  float narrow;
  std::uint16_t bits;
  double wide;
  switch (dtype) {
    case DType::float32: std::memcpy(&narrow, p, 4); return static_cast<double>(narrow);
    case DType::float64: std::memcpy(&wide, p, 8); return wide;
    case DType::bfloat16: {
      std::memcpy(&bits, p, 2);
      const std::uint32_t shifted = static_cast<std::uint32_t>(bits) << 16;
      std::memcpy(&narrow, &shifted, 4);
      return static_cast<double>(narrow);
    }
    default: break;  // float16
  }
  std::memcpy(&bits, p, 2);
  const int exponent = (bits >> 10) & 31;
  const double fraction = static_cast<double>(bits & 1023);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rows with guard bytes before, between and behind them.
class GuardedRows {
 public:
  GuardedRows(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t shift, std::int64_t gap)
      : dtype_(dtype),
        rows_(rows),
        columns_(columns),
        start_(guard + shift * element_bytes(dtype)),
        row_stride_bytes((columns + gap) * element_bytes(dtype)),
        bytes_(static_cast<std::size_t>(start_ + rows * row_stride_bytes + guard), filler) {}

  char* data() { return bytes_.data() + start_; }
  double at(std::int64_t row, std::int64_t column) const { return element(dtype_, place(row, column)); }
  void set(std::int64_t row, std::int64_t column, double value) {
    testing::put(dtype_, const_cast<char*>(place(row, column)), rounded_to(dtype_, value));
  }
  bool guards_are_whole() const {
    const std::int64_t row_bytes = columns_ * element_bytes(dtype_);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const std::int64_t from_first_row = static_cast<std::int64_t>(i) - start_;
      const bool is_in_row = from_first_row >= 0 && from_first_row / row_stride_bytes < rows_ &&
                             from_first_row % row_stride_bytes < row_bytes;
      if (!is_in_row && bytes_[i] != filler) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t guard = 256;
  static constexpr char filler = 0x5a;
  const char* place(std::int64_t row, std::int64_t column) const {
    return bytes_.data() + start_ + row * row_stride_bytes + column * element_bytes(dtype_);
  }
  DType dtype_;
  std::int64_t rows_, columns_, start_;

 public:
  std::int64_t row_stride_bytes;

 private:
  std::vector<char> bytes_;
};

std::string described(const std::string& what, DType dtype, std::int64_t columns, std::int64_t shift) {
  return what + ", dtype " + std::to_string(index_of(dtype)) + ", " + std::to_string(columns) + " columns, shift " +
         std::to_string(shift);
}

void report(bool holds, const std::string& what) {
  if (!holds) std::fprintf(stderr, "%s\n", what.c_str());
  CHECK(holds);
}

// ---- expand

struct RowRange {
  std::int64_t first_row, last_row;
};

enum class Work { write, add, scale_and_add };
constexpr Work every_work[] = {Work::write, Work::add, Work::scale_and_add};

struct Arrangement {
  std::int64_t gap = 3;  // rows are so many elements apart, and those of x x_gap
  std::int64_t x_gap = 5;
  bool non_temporal = false;
  double bound = 1e9;  // of float64 values
};

void expanding_is_the_scalar_arithmetic(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                        RowRange range, Work work, bool from_centre, const Arrangement& arrangement) {
  const std::int64_t stride = columns + 2 * column_padding;
  const auto size = static_cast<std::int64_t>((block_radius + 1) * stride);
  const std::vector<double> cosines = numbers(size, 11), sines = numbers(size, 29);
  const std::vector<double> zeros(static_cast<std::size_t>(size), 0.0);
  const std::vector<double> centre_cosines = numbers(stride, 61), centre_sines = numbers(stride, 83);
  std::vector<double> values[blocks_at_once], slopes[blocks_at_once];
  const std::int64_t rows = range.last_row - range.first_row + 1;
  GuardedRows x(dtype, rows, columns, shift + 1, arrangement.x_gap), out(dtype, rows, columns, shift, arrangement.gap);
  Expansion e{};
  e.fine = {cosines.data(), sines.data(), zeros.data(), zeros.data(), stride};
  for (int i = 0; i < blocks_at_once; ++i) {
    values[i] = numbers(stride, 101 + i);
    slopes[i] = numbers(stride, 211 + i);
    e.anchors[i] = {values[i].data(), slopes[i].data(), nullptr, nullptr, 1.0};
    if (from_centre) {
      e.anchors[i].cosines = centre_cosines.data();
      e.anchors[i].sines = centre_sines.data();
      e.anchors[i].angle_sign = i == 1 ? -1.0 : 1.0;
    }
  }
  e.first_row = range.first_row;
  e.last_row = range.last_row;
  e.columns = columns;
  e.out = out.data();
  e.out_row_stride_bytes = out.row_stride_bytes;
  e.scale = work == Work::scale_and_add ? 1.75 : 1.0;
  e.alpha = work == Work::scale_and_add ? 0.625 : 1.0;
  e.bound = arrangement.bound;
  e.prefetch = work == Work::add;
  e.non_temporal = arrangement.non_temporal;
  if (work != Work::write) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) x.set(row, column, number(row * 997 + column));
    }
    e.x = x.data();
    e.x_row_stride_bytes = x.row_stride_bytes;
  }
  const GuardedRows x_before = x;
  const bool is_in_place = work != Work::write && !arrangement.non_temporal && shift == 1;
  if (is_in_place) {
    e.out = x.data();
    e.out_row_stride_bytes = x.row_stride_bytes;
  }
  kernels.expand[index_of(dtype)](e);
  kernels.store_fence();
  const GuardedRows& written = is_in_place ? x : out;
  bool holds = written.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from_first = range.first_row + row;
    const int anchor = from_first > block_radius ? 1 : 0;
    const std::int64_t distance = from_first - anchor * block_rows;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto c = static_cast<std::size_t>(column);
      double value = values[anchor][c], slope = slopes[anchor][c];
      if (from_centre) {
        const double sine = (anchor == 1 ? -1.0 : 1.0) * centre_sines[c];
        const double rotated = value * centre_cosines[c] + slope * sine;
        slope = slope * centre_cosines[c] - value * sine;
        value = rotated;
      }
      const auto table = static_cast<std::size_t>(std::abs(distance) * stride + column);
      const double even = value * cosines[table], odd = slope * sines[table];
      double encoding = distance < 0 ? even - odd : even + odd;
      // A bound of 0 is not a negative zero.
      if (dtype == DType::float64) {
        encoding = encoding < e.bound ? encoding : e.bound;
        encoding = encoding > 0.0 - e.bound ? encoding : 0.0 - e.bound;
      }
      double expected;
      if (work == Work::write) {
        expected = rounded_to(dtype, encoding);
      } else if (dtype == DType::float64) {
        expected = x_before.at(row, column) * e.scale + encoding * e.alpha;
      } else {
        const auto embedding = static_cast<float>(x_before.at(row, column));
        const auto addend = static_cast<float>(encoding);
        const float sum = embedding * static_cast<float>(e.scale) + addend * static_cast<float>(e.alpha);
        expected = rounded_to(dtype, static_cast<double>(sum));
      }
      const double result = written.at(row, column);
      holds = holds && result == expected && std::signbit(result) == std::signbit(expected);
    }
  }
  report(holds, described("expand " + std::to_string(static_cast<int>(work)), dtype, columns, shift) + ", gap " +
                    std::to_string(arrangement.gap) + (arrangement.non_temporal ? ", non-temporal" : ""));
}

// ---- combine

struct Combining {
  bool same_dtype, scaled, non_temporal, shares_addend;
  bool gathers;      // rows of x, by offsets
  bool has_no_gap;   // between rows of out: they share cache lines
  bool is_in_place;  // if x is not gathered
  bool prefetches;   // the next rows, if x is not gathered
};

// Each bit of `choice` is one member.
Combining combining(int choice) {
  const auto bit = [choice](int number) { return (choice >> number & 1) != 0; };
  return {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)};
}
constexpr int combining_choices = 1 << 8;

void combining_is_the_scalar_arithmetic(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                        const Combining& how) {
  if (how.gathers && (how.prefetches || how.is_in_place)) return;
  if (how.non_temporal && how.is_in_place) return;
  const std::int64_t rows = 3;
  const std::int64_t gathered[] = {2, 0, 1, 1};  // the last one is only prefetched
  const DType addend_dtype = how.same_dtype ? dtype : row_dtype(dtype);
  GuardedRows x(dtype, rows, columns, shift + 1, 5), out(dtype, rows, columns, shift, how.has_no_gap ? 0 : 3);
  GuardedRows addend(addend_dtype, rows, columns, 1, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      x.set(row, column, number(row * 997 + column));
      addend.set(row, column, number(row * 499 + column + 5));
    }
  }
  Combination c{};
  c.out = out.data();
  c.out_row_stride_bytes = out.row_stride_bytes;
  if (how.is_in_place) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) out.set(row, column, x.at(row, column));
    }
  }
  c.x = how.is_in_place ? out.data() : x.data();
  c.x_row_stride_bytes = how.is_in_place ? out.row_stride_bytes : x.row_stride_bytes;
  c.tile = addend.data();
  c.tile_row_stride_bytes = how.shares_addend ? 0 : addend.row_stride_bytes;
  c.rows = rows;
  c.columns = columns;
  c.scale = how.scaled ? 1.75 : 1.0;
  c.alpha = how.scaled ? 0.625 : 1.0;
  c.non_temporal = how.non_temporal;
  std::int64_t x_offsets_bytes[4];
  for (std::size_t i = 0; i < 4; ++i) x_offsets_bytes[i] = gathered[i] * x.row_stride_bytes;
  if (how.gathers) {
    c.x_offsets_bytes = x_offsets_bytes;
    c.next_out = how.shares_addend ? out.data() : nullptr;
  } else {
    c.next_x = how.prefetches ? x.data() : nullptr;
  }
  (how.same_dtype ? kernels.combine_same_dtype : kernels.combine)[index_of(dtype)](c);
  bool holds = out.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const double embedding = x.at(how.gathers ? gathered[row] : row, column);
      const double other = addend.at(how.shares_addend ? 0 : row, column);
      double expected;
      if (dtype == DType::float64) {
        expected = embedding * c.scale + other * c.alpha;
      } else {
        const float sum = static_cast<float>(embedding) * static_cast<float>(c.scale) +
                          static_cast<float>(other) * static_cast<float>(c.alpha);
        expected = rounded_to(dtype, static_cast<double>(sum));
      }
      holds = holds && out.at(row, column) == expected;
    }
  }
  report(holds, described("combine", dtype, columns, shift));
}

// ---- rotate

enum class Prefetch { none, x, x_and_out };

struct RotationCase {
  DType dtype;
  std::int64_t pairs, shift;
  bool interleaved, conjugate, in_place, shares_row;
  Prefetch prefetch;
};

// Pairs that are not interleaved may be part of wider halves, whose other columns stay as they are.
std::int64_t half_of(const RotationCase& r) { return r.interleaved ? r.pairs : r.pairs + r.shift; }

double rotated(const RotationCase& r, double direct, double crossed, double cosine, double sine) {
  if (r.dtype == DType::float64) return direct * cosine + crossed * sine;
  const float sum =
      static_cast<float>(direct) * static_cast<float>(cosine) + static_cast<float>(crossed) * static_cast<float>(sine);
  return rounded_to(r.dtype, static_cast<double>(sum));
}

void rotating_is_the_scalar_arithmetic(const Kernels& kernels, const RotationCase& r) {
  const std::int64_t rows = 3, half = half_of(r), columns = 2 * half;
  GuardedRows x(r.dtype, rows, columns, r.shift + 1, 5), apart(r.dtype, rows, columns, r.shift, 3);
  GuardedRows cosines(row_dtype(r.dtype), rows, r.pairs, 1, 2), sines(row_dtype(r.dtype), rows, r.pairs, 3, 2);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      x.set(row, column, number(row * 997 + column));
      apart.set(row, column, 7.0);
    }
    for (std::int64_t pair = 0; pair < r.pairs; ++pair) {
      cosines.set(row, pair, number(row * 499 + pair + 5));
      sines.set(row, pair, number(row * 631 + pair + 9));
    }
  }
  const GuardedRows before = x;
  GuardedRows& out = r.in_place ? x : apart;
  Rotation rotation{};
  rotation.out = out.data();
  rotation.out_row_stride_bytes = out.row_stride_bytes;
  rotation.x = x.data();
  rotation.x_row_stride_bytes = x.row_stride_bytes;
  rotation.next_x = r.prefetch == Prefetch::none ? nullptr : x.data();
  rotation.next_out = r.prefetch == Prefetch::x_and_out && !r.in_place ? out.data() : nullptr;
  rotation.tile = cosines.data();
  rotation.sines = sines.data();
  rotation.tile_row_stride_bytes = r.shares_row ? 0 : cosines.row_stride_bytes;
  rotation.rows = rows;
  rotation.pairs = r.pairs;
  rotation.half = half;
  rotation.interleaved = r.interleaved;
  rotation.conjugate = r.conjugate;
  kernels.rotate[index_of(r.dtype)](rotation);
  bool holds = out.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t tile_row = r.shares_row ? 0 : row;
    std::vector<double> expected(static_cast<std::size_t>(columns));
    for (std::int64_t column = 0; column < columns; ++column) {
      expected[static_cast<std::size_t>(column)] = r.in_place ? before.at(row, column) : 7.0;
    }
    for (std::int64_t pair = 0; pair < r.pairs; ++pair) {
      const std::int64_t first = r.interleaved ? 2 * pair : pair, second = r.interleaved ? first + 1 : half + pair;
      const double cosine = cosines.at(tile_row, pair), sine = sines.at(tile_row, pair);
      const double x1 = before.at(row, first), x2 = before.at(row, second), sign = r.conjugate ? -1.0 : 1.0;
      expected[static_cast<std::size_t>(first)] = rotated(r, x1, x2, cosine, -sign * sine);
      expected[static_cast<std::size_t>(second)] = rotated(r, x2, x1, cosine, sign * sine);
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      holds = holds && out.at(row, column) == expected[static_cast<std::size_t>(column)];
    }
  }
  report(holds,
         described(std::string("rotate") + (r.interleaved ? " interleaved" : "") + (r.conjugate ? " conjugate" : "") +
                       (r.in_place ? " in place" : "") + (r.shares_row ? ", one row of factors" : "") + ", prefetch " +
                       std::to_string(static_cast<int>(r.prefetch)),
                   r.dtype, columns, r.shift));
}

void every_rotation_of(const Kernels& kernels, DType dtype, std::int64_t pairs) {
  for (const std::int64_t shift : {0, 1, 3}) {
    for (int choice = 0; choice < 16; ++choice) {
      for (const Prefetch prefetch : {Prefetch::none, Prefetch::x, Prefetch::x_and_out}) {
        rotating_is_the_scalar_arithmetic(kernels, {dtype, pairs, shift, (choice & 1) != 0, (choice & 2) != 0,
                                                    (choice & 4) != 0, (choice & 8) != 0, prefetch});
      }
    }
  }
}

void every_rotation(const Kernels& kernels, DType dtype) {
  for (std::int64_t pairs = 1; pairs <= most_pairs; ++pairs) every_rotation_of(kernels, dtype, pairs);
  every_rotation_of(kernels, dtype, 64);
}

// ---- resize

// From `dtype` to float64, or the other way.
void resizing_is_the_scalar_arithmetic(const Kernels& kernels, DType dtype, bool to_float64, std::int64_t columns,
                                       std::int64_t shift, double unit) {
  constexpr std::int64_t rows = 2, taps = 3, learned_rows = 7;
  constexpr std::int64_t tap_numbers[] = {4, 0, 2}, row_step = 3, tap_step = 1;
  constexpr double weights[] = {0.7, -0.45, 1.1};
  const DType from = to_float64 ? dtype : DType::float64, to = to_float64 ? DType::float64 : dtype;
  GuardedRows x(from, rows * row_step + learned_rows, columns, shift + 1, 5), out(to, rows, columns, shift, 3);
  for (std::int64_t row = 0; row < rows * row_step + learned_rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) x.set(row, column, unit * number(row * 997 + column));
  }
  Resizing r{};
  r.out = out.data();
  r.x = x.data();
  r.tap_numbers = tap_numbers;
  r.weights = weights;
  r.taps = taps;
  r.tap_stride_bytes = tap_step * x.row_stride_bytes;
  r.out_row_stride_bytes = out.row_stride_bytes;
  r.x_row_stride_bytes = row_step * x.row_stride_bytes;
  r.rows = rows;
  r.columns = columns;
  (to_float64 ? kernels.resize_to_float64 : kernels.resize_from_float64)[index_of(dtype)](r);
  bool holds = out.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = x.at(row * row_step + tap_numbers[0], column) * weights[0];
      for (std::int64_t tap = 1; tap < taps; ++tap) {
        const double term = x.at(row * row_step + tap_numbers[tap], column) * weights[tap];
        sum = sum + term;
      }
      // Between the smallest numbers of bfloat16 lies 2**-133.
      const bool is_tiny = to == DType::bfloat16 && std::fabs(sum) < 0x1p-126;
      holds =
          holds && out.at(row, column) == (is_tiny ? std::nearbyint(sum * 0x1p133) * 0x1p-133 : rounded_to(to, sum));
    }
  }
  report(holds, described(to_float64 ? "resize to float64" : "resize from float64", dtype, columns, shift));
}

void every_kernel(const Kernels& kernels) {
  const RowRange ranges[] = {{0, 0}, {-3, -3}, {7, 7}, {-15, 15}, {-15, 46}, {3, 20}, {16, 30}, {-1, 0}, {10, 46}};
  for (const DType dtype : dtypes) {
    for (std::int64_t columns = 1; columns <= most_columns; ++columns) {
      for (const std::int64_t shift : {0, 1, 3}) {
        const RowRange range = ranges[static_cast<std::size_t>(columns + shift) % std::size(ranges)];
        for (const Work work : every_work) {
          for (const bool from_centre : {false, true}) {
            if (from_centre && dtype == DType::float64) continue;  // its anchors have phasors of their own
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, range, work, from_centre, {});
          }
        }
        if (dtype == DType::float64) {
          for (const double bound : {0.0, 0.25}) {
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, {-15, 15}, Work::write, false,
                                               {3, 5, false, bound});
          }
        }
        for (const bool to_float64 : {false, true}) {
          resizing_is_the_scalar_arithmetic(kernels, dtype, to_float64, columns, shift, 1.0);
        }
        if (dtype == DType::bfloat16)
          resizing_is_the_scalar_arithmetic(kernels, dtype, false, columns, shift, 0x1p-127);
        for (int choice = 0; choice < combining_choices; ++choice) {
          combining_is_the_scalar_arithmetic(kernels, dtype, columns, shift, combining(choice));
        }
      }
    }
    every_rotation(kernels, dtype);
    const bool from_centre = dtype != DType::float64;
    for (const Work work : every_work) {
      // More than one panel of columns, in blocks of both anchors.
      for (const RowRange& range : {RowRange{-15, 46}, RowRange{0, 0}}) {
        for (const std::int64_t columns : {257, 603, 640}) {
          expanding_is_the_scalar_arithmetic(kernels, dtype, columns, 1, range, work, from_centre, {});
        }
      }
      // Rows that are alike, of which a vector at either end overlaps the others.
      for (const std::int64_t columns : {64, 127, 128, 140, 256, 270, 603}) {
        for (const std::int64_t shift : {0, 1, 4, 13}) {
          for (const RowRange& range : ranges) {
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, range, work, from_centre,
                                               {1024 - columns});
          }
        }
      }
      // Stored past the caches, with lines that rows share and without.
      for (const std::int64_t columns : {32, 48, 64, 100, 128, 272, 640}) {
        for (const std::int64_t shift : {0, 1, 2, 4, 8, 12, 13, 15, 16, 32}) {
          for (const std::int64_t gap : {0, 64}) {
            for (const std::int64_t x_gap : {0, 5}) {
              expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, {-15, 46}, work, from_centre,
                                                 {gap, x_gap, true});
            }
          }
        }
      }
    }
  }
}

}  // namespace

int main() {
  for (const std::string& name : available_instruction_sets()) {
    use_instruction_set(name);
    every_kernel(active_kernels());
    std::printf("%s: %d failures so far\n", name.c_str(), fastpe::testing::failures());
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
