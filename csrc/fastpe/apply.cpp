// SPDX-License-Identifier: BSD-3-Clause
#include "apply.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "dispatch.h"

namespace fastpe {
namespace {

constexpr std::int64_t tile_bytes_wanted = 256 * 1024;
constexpr std::int64_t step_bytes = 4 * 1024 * 1024;
constexpr std::int64_t strided_step_bytes = 128 * 1024;  // every element may be a cache miss
// Reading finished rows beats computing them for runs this short, and where everything stays in the cache.
constexpr std::int64_t rows_worth_reading = 8;

// ---- rows and positions

bool is_valid_row(const Validity& v, std::int64_t batch, std::int64_t l) {
  return v.mask == nullptr || v.mask[batch * v.mask_batch_stride_bytes + l * v.mask_seq_stride_bytes] != 0;
}

// Calls on_valid(l, count) and on_invalid(l, count) over the rows [begin, end) of one batch item.
template <class OnValid, class OnInvalid>
void for_each_validity(const Job& job, std::int64_t batch, std::int64_t begin, std::int64_t end,
                       const OnValid& on_valid, const OnInvalid& on_invalid) {
  const Validity& v = job.validity;
  const std::int64_t row = batch / job.positions.batches_per_row;
  if (v.lengths.data != nullptr) {
    const std::int64_t length = std::clamp(v.lengths.integer_at(row, 0), begin, end);
    if (length > begin) on_valid(begin, length - begin);
    if (end > length) on_invalid(length, end - length);
    return;
  }
  if (v.mask == nullptr) {
    if (end > begin) on_valid(begin, end - begin);
    return;
  }
  for (std::int64_t l = begin; l < end;) {
    const bool valid = is_valid_row(v, row, l);
    std::int64_t stop = l + 1;
    while (stop < end && is_valid_row(v, row, stop) == valid) ++stop;
    valid ? on_valid(l, stop - l) : on_invalid(l, stop - l);
    l = stop;
  }
}

std::int64_t first_position(const Positions& p, std::int64_t row) {
  if (p.offsets.data == nullptr) return p.first;
  // Far beyond max_position is far enough to be refused, and cannot overflow.
  return p.first + std::clamp(p.offsets.integer_at(row, 0), -2 * max_position, 2 * max_position);
}

std::int64_t valid_rows_before(const Job& job, std::int64_t batch, std::int64_t l) {
  std::int64_t count = 0;
  for_each_validity(
      job, batch, 0, l, [&count](std::int64_t, std::int64_t n) { count += n; }, [](std::int64_t, std::int64_t) {});
  return count;
}

std::int64_t sequence_of(const Positions& p, std::int64_t l) {
  std::int64_t low = 0, high = p.sequence_count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (p.sequence_starts.integer_at(0, middle) <= l ? low : high) = middle;
  }
  return low;
}

// `count` rows from l on, at consecutive integer positions; or one row at a fractional one.
struct Run {
  std::int64_t l;
  std::int64_t count;
  Number position;
};

Number integer_position(std::int64_t position) { return {true, position, static_cast<double>(position)}; }

// Calls on_run over the rows [l, l + count), all of them valid, the first being the valid_before-th valid one.
template <class OnRun>
void for_each_run(const Job& job, std::int64_t batch, std::int64_t l, std::int64_t count, std::int64_t valid_before,
                  const OnRun& on_run) {
  const Positions& p = job.positions;
  const std::int64_t row = batch / p.batches_per_row;
  if (p.values.data != nullptr) {
    const std::int64_t value_row = p.values_per_batch ? row : 0;
    const std::int64_t end = l + count;
    while (l < end) {
      const Number position = p.values.at(value_row, l);
      std::int64_t stop = l + 1;
      if (position.is_integer && position.integer <= max_position) {
        while (stop < end) {
          const Number next = p.values.at(value_row, stop);
          if (!next.is_integer || next.integer != position.integer + (stop - l)) break;
          ++stop;
        }
      }
      on_run(Run{l, stop - l, position});
      l = stop;
    }
  } else if (p.sequence_starts.data != nullptr) {
    const std::int64_t end = l + count;
    for (std::int64_t sequence = sequence_of(p, l); l < end; ++sequence) {
      const std::int64_t start = p.sequence_starts.integer_at(0, sequence);
      const std::int64_t stop = std::min(end, p.sequence_starts.integer_at(0, sequence + 1));
      if (stop <= l) continue;
      on_run(Run{l, stop - l, integer_position(first_position(p, sequence) + (l - start))});
      l = stop;
    }
  } else {
    on_run(Run{l, count, integer_position(first_position(p, row) + (p.count_valid_only ? valid_before : l))});
  }
}

// ---- checks

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string text_of(const Number& number) {
  const bool is_exact = number.is_integer && number.integer != INT64_MAX;
  return is_exact ? std::to_string(number.integer) : text_of(number.value);
}

// The element of an array that has the rows' shape, or only their first batch axis.
std::string place(const char* name, const RowsView& rows, int batch_axes, std::int64_t batch, std::int64_t l) {
  std::string index = std::to_string(l);
  for (int axis = batch_axes - 1; axis > 0; --axis) {
    index = std::to_string(batch % rows.batch_shape[axis]) + ", " + index;
    batch /= rows.batch_shape[axis];
  }
  if (batch_axes > 0) index = std::to_string(batch) + ", " + index;
  return std::string(name) + "[" + index + "]";
}

struct PositionBounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  bool all_integers = true;
};

