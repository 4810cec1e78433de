// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids as sources: of positions that are single numbers, or that have several coordinates, as images and videos
// have them. They read rows of a cache or have its encoder make them.
#pragma once

#include <vector>

#include "fastpe/sources/source.h"
#include "row_cache.h"

namespace fastpe {

class CachedSinusoids : public Source {
 public:
  void keep(DType dtype, const PositionBounds& bounds, std::int64_t bytes_written, int max_threads,
            Interruption* interruption) const final {
    cache_.keep(dtype, bounds, bytes_written, max_threads, interruption);
  }
  void prepare(DType dtype, const PositionBounds& bounds, bool will_keep, Interruption* interruption) const final {
    encoder_.prepare(dtype, interruption);
    if (will_keep) cache_.reserve(dtype, bounds);
  }
  bool is_prepared(DType dtype) const final { return encoder_.is_prepared(dtype); }

 protected:
  CachedSinusoids(const RowCache& cache, BlockShape blocks_)
      : Source({-max_position, max_position, true}, blocks_), cache_(cache), encoder_(cache.encoder()) {}
  ~CachedSinusoids() = default;

  const RowCache& cache_;
  const Encoder& encoder_;
};

class Sinusoids final : public CachedSinusoids {
 public:
  // The columns from first_column on.
  Sinusoids(const RowCache& cache, std::int64_t first_column)
      : CachedSinusoids(cache, {block_rows, blocks_at_once, -block_radius}), first_column_(first_column) {}

  TableView find(DType dtype, const PositionBounds& bounds) const override {
    TableView rows = cache_.find(dtype, bounds);
    if (rows.data != nullptr) rows.data += first_column_ * element_bytes(dtype);
    return rows;
  }
  std::int64_t scratch_bytes(DType dtype, bool may_revisit) const override {
    return encoder_.scratch_bytes(dtype, may_revisit);
  }
  void start(char* scratch, DType dtype, bool may_revisit) const override {
    encoder_.start(scratch, dtype, may_revisit);
  }
  void write_rows(const Span& span, const Target& target, char* scratch) const override {
    encoder_.write_rows(span, target, first_column_, scratch);
  }

 private:
  std::int64_t first_column_;
};

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
