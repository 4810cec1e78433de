// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids as a source, which reads rows of a cache or has its encoder make them.
#pragma once

#include "encoder.h"
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

}  // namespace fastpe