bool has_encoding(const Job& job, const Number& number) {
  if (job.encoder == nullptr) return number.is_integer && number.integer >= 0 && number.integer < job.learned.rows;
  return number.is_integer ? number.integer <= max_position && number.integer >= -max_position
                           : std::fabs(number.value) <= static_cast<double>(max_position);
}

void check_position(const Job& job, const Number& number, const std::string& where) {
  if (has_encoding(job, number)) return;
  if (job.encoder != nullptr) {
    throw std::invalid_argument(where + " is " + text_of(number) +
                                ", expected a finite position of magnitude at most 2**53; beyond it not every integer "
                                "has a float64 of its own");
  }
  throw std::out_of_range(where + " is " + text_of(number) + ", expected an integer from 0 to " +
                          std::to_string(job.learned.rows - 1) + ": the position table has " +
                          std::to_string(job.learned.rows) + " rows; pass a longer table or smaller positions");
}

std::string describe_run(const Job& job, std::int64_t row, const Run& run, std::int64_t l) {
  const Positions& p = job.positions;
  if (p.values.data != nullptr) {
    const bool has_every_axis = job.x == nullptr && job.ids.data == nullptr;
    return place("positions", job.out, !p.values_per_batch ? 0 : has_every_axis ? job.out.batch_axes : 1, row, l);
  }
  const bool has_batch = p.offsets.data != nullptr;
  const std::int64_t index = p.sequence_starts.data != nullptr ? sequence_of(p, run.l) : row;
  return std::string("offset") + (has_batch ? "[" + std::to_string(index) + "]" : "") + ": the position of row " +
         std::to_string(l);
}

PositionBounds check_positions(const Job& job) {
  PositionBounds bounds;
  const Positions& p = job.positions;
  const bool varies = p.values_per_batch || p.offsets.data != nullptr || job.validity.mask != nullptr ||
                      job.validity.lengths.data != nullptr;
  const std::int64_t rows = varies ? job.out.batch_count / p.batches_per_row : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t batch = row * p.batches_per_row;
    std::int64_t valid_before = 0;
    const auto on_run = [&](const Run& run) {
      if (!run.position.is_integer) {
        check_position(job, run.position, describe_run(job, row, run, run.l));
        bounds.all_integers = false;
        return;
      }
      const std::int64_t first = run.position.integer;
      if (first < -max_position || first > max_position - (run.count - 1) || job.encoder == nullptr) {
        // Only where something is wrong, or may be: the first bad row is named.
        check_position(job, run.position, describe_run(job, row, run, run.l));
        const std::int64_t last = job.encoder != nullptr ? max_position : job.learned.rows - 1;
        const std::int64_t i = std::min(last - first + 1, run.count - 1);
        check_position(job, integer_position(first + i), describe_run(job, row, run, run.l + i));
      }
      bounds.lowest = std::min(bounds.lowest, first);
      bounds.highest = std::max(bounds.highest, first + run.count - 1);
    };
    for_each_validity(
        job, batch, 0, job.out.seq_len,
        [&](std::int64_t l, std::int64_t count) {
          for_each_run(job, batch, l, count, valid_before, on_run);
          valid_before += count;
        },
        [](std::int64_t, std::int64_t) {});
  }
  return bounds;
}

