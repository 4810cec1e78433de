// SPDX-License-Identifier: BSD-3-Clause
#include "encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "fastpe/dispatch.h"

namespace fastpe {
namespace {

// The tables of such an encoder stay below a gigabyte, and are made in less than a second.
constexpr std::int64_t max_d_model = std::int64_t{1} << 20;

std::int64_t padded(std::int64_t columns) {
  return (columns + column_padding - 1) / column_padding * column_padding + column_padding;
}

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void require_finite(double value, bool is_allowed, const char* name, const char* expected) {
  if (std::isfinite(value) && is_allowed) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  throw std::invalid_argument(std::string(name) + " is " + text + ", expected a finite number" + expected);
}

void require_at_most(std::int64_t value, std::int64_t limit, const char* name, const char* limit_text) {
  if (value >= 0 && value <= limit) return;
  throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", expected at most " + limit_text);
}

Spec checked(Spec spec) {
  const FrequencySpec& f = spec.frequencies;
  require(spec.d_model >= 1, "d_model: expected at least 1");
  require_at_most(spec.d_model, max_d_model, "d_model", "2**20");
  require(f.frequency_count >= 0 && f.count_with_copies() <= spec.d_model, "frequency_count: expected 0 to d_model");
  require(f.given.empty() || static_cast<std::int64_t>(f.given.size()) == f.frequency_count,
          "freqs: expected frequency_count values");
  require_finite(f.base, f.base > 0.0, "base", " above 0");
  require_finite(f.exponent_denominator, f.exponent_denominator > 0.0, "exponent_denominator", " above 0");
  require_finite(f.frequency_scale, true, "freq_scale", "");
  require_finite(spec.output_scale, true, "output_scale", "");
  return spec;
}

}  // namespace

Encoder::Encoder(Spec spec)
    : spec_(checked(std::move(spec))),
      frequencies_(make_frequencies(spec_.frequencies, block_rows, column_padding)),
      frequency_count_(spec_.frequencies.count_with_copies()),
      table_stride_(padded(std::max(spec_.d_model, 2 * frequency_count_))),
      columns_to_repeat_(!spec_.interleaved && spec_.d_model == 2 * frequency_count_ ? frequency_count_
                                                                                     : spec_.d_model) {}

Phasors Encoder::phasors_of_frequencies() const {
  Phasors p{};
  p.frequency_count = frequency_count_;
  p.anchor_quarters_high = frequencies_.anchor_quarters.high.data();
  p.anchor_quarters_low = frequencies_.anchor_quarters.low.data();
  p.quarters_high = frequencies_.quarters.high.data();
  p.quarters_low = frequencies_.quarters.low.data();
  p.largest_quarters = frequencies_.largest_quarters;
  return p;
}

void Encoder::write_phasors(std::int64_t anchor, double residual, bool compensated, double* values,
                            double* slopes) const {
  Phasors p = phasors_of_frequencies();
  p.anchor = static_cast<double>(anchor);
  p.residual = residual;
  p.values = values;
  p.slopes = slopes;
  p.interleaved = spec_.interleaved;
  const std::int64_t second = spec_.interleaved ? 1 : frequency_count_;
  p.sine_column = spec_.cosine_first ? second : 0;
  p.cosine_column = spec_.cosine_first ? 0 : second;
  p.compensated = compensated;
  active_kernels().phasors(p);
  std::fill(values + 2 * frequency_count_, values + table_stride_, 0.0);
  std::fill(slopes + 2 * frequency_count_, slopes + table_stride_, 0.0);
}

void Encoder::set_anchor_turn(std::int64_t distance, std::int64_t first_column, AnchorTurn& turn) const {
  const TurnTables& turns = anchor_turns();
  const std::int64_t at = std::abs(distance) * table_stride_ + first_equal_column(first_column);
  turn.cosines = turns.cosines.data() + at;
  turn.sines = turns.sines.data() + at;
  turn.backwards = distance < 0;
}

