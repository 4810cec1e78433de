// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids as a source, which reads rows of a cache or makes them.
#pragma once

#include "blocks.h"
#include "encoder.h"
#include "fastpe/sources/source.h"
#include "row_cache.h"

namespace fastpe {

class Sinusoids final : public Source {
 public:
  // The columns from first_column on. If `cache` is null, no rows are kept.
  Sinusoids(const Encoder& encoder, const RowCache* cache, std::int64_t first_column)
      : Source({-max_position, max_position, true}, {block_rows, blocks_at_once}),
        encoder_(encoder),
        cache_(cache),
        first_column_(first_column) {}

  TableView find(DType dtype, const PositionBounds& bounds) const override {
    TableView rows = cache_ == nullptr ? TableView{} : cache_->find(dtype, bounds);
    if (rows.data != nullptr) rows.data += first_column_ * element_bytes(dtype);
    return rows;
  }
  void keep(DType dtype, const PositionBounds& bounds, int max_threads,
            Interruption* interruption) const noexcept override {
    if (cache_ != nullptr) cache_->keep(dtype, bounds, max_threads, interruption);
  }
  std::int64_t rows_to_block_end(std::int64_t position) const override {
    return block_position(position).rows_to_end();
  }
  void prepare(DType dtype, const PositionBounds& bounds, bool will_keep, Interruption* interruption) const override {
    encoder_.prepare(dtype, interruption);
    if (will_keep && cache_ != nullptr) cache_->reserve(dtype, bounds);
  }
  bool is_prepared(DType dtype) const override { return encoder_.is_prepared(dtype); }
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const override {
    return encoder_.scratch_bytes(dtype, in_any_order);
  }
  void start(char* scratch, DType dtype, bool in_any_order) const override {
    encoder_.start(scratch, dtype, in_any_order);
  }
  void expand(const Span& span, const Target& target, char* scratch) const override {
    encoder_.expand(span, target, first_column_, scratch);
  }

 private:
  const Encoder& encoder_;
  const RowCache* cache_;
  std::int64_t first_column_;
};

}  // namespace fastpe
