// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <algorithm>

#include "fastpe/cache_line.h"
#include "fastpe/dispatch.h"
#include "fastpe/machine.h"
#include "fastpe/operations/walk.h"
#include "fastpe/parallel.h"

namespace fastpe {
namespace {

// Between two work units, a call finds out whether it was interrupted.
constexpr std::int64_t unit_bytes = 4 * 1024 * 1024;
constexpr std::int64_t strided_unit_bytes = 128 * 1024;  // every element may be a cache miss, or a new page

constexpr std::int64_t most_tile_bytes = 192 * 1024;
// The part of a tile that stays in L1 while it is combined with items that come from memory.
constexpr std::int64_t segment_bytes_from_memory = 12 * 1024;

void plan_segments(const OperationShape& shape, const Source& source, Plan& plan) {
  const std::int64_t tile_row_bytes = whole_cache_lines(shape.columns_at_once() * element_bytes(shape.tile_dtype));
  const std::int64_t segment_bytes = plan.access.prefetch ? segment_bytes_from_memory : l1_cache_bytes() / 8 * 3;
  const bool is_transposed = shape.order == Order::columns;
  plan.segment_rows = is_transposed ? transposed_rows : std::max<std::int64_t>(1, segment_bytes / tile_row_bytes);
  if (plan.strategy == Strategy::make_in_tile) {
    plan.tile_row_stride_bytes = tile_row_bytes;
    const std::int64_t most_rows = is_transposed ? transposed_rows : source.blocks_at_once * source.block_rows;
    plan.tile_rows = std::clamp<std::int64_t>(most_tile_bytes / tile_row_bytes, 1, most_rows);
  }
}

void plan_work(const OperationShape& shape, std::int64_t block_rows, Plan& plan) {
  const std::int64_t row_bytes = shape.row_bytes_at_once();
  const std::int64_t unit_rows = shape.order != Order::apart
                                     ? std::max<std::int64_t>(2 * block_rows, unit_bytes / row_bytes)
                                     : std::max<std::int64_t>(1, strided_unit_bytes / row_bytes);
  // Of short sequences that share their positions, each is a slice.
  if (!plan.all_items_share_positions) {
    plan.slice_items = shape.items_per_batch_row;
  } else if (shape.seq_len >= block_rows * plan.threads) {
    // Items of which one block of rows is far more than a unit are done in slices, each of which makes its own tiles.
    const std::int64_t unit_items = std::max<std::int64_t>(1, unit_rows / block_rows);
    plan.slice_items = shape.items() > 8 * unit_items ? unit_items : shape.items();
  }
  plan.part_columns = shape.columns_at_once();
  plan.parts = (shape.columns + plan.part_columns - 1) / plan.part_columns;
  plan.part_rows = (shape.items() + plan.slice_items - 1) / plan.slice_items * shape.seq_len;
  plan.unit_rows = std::max<std::int64_t>(1, unit_rows / plan.slice_items);
  if (shape.order == Order::columns) {  // as many rows as are transposed at once, or a thread's part of them
    const std::int64_t of_one_thread = (plan.parts * plan.part_rows + plan.threads - 1) / plan.threads;
    plan.unit_rows = std::max(plan.unit_rows, std::min(transposed_rows, of_one_thread));
  }
}

}  // namespace

Plan make_plan(const Call& call, const PositionBounds& bounds) {
  const OperationShape& shape = call.operation.shape();
  Plan plan;
  plan.all_items_share_positions = shape.reads_items && shape.items() > 1 && call.placement.are_shared();
  plan.threads = threads_for(shape.bytes_written * (shape.reads_items ? 2 : 1), call.max_threads);
  plan.access.non_temporal = shape.may_be_non_temporal && shape.order == Order::rows &&
                             shape.bytes_written > streaming_threshold_bytes() &&
                             active_kernels().has_non_temporal_stores[index_of(shape.dtype)];
  plan.access.prefetch = shape.bytes_written > streaming_threshold_bytes() / 2;

  const bool has_one_item_per_tile = !plan.all_items_share_positions && shape.items_per_batch_row == 1;
  const bool has_short_spans = bounds.rows < short_span_rows * bounds.spans;
  // Rows that are near, as the output is, are read rather than made.
  const bool fits_in_l2 = 2 * shape.bytes_written <= plan.threads * l2_cache_bytes();
  const bool is_near = fits_in_l2 || (is_last_level_cache_near() && shape.bytes_written <= streaming_threshold_bytes());
  const bool has_targets = shape.targets > 0 && (!shape.reads_items || call.source.can_add());
  plan.strategy = has_targets && has_one_item_per_tile ? Strategy::make_in_target : Strategy::make_in_tile;
  // A source of single rows is always asked: a LearnedTable has rows, and cannot make any; of several coordinates, the
  // rows of each are kept.
  const bool has_single_row_blocks = call.source.block_rows == 1;
  plan.wants_rows = has_single_row_blocks || plan.strategy == Strategy::make_in_tile || has_short_spans || is_near;
  if (plan.wants_rows) plan.rows_found = call.source.kept_rows(shape.tile_dtype, bounds);
  if (plan.rows_found.is_there()) plan.strategy = Strategy::read_rows;

  if (plan.strategy == Strategy::make_in_tile || shape.items() > 1 || plan.access.prefetch) {
    plan_segments(shape, call.source, plan);
  }
  if (plan.strategy != Strategy::read_rows) {
    plan.tile_offset_bytes =
        whole_cache_lines(call.source.scratch_bytes(shape.tile_dtype, call.placement.may_revisit()));
  }
  plan.operation_offset_bytes = plan.tile_offset_bytes + plan.tile_rows * plan.tile_row_stride_bytes;
  plan.scratch_bytes = plan.operation_offset_bytes + whole_cache_lines(shape.scratch_bytes);
  plan_work(shape, call.source.block_rows, plan);
  return plan;
}

}  // namespace fastpe
