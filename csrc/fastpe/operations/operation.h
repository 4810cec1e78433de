// SPDX-License-Identifier: BSD-3-Clause
// An operation does something with the rows of an encoding: it writes them, adds them to rows, or rotates by them.
//
// It acts on items. An item is one sequence of rows; the items of one batch row (which has an offset, a mask .. of its
// own) share its positions, and so their rows of the encoding.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>

#include "fastpe/cache_line.h"
#include "fastpe/interruption.h"
#include "fastpe/tile.h"

namespace fastpe {

struct OperationShape {
  std::int64_t batch_rows = 1;
  std::int64_t items_per_batch_row = 1;
  std::int64_t seq_len = 0;
  std::int64_t columns = 0;               // of the encoding; an item may have more, or fewer in forms of tables
  std::int64_t most_columns = INT64_MAX;  // that are done at once, over all rows
  DType dtype = DType::float32;           // of what is written
  DType tile_dtype = DType::float32;      // of rows that are made; those that are found may have `dtype`
  std::int64_t bytes_written = 0;
  bool reads_items = false;  // as many rows as it writes; items then share the tiles of their positions
  bool may_be_non_temporal = false;
  Order order = Order::rows;       // that all arrays have, or else apart
  int targets = 0;                 // that an item's rows are made in, each for some columns; 0: only in a tile
  std::int64_t scratch_bytes = 0;  // of one thread

  std::int64_t items() const { return batch_rows * items_per_batch_row; }
  std::int64_t columns_at_once() const { return std::min(columns, most_columns); }
  std::int64_t row_bytes_at_once() const { return columns_at_once() * element_bytes(dtype); }
  // Rows whose elements lie apart are put together in the scratch memory, as many at once.
  std::int64_t rows_in_scratch() const {
    constexpr std::int64_t most_bytes = 128 * 1024;
    const std::int64_t most_rows = cache_line_bytes / element_bytes(dtype);
    return std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(1, row_bytes_at_once()), 1, most_rows);
  }
  std::int64_t rows_in_scratch_bytes() const { return rows_in_scratch() * row_bytes_at_once(); }
};

// Columns that lie far apart are done some at a time, over all rows: the cache lines of one part serve its next rows
// too. Of few rows a part has more columns, or it would be little work.
inline std::int64_t most_columns_of(const RowsLayout& rows) {
  constexpr std::int64_t near_bytes = 8 * 1024 * 1024, fewest_columns = 2048, fewest_elements = 128 * 1024;
  if (rows.order() == Order::rows) return INT64_MAX;
  const std::int64_t stride_bytes = rows.column_stride_bytes;
  const std::int64_t near = stride_bytes == 0 ? INT64_MAX : std::abs(near_bytes / stride_bytes);
  return std::max({near, fewest_columns, fewest_elements / std::max<std::int64_t>(rows.seq_len, 1)});
}

// So many rows of a tile are transposed at once, where columns lie together: they stay in L1 while all items are done
// with them.
constexpr std::int64_t transposed_rows = 256;

// The shape of an operation that only writes `out`. shape_of_walking() in walk.h is that of one that also reads.
inline OperationShape shape_of_writing(const Rows& out, std::int64_t batch_rows) {
  OperationShape shape;
  shape.batch_rows = batch_rows;
  assert(batch_rows == 0 || out.item_count % batch_rows == 0);
  shape.items_per_batch_row = batch_rows > 0 ? out.item_count / batch_rows : 0;
  shape.seq_len = out.seq_len;
  shape.columns = out.columns;
  shape.most_columns = most_columns_of(out);
  shape.dtype = out.dtype;
  shape.tile_dtype = row_dtype(out.dtype);
  shape.bytes_written = out.bytes();
  shape.order = out.order();
  return shape;
}

class Operation {
 public:
  const OperationShape& shape() const { return shape_; }

  // Checks values that are not positions, before the first write. Throws an Error, or Interrupted.
  virtual void check(Interruption* /*interruption*/) const {}

  // Does the operation with the tile's rows for each of the items. `scratch` has shape().scratch_bytes.
  virtual void apply(const Tile& tile, const Range& items, const Access& access, char* scratch) const = 0;

  // One of the targets of an item's rows from l on.
  virtual Target target(int /*number*/, std::int64_t /*item*/, std::int64_t /*l*/) const {
    assert(shape_.targets == 0);
    return {};
  }

  // Gives these columns of rows that are not valid their values.
  virtual void write_invalid(const Range& items, const Range& rows, const Range& columns) const = 0;

  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 protected:
  explicit Operation(const OperationShape& shape) : shape_(shape) {}
  ~Operation() = default;

  OperationShape shape_;
};

}  // namespace fastpe
