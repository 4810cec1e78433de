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
#include "fastpe/tile.h"
#include "frequencies.h"

namespace fastpe {

// Which column holds what. Columns beyond both sines and cosines are zero; sines or cosines beyond d_model are dropped.
struct Spec {
  std::int64_t d_model = 0;
  WantedFrequencies wanted_frequencies;
  bool interleaved = true;  // sin, cos, sin, cos ..; else all of one, then all of the other
  bool cosine_first = false;
  double output_scale = 1.0;
};

class Encoder {
 public:
  // Throws an Error if the spec describes no encoding.
  explicit Encoder(Spec spec);

  const Spec& spec() const { return spec_; }
  const Frequencies& frequencies() const { return frequencies_; }
  std::int64_t frequency_count() const { return spec_.wanted_frequencies.frequency_count; }

  // Makes the tables for this dtype, which may take long, so that write_rows() allocates nothing. Throws Interrupted.
  void prepare(DType dtype, Interruption* interruption) const;
  bool is_prepared(DType dtype) const;

  // Scratch memory of one thread, as Source has it.
  std::int64_t scratch_bytes(DType dtype, bool may_revisit) const;
  void start(char* scratch, DType dtype, bool may_revisit) const;

  // Writes the rows of an ascending span, or one row. The target's columns are counted from first_column on.
  void write_rows(const Span& span, const Target& target, std::int64_t first_column, char* scratch) const;

 private:
  struct AnchorCache;
  // Cosines and sines of 0, 1, 2 .. steps' angles, in output order: cosines[step][table_stride_] and so on.
  struct AngleTables {
    AlignedBuffer<double> cosines, sines, cosine_lows, sine_lows;
  };
  enum class Step { position, anchor };

  PhasorArguments frequency_arguments() const;  // the tables filled in, nothing else
  AngleTables make_tables(Step step, std::int64_t steps, double scale, bool with_lows,
                          Interruption* interruption) const;
  const AngleTables& fine_tables(DType dtype, Interruption* interruption = nullptr) const;
  const AngleTables& anchor_tables(Interruption* interruption = nullptr) const;
  // Values and slopes of one anchor (and a fractional residual), table_stride_ doubles each; 0 where no frequency is.
  void write_phasors(std::int64_t anchor, double residual, bool compensated, double* values, double* slopes) const;
  // The slot of an anchor's phasors, which are written unless they are there. Two anchors whose keys differ by one can
  // both be in the cache.
  std::int64_t fill_slot(AnchorCache& cache, std::int64_t anchor, std::int64_t slot_key) const;
  AnchorPhasors anchor_at(AnchorCache& cache, std::int64_t anchor, std::int64_t first_column) const;
  AnchorPhasors anchor_of_fraction(AnchorCache& cache, double position, std::int64_t first_column) const;

  Spec spec_;
  Frequencies frequencies_;
  std::int64_t table_stride_;  // the doubles in one row of a table: all columns, and padding
  Lazy<AngleTables> fine_tables_, fine_tables_with_lows_, anchor_tables_;
};

}  // namespace fastpe
