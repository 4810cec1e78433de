// SPDX-License-Identifier: BSD-3-Clause
// A learned table: row p belongs to position p, and other positions have no rows.
#pragma once

#include "source.h"

namespace fastpe {

class LearnedTable final : public Source {
 public:
  explicit LearnedTable(const TableView& table) : Source({0, table.rows - 1, false}, {1, 1}), table_(table) {}

  bool expands() const override { return false; }
  TableView find(DType, const PositionBounds&) const override { return table_; }

 private:
  TableView table_;
};

}  // namespace fastpe
