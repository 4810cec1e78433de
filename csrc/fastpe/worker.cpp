// SPDX-License-Identifier: BSD-3-Clause
#include "worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cache.h"
#include "dispatch.h"

namespace fastpe {
namespace {

constexpr std::int64_t cache_line_bytes = 64;
constexpr std::int64_t tile_bytes_wanted = 192 * 1024;
// Of a tile, what stays in the first-level cache beside x: read from the second level, it would halve the speed of
// everything that passes through.
std::int64_t resident_bytes() { return first_level_cache_bytes() / 8 * 3; }
// Where x comes from memory, of long rows some more.
constexpr std::int64_t resident_bytes_wanted = 12 * 1024;
constexpr std::int64_t most_resident_bytes = 16 * 1024;
constexpr std::int64_t rows_wanted = 4;
// Reading finished rows beats computing them for runs this short, and where everything stays in the cache.
constexpr std::int64_t rows_worth_reading = 8;

// To the end of the last block that a rotation can take.
std::int64_t rows_at_once(const BlockPosition& first) {
  return block_radius - first.row + 1 + (blocks_at_once - 1) * block_rows;
}

void copy_row(char* to, std::int64_t to_stride, const char* from, std::int64_t from_stride, std::int64_t columns,
              std::int64_t bytes) {
  if (to_stride == bytes && from_stride == bytes) {
    std::memmove(to, from, static_cast<std::size_t>(columns * bytes));
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

Plan make_plan(const Job& job, const PositionBounds& bounds) {
  Plan plan;
  const RowsView& out = job.out;
  const bool is_encode = job.x == nullptr && job.ids.data == nullptr;
  const Positions& p = job.positions;
  plan.shares_positions =
      !is_encode && out.batch_count > 1 && !p.values_per_batch && p.offsets.data == nullptr && !p.count_valid_only;
  const bool in_place = job.x != nullptr && job.x->data == out.data;
  plan.streaming = can_stream(out.dtype) && !in_place && out.bytes() > streaming_threshold_bytes();
  plan.fetches_ahead = out.bytes() > streaming_threshold_bytes() / 2;
  plan.fits_in_cache = out.bytes() < streaming_threshold_bytes() / 8;
  if (job.encoder != nullptr) {
    // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
    const bool has_rows_of_dtype = !is_encode || out.dtype == DType::float32 || out.dtype == DType::float64;
    plan.all_cached = job.use_cached_rows && has_rows_of_dtype && bounds.all_integers && bounds.lowest >= 0 &&
                      bounds.highest < job.encoder->max_len();
    // Positions in any order come back to the groups of a sequence; those in a row don't.
    const bool any_order = out.dtype != DType::float64 && (p.values.data != nullptr || p.offsets.data != nullptr);
    plan.phasor_slots = any_order ? max_phasor_slots : blocks_at_once;
    plan.scratch_bytes_of_phasors =
        2 * plan.phasor_slots * job.encoder->table_stride() * static_cast<std::int64_t>(sizeof(double));
  }
  const std::int64_t tile_element = out.dtype == DType::float64 ? 8 : 4;
  plan.tile_row_bytes = (out.columns * tile_element + 63) / 64 * 64;
  // As far from a cache line's boundary as the rows it is added to: then no load of the sum straddles two lines. That
  // pays in the cache (up to a tenth), and costs where x comes from memory, or has smaller elements.
  const bool follows_out = !plan.fetches_ahead && tile_element == element_bytes(out.dtype);
  plan.tile_lead_bytes =
      follows_out ? static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out.data) % cache_line_bytes) : 0;
  const std::int64_t segment_bytes = plan.fetches_ahead ? resident_bytes_wanted : resident_bytes();
  plan.segment_rows = std::max(std::int64_t{1}, segment_bytes / plan.tile_row_bytes);
  if (plan.fetches_ahead) {
    const std::int64_t most_rows = std::min(rows_wanted, most_resident_bytes / plan.tile_row_bytes);
    plan.segment_rows = std::max(plan.segment_rows, most_rows);
    const std::int64_t x_row_bytes = out.columns * element_bytes(out.dtype);
    const std::int64_t bytes_in_use = plan.segment_rows * (plan.tile_row_bytes + 2 * x_row_bytes);
    plan.fetches_close = bytes_in_use <= first_level_cache_bytes();
  }
  // Where x comes from memory, a tile of two blocks gains nothing and takes room.
  const std::int64_t most_tile_rows = plan.fetches_ahead ? block_rows : blocks_at_once * block_rows;
  plan.tile_rows = std::clamp<std::int64_t>(tile_bytes_wanted / plan.tile_row_bytes, 1, most_tile_rows);
  const bool fused = is_encode || (job.ids.data == nullptr && !plan.shares_positions && out.has_contiguous_rows() &&
                                   job.x->has_contiguous_rows());
  if (fused || job.encoder == nullptr || plan.all_cached) plan.tile_rows = 0;
  const bool strided = !out.has_contiguous_rows() || (job.x != nullptr && !job.x->has_contiguous_rows());
  const std::int64_t row_bytes = strided ? plan.tile_row_bytes : 0;
  const bool only_reads_rows = plan.all_cached && (!fused || plan.fits_in_cache || out.seq_len < rows_worth_reading);
  const bool only_reads = job.encoder == nullptr || only_reads_rows;
  if (only_reads) plan.scratch_bytes_of_phasors = 0;
  plan.tile_bytes = plan.tile_rows == 0 ? 0 : cache_line_bytes + plan.tile_rows * plan.tile_row_bytes;
  plan.scratch_bytes = plan.scratch_bytes_of_phasors + plan.tile_bytes + row_bytes;
  return plan;
}

Worker::Worker(const Job& job, const Plan& plan, const CachedRows& cached, char* scratch)
    : job_(job), plan_(plan), cached_(cached), kernels_(active_kernels()), dtype_(job.out.dtype) {
  std::fill(std::begin(held_), std::end(held_), no_anchor);
  if (job.encoder != nullptr && scratch != nullptr) {
    values_ = reinterpret_cast<double*>(scratch);
    slopes_ = values_ + plan.phasor_slots * job.encoder->table_stride();
    scratch += plan.scratch_bytes_of_phasors;
    tile_ = scratch + plan.tile_lead_bytes;
    row_ = scratch + plan.tile_bytes;
  } else {
    row_ = scratch;
  }
}

void Worker::process_rows(std::int64_t begin, std::int64_t end) {
  const std::int64_t seq_len = job_.out.seq_len;
  for (std::int64_t batch = begin / seq_len; begin < end; ++batch) {
    const std::int64_t l_begin = begin - batch * seq_len;
    const std::int64_t l_end = std::min(seq_len, end - batch * seq_len);
    std::int64_t valid_before = job_.positions.count_valid_only ? valid_rows_before(job_, batch, l_begin) : 0;
    for_each_validity(
        job_, batch, l_begin, l_end,
        [&](std::int64_t l, std::int64_t count) {
          for_each_run(job_, batch, l, count, valid_before, [&](const Run& run) {
            const std::int64_t known = rows_with_encoding(run);
            if (known > 0) process_run(batch, {run.l, known, run.position});
            if (known < run.count) leave_rows(batch, run.l + known, run.count - known);
          });
          valid_before += count;
        },
        [&](std::int64_t l, std::int64_t count) { leave_rows(batch, l, count); });
    begin = batch * seq_len + l_end;
  }
}

void Worker::process_shared(std::int64_t l_begin, std::int64_t l_end, std::int64_t batch_begin,
                            std::int64_t batch_end) {
  for_each_run(job_, 0, l_begin, l_end - l_begin, 0, [&](const Run& run) {
    const std::int64_t known = rows_with_encoding(run);
    if (known < run.count) {  // no batch item wants the others
      for (std::int64_t batch = batch_begin; batch < batch_end; ++batch) {
        leave_rows(batch, run.l + known, run.count - known);
      }
    }
    if (known == 0) return;
    const Run known_run{run.l, known, run.position};
    for_each_tile(known_run, [&](std::int64_t l, std::int64_t count, const char* tile, std::int64_t tile_stride) {
      // Of one size: short ones are over before the next is fetched.
      const std::int64_t segments = (count + plan_.segment_rows - 1) / plan_.segment_rows;
      for (std::int64_t segment = 0; segment < segments; ++segment) {
        const std::int64_t first = l + count * segment / segments;
        const std::int64_t end = l + count * (segment + 1) / segments;
        for (std::int64_t batch = batch_begin; batch < batch_end; ++batch) {
          const bool wraps = batch + 1 == batch_end;
          const std::int64_t next_batch = wraps ? batch_begin : batch + 1;
          const std::int64_t rows_on = wraps ? end - first : 0;
          for_each_validity(
              job_, batch, first, end,
              [&](std::int64_t at, std::int64_t n) {
                combine_rows(batch, at, n, tile + (at - l) * tile_stride, tile_stride, next_batch, at + rows_on);
              },
              [&](std::int64_t at, std::int64_t n) { leave_rows(batch, at, n); });
        }
      }
    });
  });
}

void Worker::process_run(std::int64_t batch, const Run& run) {
  const bool is_encode = job_.x == nullptr && job_.ids.data == nullptr;
  if (is_encode) {
    encode_rows(batch, run);
  } else if (job_.ids.data == nullptr && job_.learned.data == nullptr && !reads_cached(run) && has_contiguous_rows()) {
    write_run(run, {dtype_, job_.out.row(batch, run.l), job_.out.seq_stride_bytes, job_.x->row(batch, run.l),
                    job_.x->seq_stride_bytes, plan_.streaming, plan_.fetches_ahead});
  } else {
    for_each_tile(run, [&](std::int64_t l, std::int64_t count, const char* tile, std::int64_t tile_stride) {
      combine_rows(batch, l, count, tile, tile_stride, batch, l + plan_.segment_rows);
    });
  }
}

std::int64_t Worker::rows_with_encoding(const Run& run) const {
  if (!has_encoding(job_, run.position)) return 0;
  if (job_.learned.data == nullptr && !plan_.all_cached) return run.count;
  if (!run.position.is_integer || run.position.integer < 0) return 0;
  const std::int64_t rows = job_.learned.data != nullptr ? job_.learned.rows : job_.encoder->max_len();
  return std::clamp<std::int64_t>(rows - run.position.integer, 0, run.count);
}

bool Worker::reads_cached(const Run& run) const {
  return plan_.all_cached && (plan_.fits_in_cache || run.count < rows_worth_reading);
}

bool Worker::has_contiguous_rows() const {
  return job_.out.has_contiguous_rows() && (job_.x == nullptr || job_.x->has_contiguous_rows());
}

const char* Worker::cached_row(std::int64_t position) const {
  return cached_.data + position * cached_.row_stride_bytes +
         job_.first_column * element_bytes(dtype_ == DType::float64 ? DType::float64 : DType::float32);
}

void Worker::encode_rows(std::int64_t batch, const Run& run) {
  const std::int64_t bytes = element_bytes(dtype_);
  if (reads_cached(run)) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      copy_row(job_.out.row(batch, run.l + i), job_.out.column_stride_bytes, cached_row(run.position.integer + i),
               bytes, job_.out.columns, bytes);
    }
  } else if (job_.out.has_contiguous_rows()) {
    write_run(run, {dtype_, job_.out.row(batch, run.l), job_.out.seq_stride_bytes, nullptr, 0, plan_.streaming,
                    plan_.fetches_ahead});
  } else {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Run one{run.l + i, 1, run.position.is_integer ? integer_position(run.position.integer + i) : run.position};
      write_run(one, {dtype_, row_, 0, nullptr, 0, false, false});
      copy_row(job_.out.row(batch, run.l + i), job_.out.column_stride_bytes, row_, bytes, job_.out.columns, bytes);
    }
  }
}