// Column c turns by cos and sin of the distance times frequency(c). They come from the kernel that writes columns: a
// sine column holds (sin, cos), a cosine column (cos, -sin) as (value, slope).
Encoder::TurnTables Encoder::make_turns(Step step, std::int64_t steps, double scale, bool with_lows,
                                        Interruption* interruption) const {
  const std::int64_t size = (steps + 1) * table_stride_;
  TurnTables tables;
  tables.cosines = TurnTable(size);
  tables.sines = TurnTable(size);
  if (with_lows) {
    tables.cosine_lows = TurnTable(size);
    tables.sine_lows = TurnTable(size);
  }
  const AlignedBuffer<double> values(table_stride_), slopes(table_stride_), value_lows(table_stride_),
      slope_lows(table_stride_);
  for (std::int64_t row = 0; row <= steps; ++row) {
    throw_if_interrupted(interruption);
    Phasors p = phasors_of_frequencies();
    (step == Step::position ? p.residual : p.anchor) = static_cast<double>(row);
    p.values = values.data();
    p.slopes = slopes.data();
    p.value_lows = value_lows.data();
    p.slope_lows = slope_lows.data();
    p.interleaved = false;
    p.sine_column = 0;
    p.cosine_column = frequency_count_;
    p.compensated = true;
    active_kernels().phasors(p);
    const auto scaled = [&](double high, double low, const TurnTable& highs, const TurnTable& lows,
                            std::int64_t column) {
      const double product = high * scale;
      highs.data()[row * table_stride_ + column] = product;
      if (!with_lows) return;
      lows.data()[row * table_stride_ + column] = std::fma(high, scale, -product) + low * scale;
    };
    for (std::int64_t k = 0; k < frequency_count_; ++k) {
      const std::int64_t first = spec_.interleaved ? 2 * k : k;
      const std::int64_t second = spec_.interleaved ? first + 1 : first + frequency_count_;
      for (const std::int64_t column : {first, second}) {
        scaled(slopes.data()[k], slope_lows.data()[k], tables.cosines, tables.cosine_lows, column);
        scaled(values.data()[k], value_lows.data()[k], tables.sines, tables.sine_lows, column);
      }
    }
    // The first columns follow the last ones: kernels load both at once where a cache line holds both.
    for (const TurnTable* table : {&tables.cosines, &tables.sines, &tables.cosine_lows, &tables.sine_lows}) {
      if (table->memory.data() == nullptr) continue;
      double* const columns = table->data() + row * table_stride_;
      for (std::int64_t i = 0; i < column_padding; ++i) columns[spec_.d_model + i] = columns[i % spec_.d_model];
    }
  }
  return tables;
}

const Encoder::TurnTables& Encoder::fine_turns(DType dtype, Interruption* interruption) const {
  const bool with_lows = dtype == DType::float64;
  return (with_lows ? fine_turns_with_lows_ : fine_turns_).get([&] {
    return make_turns(Step::position, block_radius, spec_.output_scale, with_lows, interruption);
  });
}

const Encoder::TurnTables& Encoder::anchor_turns(Interruption* interruption) const {
  return anchor_turns_.get([&] { return make_turns(Step::anchor, group_radius, 1.0, false, interruption); });
}

void Encoder::prepare(DType dtype, Interruption* interruption) const {
  fine_turns(dtype, interruption);
  if (dtype != DType::float64) anchor_turns(interruption);
}

bool Encoder::is_prepared(DType dtype) const {
  return dtype == DType::float64 ? fine_turns_with_lows_.is_made() : fine_turns_.is_made() && anchor_turns_.is_made();
}

void Encoder::set_fine_tables(DType dtype, std::int64_t first_column, FineTables& tables) const {
  const TurnTables& turns = fine_turns(dtype);
  // Tables of cosines and sines read the same turns then, which stay in the first-level cache: streamed tables of two
  // arrays with rows of 256 bytes take 0.94 to 0.97 of the time (Zen 4, one thread).
  const std::int64_t column = first_equal_column(first_column);
  tables.cosines = turns.cosines.data() + column;
  tables.sines = turns.sines.data() + column;
  if (dtype == DType::float64) {
    tables.cosine_lows = turns.cosine_lows.data() + column;
    tables.sine_lows = turns.sine_lows.data() + column;
  }
  tables.stride = table_stride_;
  tables.columns_to_repeat = columns_to_repeat_;
}

}  // namespace fastpe
