// SPDX-License-Identifier: BSD-3-Clause
// What is made for each frequency of positions with several coordinates, as images and videos have them: each frequency
// belongs to one of them.
#pragma once

#include <vector>

#include "sinusoids.h"

namespace fastpe {

// Which coordinate each frequency belongs to; none where positions are single numbers.
struct FrequencyCoordinates {
  FrequencyCoordinates() = default;
  // Throws an Error about the argument `axes`.
  FrequencyCoordinates(const std::vector<double>& given, std::int64_t frequency_count);

  std::vector<int> of_frequency;
  int count = 0;
};

// A row is put together from the rows of its coordinates, and has their bits. It is not kept as a whole, so find() is
// not overridden.
class CoordinateSinusoids final : public CachedSinusoids {
 public:
  // Rows are cosines, then sines.
  CoordinateSinusoids(const RowCache& cache, const FrequencyCoordinates& coordinates)
      : CachedSinusoids(cache, {}), coordinates_(coordinates) {}

  std::int64_t scratch_bytes(DType dtype, bool may_revisit) const override;
  void start(char* scratch, DType dtype, bool may_revisit) const override;
  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  struct LastRows;
  std::int64_t row_offset(int coordinate) const;
  const char* row_at(const Number& position, int coordinate, DType dtype, char* scratch) const;

  const FrequencyCoordinates& coordinates_;
};

// The angles themselves: position times frequency, in radians, rounded to float64 and, for float32, once more. Column k
// belongs to frequency k. Positions may be single numbers.
class AngleRows final : public Source {
 public:
  AngleRows(const Encoder& encoder, const FrequencyCoordinates& coordinates)
      : Source({-max_position, max_position, true}, {}), encoder_(encoder), coordinates_(coordinates) {}

  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  const Encoder& encoder_;
  const FrequencyCoordinates& coordinates_;
};

}  // namespace fastpe
