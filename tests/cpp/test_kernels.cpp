// SPDX-License-Identifier: BSD-3-Clause
// Each kernel of each instruction set alone: every number of columns up to beyond two vectors, misaligned starts, every
// dtype, against the same arithmetic written as a scalar loop. Bytes around what a kernel may write stay as they are.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
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

// Numbers that kernels may read column_padding more of, before them and behind them.
class PaddedNumbers {
 public:
  PaddedNumbers() = default;
  PaddedNumbers(std::int64_t count, std::int64_t seed) : numbers_(numbers(count + 2 * column_padding, seed)) {}
  const double* data() const { return numbers_.data() + column_padding; }
  // Gives columns `columns_to_repeat` apart the same numbers, as far as kernels read behind the last column.
  void repeat(std::int64_t rows, std::int64_t stride, std::int64_t columns, std::int64_t columns_to_repeat) {
    for (std::int64_t row = 0; row < rows; ++row) {
      double* const first = numbers_.data() + column_padding + row * stride;
      for (std::int64_t c = columns_to_repeat; c < columns + column_padding; ++c) {
        first[c] = first[c - columns_to_repeat];
      }
    }
  }
  double operator[](std::size_t i) const { return data()[i]; }

 private:
  std::vector<double> numbers_;
};

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
    case DType::float64: return value;
    case DType::float16:
      return std::fabs(value) < 0x1p-14 ? std::nearbyint(value * 0x1p24) * 0x1p-24 : rounded(value, 11);
    case DType::bfloat16: return rounded(value, 8);
  }
  return value;
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
    case DType::float16: break;
  }
  std::memcpy(&bits, p, 2);
  const int exponent = (bits >> 10) & 31;
  const double fraction = static_cast<double>(bits & 1023);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// `value` must be one that the dtype holds.
void put(DType dtype, char* p, double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  if (dtype == DType::float64) {
    std::memcpy(p, &value, 8);
  } else if (dtype == DType::float32) {
    std::memcpy(p, &narrow, 4);
  } else if (dtype == DType::bfloat16) {
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(p, &high, 2);
  } else {
    const std::uint32_t exponent = (bits >> 23) & 255;
    const std::uint32_t half = exponent < 113 ? static_cast<std::uint32_t>(std::fabs(value) * 0x1p24)
                                              : ((exponent - 112) << 10 | ((bits >> 13) & 1023));
    const auto all = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | half);
    std::memcpy(p, &all, 2);
  }
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
    put(dtype_, const_cast<char*>(place(row, column)), rounded_to(dtype_, value));
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

// ---- phasors

void phasors_are_sines_and_cosines(const Kernels& kernels, std::int64_t frequency_count, bool interleaved,
                                   bool compensated, double residual) {
  const std::int64_t padded = frequency_count + column_padding;
  std::vector<double> quarters = numbers(padded, 3), zeros(static_cast<std::size_t>(padded), 0.0);
  for (double& each : quarters) each = std::nearbyint(each * 1024) / 1024;  // exact products
  GuardedRows values(DType::float64, 1, 2 * frequency_count, 1, 0),
      slopes(DType::float64, 1, 2 * frequency_count, 3, 0);
  Phasors p{};
  p.anchor = 5.0;
  p.residual = residual;
  p.frequency_count = frequency_count;
  p.anchor_quarters_high = p.quarters_high = quarters.data();
  p.anchor_quarters_low = p.quarters_low = zeros.data();
  p.largest_quarters = 1.0;
  p.values = reinterpret_cast<double*>(values.data());
  p.slopes = reinterpret_cast<double*>(slopes.data());
  p.sine_column = 0;
  p.cosine_column = interleaved ? 1 : frequency_count;
  p.interleaved = interleaved;
  p.compensated = compensated;
  kernels.phasors(p);
  bool holds = values.guards_are_whole() && slopes.guards_are_whole();
  for (std::int64_t k = 0; k < frequency_count; ++k) {
    // Exact, and less than a quarter turn, so that double suffices for its sine: long double is no wider everywhere.
    const double phase = (5.0 + residual) * quarters[static_cast<std::size_t>(k)];
    const double whole = std::nearbyint(phase), angle = (phase - whole) * 1.57079632679489661923;
    const double turned[] = {std::sin(angle), std::cos(angle), -std::sin(angle), -std::cos(angle)};
    const int turns = static_cast<int>(whole) & 3;
    const double sine = turned[turns], cosine = turned[(turns + 1) & 3];
    const std::int64_t sine_column = interleaved ? 2 * k : k,
                       cosine_column = p.cosine_column + (interleaved ? 2 * k : k);
    const double most = 3e-16;
    holds = holds && std::fabs(values.at(0, sine_column) - sine) <= most &&
            std::fabs(values.at(0, cosine_column) - cosine) <= most &&
            std::fabs(slopes.at(0, sine_column) - cosine) <= most &&
            std::fabs(slopes.at(0, cosine_column) + sine) <= most;
  }
  report(holds, "phasors of " + std::to_string(frequency_count) + " frequencies");
}

