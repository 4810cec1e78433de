// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids as sources. Their positions are single numbers, or have several coordinates, as images and videos have
// them.
#pragma once

#include <vector>

#include "encoding.h"
#include "fastpe/sources/source.h"

namespace fastpe {

// Which coordinate each frequency belongs to; none where positions are single numbers.
struct FrequencyCoordinates {
  FrequencyCoordinates() = default;
  // Throws an Error about the argument `axes`.
  FrequencyCoordinates(const std::vector<double>& given, std::int64_t frequency_count);

  std::vector<int> of_frequency;
  int count = 0;
};

// Reads the rows that an encoding keeps, or has its encoder make them. A row of several coordinates is put together
// from the rows of its coordinates, and has their bits. It is not kept as a whole.
class Sinusoids final : public Source {
 public:
  // The columns from first_column on. With coordinates, rows are cosines, then sines.
  explicit Sinusoids(const Encoding& encoding, std::int64_t first_column = 0,
                     const FrequencyCoordinates* coordinates = nullptr);

  Tile kept_rows(DType dtype, const PositionBounds& bounds) const override;
  void keep(DType dtype, const PositionBounds& bounds, std::int64_t bytes_written, int max_threads,
            Interruption* interruption) const override;
  void prepare(DType dtype, const PositionBounds& bounds, bool will_keep, Interruption* interruption) const override;
  bool is_prepared(DType dtype) const override { return encoder_.is_prepared(dtype); }
  std::int64_t scratch_bytes(DType dtype, bool may_revisit) const override;
  void start(char* scratch, DType dtype, bool may_revisit) const override;
  bool can_add() const override { return coordinates_ == nullptr; }
  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  struct LastRows;
  // Of the row of a coordinate in the scratch memory. The encoder's own memory comes after those of all.
  std::int64_t offset_of_row(int coordinate) const;
  const char* row_at(const Number& position, int coordinate, DType dtype, char* scratch) const;
  void join_rows(const Span& span, const Target& target, char* scratch) const;

  const Encoding& encoding_;
  const Encoder& encoder_;
  std::int64_t first_column_;
  const FrequencyCoordinates* coordinates_;  // null: positions are single numbers
};

// The angles themselves: position times frequency, in radians, rounded to float64 and, for float32, once more. Column k
// belongs to frequency k. Positions may be single numbers.
class AngleRows final : public Source {
 public:
  AngleRows(const Encoder& encoder, const FrequencyCoordinates& coordinates)
      : Source(-max_position, max_position, true), encoder_(encoder), coordinates_(coordinates) {}

  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  const Encoder& encoder_;
  const FrequencyCoordinates& coordinates_;
};

}  // namespace fastpe
