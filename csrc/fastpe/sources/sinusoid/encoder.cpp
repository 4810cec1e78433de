// SPDX-License-Identifier: BSD-3-Clause
#include "encoder.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <new>
#include <utility>

#include "fastpe/cache_line.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"

namespace fastpe {
namespace {

// The tables of such an encoder stay below a gigabyte, and are made in less than a second.
constexpr std::int64_t max_d_model = std::int64_t{1} << 20;

void require(bool condition, const char* argument, TextPart found, const char* expected) {
  if (!condition) refuse_value(argument, {"is ", found}, {expected});
}

Spec checked(Spec spec) {
  const WantedFrequencies& f = spec.wanted_frequencies;
  const auto given = static_cast<std::int64_t>(f.given.size());
  require(1 <= spec.d_model && spec.d_model <= max_d_model, "d_model", spec.d_model, "1 to 2**20");
  require(0 <= f.frequency_count && f.frequency_count <= spec.d_model, "frequency_count", f.frequency_count,
          "0 to d_model");
  require(given == 0 || given == f.frequency_count, "the number of frequencies", given, "frequency_count");
  require(std::isfinite(f.base) && f.base > 0.0, "base", f.base, "a finite number above 0");
  require(std::isfinite(f.exponent_denominator) && f.exponent_denominator > 0.0, "exponent_denominator",
          f.exponent_denominator, "a finite number above 0");
  require(std::isfinite(f.frequency_scale), "freq_scale", f.frequency_scale, "a finite number");
  require(std::isfinite(spec.output_scale), "output_scale", spec.output_scale, "a finite number");
  return spec;
}

// value = index * (2 * radius + 1) + distance, |distance| <= radius: of a position, its anchor and the row around it;
// of an anchor, its group and the distance from the group's centre. Both belong to positions, not to calls, so the bits
// of a row do not depend on how it was asked for.
struct Nearest {
  std::int64_t index, distance;
};

inline Nearest nearest(std::int64_t value, std::int64_t radius) {
  const std::int64_t width = 2 * radius + 1;
  const std::int64_t shifted = value + radius;
  const std::int64_t index = shifted / width - (shifted % width < 0 ? 1 : 0);
  return {index, value - index * width};
}

constexpr std::int64_t most_slots = 8;

// Consecutive positions need no group again.
std::int64_t slots_for(DType dtype, bool may_revisit) {
  return may_revisit && !is_compensated(dtype) ? most_slots : blocks_at_once;
}

}  // namespace

// At the head of a thread's scratch memory: phasors that its next expansions may want again.
struct alignas(cache_line_bytes) Encoder::AnchorCache {
  static constexpr std::int64_t no_anchor = INT64_MIN;
  static constexpr std::int64_t at_fraction = INT64_MIN + 1;  // the first slot has the position `fraction` itself

  bool compensated;
  double fraction;
  std::int64_t slots;
  std::int64_t stride;
  std::int64_t anchors[most_slots];

