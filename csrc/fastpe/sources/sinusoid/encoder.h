// SPDX-License-Identifier: BSD-3-Clause
// The immutable tables of one spec: its frequencies, and the turns by which rows follow from anchors.
#pragma once

#include <cstdint>

#include "fastpe/buffer.h"
#include "fastpe/interruption.h"
#include "fastpe/kernels/kernels.h"
#include "fastpe/lazy.h"
#include "frequencies.h"
#include "spec.h"

namespace fastpe {

class Encoder {
 public:
  // Throws std::invalid_argument if the spec describes no encoding.
  explicit Encoder(Spec spec);

  const Spec& spec() const { return spec_; }
  const Frequencies& frequencies() const { return frequencies_; }

  // The number of doubles in one table row: all columns, and padding.
  std::int64_t table_stride() const { return table_stride_; }

  // Makes the tables for this dtype, so that the functions below allocate nothing. Throws Interrupted.
  void prepare(DType dtype, Interruption* interruption) const;
  // Whether prepare() has made the tables for this dtype, which may take long.
  bool is_prepared(DType dtype) const;

  // Values and slopes of one anchor (and a fractional residual), table_stride() doubles each; 0 where no frequency is.
  void write_phasors(std::int64_t anchor, double residual, bool compensated, double* values, double* slopes) const;

  // Sets the turn to the anchor `distance` anchors from its group's centre, |distance| <= group_radius, from
  // first_column on.
  void set_anchor_turn(std::int64_t distance, std::int64_t first_column, AnchorTurn& turn) const;

  // Sets the fine tables from first_column on.
  void set_fine_tables(DType dtype, std::int64_t first_column, FineTables& tables) const;

 private:
  // A table's memory; kernels may read column_padding columns before the first one.
  struct TurnTable {
    TurnTable() = default;
    explicit TurnTable(std::int64_t columns) : memory(column_padding + columns) {}
    double* data() const { return memory.data() + column_padding; }

    AlignedBuffer<double> memory;
  };
  // Turns by 0, 1, 2 .. steps, in output order: cosines[step][table_stride] and so on.
  struct TurnTables {
    TurnTable cosines, sines, cosine_lows, sine_lows;
  };
  enum class Step { position, anchor };
  // The first column that turns as this one does.
  std::int64_t first_equal_column(std::int64_t column) const { return column % columns_to_repeat_; }
  Phasors phasors_of_frequencies() const;  // the tables filled in, nothing else
  TurnTables make_turns(Step step, std::int64_t steps, double scale, bool with_lows, Interruption* interruption) const;
  const TurnTables& fine_turns(DType dtype, Interruption* interruption = nullptr) const;
  const TurnTables& anchor_turns(Interruption* interruption = nullptr) const;

  Spec spec_;
  Frequencies frequencies_;
  std::int64_t frequency_count_;
  std::int64_t table_stride_;
  std::int64_t columns_to_repeat_;  // columns so far apart turn alike
  Lazy<TurnTables> fine_turns_, fine_turns_with_lows_, anchor_turns_;
};

}  // namespace fastpe
