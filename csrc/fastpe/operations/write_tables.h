// SPDX-License-Identifier: BSD-3-Clause
// Writes rows of cosines and sines in the form that an engine takes.
#pragma once

#include <array>

#include "operation.h"

namespace fastpe {

enum class TableForm {
  halves,   // cosines in one array and sines in another
  tile,     // the same, each array's columns twice, one set after the other
  repeat,   // the same, each column twice
  cos_sin,  // one array: cosines, then sines
  sin_cos,  // one array: sines, then cosines
  pairs,    // one array: cosine, sine, cosine, sine ..
};

constexpr int arrays_of(TableForm form) {
  return form == TableForm::halves || form == TableForm::tile || form == TableForm::repeat ? 2 : 1;
}
constexpr int columns_per_pair(TableForm form) { return form == TableForm::halves ? 1 : 2; }

class WriteTables final : public Operation {
 public:
  // As many arrays as the form has, of the same shape but for their strides. The encoding's rows are cosines, then
  // sines. `is_new`: the call made the arrays.
  WriteTables(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs, bool is_new);

  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  Target target(int number, std::int64_t item, std::int64_t l, Columns columns) const override;
  // No row is skipped: tables have neither mask nor lengths.
  void skip(std::int64_t, std::int64_t, std::int64_t, Columns) const override {}

 private:
  std::array<Rows, 2> out_;
  TableForm form_;
  std::int64_t pairs_;
};

}  // namespace fastpe
