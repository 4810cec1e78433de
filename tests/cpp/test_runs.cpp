// SPDX-License-Identifier: BSD-3-Clause
// Whole calls through checks, plan and run, with a source and an operation of this file: every row of every item is
// done once, with the row of its own position, whatever the shape, threads, blocks and access. Rows are numbers that
// tell the position and the column, and operations add them to zeros.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "fastpe/call/call.h"
#include "fastpe/call/plan.h"
#include "fastpe/error.h"

namespace {

using namespace fastpe;

constexpr std::int64_t real_columns = 2;
constexpr float of_invalid = 1e6F;

float number_at(double position, std::int64_t column) {
  return static_cast<float>(100.0 + position + static_cast<double>(column) / 64.0);
}

class NumberedRows final : public Source {
 public:
  NumberedRows(bool has_blocks, std::int64_t kept)
      : NumberedRows(-max_position, max_position, true, has_blocks, kept) {}
  NumberedRows(std::int64_t lowest_, std::int64_t highest_, bool has_fractions_, bool has_blocks, std::int64_t kept)
      : Source(lowest_, highest_, has_fractions_, has_blocks ? 3 : 1, has_blocks ? 2 : 1, has_blocks ? -1 : 0),
        kept_(kept) {
    for (std::int64_t position = 0; position < kept; ++position) {
      for (std::int64_t c = 0; c < real_columns; ++c) rows_.push_back(number_at(static_cast<double>(position), c));
    }
  }

  Tile kept_rows(DType dtype, const PositionBounds& bounds) const override {
    const bool are_kept = bounds.are_all_integers && 0 <= bounds.lowest && bounds.highest < kept_ && kept_ > 0;
    if (!are_kept) return {};
    return {{reinterpret_cast<const char*>(rows_.data()), real_columns * 4, 4}, dtype, {0, kept_}, {0, real_columns}};
  }
  bool can_add() const override { return true; }
  void write_rows(const Span& span, const Target& target, char*) const override {
    CHECK(span.step != Span::Step::descending && (span.count == 1 || !span.is_one_position()));
    for (std::int64_t i = 0; i < span.count; ++i) {
      for (std::int64_t c = 0; c < target.columns.count; ++c) {
        float* const out = reinterpret_cast<float*>(target.out + i * target.out_row_stride_bytes) + c;
        const float number = number_at(span.position.value + static_cast<double>(i), target.columns.first + c);
        *out = target.x == nullptr ? number : *out + number;
      }
    }
  }

 private:
  std::int64_t kept_;
  std::vector<float> rows_;
};

class AddToZeros final : public Operation {
 public:
  explicit AddToZeros(const OperationShape& shape)
      : Operation(shape), sums(static_cast<std::size_t>(shape.items() * shape.seq_len * real_columns)) {}

  float* row(std::int64_t item, std::int64_t l) const {
    return sums.data() + (item * shape_.seq_len + l) * real_columns;
  }
  void apply(const Tile& tile, const Range& items, const Access&, char*) const override {
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      for (std::int64_t l = tile.rows.first; l < tile.rows.end(); ++l) {
        for (std::int64_t c = 0; c < tile.columns.count; ++c) {
          float number;
          std::memcpy(&number, tile.row(l) + c * 4, 4);
          row(item, l)[tile.columns.first + c] += number;
        }
      }
    }
  }
  Target target(int, std::int64_t item, std::int64_t l) const override {
    char* const at = reinterpret_cast<char*>(row(item, l));
    return {{at, real_columns * 4, at, real_columns * 4}, DType::float32, {0, real_columns}};
  }
  void write_invalid(const Range& items, const Range& rows, const Range& columns) const override {
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      for (std::int64_t i = rows.first; i < rows.end(); ++i) {
        for (std::int64_t c = 0; c < columns.count; ++c) row(item, i)[columns.first + c] += of_invalid;
      }
    }
  }

  mutable std::vector<float> sums;
};

// Where rows are, as plain numbers.
struct Rows {
  std::int64_t batch_rows, seq_len;
  std::vector<double> values;   // [seq_len], or [batch_rows, seq_len]
  std::vector<char> mask = {};  // [batch_rows, seq_len]
  std::vector<std::int64_t> lengths = {}, offsets = {}, starts = {};
  std::int64_t first = 0;

  std::size_t at(std::int64_t row, std::int64_t l) const { return static_cast<std::size_t>(row * seq_len + l); }
  bool has_own_values() const { return static_cast<std::int64_t>(values.size()) > seq_len; }