template <class OnTile>
void Worker::for_each_tile(const Run& run, const OnTile& on_tile) {
  if (job_.learned.data != nullptr) {
    const char* first = job_.learned.data + run.position.integer * job_.learned.row_stride_bytes;
    on_tile(run.l, run.count, first, job_.learned.row_stride_bytes);
    return;
  }
  if (plan_.all_cached) {
    on_tile(run.l, run.count, cached_row(run.position.integer), cached_.row_stride_bytes);
    return;
  }
  const DType tile_dtype = dtype_ == DType::float64 ? DType::float64 : DType::float32;
  for (std::int64_t done = 0; done < run.count;) {
    Run part{run.l + done, 1, run.position};
    if (run.position.is_integer) {
      part.position = integer_position(run.position.integer + done);
      part.count = std::min({run.count - done, plan_.tile_rows, rows_at_once(block_position(part.position.integer))});
    }
    write_run(part, {tile_dtype, tile_, plan_.tile_row_bytes, nullptr, 0, false, false});
    on_tile(part.l, part.count, tile_, plan_.tile_row_bytes);
    done += part.count;
  }
}

Worker::Target Worker::Target::from_row(std::int64_t row) const {
  Target moved = *this;
  moved.out += row * out_row_stride_bytes;
  if (x != nullptr) moved.x += row * x_row_stride_bytes;
  return moved;
}