void check_sequences(const Job& job) {
  const Positions& p = job.positions;
  if (p.sequence_starts.data == nullptr) return;
  std::int64_t previous = 0;
  for (std::int64_t i = 0; i <= p.sequence_count; ++i) {
    const std::int64_t start = p.sequence_starts.integer_at(0, i);
    const bool is_wrong_end = (i == 0 && start != 0) || (i == p.sequence_count && start != job.out.seq_len);
    if (is_wrong_end || start < previous) {
      throw std::invalid_argument("cu_seqlens[" + std::to_string(i) + "] is " + std::to_string(start) +
                                  ", expected 0, then values that never fall, then the number of rows, " +
                                  std::to_string(job.out.seq_len));
    }
    previous = start;
  }
}

void check_lengths(const Job& job) {
  const NumbersView& lengths = job.validity.lengths;
  if (lengths.data == nullptr) return;
  const std::int64_t rows = job.out.batch_count / job.positions.batches_per_row;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = lengths.integer_at(row, 0);
    if (length < 0 || length > job.out.seq_len) {
      throw std::invalid_argument(place("lengths", job.out, 0, 0, row) + " is " + text_of(lengths.at(row, 0)) +
                                  ", expected 0 to the sequence length, " + std::to_string(job.out.seq_len));
    }
  }
}

void check_ids(const Job& job) {
  if (job.ids.data == nullptr) return;
  for (std::int64_t batch = 0; batch < job.out.batch_count; ++batch) {
    for (std::int64_t l = 0; l < job.out.seq_len; ++l) {
      const std::int64_t id = job.ids.integer_at(batch, l);
      if (id < 0 || id >= job.vocabulary.rows) {
        throw std::out_of_range(place("ids", job.out, job.out.batch_axes, batch, l) + " is " +
                                text_of(job.ids.at(batch, l)) + ", expected 0 to " +
                                std::to_string(job.vocabulary.rows - 1) + ": table has " +
                                std::to_string(job.vocabulary.rows) + " rows");
      }
    }
  }
}

// ---- work

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

struct Plan {
  bool all_cached = false;        // every position has a cached row
  bool shares_positions = false;  // one tile of rows serves all batch items
  bool streaming = false;
  bool fits_in_cache = false;
  std::int64_t tile_rows = 1;
  std::int64_t tile_row_bytes = 0;
  std::int64_t scratch_bytes_of_phasors = 0;
  std::int64_t scratch_bytes = 0;  // per thread
};

// One thread's share of a job.
class Worker {
 public:
  Worker(const Job& job, const Plan& plan, const CachedRows& cached, char* scratch)
      : job_(job), plan_(plan), cached_(cached), kernels_(active_kernels()), dtype_(job.out.dtype) {
    if (job.encoder != nullptr && scratch != nullptr) {
      std::memset(scratch, 0, static_cast<std::size_t>(plan.scratch_bytes_of_phasors));
      values_ = reinterpret_cast<double*>(scratch);
      slopes_ = values_ + 2 * job.encoder->table_stride();
      scratch += plan.scratch_bytes_of_phasors;
      tile_ = scratch;
      row_ = scratch + plan.tile_rows * plan.tile_row_bytes;
    } else {
      row_ = scratch;
    }
  }

  // Rows counted through all batch items.
  void process_rows(std::int64_t begin, std::int64_t end) {
    const std::int64_t seq_len = job_.out.seq_len;
    for (std::int64_t batch = begin / seq_len; begin < end; ++batch) {
      const std::int64_t l_begin = begin - batch * seq_len;
      const std::int64_t l_end = std::min(seq_len, end - batch * seq_len);
      std::int64_t valid_before = job_.positions.count_valid_only ? valid_rows_before(job_, batch, l_begin) : 0;
      for_each_validity(
          job_, batch, l_begin, l_end,
          [&](std::int64_t l, std::int64_t count) {
            for_each_run(job_, batch, l, count, valid_before, [&](const Run& run) { process_run(batch, run); });
            valid_before += count;
          },
          [&](std::int64_t l, std::int64_t count) { leave_rows(batch, l, count); });
      begin = batch * seq_len + l_end;
    }
  }