// ---- expand

struct Span {
  std::int64_t first_row, last_row;
};

enum class Work { write, add, scale_and_add, stream, stream_row_by_row, stream_sums, stream_scaled_sums };
constexpr Work streaming_work[] = {Work::stream, Work::stream_row_by_row, Work::stream_sums, Work::stream_scaled_sums};
constexpr Work every_work[] = {Work::write,
                               Work::add,
                               Work::scale_and_add,
                               Work::stream,
                               Work::stream_row_by_row,
                               Work::stream_sums,
                               Work::stream_scaled_sums};
constexpr bool is_streaming(Work work) { return work >= Work::stream; }

// Rows are `gap` elements apart, and those of x x_gap. Columns from jump_column on are written into an array of their
// own. The tables' columns repeat after columns_to_repeat; 0: after those of a row. In float64, `bound` bounds values.
// The kernel is called `times` times: each call's rows follow those of the call before, with the anchors swapped.
struct Arrangement {
  std::int64_t gap, jump_column, x_gap = 5, columns_to_repeat = 0;
  double bound = 1e9;
  std::int64_t times = 1;
};

void expanding_is_the_scalar_arithmetic(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                        Span span, Work work, bool is_turned, const Arrangement& arrangement) {
  const std::int64_t stride = columns + 2 * column_padding;
  PaddedNumbers cosines((block_radius + 1) * stride, 11), sines((block_radius + 1) * stride, 29);
  const std::vector<double> lows(static_cast<std::size_t>((block_radius + 1) * stride + column_padding), 0.0);
  PaddedNumbers values[blocks_at_once], slopes[blocks_at_once];
  PaddedNumbers turn_cosines(stride, 61), turn_sines(stride, 83);
  const std::int64_t columns_to_repeat = arrangement.columns_to_repeat > 0 ? arrangement.columns_to_repeat : columns;
  for (PaddedNumbers* const table : {&cosines, &sines}) {
    table->repeat(block_radius + 1, stride, columns, columns_to_repeat);
  }
  for (PaddedNumbers* const table : {&turn_cosines, &turn_sines}) table->repeat(1, stride, columns, columns_to_repeat);
  const std::int64_t rows_at_once = span.last_row - span.first_row + 1, rows = arrangement.times * rows_at_once;
  const std::int64_t jump_column = arrangement.jump_column;
  const std::int64_t stride_elements = columns + arrangement.gap;
  GuardedRows x(dtype, rows, columns, shift + 1, arrangement.x_gap),
      out(dtype, rows, jump_column, shift, stride_elements - jump_column),
      after(dtype, rows, columns - jump_column, shift + 2, stride_elements - (columns - jump_column));
  Expansion e{};
  const double* const zeros = lows.data() + column_padding;
  e.fine = {cosines.data(), sines.data(), zeros, zeros, stride, columns_to_repeat};
  for (int i = 0; i < blocks_at_once; ++i) {
    values[i] = PaddedNumbers(stride, 101 + i);
    slopes[i] = PaddedNumbers(stride, 211 + i);
    e.anchors[i] = {values[i].data(), slopes[i].data(), {}};
    if (is_turned) e.anchors[i].turn = {turn_cosines.data(), turn_sines.data(), i == 1};
  }
  e.first_row = span.first_row;
  e.last_row = span.last_row;
  e.columns = columns;
  e.out = out.data();
  e.out_row_stride_bytes = out.row_stride_bytes;
  e.jump_column = jump_column;
  if (jump_column < columns) {
    e.jump_bytes = reinterpret_cast<std::intptr_t>(after.data()) - reinterpret_cast<std::intptr_t>(out.data()) -
                   jump_column * element_bytes(dtype);
  }
  const bool is_scaled = work == Work::scale_and_add || work == Work::stream_scaled_sums;
  e.scale = is_scaled ? 1.75 : 1.0;
  e.alpha = is_scaled ? 0.625 : 1.0;
  e.bound = arrangement.bound;
  e.streaming = is_streaming(work);
  e.streams_row_by_row = work == Work::stream_row_by_row;
  const bool adds = is_scaled || work == Work::add || work == Work::stream_sums;
  if (adds) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) x.set(row, column, number(row * 997 + column));
    }
    e.x = x.data();
    e.x_row_stride_bytes = x.row_stride_bytes;
  }
  alignas(most_line_bytes) char ends_between[most_line_bytes];
  e.ends_between = ends_between;
  for (std::int64_t time = 0; time < arrangement.times; ++time) {
    e.takes_ends = time > 0;
    e.leaves_ends = time + 1 < arrangement.times;
    kernels.expand[index_of(dtype)](e);
    std::swap(e.anchors[0], e.anchors[1]);
    e.out += rows_at_once * e.out_row_stride_bytes;
    if (adds) e.x += rows_at_once * e.x_row_stride_bytes;
  }
  bool holds = out.guards_are_whole() && after.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from_first = span.first_row + row % rows_at_once;
    const bool is_second = from_first > block_radius;
    const std::int64_t distance = from_first - (is_second ? block_rows : 0);
    const int anchor = is_second == (row / rows_at_once % 2 == 1) ? 0 : 1;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto c = static_cast<std::size_t>(column);
      double value = values[anchor][c], slope = slopes[anchor][c];
      if (is_turned) {
        const double sine = (anchor == 1 ? -1.0 : 1.0) * turn_sines[c];
        const double turned = value * turn_cosines[c] + slope * sine;
        slope = slope * turn_cosines[c] - value * sine;
        value = turned;
      }
      const auto table = static_cast<std::size_t>(std::abs(distance) * stride + column);
      const double even = value * cosines[table], odd = slope * sines[table];
      double encoding = distance < 0 ? even - odd : even + odd;
      // A bound of 0 is no negative zero.
      if (dtype == DType::float64) {
        encoding = encoding < e.bound ? encoding : e.bound;
        encoding = encoding > 0.0 - e.bound ? encoding : 0.0 - e.bound;
      }
      double expected;
      if (!adds) {
        expected = rounded_to(dtype, encoding);
      } else if (dtype == DType::float64) {
        expected = x.at(row, column) * e.scale + encoding * e.alpha;
      } else {
        const auto embedding = static_cast<float>(x.at(row, column));
        const auto addend = static_cast<float>(encoding);
        const float sum = embedding * static_cast<float>(e.scale) + addend * static_cast<float>(e.alpha);
        expected = rounded_to(dtype, static_cast<double>(sum));
      }
      const double written = column < jump_column ? out.at(row, column) : after.at(row, column - jump_column);
      holds = holds && written == expected && std::signbit(written) == std::signbit(expected);
    }
  }
  report(holds, described("expand " + std::to_string(static_cast<int>(work)), dtype, columns, shift) + ", gap " +
                    std::to_string(arrangement.gap) + ", jump " + std::to_string(jump_column));
}

