// SPDX-License-Identifier: BSD-3-Clause
// Cosines and sines that are given, as a source: row p belongs to position p, and other positions have no rows. Its
// rows are the cosines, then the sines, in the dtype of the arithmetic.
#pragma once

#include "source.h"

namespace fastpe {

class RotaryTables final : public Source {
 public:
  // Both have the same shape and dtype, and `pairs` columns.
  RotaryTables(const TableView& cosines, const TableView& sines, std::int64_t pairs)
      : Source({0, cosines.rows - 1, false}, {32, 1}), cosines_(cosines), sines_(sines), pairs_(pairs) {}

  std::int64_t rows_to_block_end(std::int64_t position) const override { return blocks.rows - position % blocks.rows; }
  void expand(const Span& span, const Target& target, char* scratch) const override;

 private:
  TableView cosines_, sines_;
  std::int64_t pairs_;
};

}  // namespace fastpe
