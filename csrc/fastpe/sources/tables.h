// SPDX-License-Identifier: BSD-3-Clause
// Tables that are given, as sources: row p belongs to position p, and other positions have no rows.
#pragma once

#include <cassert>

#include "source.h"

namespace fastpe {

class LearnedTable final : public Source {
 public:
  explicit LearnedTable(const TableView& table)
      : Source(0, table.rows - 1, false),
        rows_{{table.data, table.row_stride_bytes, element_bytes(table.dtype)},
              table.dtype,
              {0, table.rows},
              {0, table.columns}} {}

  Tile kept_rows(DType, const PositionBounds&) const override { return rows_; }
  // Never called: make_plan() always asks for kept_rows() where blocks are single rows.
  void write_rows(const Span&, const Target&, char*) const override { assert(false); }

 private:
  Tile rows_;
};

// Rows are cosines, then sines, in the dtype of the arithmetic.
class RotaryTables final : public Source {
 public:
  // Both have the same shape and dtype. Positions number the rows of all items.
  RotaryTables(const ConstRows& cosines, const ConstRows& sines)
      : Source(0, cosines.item_count * cosines.seq_len - 1, false, most_rows), cosines_(cosines), sines_(sines) {}

  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  static constexpr std::int64_t most_rows = 32;  // they share nothing, and fill a tile
  ConstRows cosines_, sines_;
};

}  // namespace fastpe