// ---- combine

struct Combining {
  bool same_dtype, scaled, streaming, shares_addend;
  bool gathers;     // rows of x, by offsets
  bool has_no_gap;  // between rows of out: they share cache lines
  bool unaligned;   // and in place; in halves where nothing is fetched
  bool fetches;     // the next rows, if x is neither streamed nor gathered
};

// Each bit of `choice` is one member.
Combining combining(int choice) {
  const auto bit = [choice](int number) { return (choice >> number & 1) != 0; };
  return {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)};
}
constexpr int combining_choices = 1 << 8;

void combining_is_the_scalar_arithmetic(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                        const Combining& how) {
  if (how.fetches && (how.streaming || how.gathers)) return;
  const std::int64_t rows = 3;
  const std::int64_t gathered[] = {2, 0, 1, 1};  // the last one is fetched, no more
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
  const bool is_in_place = how.unaligned && !how.gathers && !how.streaming;
  if (is_in_place) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) out.set(row, column, x.at(row, column));
    }
  }
  c.x = is_in_place ? out.data() : x.data();
  c.x_row_stride_bytes = is_in_place ? out.row_stride_bytes : x.row_stride_bytes;
  c.unaligned = c.in_halves = how.unaligned;
  c.addend = addend.data();
  c.addend_row_stride_bytes = how.shares_addend ? 0 : addend.row_stride_bytes;
  c.rows = rows;
  c.columns = columns;
  c.scale = how.scaled ? 1.75 : 1.0;
  c.alpha = how.scaled ? 0.625 : 1.0;
  c.streaming = how.streaming;
  std::int64_t x_offsets_bytes[4];
  for (std::size_t i = 0; i < 4; ++i) x_offsets_bytes[i] = gathered[i] * x.row_stride_bytes;
  if (how.gathers) {
    c.x_offsets_bytes = x_offsets_bytes;
    c.next_out = how.shares_addend ? out.data() : nullptr;
  } else {
    c.next_x = how.fetches ? x.data() : nullptr;
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

// With `in_halves`, nothing is fetched, and vectors are turned in halves.
enum class Fetching { nothing, in_halves, far, close };

struct RotationCase {
  DType dtype;
  std::int64_t pairs, shift;
  bool interleaved, backwards, in_place, shares_table;
  Fetching fetching;
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
  rotation.next_x = r.fetching < Fetching::far ? nullptr : x.data();
  rotation.in_halves = r.fetching == Fetching::in_halves;
  rotation.next_out = r.fetching == Fetching::far && !r.in_place ? out.data() : nullptr;
  rotation.fetches_close = r.fetching == Fetching::close;
  rotation.cosines = cosines.data();
  rotation.sines = sines.data();
  rotation.table_row_stride_bytes = r.shares_table ? 0 : cosines.row_stride_bytes;
  rotation.rows = rows;
  rotation.pairs = r.pairs;
  rotation.half = half;
  rotation.interleaved = r.interleaved;
  rotation.backwards = r.backwards;
  kernels.rotate[index_of(r.dtype)](rotation);
  bool holds = out.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t table_row = r.shares_table ? 0 : row;
    std::vector<double> expected(static_cast<std::size_t>(columns));
    for (std::int64_t column = 0; column < columns; ++column) {
      expected[static_cast<std::size_t>(column)] = r.in_place ? before.at(row, column) : 7.0;
    }
    for (std::int64_t pair = 0; pair < r.pairs; ++pair) {
      const std::int64_t first = r.interleaved ? 2 * pair : pair, second = r.interleaved ? first + 1 : half + pair;
      const double cosine = cosines.at(table_row, pair), sine = sines.at(table_row, pair);
      const double x1 = before.at(row, first), x2 = before.at(row, second), sign = r.backwards ? -1.0 : 1.0;
      expected[static_cast<std::size_t>(first)] = rotated(r, x1, x2, cosine, -sign * sine);
      expected[static_cast<std::size_t>(second)] = rotated(r, x2, x1, cosine, sign * sine);
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      holds = holds && out.at(row, column) == expected[static_cast<std::size_t>(column)];
    }
  }
  report(holds,
         described(std::string("rotate") + (r.interleaved ? " interleaved" : "") + (r.backwards ? " backwards" : "") +
                       (r.in_place ? " in place" : "") + (r.shares_table ? ", one table row" : "") + ", fetching " +
                       std::to_string(static_cast<int>(r.fetching)),
                   r.dtype, columns, r.shift));
}