  // The model.
  std::optional<double> position(std::int64_t row, std::int64_t l) const {
    const auto batch_row = static_cast<std::size_t>(row);
    if (!mask.empty() && mask[at(row, l)] == 0) return std::nullopt;
    if (!lengths.empty() && l >= lengths[batch_row]) return std::nullopt;
    if (!values.empty()) return values[has_own_values() ? at(row, l) : static_cast<std::size_t>(l)];
    if (!starts.empty()) {
      std::size_t sequence = 0;
      while (starts[sequence + 1] <= l) ++sequence;
      return l - starts[sequence] + first + (offsets.empty() ? 0 : offsets[sequence]);
    }
    std::int64_t count = l;
    if (!mask.empty()) count = std::count(mask.data() + at(row, 0), mask.data() + at(row, l), 1);
    return first + count + (offsets.empty() ? 0 : offsets[batch_row]);
  }

  Placement placement() const {
    Placement p;
    p.first = first;
    p.offset_name = values.empty() ? "offset" : nullptr;
    if (!values.empty()) {
      p.values = {reinterpret_cast<const char*>(values.data()), DType::float64, has_own_values() ? 8 * seq_len : 0, 8};
      p.values_name = "positions";
      p.values_per_batch_row = has_own_values();
    }
    const auto each = [](const std::vector<std::int64_t>& numbers, std::int64_t row_stride, std::int64_t seq_stride) {
      return numbers.empty()
                 ? NumbersView{}
                 : NumbersView{reinterpret_cast<const char*>(numbers.data()), DType::int64, row_stride, seq_stride};
    };
    p.offsets = each(offsets, 8, 0);
    p.sequence_starts = each(starts, 0, 8);
    p.sequence_count = starts.empty() ? 0 : static_cast<std::int64_t>(starts.size()) - 1;
    p.count_valid_only = !mask.empty() && values.empty();
    p.validity.lengths = each(lengths, 8, 0);
    if (!mask.empty()) p.validity = {mask.data(), seq_len, 1, {}};
    return p;
  }
};

std::string text_of(const Rows& rows, const OperationShape& shape) {
  std::string text = joined({"batch_rows ", shape.batch_rows, ", items_per_batch_row ", shape.items_per_batch_row,
                             ", seq_len ", shape.seq_len, ", targets ", shape.targets, ", reads_items ",
                             shape.reads_items ? "1" : "0", ", first ", rows.first});
  const auto add = [&text](const char* name, const auto& numbers) {
    text += joined({", ", name});
    for (const auto number : numbers) text += joined({" ", static_cast<std::int64_t>(number)});
  };
  add("positions", rows.values);
  add("mask", rows.mask);
  add("lengths", rows.lengths);
  add("offsets", rows.offsets);
  add("starts", rows.starts);
  return text;
}

void check_run(const Source& source, const OperationShape& shape, const Rows& rows, int max_threads) {
  const AddToZeros operation(shape);
  const Placement placement = rows.placement();
  bool is_wrong = false;
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  std::vector<float> model;
  for (std::int64_t item = 0; item < shape.items(); ++item) {
    for (std::int64_t l = 0; l < shape.seq_len; ++l) {
      const std::optional<double> position = rows.position(item / shape.items_per_batch_row, l);
      if (position) {
        is_wrong = is_wrong || *position < static_cast<double>(source.lowest) ||
                   *position > static_cast<double>(source.highest) ||
                   (*position != std::floor(*position) && !source.has_fractions);
        lowest = std::min(lowest, *position);
        highest = std::max(highest, *position);
      }
      for (std::int64_t c = 0; c < real_columns; ++c) model.push_back(position ? number_at(*position, c) : of_invalid);
    }
  }
  bool is_refused = false;
  try {
    const Call call{source, operation, placement, max_threads};
    const PositionBounds bounds = check_values(call, nullptr);
    if (bounds.are_all_integers && shape.items() > 0 && lowest <= highest) {
      CHECK_EQUAL(static_cast<double>(bounds.lowest), lowest);
      CHECK_EQUAL(static_cast<double>(bounds.highest), highest);
    }
    run(call, nullptr);
  } catch (const Error& error) {
    is_refused = true;
    CHECK(error.argument == (rows.values.empty() ? "offset" : "positions"));
  }
  if (shape.items() > 0) CHECK_EQUAL(is_refused, is_wrong);
  if (is_refused) std::fill(model.begin(), model.end(), 0.0F);
  if (operation.sums != model) std::fprintf(stderr, "%s\n", text_of(rows, shape).c_str());
  CHECK(operation.sums == model);
}

constexpr std::int64_t far = std::int64_t{1} << 62;

