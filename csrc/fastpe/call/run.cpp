// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "call.h"
#include "fastpe/buffer.h"
#include "fastpe/cache_line.h"
#include "fastpe/dispatch.h"
#include "fastpe/parallel.h"
#include "plan.h"

namespace fastpe {
namespace {

// Does one work unit: it finds the rows that are valid and their positions, and has the source's rows for them passed
// to the operation, or made in the operation's targets.
class Executor {
 public:
  Executor(const Call& call, const Plan& plan, char* scratch)
      : call_(call),
        plan_(plan),
        operation_(call.operation),
        source_scratch_(scratch),
        tile_(scratch + plan.tile_offset_bytes),
        operation_scratch_(scratch + plan.operation_offset_bytes) {
    // The plan is one for this call.
    assert((plan.strategy == Strategy::read_rows) == (plan.rows_found.is_there()));
    assert(plan.strategy != Strategy::make_in_target || operation_.shape().targets > 0);
    assert(plan.strategy != Strategy::make_in_tile || plan.tile_rows > 0);
    assert(plan.part_rows * plan.slice_items >= operation_.shape().items() * operation_.shape().seq_len);
    if (plan.strategy != Strategy::read_rows) {
      call.source.start(source_scratch_, operation_.shape().tile_dtype, call.placement.may_revisit());
    }
  }

  // Does rows [begin, end), as the plan counts them.
  void execute(std::int64_t begin, std::int64_t end) {
    const OperationShape& shape = operation_.shape();
    while (begin < end) {
      const std::int64_t part = plan_.parts == 1 ? 0 : begin / plan_.part_rows;
      columns_.first = part * plan_.part_columns;
      columns_.count = std::min(plan_.part_columns, shape.columns - columns_.first);
      const std::int64_t first = begin - part * plan_.part_rows;
      const std::int64_t rows = std::min(end - begin, plan_.part_rows - first);
      const std::int64_t l = first % shape.seq_len, count = std::min(rows, shape.seq_len - l);
      // Whole slices are done together.
      const std::int64_t slices = l == 0 && rows > shape.seq_len ? rows / shape.seq_len : 1;
      const std::int64_t first_item = first / shape.seq_len * plan_.slice_items;
      execute_items({first_item, std::min(shape.items() - first_item, slices * plan_.slice_items)}, {l, count});
      begin += slices * count;
    }
  }

 private:
  void execute_items(const Range& all, const Range& rows) {
    const Placement& placement = call_.placement;
    const std::int64_t items_per_batch_row = operation_.shape().items_per_batch_row;
    for (Range items{all.first, 0}; items.end() < all.end();) {
      items.first = items.end();
      const std::int64_t batch_row = items.first / items_per_batch_row;
      const std::int64_t last = plan_.all_items_share_positions ? (all.end() - 1) / items_per_batch_row : batch_row;
      items.count = std::min(all.end(), (last + 1) * items_per_batch_row) - items.first;
      const std::int64_t valid_before =
          placement.count_valid_only ? placement.validity.count_before(batch_row, rows.first) : 0;
      Spans spans(placement, {batch_row, last + 1 - batch_row}, rows, valid_before);
      while (spans.next()) {
        const Span& span = spans.span();
        if (!spans.is_valid() || !exists(span)) {
          write_invalid(items, {span.l, span.count});
        } else if (plan_.strategy == Strategy::read_rows) {
          read_span(items, span);
        } else if (plan_.strategy == Strategy::make_in_tile) {
          make_in_tiles(items, span);
        } else {
          for (std::int64_t item = items.first; item < items.end(); ++item) make_in_targets(item, span);
        }
      }
      apply_waiting(items);
    }
  }

  // Every span does, unless another thread has changed positions, offsets or lengths since they were checked: results
  // are then undefined, but nothing outside the arrays is read.
  bool exists(const Span& span) const {
    if (plan_.strategy != Strategy::read_rows) return call_.source.has(span);
    return span.position.is_integer() && 0 <= span.lowest() && span.highest() < plan_.rows_found.rows.count;
  }

