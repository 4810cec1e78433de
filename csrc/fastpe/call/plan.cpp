// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <algorithm>

#include "fastpe/cache_line.h"
#include "fastpe/hardware.h"
#include "fastpe/parallel.h"

namespace fastpe {
namespace {

// A call looks between two steps of this size whether it was interrupted.
constexpr std::int64_t step_bytes = 4 * 1024 * 1024;
constexpr std::int64_t strided_step_bytes = 128 * 1024;  // every element may be a cache miss, or a new page

constexpr std::int64_t tile_bytes_wanted = 192 * 1024;
// The part of a tile that stays in the cache if x comes from memory and two segments of it have room beside the tile.
constexpr std::int64_t resident_bytes_from_memory = 12 * 1024;
// The same if x only passes through the first level. Short segments of x jump too often to where nothing was fetched by
// the processor itself: 16-bit sums take 0.8 to 1 of the time that they take with 24 KiB, and rotations of heads 0.93
// to 1 (Zen 4). On Zen 3, rotations took 0.93 to 0.97 with 24 KiB instead of 12, and sums the same with 16 to 64.
std::int64_t resident_bytes_alone() {
  constexpr std::int64_t most = 64 * 1024;
  return std::max(first_level_cache_bytes() / 4 * 3, std::min(most, second_level_cache_bytes() / 16));
}

// Rows for runs this short are read faster than they are expanded into the output.
constexpr std::int64_t rows_worth_expanding = 8;

constexpr std::int64_t least_blocks_per_thread = 4;

bool is_wide_sum(const OperationShape& shape) {
  return shape.is_sum && shape.is_in_place && shape.dtype == row_dtype(shape.dtype);
}

bool fits_in_cache(const OperationShape& shape) { return shape.bytes_written <= processor_traits().cached_array_bytes; }

// Whether the array is too large for the last level, too. One between the threshold and twice that may be there in
// part.
bool is_in_memory(const OperationShape& shape) { return shape.bytes_written / 2 > streaming_threshold_bytes(); }

bool is_streamed(const OperationShape& shape, const Plan& plan) {
  if (!can_stream(shape.dtype) || shape.is_in_place || shape.bytes_written <= streaming_threshold_bytes()) return false;
  if (shape.is_rotation) return processor_traits().streams_rotations && is_in_memory(shape);
  if (shape.sinks == 0 || shape.reads_items) return true;
  const ProcessorTraits& traits = processor_traits();
  return shape.bytes_written > (plan.threads > 1 ? traits.largest_plain_bytes_of_team : traits.largest_plain_bytes);
}

bool has_long_runs(const PositionBounds& bounds) { return bounds.rows >= rows_worth_expanding * bounds.runs; }

// Whether one item's ready rows are read faster than expanded at their place: if all stays in the cache. Rows that are
// only copied must stay close on most processors: on an Intel server, AVX-512 expands them in half the time that the
// last level takes. Sums of float32 that are streamed from memory take 0.7 to 1.05 of the time with AVX-512 and 0.45 to
// 1 with AVX2, which does not stream them as it expands them (Zen 4).
bool is_reading_faster(const OperationShape& shape, const PositionBounds& bounds, const Plan& plan) {
  if (!has_long_runs(bounds)) return true;
  const ProcessorTraits& traits = processor_traits();
  if (!shape.reads_items && !traits.reads_rows_from_last_level) {
    return 2 * shape.bytes_written <= plan.threads * second_level_cache_bytes();
  }
  return shape.bytes_written <= traits.largest_read_bytes ||
         (traits.fetches_sequences_itself && shape.is_sum && plan.memory.streaming);
}

// Whether the processor itself fetches x from memory in time: it does on Zen 3, for one thread that sums batches of
// float32 or float64 in place. Without fetching ahead they take 0.87 to 1.03 of the time; with two threads 0.83
// to 1.15, sums of 16 bits 1.09 to 1.2, rotations 1.2 to 1.4. To fetch the start of each page alone takes 1.4 to 2.4.
bool own_prefetching_suffices(const OperationShape& shape, const Plan& plan) {
  return processor_traits().fetches_batches_itself && is_wide_sum(shape) && plan.shares_rows && plan.threads == 1;
}

// Whether stores of a sum begin where rows do. On Zen 4, they take 0.7 to 0.95 of the time of stores that begin on a
// vector's boundary if x comes from memory, and 1.1 to 1.2 if it comes from the last level; 16-bit sums gain nothing.
bool is_sum_unaligned(const OperationShape& shape) {
  return processor_traits().has_unaligned_sums && is_wide_sum(shape) && is_in_memory(shape);
}

Memory memory_of(const OperationShape& shape, const Plan& plan) {
  Memory memory;
  memory.streaming = is_streamed(shape, plan);
  // From memory, a rotation is up to 5 times slower without fetching ahead, a sum 2 times. Fetching from a last-level
  // cache that does hold the array costs a sum half of its speed (Zen 5, AVX2; nothing with AVX-512), or a quarter, and
  // a rotation, too (Zen 3).
  memory.fetches_ahead = !fits_in_cache(shape) && !own_prefetching_suffices(shape, plan);
  memory.unaligned_sums = is_sum_unaligned(shape);
  return memory;
}

// Sets `memory.fetches_close` too, since it depends on the size of a segment.
TileShape tile_of(const OperationShape& shape, std::int64_t columns, const BlockShape& blocks, Memory& memory) {
  TileShape tile;
  tile.row_stride_bytes = whole_cache_lines(columns * element_bytes(shape.tile_dtype));
  if (!memory.fetches_ahead) {
    tile.segment_rows = std::max<std::int64_t>(1, processor_traits().resident_tile_bytes / tile.row_stride_bytes);
    // A tile starts as far from a line's boundary as the rows it is added to: no load of the sum then straddles two
    // lines. That pays in the cache (up to a tenth), and costs where x comes from memory, or has smaller elements.
    if (shape.tile_dtype == shape.dtype) {
      tile.lead_bytes = static_cast<std::int64_t>(shape.out_address % static_cast<std::uintptr_t>(cache_line_bytes));
    }
  } else {
    tile.segment_rows = std::max<std::int64_t>(1, resident_bytes_from_memory / tile.row_stride_bytes);
    const std::int64_t x_row_bytes = columns * element_bytes(shape.dtype);
    const std::int64_t bytes_in_use = tile.segment_rows * (tile.row_stride_bytes + 2 * x_row_bytes);
    const bool is_near = shape.inner_items > 1 || processor_traits().fetches_items_close;
    memory.fetches_close = is_near && bytes_in_use <= first_level_cache_bytes();
    // As long as the last level may hold x, a sum takes 0.84 to 0.92 of the time with short segments (12 MiB, Zen 4).
    if (!memory.fetches_close && (is_in_memory(shape) || !shape.is_sum)) {
      tile.segment_rows = std::max(tile.segment_rows, resident_bytes_alone() / tile.row_stride_bytes);
    }
  }
  // If x comes from memory, a tile of two blocks gains nothing and takes room.
  const bool has_room = !memory.fetches_ahead || !shape.reads_items;
  const std::int64_t most_tile_rows = has_room ? blocks.at_once * blocks.rows : blocks.rows;
  tile.rows = std::clamp<std::int64_t>(tile_bytes_wanted / tile.row_stride_bytes, 1, most_tile_rows);
  if (shape.jump_column > 0) {
    const std::int64_t bytes = element_bytes(shape.tile_dtype);
    tile.parts = 2;
    tile.row_stride_bytes = std::max(shape.jump_column, columns - shape.jump_column) * bytes;
    tile.jump_bytes = tile.rows * tile.row_stride_bytes - shape.jump_column * bytes;
  }
  return tile;
}

Blocks blocks_of(const Call& call, int threads) {
  const std::int64_t seq_len = call.operation.shape().seq_len;
  const Positions& p = call.positions;
  Blocks blocks;
  blocks.rows = call.source.blocks.rows;
  const bool is_range = !p.values.is_given() && !p.sequence_starts.is_given();
  const std::int64_t to_end = is_range ? call.source.rows_to_block_end(first_position(p, 0)) : blocks.rows;
  blocks.rows_of_first = std::min(seq_len, to_end);
  const auto count = [&] { return 1 + (seq_len - blocks.rows_of_first + blocks.rows - 1) / blocks.rows; };
  if (threads > 1 && count() < least_blocks_per_thread * threads) blocks.rows = blocks.rows_of_first = 1;
  blocks.count = count();
  return blocks;
}

Shares shares_of(const Call& call, const Plan& plan) {
  const OperationShape& shape = call.operation.shape();
  const std::int64_t row_bytes = std::max<std::int64_t>(1, plan.columns_at_once * element_bytes(shape.dtype));
  const std::int64_t step_rows = shape.has_contiguous_rows
                                     ? std::max<std::int64_t>(2 * call.source.blocks.rows, step_bytes / row_bytes)
                                     : std::max<std::int64_t>(1, strided_step_bytes / row_bytes);
  Shares shares;
  std::int64_t unit_rows = 1;
  if (plan.threads == 1 && shape.items() == 1 && shape.seq_len <= step_rows) {
    shares.blocks.rows = shares.blocks.rows_of_first = shape.seq_len;
    return shares;
  }
  if (!plan.shares_rows) {
    shares.part_items = shape.items_per_row;
    shares.parts = shape.rows;
    if (shape.items() == 1 && shape.has_contiguous_rows) {
      shares.blocks = blocks_of(call, plan.threads);
    } else {
      shares.blocks.count = shape.seq_len;
    }
    unit_rows = shares.part_items * shares.blocks.rows;
  } else if (shape.seq_len < call.source.blocks.rows * plan.threads) {
    shares.parts = shape.items();
    shares.blocks.rows = shares.blocks.rows_of_first = unit_rows = shape.seq_len;
  } else {
    // Items of which one block of rows is far more than a step are done in parts; each part makes its own tiles.
    const std::int64_t step_items = std::max<std::int64_t>(1, step_rows / call.source.blocks.rows);
    const bool in_parts = shape.items() > 8 * step_items;
    shares.part_items = in_parts ? step_items : shape.items();
    shares.parts = (shape.items() + shares.part_items - 1) / shares.part_items;
    shares.blocks = blocks_of(call, in_parts ? 1 : plan.threads);
    unit_rows = shares.part_items * shares.blocks.rows;
  }
  shares.step = std::max<std::int64_t>(1, step_rows / std::max<std::int64_t>(1, unit_rows));
  return shares;
}

}  // namespace

std::int64_t TileShape::bytes() const { return rows == 0 ? 0 : cache_line_bytes + parts * rows * row_stride_bytes; }

ScratchLayout::ScratchLayout(std::int64_t source_bytes, const TileShape& tile, std::int64_t operation_bytes)
    : tile_(whole_cache_lines(source_bytes)),
      operation_(tile_ + whole_cache_lines(tile.bytes())),
      bytes_(operation_ + whole_cache_lines(operation_bytes)) {
  tile_ += tile.lead_bytes;
}

std::int64_t Blocks::row(std::int64_t block, std::int64_t seq_len) const {
  return block == 0 ? 0 : std::min(seq_len, rows_of_first + (block - 1) * rows);
}

Plan make_plan(const Call& call, const PositionBounds& bounds, Interruption* interruption) {
  const OperationShape& shape = call.operation.shape();
  const Source& source = call.source;
  Plan plan;
  plan.shares_rows = shape.reads_items && shape.items() > 1 && call.positions.are_shared();
  plan.in_any_order = call.positions.are_in_any_order();
  // Sums of [8, 8192, 1024] take 1.02 to 1.14 of the time with 256 or 512 columns at once, though the second level has
  // room for the fine tables of so many (Zen 4).
  plan.columns_at_once = shape.columns_at_once;
  plan.threads = threads_for(shape.bytes_written * (shape.reads_items ? 2 : 1), call.max_threads);
  plan.memory = memory_of(shape, plan);

  const bool is_one_item_a_tile = !plan.shares_rows && shape.items_per_row == 1;
  plan.strategy = shape.sinks > 0 && is_one_item_a_tile ? Strategy::expand_into_out : Strategy::expand_into_tile;
  if (source.has_ready_rows(shape.tile_dtype, bounds)) {
    if (!source.expands() || plan.strategy == Strategy::expand_into_tile || is_reading_faster(shape, bounds, plan)) {
      plan.ready = source.ready_rows(shape.tile_dtype, bounds, call.max_threads, interruption);
    }
  }
  if (plan.ready.data != nullptr) {
    plan.strategy = Strategy::read_rows;
    // From memory, one sequence takes 0.6 to 0.85 of the time without fetching ahead (Zen 4).
    const bool is_sequence = is_one_item_a_tile && has_long_runs(bounds);
    if (is_sequence && processor_traits().fetches_sequences_itself) plan.memory.fetches_ahead = false;
    const Positions& p = call.positions;
    plan.reads_at_offsets =
        is_one_item_a_tile && p.offsets.is_given() && !p.sequence_starts.is_given() && call.validity.are_all_valid();
    const bool fits_second_level = shape.bytes_written <= plan.threads * second_level_cache_bytes();
    plan.memory.sums_in_halves =
        processor_traits().adds_ready_rows_in_halves && (plan.reads_at_offsets || (is_sequence && !fits_second_level));
  }

  std::int64_t source_bytes = 0;
  if (plan.strategy != Strategy::read_rows) {
    source.prepare(shape.tile_dtype, bounds, call.max_threads, interruption);
    source_bytes = source.scratch_bytes(shape.tile_dtype, plan.in_any_order);
  }
  const bool has_segments = shape.items() > 1 || plan.memory.fetches_ahead;
  if (has_segments || plan.strategy == Strategy::expand_into_tile) {
    plan.tile = tile_of(shape, plan.columns_at_once, source.blocks, plan.memory);
    if (plan.strategy != Strategy::expand_into_tile) plan.tile.rows = plan.tile.lead_bytes = 0;
  }
  plan.scratch = ScratchLayout(source_bytes, plan.tile, shape.scratch_bytes);
  plan.shares = shares_of(call, plan);
  return plan;
}

}  // namespace fastpe