void every_rotation_of(const Kernels& kernels, DType dtype, std::int64_t pairs) {
  for (const std::int64_t shift : {0, 1, 3}) {
    for (int choice = 0; choice < 16; ++choice) {
      for (const Fetching fetching : {Fetching::nothing, Fetching::in_halves, Fetching::far, Fetching::close}) {
        rotating_is_the_scalar_arithmetic(kernels, {dtype, pairs, shift, (choice & 1) != 0, (choice & 2) != 0,
                                                    (choice & 4) != 0, (choice & 8) != 0, fetching});
      }
    }
  }
}

void every_rotation(const Kernels& kernels, DType dtype) {
  for (std::int64_t pairs = 1; pairs <= most_pairs; ++pairs) every_rotation_of(kernels, dtype, pairs);
  every_rotation_of(kernels, dtype, 64);
}

// Rows without gaps, at least as many as are turned at once.
void streaming_rotates_to_the_same_bits(const Kernels& kernels, const RotationCase& r, std::int64_t rows) {
  const std::int64_t columns = 2 * r.pairs, row_bytes = columns * element_bytes(r.dtype);
  GuardedRows x(r.dtype, rows, columns, 3, 5);
  GuardedRows expected(r.dtype, rows, columns, r.shift, 0), out(r.dtype, rows, columns, r.shift, 0);
  GuardedRows cosines(row_dtype(r.dtype), rows, r.pairs, 1, 2), sines(row_dtype(r.dtype), rows, r.pairs, 3, 2);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) x.set(row, column, number(row * 997 + column));
    for (std::int64_t pair = 0; pair < r.pairs; ++pair) {
      cosines.set(row, pair, number(row * 499 + pair + 5));
      sines.set(row, pair, number(row * 631 + pair + 9));
    }
  }
  Rotation rotation{};
  rotation.x = x.data();
  rotation.x_row_stride_bytes = x.row_stride_bytes;
  rotation.next_x = r.fetching < Fetching::far ? nullptr : x.data();
  rotation.in_halves = r.fetching == Fetching::in_halves;
  rotation.cosines = cosines.data();
  rotation.sines = sines.data();
  rotation.table_row_stride_bytes = r.shares_table ? 0 : cosines.row_stride_bytes;
  rotation.rows = rows;
  rotation.pairs = rotation.half = r.pairs;
  rotation.interleaved = r.interleaved;
  rotation.backwards = r.backwards;
  rotation.out_row_stride_bytes = row_bytes;
  rotation.out = expected.data();
  kernels.rotate[index_of(r.dtype)](rotation);
  rotation.out = out.data();
  rotation.streaming = true;
  kernels.rotate[index_of(r.dtype)](rotation);
  kernels.streaming_fence();
  const bool holds = std::memcmp(out.data(), expected.data(), static_cast<std::size_t>(rows * row_bytes)) == 0;
  report(holds && out.guards_are_whole(),
         described("rotate streaming " + std::to_string(rows) + " rows", r.dtype, columns, r.shift));
}