  // The same positions for all batch items: each tile of the encoding is made once.
  void process_shared(std::int64_t l_begin, std::int64_t l_end, std::int64_t batch_begin, std::int64_t batch_end) {
    for_each_run(job_, 0, l_begin, l_end - l_begin, 0, [&](Run run) {
      // Rows that no batch item wants have not been checked.
      if (!has_encoding(job_, run.position)) run.position = integer_position(0);
      for_each_tile(run, [&](std::int64_t l, std::int64_t count, const char* tile, std::int64_t tile_stride) {
        for (std::int64_t batch = batch_begin; batch < batch_end; ++batch) {
          for_each_validity(
              job_, batch, l, l + count,
              [&](std::int64_t at, std::int64_t n) {
                combine_rows(batch, at, n, tile + (at - l) * tile_stride, tile_stride);
              },
              [&](std::int64_t at, std::int64_t n) { leave_rows(batch, at, n); });
        }
      });
    });
  }

 private:
  void process_run(std::int64_t batch, const Run& run) {
    const bool is_encode = job_.x == nullptr && job_.ids.data == nullptr;
    if (is_encode) {
      encode_rows(batch, run);
    } else if (job_.ids.data == nullptr && job_.learned.data == nullptr && !reads_cached(run) &&
               has_contiguous_rows()) {
      write_run(run, dtype_, job_.out.row(batch, run.l), job_.out.seq_stride_bytes, job_.x->row(batch, run.l),
                job_.x->seq_stride_bytes, plan_.streaming);
    } else {
      for_each_tile(run, [&](std::int64_t l, std::int64_t count, const char* tile, std::int64_t tile_stride) {
        combine_rows(batch, l, count, tile, tile_stride);
      });
    }
  }

  bool reads_cached(const Run& run) const {
    return plan_.all_cached && (plan_.fits_in_cache || run.count < rows_worth_reading);
  }

  bool has_contiguous_rows() const {
    return job_.out.has_contiguous_rows() && (job_.x == nullptr || job_.x->has_contiguous_rows());
  }

  const char* cached_row(std::int64_t position) const {
    return cached_.data + position * cached_.row_stride_bytes +
           job_.first_column * element_bytes(dtype_ == DType::float64 ? DType::float64 : DType::float32);
  }

