// SPDX-License-Identifier: BSD-3-Clause
// out = vocabulary[ids] * scale + alpha * PE. Rows that are not valid become rows of the vocabulary.
#pragma once

#include "add.h"

namespace fastpe {

class Gather final : public Operation {
 public:
  // ids are counted by (item, l); `id_axes` are theirs before the last one, for messages. `is_new`: the call made the
  // array `out`.
  Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
         std::int64_t batch_rows, const Factors& factors, bool is_new);

  void check(Poller& poller) const override;
  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  void write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const override;

 private:
  // It lies in the vocabulary even if the id has changed since it was checked.
  std::int64_t embedding_offset_bytes(const Place& place) const;
  void gather_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const;

  TableView vocabulary_;
  NumbersView ids_;
  Axes id_axes_;
  Rows out_;
  Factors factors_;
};

}  // namespace fastpe