void every_streaming_rotation(const Kernels& kernels, DType dtype) {
  for (const std::int64_t row_bytes : {16, 24, 80, 256, 512, 720, 1536, 2048}) {
    const std::int64_t pairs = row_bytes / element_bytes(dtype) / 2;
    const std::int64_t fewest_rows = (most_streamed_row_bytes + row_bytes - 1) / row_bytes;
    for (const std::int64_t shift : {0, 1, 4, 31}) {
      for (const std::int64_t rows : {fewest_rows, fewest_rows + 1, 3 * fewest_rows + 2}) {
        for (int choice = 0; choice < 8; ++choice) {
          for (const Fetching fetching : {Fetching::nothing, Fetching::in_halves, Fetching::far}) {
            streaming_rotates_to_the_same_bits(
                kernels,
                {dtype, pairs, shift, (choice & 1) != 0, (choice & 2) != 0, false, (choice & 4) != 0, fetching}, rows);
          }
        }
      }
    }
  }
}

// ---- duplicate

// Bytes are any bits, those of signalling NaNs too.
void duplicating_copies_every_byte(const Kernels& kernels, std::int64_t rows, std::int64_t columns, std::int64_t shift,
                                   bool streaming) {
  const DType dtype = DType::float32;
  const std::int64_t row_bytes = columns * element_bytes(dtype);
  GuardedRows from(dtype, rows, columns, shift + 1, 0), out(dtype, rows, 2 * columns, shift, 0);
  for (std::int64_t i = 0; i < rows * row_bytes; ++i) from.data()[i] = static_cast<char>(i * 37 + i / 251);
  kernels.duplicate({out.data(), from.data(), rows, row_bytes, streaming});
  bool holds = out.guards_are_whole() && from.guards_are_whole();
  for (std::int64_t copy = 0; copy < 2 * rows; ++copy) {
    const char* const row = from.data() + copy / 2 * row_bytes;
    holds = holds && std::memcmp(out.data() + copy * row_bytes, row, static_cast<std::size_t>(row_bytes)) == 0;
  }
  report(holds, described("duplicate of " + std::to_string(rows) + " rows", dtype, columns, shift));
}