  void encode_rows(std::int64_t batch, const Run& run) {
    const std::int64_t bytes = element_bytes(dtype_);
    if (reads_cached(run)) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        copy_row(job_.out.row(batch, run.l + i), job_.out.column_stride_bytes, cached_row(run.position.integer + i),
                 bytes, job_.out.columns, bytes);
      }
    } else if (job_.out.has_contiguous_rows()) {
      write_run(run, dtype_, job_.out.row(batch, run.l), job_.out.seq_stride_bytes, nullptr, 0, plan_.streaming);
    } else {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const Run one{run.l + i, 1,
                      run.position.is_integer ? integer_position(run.position.integer + i) : run.position};
        write_run(one, dtype_, row_, 0, nullptr, 0, false);
        copy_row(job_.out.row(batch, run.l + i), job_.out.column_stride_bytes, row_, bytes, job_.out.columns, bytes);
      }
    }
  }

  // Calls on_tile(l, count, tile, row stride) with rows of the run's encoding (or of the learned table).
  template <class OnTile>
  void for_each_tile(const Run& run, const OnTile& on_tile) {
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
        const std::int64_t to_block_end = block_radius - block_position(part.position.integer).row + 1;
        part.count = std::min({run.count - done, plan_.tile_rows, to_block_end});
      }
      write_run(part, tile_dtype, tile_, plan_.tile_row_bytes, nullptr, 0, false);
      on_tile(part.l, part.count, tile_, plan_.tile_row_bytes);
      done += part.count;
    }
  }

  // The encoding of a run, alone or added to x, straight into memory.
  void write_run(const Run& run, DType dtype, char* out, std::int64_t out_stride, const char* x, std::int64_t x_stride,
                 bool streaming) {
    const Encoder& encoder = *job_.encoder;
    const bool compensated = dtype == DType::float64;
    if (!run.position.is_integer) {
      const double anchor = std::nearbyint(run.position.value / static_cast<double>(block_rows));
      const double residual = run.position.value - anchor * static_cast<double>(block_rows);
      anchors_[0] = no_anchor;
      // Near the smallest doubles an exact product's error underflows, and instruction sets would differ.
      const double distinct = std::fabs(residual) < 0x1p-500 ? 0.0 : residual;
      encoder.write_phasors(static_cast<std::int64_t>(anchor), distinct, compensated, values_, slopes_);
      rotate(0, 1, 0, 0, dtype, out, out_stride, x, x_stride, streaming);
      return;
    }
    std::int64_t position = run.position.integer;
    for (std::int64_t left = run.count; left > 0;) {
      const BlockPosition at = block_position(position);
      const bool two_blocks = at.row == -block_radius && left >= 2 * block_rows;
      const std::int64_t count = two_blocks ? 2 * block_rows : std::min(left, block_radius - at.row + 1);
      const std::int64_t slot = two_blocks ? hold_anchors(at.anchor, compensated) : hold_anchor(at.anchor, compensated);
      const std::int64_t last_row = two_blocks ? block_radius : at.row + count - 1;
      rotate(slot, two_blocks ? 2 : 1, at.row, last_row, dtype, out - at.row * out_stride, out_stride,
             x == nullptr ? nullptr : x - at.row * x_stride, x_stride, streaming);
      position += count;
      left -= count;
      out += count * out_stride;
      if (x != nullptr) x += count * x_stride;
    }
  }

  void rotate(std::int64_t slot, std::int64_t anchor_count, std::int64_t first_row, std::int64_t last_row, DType dtype,
              char* out, std::int64_t out_stride, const char* x, std::int64_t x_stride, bool streaming) {
    const std::int64_t stride = job_.encoder->table_stride();
    Rotation r = job_.encoder->rotation(values_ + slot * stride, slopes_ + slot * stride, dtype, job_.first_column);
    r.anchor_count = anchor_count;
    r.first_row = first_row;
    r.last_row = last_row;
    r.columns = job_.out.columns;
    r.out = out;
    r.out_row_stride_bytes = out_stride;
    r.x = x;
    r.x_row_stride_bytes = x_stride;
    r.scale = job_.scale;
    r.alpha = job_.alpha;
    r.streaming = streaming;
    kernels_.rotate[static_cast<int>(dtype)](r);
  }

  void make_anchor(std::int64_t slot, std::int64_t anchor, bool compensated) {
    const std::int64_t stride = job_.encoder->table_stride();
    job_.encoder->write_phasors(anchor, 0.0, compensated, values_ + slot * stride, slopes_ + slot * stride);
    anchors_[slot] = anchor;
  }

  std::int64_t hold_anchor(std::int64_t anchor, bool compensated) {
    for (const std::int64_t slot : {0, 1}) {
      if (anchors_[slot] == anchor) return slot;
    }
    make_anchor(0, anchor, compensated);
    return 0;
  }

  std::int64_t hold_anchors(std::int64_t anchor, bool compensated) {
    make_anchor(0, anchor, compensated);
    make_anchor(1, anchor + 1, compensated);
    return 0;
  }

  const char* vocabulary_row(std::int64_t batch, std::int64_t l) const {
    return job_.vocabulary.data + job_.ids.integer_at(batch, l) * job_.vocabulary.row_stride_bytes;
  }

  // x * scale + alpha * addend for rows of one batch item.
  void combine_rows(std::int64_t batch, std::int64_t l, std::int64_t count, const char* addend,
                    std::int64_t addend_stride) {
    const std::int64_t bytes = element_bytes(dtype_);
    Combination c{};
    c.addend_row_stride_bytes = addend_stride;
    c.columns = job_.out.columns;
    c.scale = job_.scale;
    c.alpha = job_.alpha;
    const auto combine = [&] {
      (job_.learned.data != nullptr ? kernels_.combine_same_dtype : kernels_.combine)[static_cast<int>(dtype_)](c);
    };
    if (job_.ids.data == nullptr && has_contiguous_rows()) {
      c.out = job_.out.row(batch, l);
      c.out_row_stride_bytes = job_.out.seq_stride_bytes;
      c.x = job_.x->row(batch, l);
      c.x_row_stride_bytes = job_.x->seq_stride_bytes;
      c.addend = addend;
      c.rows = count;
      c.streaming = plan_.streaming;
      combine();
      return;
    }
    c.rows = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      char* const out = job_.out.row(batch, l + i);
      c.addend = addend + i * addend_stride;
      if (job_.ids.data != nullptr) {
        c.x = vocabulary_row(batch, l + i);
      } else if (job_.x->has_contiguous_rows()) {
        c.x = job_.x->row(batch, l + i);
      } else {
        copy_row(row_, bytes, job_.x->row(batch, l + i), job_.x->column_stride_bytes, c.columns, bytes);
        c.x = row_;
      }
      c.out = job_.out.has_contiguous_rows() ? out : row_;
      c.streaming = plan_.streaming && c.out == out;
      combine();
      if (c.out != out) copy_row(out, job_.out.column_stride_bytes, row_, bytes, c.columns, bytes);
    }
  }

  // Rows that are not valid: as they are, copied where out is another array, or zero.
  void leave_rows(std::int64_t batch, std::int64_t l, std::int64_t count) {
    const std::int64_t bytes = element_bytes(dtype_);
    if (job_.x != nullptr && job_.x->data == job_.out.data) return;
    for (std::int64_t i = 0; i < count; ++i) {
      char* const out = job_.out.row(batch, l + i);
      if (job_.x != nullptr) {
        copy_row(out, job_.out.column_stride_bytes, job_.x->row(batch, l + i), job_.x->column_stride_bytes,
                 job_.out.columns, bytes);
      } else if (job_.ids.data != nullptr) {
        copy_row(out, job_.out.column_stride_bytes, vocabulary_row(batch, l + i), bytes, job_.out.columns, bytes);
      } else {
        for (std::int64_t column = 0; column < job_.out.columns; ++column) {
          std::memset(out + column * job_.out.column_stride_bytes, 0, static_cast<std::size_t>(bytes));
        }
      }
    }
  }

  static constexpr std::int64_t no_anchor = INT64_MIN;

  const Job& job_;
  const Plan& plan_;
  const CachedRows& cached_;
  const Kernels& kernels_;
  const DType dtype_;
  double* values_ = nullptr;  // of two anchors
  double* slopes_ = nullptr;
  std::int64_t anchors_[2] = {no_anchor, no_anchor};
  char* tile_ = nullptr;
  char* row_ = nullptr;
};

