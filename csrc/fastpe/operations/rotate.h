// SPDX-License-Identifier: BSD-3-Clause
// Pairs of columns rotated by the angles of rows that hold cosines, then sines: in place, or from x into out. Arrays
// that have the same positions are rotated in one call, so that each row of cosines and sines is made once. Rows that
// are not valid stay as they are, or are copied.
#pragma once

#include <vector>

#include "operation.h"
#include "walk.h"

namespace fastpe {

// Which columns are pairs, and which of the pairs are rotated; all others keep their bits.
struct Pairing {
  std::int64_t pairs = 0;
  bool interleaved = false;  // (2k, 2k + 1), else (k, k + pairs)
  bool conjugate = false;    // by the negative angles
  std::vector<Range> rotated;

  bool rotates_all() const { return rotated.size() == 1 && rotated[0].count == pairs; }
};

// The heads of an array and of where they go, in the order in which they are rotated.
ReadWrite heads_of(const ConstRows& x, const Rows& out);

class Rotate final : public Operation {
 public:
  // Each array has the same seq_len and dtype. The caller owns the arrays and the pairing. `is_new`: the call made
  // where they go.
  Rotate(View<ReadWrite> arrays, std::int64_t batch_rows, const Pairing& pairing, bool is_new);

  void apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const override;
  void write_invalid(const Range& items, const Range& rows, const Range& columns) const override;

 private:
  // Items count one batch row's heads through all arrays, x first, then the next row's. These are the first of them
  // that belong to the same array and row, as that array counts its items.
  struct ItemsOfArray {
    const ReadWrite& array;
    Range items;
  };
  ItemsOfArray first_items(const Range& items) const;
  void rotate_rows(const Rotation& rows) const;
  void rotate_non_temporal(const Rotation& rows, char* memory) const;
  void rotate_columns(const Rotation& columns) const;

  View<ReadWrite> arrays_;
  const Pairing& pairing_;  // outlives the operation
};

}  // namespace fastpe