void every_duplication(const Kernels& kernels) {
  for (std::int64_t columns = 1; columns <= 70; ++columns) {
    for (const std::int64_t shift : {0, 1, 4, 9, 15}) {
      // Seams of many rows are not made at once.
      for (const std::int64_t rows : {1, 2, 63, 64, 65, 150})
        duplicating_copies_every_byte(kernels, rows, columns, shift, true);
      duplicating_copies_every_byte(kernels, 3, columns, shift, false);
    }
  }
}

// ---- interleave

// Elements are any bits, those of signalling NaNs too.
void interleaving_moves_every_bit(const Kernels& kernels, DType dtype, std::int64_t rows, std::int64_t columns,
                                  std::int64_t shift, std::int64_t gap, bool streaming) {
  const std::int64_t bytes = element_bytes(dtype);
  GuardedRows first(dtype, rows, columns, shift + 1, 5), second(dtype, rows, columns, 2 * shift, 5);
  GuardedRows out(dtype, rows, 2 * columns, shift, gap);
  std::vector<char> expected(static_cast<std::size_t>(2 * columns * bytes));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t byte = 0; byte < columns * bytes; ++byte) {
      first.data()[row * first.row_stride_bytes + byte] = static_cast<char>(row * 71 + byte * 37 + 1);
      second.data()[row * second.row_stride_bytes + byte] = static_cast<char>(row * 43 - byte * 29 - 3);
    }
  }
  Interleaving i{};
  i.out = out.data();
  i.out_row_stride_bytes = out.row_stride_bytes;
  i.first = first.data();
  i.second = second.data();
  i.row_stride_bytes = first.row_stride_bytes;
  i.rows = rows;
  i.columns = columns;
  i.streaming = streaming;
  kernels.interleave[index_of(dtype)](i);
  bool holds = out.guards_are_whole() && first.guards_are_whole() && second.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto size = static_cast<std::size_t>(bytes);
    for (std::int64_t k = 0; k < columns; ++k) {
      char* const to = expected.data() + 2 * k * bytes;
      std::memcpy(to, first.data() + row * first.row_stride_bytes + k * bytes, size);
      std::memcpy(to + bytes, second.data() + row * second.row_stride_bytes + k * bytes, size);
    }
    holds = holds && std::memcmp(out.data() + row * out.row_stride_bytes, expected.data(), expected.size()) == 0;
  }
  report(holds, described(streaming ? "interleave streaming" : "interleave", dtype, columns, shift));
}

// ---- angles

// The first of `rows` positions; streamed where `streaming` and there is no gap.
// Up to 6 units in the last place from a tie between two floats, or from a third of one.
double near_tie(std::int64_t k) {
  const double tie = 1.0 + static_cast<double>(k * 7919 % 8192) * 0x1p-13 + 0x1p-24;
  const double sign = k % 3 == 0 ? -1.0 : 1.0;
  return sign * ((k % 2 == 0 ? tie : tie / 3.0) + static_cast<double>(k % 13 - 6) * (k % 2 == 0 ? 0x1p-52 : 0x1p-54));
}

