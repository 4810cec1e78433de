// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

#include <algorithm>
#include <cstdint>

#include "check.h"
#include "fastpe/buffer.h"
#include "fastpe/cache_line.h"
#include "fastpe/dispatch.h"
#include "fastpe/parallel.h"
#include "plan.h"

namespace fastpe {
namespace {

// Items and rows that one thread does at a time.
struct Share {
  Items items;
  std::int64_t l_begin, l_end;
};

// One thread's walk over its shares: it finds the rows that are valid and their positions, and has the source's rows
// for them passed to the operation.
class Walk {
 public:
  Walk(const Call& call, const Plan& plan, Columns columns, char* scratch)
      : call_(call),
        plan_(plan),
        operation_(call.operation),
        columns_(columns),
        source_scratch_(plan.scratch.of_source(scratch)),
        tile_(plan.scratch.tile(scratch)),
        workspace_{plan.memory, plan.scratch.of_operation(scratch)} {
    if (plan.strategy != Strategy::read_rows) {
      call.source.start(source_scratch_, operation_.shape().tile_dtype, plan.in_any_order);
    }
  }

  void go(const Share& share) {
    if (plan_.shares_rows) {
      // Which rows are valid differs from item to item: see apply().
      each_run(0, share.items, share.l_begin, share.l_end - share.l_begin, 0);
      return;
    }
    if (plan_.reads_at_offsets) return read_at_offsets(share);
    const std::int64_t items_per_row = operation_.shape().items_per_row;
    std::int64_t row = share.items.begin / items_per_row;
    for (std::int64_t begin = share.items.begin; begin < share.items.end; ++row) {
      const Items items{begin, std::min(share.items.end, (row + 1) * items_per_row)};
      go_along_row(row, items, share.l_begin, share.l_end);
      begin = items.end;
    }
  }

 private:
  // Does what the general walk does, for rows that have an offset and nothing else. In decoding, the steps of the
  // general walk were a sixth of a call's time.
  void read_at_offsets(const Share& share) {
    constexpr std::int64_t most_items = 64;
    const TableView& ready = plan_.ready;
    const std::int64_t count = share.l_end - share.l_begin;
    const Tile tile{ready.data + columns_.first * element_bytes(ready.dtype),
                    ready.row_stride_bytes,
                    ready.dtype,
                    share.l_begin,
                    count,
                    columns_};
    for (std::int64_t begin = share.items.begin; begin < share.items.end;) {
      const std::int64_t end = std::min(share.items.end, begin + most_items);
      std::int64_t tile_offsets_bytes[most_items];
      std::int64_t found = 0;
      for (; begin + found < end; ++found) {
        const std::int64_t position = first_position(call_.positions, begin + found) + share.l_begin;
        // See rows_that_exist().
        if (position < 0 || position > ready.rows - count) break;
        tile_offsets_bytes[found] = position * ready.row_stride_bytes;
      }
      const Place next{begin, share.l_begin + plan_.tile.segment_rows};
      operation_.apply_to_each(tile, tile_offsets_bytes, {begin, begin + found}, next, workspace_);
      begin += found;
      if (begin < end) {
        leave({begin, begin + 1}, share.l_begin, count);
        ++begin;
      }
    }
  }

  void go_along_row(std::int64_t row, const Items& items, std::int64_t l_begin, std::int64_t l_end) {
    const Validity& validity = call_.validity;
    std::int64_t before = call_.positions.count_valid_only ? valid_before(validity, row, l_begin) : 0;
    for_each_validity(
        validity, row, l_begin, l_end,
        [&](std::int64_t l, std::int64_t count) {
          each_run(row, items, l, count, before);
          before += count;
        },
        [&](std::int64_t l, std::int64_t count) { leave(items, l, count); });
  }

  // Another thread may have changed positions, offsets or lengths since they were checked: results are then undefined,
  // but nothing outside the arrays is read.
  std::int64_t rows_that_exist(const Run& run) const {
    if (plan_.strategy != Strategy::read_rows) {
      bool exist = call_.source.range.has(run.position);
      for (int i = 1; i < call_.positions.coordinate_count; ++i) {
        exist = exist && call_.source.range.has(run.coordinates[i]);
      }
      if (!exist) return 0;
      const bool is_range = run.position.is_integer && !run.is_one_position;
      return is_range ? std::min(run.count, call_.source.range.highest - run.position.integer + 1) : run.count;
    }
    if (!run.position.is_integer || run.position.integer < 0) return 0;
    const std::int64_t existing = std::max<std::int64_t>(plan_.ready.rows - run.position.integer, 0);
    return run.is_one_position && existing > 0 ? run.count : std::min(existing, run.count);
  }

