// SPDX-License-Identifier: BSD-3-Clause
// Sums of rows and the encoding, x * scale + alpha * PE.
#pragma once

#include "fastpe/dispatch.h"
#include "operation.h"
#include "walk.h"

namespace fastpe {

struct Factors {
  double scale = 1.0, alpha = 1.0;
};

// What a walk does for sums, and with which arguments.
inline Combination sum_of(const Factors& factors, bool non_temporal) {
  Combination sum{};
  sum.scale = factors.scale;
  sum.alpha = factors.alpha;
  sum.non_temporal = non_temporal;
  return sum;
}
inline void add_rows(const Combination& sum, DType dtype) {
  const Kernels& kernels = active_kernels();
  (sum.tile_dtype == dtype ? kernels.combine_same_dtype : kernels.combine)[index_of(dtype)](sum);
}

// Adds to an array, in place where out is x. Rows that are not valid stay as they are, or are copied.
class Add final : public Operation {
 public:
  // Both arrays have the same shape. `is_new`: the call made the one that is written.
  Add(const ReadWrite& arrays, std::int64_t batch_rows, const Factors& factors, bool is_new);

  void apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const override;
  Target target(int number, std::int64_t item, std::int64_t l) const override;
  void write_invalid(const Range& items, const Range& rows, const Range& columns) const override;

 private:
  ReadWrite arrays_;
  Factors factors_;
};

// Adds to rows of a vocabulary, those of ids. Rows that are not valid become rows of the vocabulary.
class Gather final : public Operation {
 public:
  // ids are counted by (item, l); `id_axes` are theirs before the last one, for messages.
  Gather(const TableView& vocabulary, const NumbersView& ids, const Axes& id_axes, const Rows& out,
         std::int64_t batch_rows, const Factors& factors, bool is_new);

  void check(Interruption* interruption) const override;
  void apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const override;
  void write_invalid(const Range& items, const Range& rows, const Range& columns) const override;

 private:
  // It lies in the vocabulary even if the id has changed since it was checked.
  std::int64_t embedding_offset_bytes(std::int64_t item, std::int64_t l) const;

  TableView vocabulary_;
  NumbersView ids_;
  Axes id_axes_;
  Rows out_;
  Factors factors_;
};

}  // namespace fastpe
