// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids as a source, which reads rows that are kept or expands rows from anchors.
#pragma once

#include "blocks.h"
#include "expander.h"
#include "fastpe/sources/source.h"
#include "kept_rows.h"

namespace fastpe {

// Throws the error of a position that no sinusoid has.
[[noreturn]] void refuse_position(const std::string& where, const Number& position);

class Sinusoids final : public Source {
 public:
  // The columns from first_column on. If `kept` is null, no rows are kept.
  Sinusoids(const Encoder& encoder, const KeptRows* kept, std::int64_t first_column)
      : Source({-max_position, max_position, true}, {block_rows, blocks_at_once}),
        expander_(encoder, first_column),
        kept_(kept) {}

  [[noreturn]] void refuse(const std::string& where, const Number& position) const override {
    refuse_position(where, position);
  }
  bool has_ready_rows(DType dtype, const PositionBounds& bounds) const override;
  TableView ready_rows(DType dtype, const PositionBounds& bounds, int max_threads,
                       Interruption* interruption) const override;

  bool expands() const override { return true; }
  std::int64_t rows_to_block_end(std::int64_t position) const override {
    return block_position(position).rows_to_end();
  }
  void prepare(DType dtype, const PositionBounds&, int, Interruption* interruption) const override {
    expander_.encoder().prepare(dtype, interruption);
  }
  bool is_prepared(DType dtype) const override { return expander_.encoder().is_prepared(dtype); }
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const override {
    return expander_.scratch_bytes(dtype, in_any_order);
  }
  void start(char* scratch, DType dtype, bool in_any_order) const override {
    expander_.start(scratch, dtype, in_any_order);
  }
  void expand(const Run& run, const Sink& sink, char* scratch) const override { expander_.expand(run, sink, scratch); }

 private:
  Expander expander_;
  const KeptRows* kept_;
};

}  // namespace fastpe