void Worker::write_run(const Run& run, const Target& target) {
  const Encoder& encoder = *job_.encoder;
  Rotation rotation = encoder.rotation(target.dtype, job_.first_column);
  if (!run.position.is_integer) {
    const double anchor = std::nearbyint(run.position.value / static_cast<double>(block_rows));
    const double residual = run.position.value - anchor * static_cast<double>(block_rows);
    // Near the smallest doubles an exact product's error underflows, and instruction sets would differ.
    const double distinct = std::fabs(residual) < 0x1p-500 ? 0.0 : residual;
    held_[0] = no_anchor;
    encoder.write_phasors(static_cast<std::int64_t>(anchor), distinct, is_compensated(), values_, slopes_);
    rotation.anchors[0] = {values_ + job_.first_column, slopes_ + job_.first_column, {}};
    rotate(rotation, 0, 0, target);
    return;
  }
  for (std::int64_t done = 0; done < run.count;) {
    const BlockPosition at = block_position(run.position.integer + done);
    const std::int64_t count = std::min(run.count - done, rows_at_once(at));
    const std::int64_t last_row = at.row + count - 1;
    rotation.anchors[0] = anchor_at(at.anchor);
    if (last_row > block_radius) rotation.anchors[1] = anchor_at(at.anchor + 1);
    rotate(rotation, at.row, last_row, target.from_row(done - at.row));
    done += count;
  }
}