  void each_run(std::int64_t row, const Items& items, std::int64_t l, std::int64_t count, std::int64_t before) {
    for_each_run(call_.positions, row, l, count, before, [&](const Run& run) {
      const std::int64_t existing = rows_that_exist(run);
      if (existing == run.count) return do_run(items, run);
      if (existing > 0) do_run(items, {run.l, existing, run.position, run.is_one_position, run.coordinates});
      leave(items, run.l + existing, run.count - existing);
    });
  }

  void do_run(const Items& items, const Run& run) {
    switch (plan_.strategy) {
      case Strategy::read_rows:
        apply({plan_.ready.row(run.position.integer) + columns_.first * element_bytes(plan_.ready.dtype),
               run.is_one_position ? 0 : plan_.ready.row_stride_bytes, plan_.ready.dtype, run.l, run.count, columns_},
              items);
        return;
      case Strategy::expand_into_out:
        for (std::int64_t item = items.begin; item < items.end; ++item) {
          if (!run.is_one_position) {
            expand_into_sinks(item, run);
            continue;
          }
          for (std::int64_t i = 0; i < run.count; ++i) expand_into_sinks(item, {run.l + i, 1, run.position});
        }
        return;
      case Strategy::expand_into_tile: expand_by_tiles(items, run); return;
    }
  }

  void expand_into_sinks(std::int64_t item, const Run& run) {
    const int sinks = operation_.shape().sinks;
    if (sinks == 1) return expand_into_sink(0, item, run);
    // Rows that consist of pieces are made some at a time, so that a piece finds the lines of the one before it in the
    // cache.
    for_each_part(run, run.count, [&](const Run& part) {
      for (int number = 0; number < sinks; ++number) expand_into_sink(number, item, part);
    });
  }

  // Calls on_part over a run's rows, at most `most_rows` at a time, and at most those that the source makes together.
  template <class OnPart>
  void for_each_part(const Run& run, std::int64_t most_rows, const OnPart& on_part) const {
    const BlockShape& blocks = call_.source.blocks;
    for (std::int64_t done = 0; done < run.count;) {
      Run part{run.l + done, 1, run.position, false, run.coordinates};
      if (run.position.is_integer) {
        part.position = number_of(run.position.integer + done);
        const std::int64_t at_once =
            call_.source.rows_to_block_end(part.position.integer) + (blocks.at_once - 1) * blocks.rows;
        part.count = std::min({run.count - done, most_rows, at_once});
      }
      on_part(part);
      done += part.count;
    }
  }

  void expand_into_sink(int number, std::int64_t item, const Run& run) {
    Sink sink = operation_.sink(number, item, run.l, columns_);
    sink.memory = plan_.memory;
    sink.memory.streaming = plan_.memory.streaming && operation_.shape().sinks == 1;
    call_.source.expand(run, sink, source_scratch_);
  }

  void expand_by_tiles(const Items& items, const Run& run) {
    const DType dtype = operation_.shape().tile_dtype;
    Sink sink{};
    sink.dtype = dtype;
    sink.columns = columns_;
    sink.out = tile_;
    sink.out_row_stride_bytes = plan_.tile.row_stride_bytes;
    sink.jump_column = operation_.shape().jump_column;
    sink.jump_bytes = plan_.tile.jump_bytes;
    if (run.is_one_position) {
      call_.source.expand({run.l, 1, run.position}, sink, source_scratch_);
      apply({tile_, 0, dtype, run.l, run.count, columns_, sink.jump_bytes}, items);
      return;
    }
    for_each_part(run, plan_.tile.rows, [&](const Run& part) {
      call_.source.expand(part, sink, source_scratch_);
      apply({tile_, sink.out_row_stride_bytes, dtype, part.l, part.count, columns_, sink.jump_bytes}, items);
    });
  }

