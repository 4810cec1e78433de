// SPDX-License-Identifier: BSD-3-Clause
// out = x * scale + alpha * PE, in place where out is x. Rows that are not valid stay as they are, or are copied.
#pragma once

#include "fastpe/kernels/kernels.h"
#include "operation.h"

namespace fastpe {

struct Factors {
  double scale = 1.0, alpha = 1.0;
};

// Adds `rows` of the tile from l on; x and out are left to be set.
Combination combination_of(const Tile& tile, std::int64_t l, std::int64_t rows, const Factors& factors,
                           const Access& access);
void combine(const Combination& combination, DType dtype, DType addend_dtype);

class Add final : public Operation {
 public:
  // x and out have the same shape; batch rows divide their items evenly.
  // `is_new`: the call made the array `out`.
  Add(const ConstRows& x, const Rows& out, std::int64_t batch_rows, const Factors& factors, bool is_new);

  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  void apply_to_each(const Tile& tile, const std::int64_t* tile_offsets_bytes, const Items& items, const Place& next,
                     const Workspace& workspace) const override;
  Target target(int number, std::int64_t item, std::int64_t l, Columns columns) const override;
  void write_invalid(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const override;

 private:
  const char* next_x_at(const Place& place, const Columns& columns) const;
  void set_prefetch(const Place& next, const Tile& tile, const Access& access, Combination& combination) const;
  void add_to_item(const Tile& tile, std::int64_t item, const Place& next, const Workspace& workspace) const;
  void add_to_columns(const Tile& tile, const Items& items, const Workspace& workspace) const;
  void add_to_item_in_scratch(const Tile& tile, std::int64_t item, const Workspace& workspace) const;
  // Adds to items that lie side by side inside of the sequence, one row of the sequence after the other.
  void add_to_inner_items(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const;

  ConstRows x_;
  Rows out_;
  Factors factors_;
};

}  // namespace fastpe
