// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids of positions with several coordinates, as images and videos have them: each frequency belongs to one
// of them. A row is put together from the rows of its coordinates, and has their bits.
#pragma once

#include <algorithm>
#include <vector>

#include "fastpe/error.h"
#include "sinusoids.h"

namespace fastpe {

// Which coordinate each frequency belongs to; none where positions are single numbers.
struct FrequencyCoordinates {
  FrequencyCoordinates() = default;
  // Throws an Error about the argument of this name.
  template <class T>
  FrequencyCoordinates(const std::vector<T>& given, std::int64_t frequency_count, const char* name) {
    const auto size = static_cast<std::int64_t>(given.size());
    if (size != 0 && size != frequency_count) {
      refuse_value(name, {"has ", size, " coordinates"}, {frequency_count, ", one for each frequency"});
    }
    for (const T coordinate : given) {
      if (!(0 <= coordinate && coordinate < max_coordinates)) {
        refuse_value(name, {"has ", coordinate}, {"0 to ", max_coordinates - 1});
      }
      of_frequency.push_back(static_cast<int>(coordinate));
      count = std::max(count, of_frequency.back() + 1);
    }
  }

  std::vector<int> of_frequency;
  int count = 0;
};

// A row is not kept as a whole, so find() is not overridden.
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

}  // namespace fastpe