void Worker::rotate(Rotation& rotation, std::int64_t first_row, std::int64_t last_row, const Target& target) {
  rotation.first_row = first_row;
  rotation.last_row = last_row;
  rotation.columns = job_.out.columns;
  rotation.out = target.out;
  rotation.out_row_stride_bytes = target.out_row_stride_bytes;
  rotation.x = target.x;
  rotation.x_row_stride_bytes = target.x_row_stride_bytes;
  rotation.scale = job_.scale;
  rotation.alpha = job_.alpha;
  rotation.fetches_ahead = target.fetches_ahead;
  rotation.streaming = target.streaming;
  kernels_.rotate[static_cast<int>(target.dtype)](rotation);
}

Anchor Worker::held(std::int64_t anchor, std::int64_t number) {
  const auto slot =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(number) % static_cast<std::uint64_t>(plan_.phasor_slots));
  const std::int64_t at = slot * job_.encoder->table_stride();
  if (held_[slot] != anchor) {
    job_.encoder->write_phasors(anchor, 0.0, is_compensated(), values_ + at, slopes_ + at);
    held_[slot] = anchor;
  }
  return {values_ + at + job_.first_column, slopes_ + at + job_.first_column, {}};
}

// In float64 directly: turning costs accuracy.
Anchor Worker::anchor_at(std::int64_t anchor) {
  if (is_compensated()) return held(anchor, anchor);
  const GroupPosition at = group_position(anchor);
  Anchor result = held(at.centre * group_anchors, at.centre);
  result.turn = job_.encoder->anchor_turn(at.distance, job_.first_column);
  return result;
}