  double* values(std::int64_t slot) { return reinterpret_cast<double*>(this + 1) + slot * stride; }
  double* slopes(std::int64_t slot) { return values(slots + slot); }
};

Encoder::Encoder(Spec spec)
    : spec_(checked(std::move(spec))),
      frequencies_(make_frequencies(spec_.wanted_frequencies)),
      table_stride_(padded(std::max(spec_.d_model, 2 * frequency_count()))) {}

PhasorArguments Encoder::frequency_arguments() const {
  PhasorArguments p{};
  p.frequency_count = frequency_count();
  p.anchor_quarters_high = frequencies_.anchor_quarters.high.data();
  p.anchor_quarters_low = frequencies_.anchor_quarters.low.data();
  p.quarters_high = frequencies_.quarters.high.data();
  p.quarters_low = frequencies_.quarters.low.data();
  p.largest_quarters = frequencies_.largest_quarters;
  return p;
}

void Encoder::write_phasors(std::int64_t anchor, double residual, bool compensated, double* values,
                            double* slopes) const {
  PhasorArguments p = frequency_arguments();
  p.anchor = static_cast<double>(anchor);
  p.residual = residual;
  p.values = values;
  p.slopes = slopes;
  p.interleaved = spec_.interleaved;
  const std::int64_t second = spec_.interleaved ? 1 : frequency_count();
  p.sine_column = spec_.cosine_first ? second : 0;
  p.cosine_column = spec_.cosine_first ? 0 : second;
  p.compensated = compensated;
  active_kernels().phasors(p);
  std::fill(values + 2 * frequency_count(), values + table_stride_, 0.0);
  std::fill(slopes + 2 * frequency_count(), slopes + table_stride_, 0.0);
}

// Column c has the cos and sin of the steps times frequency(c). They come from the kernel that writes columns: a sine
// column holds (sin, cos), a cosine column (cos, -sin) as (value, slope).
Encoder::AngleTables Encoder::make_tables(Step step, std::int64_t steps, double scale, bool with_lows,
                                          Interruption* interruption) const {
  const std::int64_t size = (steps + 1) * table_stride_;
  AngleTables tables;
  tables.cosines = AlignedBuffer<double>(size);
  tables.sines = AlignedBuffer<double>(size);
  if (with_lows) {
    tables.cosine_lows = AlignedBuffer<double>(size);
    tables.sine_lows = AlignedBuffer<double>(size);
  }
  const AlignedBuffer<double> values(table_stride_), slopes(table_stride_), value_lows(table_stride_),
      slope_lows(table_stride_);
  for (std::int64_t row = 0; row <= steps; ++row) {
    throw_if_interrupted(interruption);
    PhasorArguments p = frequency_arguments();
    (step == Step::position ? p.residual : p.anchor) = static_cast<double>(row);
    p.values = values.data();
    p.slopes = slopes.data();
    p.value_lows = value_lows.data();
    p.slope_lows = slope_lows.data();
    p.interleaved = false;
    p.sine_column = 0;
    p.cosine_column = frequency_count();
    p.compensated = true;
    active_kernels().phasors(p);
    const auto scaled = [&](double high, double low, const AlignedBuffer<double>& highs,
                            const AlignedBuffer<double>& lows, std::int64_t column) {
      const double product = high * scale;
      highs.data()[row * table_stride_ + column] = product;
      if (!with_lows) return;
      lows.data()[row * table_stride_ + column] = std::fma(high, scale, -product) + low * scale;
    };
    for (std::int64_t k = 0; k < frequency_count(); ++k) {
      const std::int64_t first = spec_.interleaved ? 2 * k : k;
      const std::int64_t second = spec_.interleaved ? first + 1 : first + frequency_count();
      for (const std::int64_t column : {first, second}) {
        scaled(slopes.data()[k], slope_lows.data()[k], tables.cosines, tables.cosine_lows, column);
        scaled(values.data()[k], value_lows.data()[k], tables.sines, tables.sine_lows, column);
      }
    }
  }
  return tables;
}

const Encoder::AngleTables& Encoder::fine_tables(DType dtype, Interruption* interruption) const {
  const bool with_lows = is_compensated(dtype);
  return (with_lows ? fine_tables_with_lows_ : fine_tables_).get([&] {
    return make_tables(Step::position, block_radius, spec_.output_scale, with_lows, interruption);
  });
}

const Encoder::AngleTables& Encoder::anchor_tables(Interruption* interruption) const {
  return anchor_tables_.get([&] { return make_tables(Step::anchor, group_radius, 1.0, false, interruption); });
}

void Encoder::prepare(DType dtype, Interruption* interruption) const {
  fine_tables(dtype, interruption);
  if (!is_compensated(dtype)) anchor_tables(interruption);
}

bool Encoder::is_prepared(DType dtype) const {
  return is_compensated(dtype) ? fine_tables_with_lows_.is_made() : fine_tables_.is_made() && anchor_tables_.is_made();
}

std::int64_t Encoder::scratch_bytes(DType dtype, bool may_revisit) const {
  return static_cast<std::int64_t>(sizeof(AnchorCache)) +
         2 * slots_for(dtype, may_revisit) * table_stride_ * static_cast<std::int64_t>(sizeof(double));
}

void Encoder::start(char* scratch, DType dtype, bool may_revisit) const {
  AnchorCache& cache = *new (scratch) AnchorCache;
  cache.compensated = is_compensated(dtype);
  cache.slots = slots_for(dtype, may_revisit);
  cache.stride = table_stride_;
  std::fill(std::begin(cache.anchors), std::end(cache.anchors), AnchorCache::no_anchor);
}

std::int64_t Encoder::fill_slot(AnchorCache& cache, std::int64_t anchor, std::int64_t slot_key) const {
  const auto slot =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(slot_key) % static_cast<std::uint64_t>(cache.slots));
  if (cache.anchors[slot] != anchor) {
    write_phasors(anchor, 0.0, cache.compensated, cache.values(slot), cache.slopes(slot));
    cache.anchors[slot] = anchor;
  }
  return slot;
}