enum class Radians { any, near_ties, few_ties };

void angles_are_the_scalar_arithmetic(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                      double position, std::int64_t rows, std::int64_t gap, bool streaming,
                                      Radians radians = Radians::any) {
  const std::int64_t padded = columns + column_padding;
  std::vector<double> high = numbers(padded, 17), low = numbers(padded, 23);
  for (std::int64_t k = 0; k < padded; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const bool is_zero = k >= columns || k % 7 == 3;
    if (radians == Radians::near_ties) {
      high[at] = near_tie(k + 16 * shift);
    } else if (radians == Radians::few_ties) {
      // A tie itself, in at most one of two adjacent vectors of any instruction set.
      high[at] = k % 32 == 2 * shift + 1 ? near_tie(26 * k + 6) : 1.5;
    } else {
      high[at] = is_zero ? 0.0 : std::ldexp(high[at], static_cast<int>(k * 11 % 130 - 85));
    }
    low[at] = high[at] * low[at] * 0x1p-53;
  }
  GuardedRows out(dtype, rows, columns, shift, gap);
  Angles a{};
  a.out = out.data();
  a.out_row_stride_bytes = out.row_stride_bytes;
  a.position = position;
  a.radians_high = high.data();
  a.radians_low = low.data();
  a.rows = rows;
  a.columns = columns;
  a.streaming = streaming;
  kernels.angles[index_of(dtype)](a);
  bool holds = out.guards_are_whole();
  for (std::int64_t row = 0; row < rows; ++row) {
    const double at_row = position + static_cast<double>(row);
    const bool is_tiny = std::fabs(at_row) < 0x1p-700;  // the product's error may underflow
    const double larger = std::ldexp(at_row, is_tiny ? 600 : 0);
    for (std::int64_t k = 0; k < columns; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double product = larger * high[at];
      const double rest = std::fma(larger, high[at], -product) + larger * low[at];
      const double expected = rounded_to(dtype, std::ldexp(product + rest, is_tiny ? -600 : 0));
      holds = holds && out.at(row, k) == expected && std::signbit(out.at(row, k)) == std::signbit(expected);
    }
  }
  report(holds, described("angles at " + std::to_string(position), dtype, columns, shift));
}