const char* Worker::x_row(std::int64_t batch, std::int64_t l) const {
  if (l >= job_.out.seq_len) return nullptr;
  if (job_.ids.data == nullptr) return job_.x->row(batch, l);
  const std::int64_t id = std::clamp<std::int64_t>(job_.ids.integer_at(batch, l), 0, job_.vocabulary.rows - 1);
  return job_.vocabulary.data + id * job_.vocabulary.row_stride_bytes;
}

void Worker::combine_rows(std::int64_t batch, std::int64_t l, std::int64_t count, const char* addend,
                          std::int64_t addend_stride, std::int64_t next_batch, std::int64_t next_l) {
  // Gathered rows come from memory however small the output is.
  const bool fetches_ahead = plan_.fetches_ahead || job_.ids.data != nullptr;
  const auto combine = [&](char* out, const char* x, const char* next_x, std::int64_t done, std::int64_t rows) {
    const Combination c{out,
                        x,
                        fetches_ahead ? next_x : nullptr,
                        addend + done * addend_stride,
                        job_.out.seq_stride_bytes,
                        job_.x == nullptr ? 0 : job_.x->seq_stride_bytes,
                        addend_stride,
                        rows,
                        job_.out.columns,
                        job_.scale,
                        job_.alpha,
                        plan_.streaming && out != row_,
                        plan_.fetches_close};
    (job_.learned.data != nullptr ? kernels_.combine_same_dtype : kernels_.combine)[static_cast<int>(dtype_)](c);
  };
  if (job_.ids.data == nullptr && has_contiguous_rows()) {
    combine(job_.out.row(batch, l), x_row(batch, l), x_row(next_batch, next_l), 0, count);
    return;
  }
  const std::int64_t bytes = element_bytes(dtype_);
  const bool x_is_contiguous = job_.ids.data != nullptr || job_.x->has_contiguous_rows();
  for (std::int64_t i = 0; i < count; ++i) {
    char* const out = job_.out.row(batch, l + i);
    char* const whole_row = job_.out.has_contiguous_rows() ? out : row_;
    const char* const x = x_row(batch, l + i);
    if (x_is_contiguous) {
      combine(whole_row, x, x_row(next_batch, next_l + i), i, 1);
    } else {
      copy_row(row_, bytes, x, job_.x->column_stride_bytes, job_.out.columns, bytes);
      combine(whole_row, row_, nullptr, i, 1);
    }
    if (whole_row != out) copy_row(out, job_.out.column_stride_bytes, row_, bytes, job_.out.columns, bytes);
  }
}

void Worker::leave_rows(std::int64_t batch, std::int64_t l, std::int64_t count) {
  const std::int64_t bytes = element_bytes(dtype_);
  if (job_.x != nullptr && job_.x->data == job_.out.data) return;
  for (std::int64_t i = 0; i < count; ++i) {
    char* const out = job_.out.row(batch, l + i);
    if (job_.x != nullptr) {
      copy_row(out, job_.out.column_stride_bytes, job_.x->row(batch, l + i), job_.x->column_stride_bytes,
               job_.out.columns, bytes);
    } else if (job_.ids.data != nullptr) {
      copy_row(out, job_.out.column_stride_bytes, x_row(batch, l + i), bytes, job_.out.columns, bytes);
    } else {
      for (std::int64_t column = 0; column < job_.out.columns; ++column) {
        std::memset(out + column * job_.out.column_stride_bytes, 0, static_cast<std::size_t>(bytes));
      }
    }
  }
}

}  // namespace fastpe
