// SPDX-License-Identifier: BSD-3-Clause
// Writes rows of cosines and sines in the arrangement that a host takes.
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
constexpr std::size_t table_form_count = 6;

constexpr int arrays_of(TableForm form) {
  return form == TableForm::halves || form == TableForm::tile || form == TableForm::repeat ? 2 : 1;
}
// Whether an encoder should have rows in this form. Otherwise its rows have the cosines and sines once. On Zen 3, large
// tables with each column twice take 0.73 to 1 of the time if columns are made once and streamed twice, and those in
// the cache 0.62 to 0.87. Tiled ones between 8 and 24 MiB take up to 1.2 of it: they are not streamed otherwise.
bool has_rows_of_its_own(TableForm form);
constexpr int columns_per_pair(TableForm form) { return form == TableForm::halves ? 1 : 2; }

class WriteTables final : public Operation {
 public:
  // As many arrays as the form has, of the same shape but for their strides.
  WriteTables(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs);

  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  Sink sink(int number, std::int64_t item, std::int64_t l, Columns columns) const override;
  // No row is left out: tables have neither mask nor lengths.
  void leave(std::int64_t, std::int64_t, std::int64_t, Columns) const override {}

 private:
  // Where a row's cosines or sines are written, in forms in which they do not alternate.
  char* place_of(bool is_sine, int copy, std::int64_t item, std::int64_t l) const;
  // Whether neither the tile's rows nor those of the arrays have gaps between them.
  bool can_duplicate(const Tile& tile) const;
  // `from`, `first` and `second` are in the tile's first row.
  void duplicate(const Tile& tile, const char* from, const Rows& out, std::int64_t item, bool streaming) const;
  void interleave(const Tile& tile, const char* first, const char* second, const Rows& out, std::int64_t item,
                  bool streaming) const;

  std::array<Rows, 2> out_;
  TableForm form_;
  std::int64_t pairs_;
};

}  // namespace fastpe