std::vector<Rows> placements(std::int64_t batch_rows, std::int64_t seq_len) {
  const auto b = static_cast<std::size_t>(batch_rows), n = static_cast<std::size_t>(seq_len);
  const Rows plain{batch_rows, seq_len, {}};
  std::vector<Rows> all(10, plain);
  all[1].first = -4;
  std::vector<double> descending, own;
  std::vector<char> mask;
  std::vector<std::int64_t> lengths, offsets, far_offsets;
  for (std::size_t l = 0; l < n; ++l) descending.push_back(6.0 - static_cast<double>(l));
  for (std::size_t row = 0; row < b; ++row) {
    lengths.push_back(static_cast<std::int64_t>((2 * row + 1) % (n + 1)));
    offsets.push_back(static_cast<std::int64_t>((5 * row + 3) % 8));
    for (std::size_t l = 0; l < n; ++l) {
      mask.push_back((row + l) % 3 != 0 && l != 2);
      own.push_back(mask.back() != 0 ? static_cast<double>((row * 3 + l * 7) % 6) : l % 2 == 0 ? NAN : -1e300);
    }
  }
  all[2].lengths = lengths;
  all[3].mask = mask;
  all[4].offsets = offsets;
  if (n > 0) {
    all[5].values = descending;
    all[5].mask = mask;
    if (n > 2) all[5].values[2] = static_cast<double>(far);  // valid nowhere
    all[6].values = descending;
    all[6].lengths = lengths;
    if (b > 1) all[7].values = own;
    if (b > 1) all[7].mask = mask;
    all[8].values = descending;
    all[8].values[n / 2] += 0.5;
  }
  if (b == 1) all[9].starts = {0, seq_len / 2, seq_len / 2, seq_len};
  if (b == 1) all[9].offsets = {2, seq_len == 0 ? 0 : far, 0};
  return all;
}

void all_small_shapes() {
  constexpr std::int64_t much = std::int64_t{1} << 40;
  OperationShape shape;
  shape.columns = real_columns;
  for (const bool has_blocks : {false, true}) {
    for (const std::int64_t kept : {0, 9}) {
      const NumberedRows source(has_blocks, kept);
      for (const std::int64_t batch_rows : {0, 1, 2, 3, 19}) {
        for (std::int64_t seq_len = 0; seq_len <= 7; ++seq_len) {
          const std::vector<Rows> all = placements(batch_rows, seq_len);
          for (const std::int64_t items_per_batch_row : {1, 3}) {
            for (const unsigned flags : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 12U, 13U}) {
              shape.batch_rows = batch_rows;
              shape.items_per_batch_row = items_per_batch_row;
              shape.seq_len = seq_len;
              shape.reads_items = (flags & 1U) != 0;
              shape.targets = (flags & 2U) != 0 ? 1 : 0;
              shape.order = (flags & 4U) == 0 ? Order::rows : Order::apart;
              shape.most_columns = (flags & 8U) == 0 ? real_columns : 1;
              for (const int threads : {1, 3, 16}) {  // as many shares: with the last, few rows are a work unit
                shape.bytes_written = threads > 1 ? much : 1;
                for (const Rows& rows : all) check_run(source, shape, rows, threads);
              }
            }
          }
        }
      }
    }
  }
}

// Positions that are checked, and those of rows that are not valid: all of 4 rows from -2 to 5, in a table of 4 rows.
void all_small_positions() {
  constexpr std::int64_t seq_len = 4;
  OperationShape shape;
  shape.batch_rows = 2;
  shape.seq_len = seq_len;
  shape.columns = real_columns;
  shape.bytes_written = 1;
  const NumberedRows table(0, 3, false, false, 4), made(0, 3, false, true, 0);
  for (unsigned code = 0; code < 1U << (3 * seq_len); ++code) {
    Rows rows{2, seq_len, {}};
    for (unsigned l = 0; l < seq_len; ++l) rows.values.push_back(static_cast<int>(code >> (3 * l) & 7) - 2);
    for (unsigned bits = 0; bits < 1U << seq_len; ++bits) {
      rows.mask.clear();
      for (unsigned i = 0; i < 2 * seq_len; ++i) rows.mask.push_back((bits ^ code % 16 * (i / 4)) >> i % 4 & 1);
      shape.reads_items = bits % 3 != 0;
      check_run(code % 2 == 0 ? table : made, shape, rows, 1);
    }
  }
  for (std::int64_t offset = -2; offset <= 5; ++offset) {
    for (std::int64_t other = -2; other <= 5; ++other) {
      for (std::int64_t length = 1; length <= seq_len; ++length) {
        shape.seq_len = length;
        check_run(table, shape, Rows{2, length, {}, {}, {}, {offset, other}}, 1);
        check_run(table, shape, Rows{2, length, {}, {}, {length, length - 1}, {offset, other}}, 1);
      }
    }
  }
}

}  // namespace

int main() {
  all_small_shapes();
  all_small_positions();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