  // A long span may be done before those that wait: rows do not depend on each other.
  void read_span(const Range& items, const Span& span) {
    const std::int64_t row_stride_bytes = plan_.rows_found.block.row_stride_bytes;
    const int step = span.is_one_position() ? 0 : span.step == Span::Step::descending ? -1 : 1;
    const std::int64_t offset_bytes = span.position.integer * row_stride_bytes;
    if (span.count >= short_span_rows) {
      return apply(tile_found(offset_bytes, step * row_stride_bytes, {span.l, span.count}), items);
    }
    const std::int64_t first = add_waiting(items, span.l, span.count, most_waiting_offsets);
    for (std::int64_t i = 0; i < span.count; ++i) {
      waiting_offsets_bytes_[first + i] = offset_bytes + step * i * row_stride_bytes;
    }
  }

  Tile tile_found(std::int64_t offset_bytes, std::int64_t row_stride_bytes, const Range& rows,
                  const std::int64_t* row_offsets_bytes = nullptr) const {
    const Tile& kept = plan_.rows_found;
    const std::int64_t bytes = kept.block.column_stride_bytes;
    const char* const data = kept.block.data + offset_bytes + columns_.first * bytes;
    return {{data, row_stride_bytes, bytes, row_offsets_bytes}, kept.dtype, rows, columns_};
  }
  Tile tile_made(std::int64_t row_stride_bytes, const Range& rows) const {
    const DType dtype = operation_.shape().tile_dtype;
    return {{tile_, row_stride_bytes, element_bytes(dtype)}, dtype, rows, columns_};
  }
  Target target_in_tile(std::int64_t row) const {
    const std::int64_t stride_bytes = plan_.tile_row_stride_bytes;
    return {{tile_ + row * stride_bytes, stride_bytes}, operation_.shape().tile_dtype, columns_};
  }

  // The rows [l, l + count) are put behind those that wait for an operation, of which there are at most `most`: the
  // first one's place among them.
  std::int64_t add_waiting(const Range& items, std::int64_t l, std::int64_t count, std::int64_t most) {
    if (l != waiting_l_ + waiting_count_ || waiting_count_ + count > most) apply_waiting(items);
    if (waiting_count_ == 0) waiting_l_ = l;
    waiting_count_ += count;
    return waiting_count_ - count;
  }

  void apply_waiting(const Range& items) {
    const std::int64_t count = std::exchange(waiting_count_, 0);
    if (count == 0) return;
    const Range rows{waiting_l_, count};
    apply(plan_.strategy == Strategy::read_rows ? tile_found(0, 0, rows, waiting_offsets_bytes_)
                                                : tile_made(plan_.tile_row_stride_bytes, rows),
          items);
  }

  void write_rows(const Span& span, const Target& target) {
    if (span.step != Span::Step::descending) return call_.source.write_rows(span, target, source_scratch_);
    call_.source.write_rows({span.l, span.count, number_of(span.lowest())}, target.reversed(span.count),
                            source_scratch_);
  }

  void make_in_targets(std::int64_t item, const Span& span) {
    const std::int64_t at_once = span.is_one_position() ? 1 : span.count;
    for (std::int64_t done = 0; done < span.count; done += at_once) {
      const Span rows{span.l + done, at_once, span.position, span.step, span.coordinates, span.coordinate_count};
      for (int number = 0; number < operation_.shape().targets; ++number) {
        Target target = operation_.target(number, item, rows.l);
        target.access = plan_.access;
        write_rows(rows, target);
      }
    }
  }

  void make_in_tiles(const Range& items, const Span& span) {
    const bool is_one_position = span.is_one_position(), is_descending = span.step == Span::Step::descending;
    if (is_one_position && span.count > 1) {
      apply_waiting(items);
      write_rows({span.l, 1, span.position, Span::Step::ascending}, target_in_tile(0));
      return apply(tile_made(0, {span.l, span.count}), items);
    }
    const std::int64_t lowest = is_one_position ? 0 : span.lowest();
    for (std::int64_t done = 0; done < span.count;) {
      const std::int64_t at_once = call_.source.rows_together(lowest + done);
      const std::int64_t count = std::min({span.count - done, plan_.tile_rows, at_once});
      const std::int64_t i = is_descending ? span.count - done - count : done;
      const Number first = is_one_position ? span.position : number_of(lowest + done + (is_descending ? count - 1 : 0));
      const Target target = target_in_tile(add_waiting(items, span.l + i, count, plan_.tile_rows));
      write_rows({span.l + i, count, first, span.step, span.coordinates, span.coordinate_count}, target);
      done += count;
    }
  }