AnchorPhasors Encoder::anchor_at(AnchorCache& cache, std::int64_t anchor, std::int64_t first_column) const {
  if (cache.compensated) {  // an angle more would cost accuracy
    const std::int64_t slot = fill_slot(cache, anchor, anchor);
    return {cache.values(slot) + first_column, cache.slopes(slot) + first_column, nullptr, nullptr, 1.0};
  }
  const Nearest group = nearest(anchor, group_radius);
  const std::int64_t slot = fill_slot(cache, group.index * group_anchors, group.index);
  const AngleTables& tables = anchor_tables();
  const std::int64_t table = std::abs(group.distance) * table_stride_ + first_column;
  return {cache.values(slot) + first_column, cache.slopes(slot) + first_column, tables.cosines.data() + table,
          tables.sines.data() + table, group.distance < 0 ? -1.0 : 1.0};
}

// A position that is not an integer is an anchor of its own.
AnchorPhasors Encoder::anchor_of_fraction(AnchorCache& cache, double position, std::int64_t first_column) const {
  if (cache.anchors[0] != AnchorCache::at_fraction || cache.fraction != position) {
    const double anchor = std::nearbyint(position / static_cast<double>(block_rows));
    const double residual = position - anchor * static_cast<double>(block_rows);
    // Near the smallest doubles the error of a product underflows, and instruction sets would differ.
    const double distinct = std::fabs(residual) < 0x1p-500 ? 0.0 : residual;
    write_phasors(static_cast<std::int64_t>(anchor), distinct, cache.compensated, cache.values(0), cache.slopes(0));
    cache.anchors[0] = AnchorCache::at_fraction;
    cache.fraction = position;
  }
  return {cache.values(0) + first_column, cache.slopes(0) + first_column, nullptr, nullptr, 1.0};
}

void Encoder::write_rows(const Span& span, const Target& target, std::int64_t first_column, char* scratch) const {
  assert(is_prepared(target.dtype) && span.step != Span::Step::descending);
  assert(span.count == 1 || !span.is_one_position());
  AnchorCache& cache = *std::launder(reinterpret_cast<AnchorCache*>(scratch));
  const std::int64_t column = first_column + target.columns.first;
  assert(column + target.columns.count <= spec_.d_model);
  const AngleTables& fine = fine_tables(target.dtype);
  Expansion e{};
  e.fine = {fine.cosines.data() + column, fine.sines.data() + column, nullptr, nullptr, table_stride_};
  if (is_compensated(target.dtype)) {
    e.fine.cosine_lows = fine.cosine_lows.data() + column;
    e.fine.sine_lows = fine.sine_lows.data() + column;
  }
  e.columns = target.columns.count;
  e.bound = std::fabs(spec_.output_scale);
  e.prefetch = target.access.prefetch;
  e.non_temporal = target.access.non_temporal;
  const auto kernel = active_kernels().expand[index_of(target.dtype)];
  for (std::int64_t done = 0; done < span.count;) {
    std::int64_t count = 1;
    if (span.position.is_integer()) {
      const auto [anchor, row] = nearest(span.position.integer + done, block_radius);
      const bool reaches_next_block = row == -block_radius && span.count - done > block_rows;
      count = std::min(span.count - done, reaches_next_block ? rows_of_two_blocks : block_radius - row + 1);
      e.anchors[0] = anchor_at(cache, anchor, column);
      if (reaches_next_block) e.anchors[1] = anchor_at(cache, anchor + 1, column);
      e.first_row = row;
    } else {
      e.anchors[0] = anchor_of_fraction(cache, span.position.value, column);
      e.first_row = 0;
    }
    e.last_row = e.first_row + count - 1;
    static_cast<SumRows&>(e) = target.from_row(done);
    kernel(e);
    done += count;
  }
}

}  // namespace fastpe