std::int64_t last_level_cache_bytes() {
#if defined(__linux__)
  for (const int index : {3, 2}) {
    const std::string path = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) continue;
    long long kibibytes = 0;
    const int fields = std::fscanf(file, "%lldK", &kibibytes);
    std::fclose(file);
    if (fields == 1 && kibibytes > 0) return kibibytes * 1024;
  }
#endif
  return std::int64_t{16} * 1024 * 1024;
}

Plan make_plan(const Job& job, const PositionBounds& bounds) {
  Plan plan;
  const RowsView& out = job.out;
  const bool is_encode = job.x == nullptr && job.ids.data == nullptr;
  const Positions& p = job.positions;
  plan.shares_positions =
      !is_encode && out.batch_count > 1 && !p.values_per_batch && p.offsets.data == nullptr && !p.count_valid_only;
  const bool in_place = job.x != nullptr && job.x->data == out.data;
  plan.streaming = !in_place && out.bytes() >= streaming_threshold_bytes();
  plan.fits_in_cache = out.bytes() < streaming_threshold_bytes() / 4;
  if (job.encoder != nullptr) {
    // Rows are kept in float32 and float64; a 16-bit encoding is rounded once, from the exact value.
    const bool has_rows_of_dtype = !is_encode || out.dtype == DType::float32 || out.dtype == DType::float64;
    plan.all_cached = job.use_cached_rows && has_rows_of_dtype && bounds.all_integers && bounds.lowest >= 0 &&
                      bounds.highest < job.encoder->max_len();
    plan.scratch_bytes_of_phasors = 4 * job.encoder->table_stride() * static_cast<std::int64_t>(sizeof(double));
  }
  const std::int64_t tile_element = out.dtype == DType::float64 ? 8 : 4;
  plan.tile_row_bytes = (out.columns * tile_element + 63) / 64 * 64;
  plan.tile_rows = std::clamp<std::int64_t>(tile_bytes_wanted / plan.tile_row_bytes, 1, block_rows);
  const bool fused = is_encode || (job.ids.data == nullptr && !plan.shares_positions && out.has_contiguous_rows() &&
                                   job.x->has_contiguous_rows());
  if (fused || job.encoder == nullptr || plan.all_cached) plan.tile_rows = 0;
  const bool strided = !out.has_contiguous_rows() || (job.x != nullptr && !job.x->has_contiguous_rows());
  const std::int64_t row_bytes = strided ? plan.tile_row_bytes : 0;
  const bool only_reads_rows = plan.all_cached && (!fused || plan.fits_in_cache || out.seq_len < rows_worth_reading);
  const bool only_reads = job.encoder == nullptr || only_reads_rows;
  if (only_reads) plan.scratch_bytes_of_phasors = 0;
  plan.scratch_bytes = plan.scratch_bytes_of_phasors + plan.tile_rows * plan.tile_row_bytes + row_bytes;
  return plan;
}

}  // namespace

