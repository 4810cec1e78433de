// SPDX-License-Identifier: BSD-3-Clause
// The immutable tables of one spec, and the rows that follow from them: phasors of a group's centre are rotated to an
// anchor, and from there to the rows of its block.
#pragma once

#include <cstdint>

#include "fastpe/buffer.h"
#include "fastpe/interruption.h"
#include "fastpe/kernels/kernels.h"
#include "fastpe/lazy.h"
#include "fastpe/positions.h"
#include "fastpe/rows.h"
#include "frequencies.h"
#include "spec.h"

namespace fastpe {

class Encoder {
 public:
  // Throws an Error if the spec describes no encoding.
  explicit Encoder(Spec spec);

  const Spec& spec() const { return spec_; }
  const Frequencies& frequencies() const { return frequencies_; }

  // Makes the tables for this dtype, so that expand() allocates nothing. Throws Interrupted.
  void prepare(DType dtype, Interruption* interruption) const;
  // Whether prepare() has made the tables for this dtype, which may take long.
  bool is_prepared(DType dtype) const;

  // Scratch memory of one thread, which begins on a cache line's boundary. start() comes before expand().
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const;
  void start(char* scratch, DType dtype, bool in_any_order) const;

  // The number of doubles in one row of a table: all columns, and padding.
  std::int64_t table_stride() const { return table_stride_; }
  // Values and slopes of one anchor (and a fractional residual), table_stride() doubles each; 0 where no frequency is.
  void write_phasors(std::int64_t anchor, double residual, bool compensated, double* values, double* slopes) const;

  // Writes the rows of a span that is not descending. The target's columns are counted from first_column on.
  void expand(const Span& span, const Target& target, std::int64_t first_column, char* scratch) const;

 private:
  struct AnchorCache;
  // Cosines and sines of 0, 1, 2 .. steps' angles, in output order: cosines[step][table_stride_] and so on.
  struct AngleTables {
    AlignedBuffer<double> cosines, sines, cosine_lows, sine_lows;
  };
  enum class Step { position, anchor };

  Phasors phasors_of_frequencies() const;  // the tables filled in, nothing else
  AngleTables make_tables(Step step, std::int64_t steps, double scale, bool with_lows,
                          Interruption* interruption) const;
  const AngleTables& fine_tables(DType dtype, Interruption* interruption = nullptr) const;
  const AngleTables& anchor_tables(Interruption* interruption = nullptr) const;
  std::int64_t cached_phasors(AnchorCache& cache, std::int64_t anchor, std::int64_t number) const;
  Anchor anchor_at(AnchorCache& cache, std::int64_t number, std::int64_t first_column) const;
  Anchor anchor_of_fraction(AnchorCache& cache, double position, std::int64_t first_column) const;

  Spec spec_;
  Frequencies frequencies_;
  std::int64_t frequency_count_;
  std::int64_t table_stride_;
  Lazy<AngleTables> fine_tables_, fine_tables_with_lows_, anchor_tables_;
};

}  // namespace fastpe
