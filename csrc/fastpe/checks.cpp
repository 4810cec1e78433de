// SPDX-License-Identifier: BSD-3-Clause
#include "checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "rows.h"

namespace fastpe {
namespace {

// Looks once in so many rows, which take some milliseconds.
class Lookout {
 public:
  static constexpr std::int64_t rows_at_once = 1 << 20;

  explicit Lookout(Interruption* interruption) : interruption_(interruption) {}

  void pass(std::int64_t rows) {
    passed_ += rows;
    if (passed_ < rows_at_once) return;
    passed_ = 0;
    if (interruption_ != nullptr && interruption_->look()) throw Interrupted{};
  }

 private:
  Interruption* interruption_;
  std::int64_t passed_ = 0;
};

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

PositionBounds check_positions(const Job& job, Lookout& lookout) {
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
    for (std::int64_t begin = 0; begin < job.out.seq_len; begin += Lookout::rows_at_once) {
      const std::int64_t end = std::min(begin + Lookout::rows_at_once, job.out.seq_len);
      for_each_validity(
          job, batch, begin, end,
          [&](std::int64_t l, std::int64_t count) {
            for_each_run(job, batch, l, count, valid_before, on_run);
            valid_before += count;
          },
          [](std::int64_t, std::int64_t) {});
      lookout.pass(end - begin);
    }
  }
  return bounds;
}

void check_sequences(const Job& job, Lookout& lookout) {
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
    lookout.pass(1);
  }
}

void check_lengths(const Job& job, Lookout& lookout) {
  const NumbersView& lengths = job.validity.lengths;
  if (lengths.data == nullptr) return;
  const std::int64_t rows = job.out.batch_count / job.positions.batches_per_row;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = lengths.integer_at(row, 0);
    if (length < 0 || length > job.out.seq_len) {
      throw std::invalid_argument(place("lengths", job.out, 0, 0, row) + " is " + text_of(lengths.at(row, 0)) +
                                  ", expected 0 to the sequence length, " + std::to_string(job.out.seq_len));
    }
    lookout.pass(1);
  }
}

void check_ids(const Job& job, Lookout& lookout) {
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
      lookout.pass(1);
    }
  }
}

}  // namespace

PositionBounds check(const Job& job, Interruption* interruption) {
  Lookout lookout(interruption);
  check_sequences(job, lookout);
  check_lengths(job, lookout);
  check_ids(job, lookout);
  return check_positions(job, lookout);
}

}  // namespace fastpe