void every_kernel(const Kernels& kernels) {
  every_duplication(kernels);
  for (std::int64_t count = 1; count <= most_columns; ++count) {
    for (const bool interleaved : {false, true}) {
      for (const bool compensated : {false, true}) {
        for (const double residual : {0.0, 0.25}) {
          phasors_are_sines_and_cosines(kernels, count, interleaved, compensated, residual);
        }
      }
    }
  }
  const Span spans[] = {{0, 0}, {-3, -3}, {7, 7}, {-15, 15}, {-15, 46}, {3, 20}, {16, 30}, {-1, 0}, {10, 46}};
  for (const DType dtype : dtypes) {
    for (std::int64_t columns = 1; columns <= most_columns; ++columns) {
      for (const std::int64_t shift : {0, 1, 3}) {
        for (const Work work : every_work) {
          const Span span = spans[static_cast<std::size_t>(columns + shift) % std::size(spans)];
          for (const bool is_turned : {false, true}) {
            if (is_turned && dtype == DType::float64) continue;  // its anchors have phasors of their own
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, span, work, is_turned,
                                               {is_streaming(work) ? 0 : 3, columns});
          }
        }
        for (const std::int64_t jump_column : {columns / 2, columns - 1}) {
          const Span span = spans[static_cast<std::size_t>(columns + jump_column) % std::size(spans)];
          expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, span, Work::write, false,
                                             {3, jump_column});
        }
        if (dtype == DType::float64) {
          for (const double bound : {0.0, 0.25}) {
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, {-15, 15}, Work::write, false,
                                               {3, columns, 5, 0, bound});
          }
        }
        for (int choice = 0; choice < combining_choices; ++choice) {
          combining_is_the_scalar_arithmetic(kernels, dtype, columns, shift, combining(choice));
        }
      }
    }
    every_rotation(kernels, dtype);
    every_streaming_rotation(kernels, dtype);
    for (std::int64_t columns = 1; columns <= most_pairs; ++columns) {
      for (const std::int64_t shift : {0, 1, 2, 3, 8}) {
        // A long row alone is streamed where others are not.
        interleaving_moves_every_bit(kernels, dtype, 1, columns + 512, shift, 0, true);
        for (const std::int64_t gap : {0, 1, 2, 4}) {
          for (const bool streaming : {false, true}) {
            interleaving_moves_every_bit(kernels, dtype, 3, columns, shift, gap, streaming);
          }
        }
      }
      if (dtype != row_dtype(dtype)) continue;
      for (const std::int64_t shift : {0, 1, 3}) {
        for (const double position : {0.0, -1.0, 7.0, 0.1, 123456.789, 0x1p53, -0x1p53 + 1.0, 1e-240, 1e-300, 5e-324}) {
          angles_are_the_scalar_arithmetic(kernels, dtype, columns, shift, position, 1, 0, true);
        }
        for (const double position : {0.0, -1.0, 7.0, -0x1p53 + 1.0}) {
          angles_are_the_scalar_arithmetic(kernels, dtype, columns, shift, position, 3, 0, true);
          angles_are_the_scalar_arithmetic(kernels, dtype, columns, shift, position, 3, 16, true);
          angles_are_the_scalar_arithmetic(kernels, dtype, columns, shift, position, 3, 0, false);
        }
      }
    }
    if (dtype == row_dtype(dtype)) {
      for (std::int64_t shift = 0; shift < 16; ++shift) {
        for (const double position : {-4.0, 1.0}) {
          for (const Radians radians : {Radians::near_ties, Radians::few_ties}) {
            angles_are_the_scalar_arithmetic(kernels, dtype, 96, shift, position, 4, 0, true, radians);
            angles_are_the_scalar_arithmetic(kernels, dtype, 96, shift, position, 4, 1, false, radians);
          }
        }
      }
    }
    // More than one panel of columns, in blocks of both anchors.
    const bool is_turned = dtype != DType::float64;
    for (const Work work : every_work) {
      for (const std::int64_t columns : {603, 640}) {  // rows that are aligned differently, and alike
        expanding_is_the_scalar_arithmetic(kernels, dtype, columns, 1, {-15, 46}, work, is_turned,
                                           {is_streaming(work) ? 0 : 3, columns});
      }
    }
    // Rows that share lines, beside rows of x that do and rows that do not, with tables whose first columns follow the
    // last ones and with others.
    for (const Work work : streaming_work) {
      for (const std::int64_t columns : {32, 48, 64, 128, 272, 640}) {
        for (const std::int64_t shift : {1, 2, 4, 8, 12, 13, 15}) {
          for (const std::int64_t x_gap : {0, 5}) {
            for (const std::int64_t columns_to_repeat : {columns, columns / 2, columns + 1}) {
              expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, {-15, 46}, work, is_turned,
                                                 {0, columns, x_gap, columns_to_repeat});
            }
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, {-15, 46}, work, is_turned,
                                               {0, columns, x_gap, columns, 1e9, 3});
          }
        }
      }
    }
    // Rows that are aligned alike, of which a vector at either end overlaps the others, in one array or in two.
    for (const std::int64_t columns : {64, 127, 128, 140, 256, 270, 603}) {
      const std::int64_t gap = 1024 - columns;
      for (const std::int64_t shift : {0, 1, 4, 13}) {
        for (const Span& span : spans) {
          for (const std::int64_t jump_column :
               {columns, columns / 2, std::int64_t{48}, columns / 2 / 32 * 32, columns / 32 * 32}) {
            expanding_is_the_scalar_arithmetic(kernels, dtype, columns, shift, span, Work::write, is_turned,
                                               {gap, jump_column});
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