  void apply(const Tile& tile, const Range& items) {
    const bool is_valid_for_all = !plan_.all_items_share_positions || !call_.placement.validity.differs_in_batch();
    if (items.count == 1 && is_valid_for_all && !plan_.access.prefetch) {
      return operation_.apply(tile, items, plan_.access, operation_scratch_);
    }
    // Segments have one size: a short one would end before the next one is prefetched.
    const std::int64_t count = tile.rows.count, segment_rows = plan_.segment_rows;
    const std::int64_t segments = (count + segment_rows - 1) / segment_rows;
    for (std::int64_t segment = 0; segment < segments; ++segment) {
      const std::int64_t begin = count * segment / segments, end = count * (segment + 1) / segments;
      const Tile part = tile.part({tile.rows.first + begin, end - begin});
      is_valid_for_all ? operation_.apply(part, items, plan_.access, operation_scratch_)
                       : apply_where_valid(part, items);
    }
  }

  void apply_where_valid(const Tile& tile, const Range& items) {
    const std::int64_t items_per_batch_row = operation_.shape().items_per_batch_row;
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      const Range one{item, 1}, batch_row{item / items_per_batch_row, 1};
      for (Range run{tile.rows.first, 0}; run.end() < tile.rows.end();) {
        bool are_valid = true;
        run = call_.placement.validity.run_from(run.end(), tile.rows.end(), batch_row, are_valid);
        are_valid ? operation_.apply(tile.part(run), one, plan_.access, operation_scratch_) : write_invalid(one, run);
      }
    }
  }

  void write_invalid(const Range& items, const Range& rows) { operation_.write_invalid(items, rows, columns_); }

  const Call& call_;
  const Plan& plan_;
  const Operation& operation_;
  char* const source_scratch_;
  char* const tile_;
  char* const operation_scratch_;
  Range columns_;

  // Rows of short spans, and made rows, wait until the operation can take many at once: offsets of rows that the source
  // has, or the tile's first rows.
  static constexpr std::int64_t most_waiting_offsets = 256;
  std::int64_t waiting_l_ = 0, waiting_count_ = 0;
  std::int64_t waiting_offsets_bytes_[most_waiting_offsets];
};

}  // namespace

void run(const Call& call, Interruption* interruption) {
  const OperationShape& shape = call.operation.shape();
  const PositionBounds bounds = check_values(call, interruption);
  if (shape.items() == 0 || shape.seq_len == 0 || shape.columns == 0) return;
  const Plan plan = make_plan(call, bounds);
  if (plan.strategy != Strategy::read_rows) {
    call.source.prepare(shape.tile_dtype, bounds, plan.wants_rows, interruption);
  }
  alignas(cache_line_bytes) char few_bytes[32 * 1024];  // small calls allocate nothing
  AlignedBuffer<char> more_bytes;
  const std::int64_t scratch_bytes = plan.threads * plan.scratch_bytes;
  const bool is_scratch_small = scratch_bytes <= static_cast<std::int64_t>(sizeof few_bytes);
  if (!is_scratch_small) more_bytes = AlignedBuffer<char>::uninitialized(scratch_bytes);
  char* const scratch = is_scratch_small ? few_bytes : more_bytes.data();
  const bool completed = parallel_for(plan.parts * plan.part_rows, plan.unit_rows, plan.threads, interruption,
                                      [&](std::int64_t begin, std::int64_t end, int thread) {
                                        Executor(call, plan, scratch + thread * plan.scratch_bytes).execute(begin, end);
                                        if (plan.access.non_temporal) active_kernels().store_fence();
                                      });
  if (!completed) throw Interrupted{};
  if (plan.wants_rows && plan.strategy != Strategy::read_rows) {
    call.source.keep(shape.tile_dtype, bounds, shape.bytes_written, call.max_threads, interruption);
  }
}

}  // namespace fastpe
