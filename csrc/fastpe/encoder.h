// SPDX-License-Identifier: BSD-3-Clause
// The immutable plan for one spec: frequencies, fine rotations and, for max_len positions, the finished rows.
#pragma once

#include <cstdint>

#include "buffer.h"
#include "frequencies.h"
#include "kernels/kernels.h"
#include "parallel.h"
#include "spec.h"

namespace fastpe {

constexpr std::int64_t max_position = std::int64_t{1} << 53;

struct CachedRows {
  const char* data = nullptr;
  std::int64_t rows = 0;  // of positions 0 .. rows - 1
  std::int64_t row_stride_bytes = 0;
};

// The block a position lies in: position = anchor * block_rows + row, |row| <= block_radius.
struct BlockPosition {
  std::int64_t anchor;
  std::int64_t row;
};
BlockPosition block_position(std::int64_t position);

// The group an anchor lies in: anchor = centre * group_anchors + distance, |distance| <= group_radius.
struct GroupPosition {
  std::int64_t centre;
  std::int64_t distance;
};
GroupPosition group_position(std::int64_t anchor);

class Encoder {
 public:
  // Throws std::invalid_argument for a spec that describes no encoding.
  Encoder(Spec spec, std::int64_t max_len);

  const Spec& spec() const { return spec_; }
  std::int64_t max_len() const { return max_len_; }
  const Frequencies& frequencies() const { return frequencies_; }

  // Doubles of one table row: all columns, padded.
  std::int64_t table_stride() const { return table_stride_; }

  // Values and slopes of one anchor (and a fractional residual), table_stride() doubles each; 0 where no frequency is.
  void write_phasors(std::int64_t anchor, double residual, bool compensated, double* values, double* slopes) const;

  // To an anchor `distance` anchors from its group's centre, |distance| <= group_radius, from first_column on.
  AnchorTurn anchor_turn(std::int64_t distance, std::int64_t first_column) const;

  // Makes what calls in this dtype need, so that rotation() allocates nothing. Throws Interrupted.
  void prepare(DType dtype, Interruption* interruption) const;

  // For columns from first_column on. The caller fills in anchors, rows, the output, the embeddings, and how memory is
  // used.
  Rotation rotation(DType dtype, std::int64_t first_column) const;

  // Rows in float32, or in float64 for DType::float64: what is added to embeddings of this dtype. Throws Interrupted.
  CachedRows cached_rows(DType dtype, Interruption* interruption) const;

  // Whether all that is kept for this dtype has been made: the first calls make it, which may take long.
  bool is_complete(DType dtype) const;

 private:
  // Rotations by 0, 1, 2 .. steps, in output order: cosines[step][table_stride] and so on.
  struct RotationTables {
    AlignedBuffer<double> cosines, sines, cosine_lows, sine_lows;
  };
  enum class Step { position, anchor };
  Phasors phasors_of_frequencies() const;  // the tables filled in, nothing else
  RotationTables make_rotations(Step step, std::int64_t steps, double scale, bool with_lows,
                                Interruption* interruption) const;
  const RotationTables& fine_rotations(DType dtype, Interruption* interruption = nullptr) const;
  const RotationTables& anchor_rotations(Interruption* interruption = nullptr) const;
  AlignedBuffer<char> make_rows(DType dtype, Interruption* interruption) const;
  const Lazy<AlignedBuffer<char>>& rows(DType dtype) const {
    return dtype == DType::float64 ? rows_float64_ : rows_float32_;
  }

  Spec spec_;
  std::int64_t max_len_;
  Frequencies frequencies_;
  std::int64_t frequency_count_;
  std::int64_t table_stride_;
  Lazy<RotationTables> fine_rotations_, fine_rotations_with_lows_, anchor_rotations_;
  Lazy<AlignedBuffer<char>> rows_float32_, rows_float64_;
};

}  // namespace fastpe