std::int64_t streaming_threshold_bytes() {
  static const std::int64_t bytes = [] {
    const char* text = std::getenv("FASTPE_STREAMING_BYTES");
    if (text == nullptr || *text == '\0') return last_level_cache_bytes() / 2;
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    if (*end != '\0' || value < 0) {
      throw std::invalid_argument("FASTPE_STREAMING_BYTES is '" + std::string(text) +
                                  "', expected a number of bytes; correct it or unset it");
    }
    return static_cast<std::int64_t>(value);
  }();
  return bytes;
}

bool run(const Job& job, Interruption* interruption) {
  const RowsView& out = job.out;
  check_sequences(job);
  check_lengths(job);
  check_ids(job);
  const PositionBounds bounds = check_positions(job);
  if (out.batch_count == 0 || out.seq_len == 0 || out.columns == 0) return true;

  const Plan plan = make_plan(job, bounds);
  const CachedRows cached = plan.all_cached ? job.encoder->cached_rows(out.dtype) : CachedRows{};
  const std::int64_t bytes = out.bytes() * (job.x != nullptr || job.ids.data != nullptr ? 2 : 1);
  const int threads = threads_for(bytes, job.max_threads);
  if (job.encoder != nullptr) job.encoder->prepare(out.dtype);
  const auto scratch =
      plan.scratch_bytes > 0 ? AlignedBuffer<char>::uninitialized(threads * plan.scratch_bytes) : AlignedBuffer<char>();
  const auto scratch_of = [&](int thread) {
    return plan.scratch_bytes > 0 ? scratch.data() + thread * plan.scratch_bytes : nullptr;
  };

  const std::int64_t row_bytes = std::max<std::int64_t>(1, out.columns * element_bytes(out.dtype));
  const bool contiguous = out.has_contiguous_rows() && (job.x == nullptr || job.x->has_contiguous_rows());
  const std::int64_t step_rows = contiguous ? std::max<std::int64_t>(2 * block_rows, step_bytes / row_bytes)
                                            : std::max<std::int64_t>(1, strided_step_bytes / row_bytes);
  if (!plan.shares_positions) {
    return parallel_for(out.batch_count * out.seq_len, step_rows, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_rows(begin, end);
                        });
  }
  // Batches of which one block of rows is more than a step are done in parts; the encoding is made anew for each part.
  const std::int64_t step_batches = std::max<std::int64_t>(1, step_rows / block_rows);
  if (out.seq_len >= block_rows * threads && out.batch_count > 8 * step_batches) {
    const std::int64_t blocks = (out.seq_len + block_rows - 1) / block_rows;
    const std::int64_t parts = (out.batch_count + step_batches - 1) / step_batches;
    return parallel_for(blocks * parts, 1, threads, interruption, [&](std::int64_t item, std::int64_t, int thread) {
      const std::int64_t l = item % blocks * block_rows;
      const std::int64_t batch = item / blocks * step_batches;
      Worker(job, plan, cached, scratch_of(thread))
          .process_shared(l, std::min(l + block_rows, out.seq_len), batch,
                          std::min(batch + step_batches, out.batch_count));
    });
  }
  if (out.seq_len >= block_rows * threads) {
    const std::int64_t step = std::max<std::int64_t>(block_rows, step_rows / out.batch_count);
    return parallel_for(out.seq_len, step, threads, interruption,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          Worker(job, plan, cached, scratch_of(thread)).process_shared(begin, end, 0, out.batch_count);
                        });
  }
  const std::int64_t step = std::max<std::int64_t>(1, step_rows / out.seq_len);
  return parallel_for(out.batch_count, step, threads, interruption,
                      [&](std::int64_t begin, std::int64_t end, int thread) {
                        Worker(job, plan, cached, scratch_of(thread)).process_shared(0, out.seq_len, begin, end);
                      });
}

}  // namespace fastpe
