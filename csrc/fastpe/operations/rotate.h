// SPDX-License-Identifier: BSD-3-Clause
// Pairs of columns rotated by the angles of rows that hold cosines, then sines: in place, or from x into out. Arrays
// that have the same positions are rotated in one call, so that each row of cosines and sines is made once. Rows that
// are not valid stay as they are, or are copied.
#pragma once

#include <vector>

#include "operation.h"

namespace fastpe {

struct Rotation;  // what the kernel takes

struct PairRange {
  std::int64_t first, count;
};

// Which columns are pairs, and which of the pairs are rotated; all others keep their bits.
struct Pairing {
  std::int64_t pairs = 0;
  bool interleaved = false;  // (2k, 2k + 1), else (k, k + pairs)
  bool conjugate = false;    // by the negative angles
  std::vector<PairRange> rotated;
};

struct HeadArray {
  ConstRows x;
  Rows out;  // may be x
};

class Rotate final : public Operation {
 public:
  // Each array has the same seq_len and dtype, and items that batch rows divide evenly. The caller owns the
  // arrays and the pairing.
  Rotate(Slice<HeadArray> arrays, std::int64_t batch_rows, const Pairing& pairing);

  void apply(const Tile& tile, const Items& items, const Workspace& workspace) const override;
  void write_invalid(const Items& items, std::int64_t l, std::int64_t count, const Columns& columns) const override;

 private:
  // Items of one array that belong to one batch row.
  struct Heads {
    const HeadArray& array;
    std::int64_t first, count;
  };
  // Items count one batch row's heads through all arrays, x first, then the next row's. This has the heads from `item`
  // on that belong to the same array and row, at most `most` of them.
  Heads heads_at(std::int64_t item, std::int64_t most) const;
  static bool are_inner_heads(const Heads& heads);
  void set_prefetch(const Place& next, const Access& access, Rotation& rotation) const;
  void rotate_head(const Tile& tile, const HeadArray& array, std::int64_t head, const Place& next,
                   const Workspace& workspace) const;
  // `first_item` is the first of the heads, counted over all arrays.
  void rotate_inner_heads(const Tile& tile, const Heads& heads, std::int64_t first_item,
                          const Workspace& workspace) const;
  void rotate_columns(const Tile& tile, const Heads& heads, const Workspace& workspace) const;
  // Rotates the rows of `rotation` by the tile's.
  void rotate_rows(const Rotation& rotation, const Tile& tile) const;
  // Copies columns from `first` on, if out is not x.
  void copy_columns(const HeadArray& array, std::int64_t head, std::int64_t l, std::int64_t count,
                    std::int64_t first) const;
  // Columns are copied from here on before a rotation: those behind the pairs, or all where pairs are left out.
  std::int64_t first_copied_column() const { return rotates_all() ? shape_.columns : 0; }
  bool rotates_all() const;

  Slice<HeadArray> arrays_;
  const Pairing& pairing_;  // outlives the operation
};

}  // namespace fastpe