  void apply(const Tile& tile, const Items& items) {
    // Where rows have different positions, only valid rows come here.
    const bool are_all_valid = !plan_.shares_rows || call_.validity.are_all_valid();
    if (items.count() == 1 && are_all_valid) {
      operation_.apply(tile, items, {items.begin, tile.l + plan_.tile.segment_rows}, workspace_);
      return;
    }
    // Segments have one size: a short one would end before the next one is fetched.
    const std::int64_t segments = (tile.count + plan_.tile.segment_rows - 1) / plan_.tile.segment_rows;
    for (std::int64_t segment = 0; segment < segments; ++segment) {
      const std::int64_t first = tile.l + tile.count * segment / segments;
      const std::int64_t end = tile.l + tile.count * (segment + 1) / segments;
      if (are_all_valid) {
        operation_.apply(tile.part(first, end), items, {items.begin, end}, workspace_);
      } else {
        apply_where_valid(tile, items, first, end);
      }
    }
  }

  void apply_where_valid(const Tile& tile, const Items& items, std::int64_t first, std::int64_t end) {
    const std::int64_t items_per_row = operation_.shape().items_per_row;
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      const bool is_last = item + 1 == items.end;
      const std::int64_t next_item = is_last ? items.begin : item + 1;
      const std::int64_t rows_on = is_last ? end - first : 0;
      const Items one{item, item + 1};
      for_each_validity(
          call_.validity, item / items_per_row, first, end,
          [&](std::int64_t l, std::int64_t count) {
            operation_.apply(tile.part(l, l + count), one, {next_item, l + rows_on}, workspace_);
          },
          [&](std::int64_t l, std::int64_t count) { leave(one, l, count); });
    }
  }

  void leave(const Items& items, std::int64_t l, std::int64_t count) {
    for (std::int64_t item = items.begin; item < items.end; ++item) operation_.leave(item, l, count, columns_);
  }

  const Call& call_;
  const Plan& plan_;
  const Operation& operation_;
  const Columns columns_;
  char* const source_scratch_;
  char* const tile_;
  const Workspace workspace_;
};

// What small calls need lies on the stack: an aligned allocation would be a tenth of their time.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) {
    if (bytes > static_cast<std::int64_t>(sizeof small_)) large_ = AlignedBuffer<char>::uninitialized(bytes);
  }
  char* data() { return large_.data() != nullptr ? large_.data() : small_; }

 private:
  alignas(cache_line_bytes) char small_[32 * 1024];
  AlignedBuffer<char> large_;
};

// Calls on_share over the plan's shares [begin, end), counted part by part.
template <class OnShare>
void for_each_share(const Plan& plan, const OperationShape& shape, std::int64_t begin, std::int64_t end,
                    const OnShare& on_share) {
  const Shares& shares = plan.shares;
  const std::int64_t blocks = shares.blocks.count;
  while (begin < end) {
    const std::int64_t part = begin / blocks;
    // Parts of one block each are done together.
    const std::int64_t stop = blocks == 1 ? end : std::min(end, (part + 1) * blocks);
    const std::int64_t parts = blocks == 1 ? end - begin : 1;
    const std::int64_t first_item = part * shares.part_items;
    on_share(Share{{first_item, std::min(shape.items(), first_item + parts * shares.part_items)},
                   shares.blocks.row(begin - part * blocks, shape.seq_len),
                   blocks == 1 ? shape.seq_len : shares.blocks.row(stop - part * blocks, shape.seq_len)});
    begin = stop;
  }
}

}  // namespace

void run(const Call& call, Interruption* interruption) {
  const OperationShape& shape = call.operation.shape();
  const PositionBounds bounds = check(call, interruption);
  if (shape.items() == 0 || shape.seq_len == 0 || shape.columns == 0) return;
  const Plan plan = make_plan(call, bounds, interruption);
  Scratch scratch(plan.threads * plan.scratch.bytes());
  for (std::int64_t first = 0; first < shape.columns; first += plan.columns_at_once) {
    const Columns columns{first, std::min(plan.columns_at_once, shape.columns - first)};
    const bool completed =
        parallel_for(plan.shares.count(), plan.shares.step, plan.threads, interruption,
                     [&](std::int64_t begin, std::int64_t end, int thread) {
                       Walk walk(call, plan, columns, scratch.data() + thread * plan.scratch.bytes());
                       for_each_share(plan, shape, begin, end, [&walk](const Share& share) { walk.go(share); });
                       // A fence after each call of a kernel took up to a sixth of the time, for rows of 256 bytes.
                       if (plan.memory.streaming) active_kernels().streaming_fence();
                     });
    if (!completed) throw Interrupted{};
  }
}

}  // namespace fastpe
