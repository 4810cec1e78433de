// SPDX-License-Identifier: BSD-3-Clause
// Spans against a model that looks at one row after the other: all small masks, positions and packed sequences.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "check.h"
#include "fastpe/positions.h"

namespace {

using namespace fastpe;

// The position of each row of [begin, end) as spans say it; none where a row is not valid.
using Found = std::vector<std::optional<double>>;

Found expanded(const Placement& placement, const Range& rows, std::int64_t begin, std::int64_t end,
               std::int64_t valid_before = 0) {
  Found found;
  Spans spans(placement, rows, begin, end, valid_before);
  while (spans.next()) {
    const Span& span = spans.span();
    CHECK(span.count > 0 && span.l == begin + static_cast<std::int64_t>(found.size()));
    if (!spans.is_valid()) {
      found.resize(found.size() + static_cast<std::size_t>(span.count));
      continue;
    }
    CHECK(span.position.is_integer() || span.count == 1 || span.is_one_position());
    const int step = span.is_one_position() ? 0 : span.step == Span::Step::descending ? -1 : 1;
    for (std::int64_t i = 0; i < span.count; ++i) {
      found.push_back(span.position.value + static_cast<double>(step * i));
      if (!span.position.is_integer()) continue;
      CHECK(static_cast<double>(span.lowest()) <= *found.back());
      CHECK(*found.back() <= static_cast<double>(span.highest()));
    }
  }
  return found;
}

struct Mask {
  std::vector<char> bytes;  // [rows, seq_len]

  Mask(unsigned bits, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i, bits >>= 1) bytes.push_back(static_cast<char>(bits & 1));
  }
  Validity validity(std::int64_t seq_len) const {
    Validity validity;
    validity.valid = bytes.data();
    validity.valid_batch_row_stride_bytes = seq_len;
    validity.valid_seq_stride_bytes = 1;
    return validity;
  }
};

template <class T>
NumbersView view_of(const std::vector<T>& numbers, DType dtype) {
  return {reinterpret_cast<const char*>(numbers.data()), dtype, static_cast<std::int64_t>(sizeof(T)), 0};
}

void masks_of_two_batch_rows() {
  constexpr std::int64_t seq_len = 6;
  for (unsigned bits = 0; bits < 1U << (2 * seq_len); ++bits) {
    const Mask mask(bits, 2 * seq_len);
    Placement placement{{}, mask.validity(seq_len)};
    for (const Range rows : {Range{0, 1}, Range{1, 1}, Range{0, 2}, Range{1, 0}}) {
      for (const std::int64_t begin : {0, 2}) {
        Found model;
        for (std::int64_t l = begin; l < seq_len - 1; ++l) {
          bool is_valid = false;
          for (std::int64_t row = rows.first; row < rows.end(); ++row) {
            is_valid = is_valid || mask.bytes[static_cast<std::size_t>(row * seq_len + l)] != 0;
          }
          model.push_back(is_valid ? std::optional<double>(l) : std::nullopt);
        }
        CHECK(expanded(placement, rows, begin, seq_len - 1) == model);
      }
    }
    // Where only valid rows count.
    placement.positions.count_valid_only = true;
    placement.positions.first = 10;
    for (const std::int64_t row : {0, 1}) {
      Found model;
      double next = 10.0;
      for (std::int64_t l = 0; l < seq_len; ++l) {
        const bool is_valid = mask.bytes[static_cast<std::size_t>(row * seq_len + l)] != 0;
        model.push_back(is_valid ? std::optional(next++) : std::nullopt);
      }
      for (std::int64_t begin = 0; begin < seq_len; ++begin) {
        const std::int64_t before = placement.validity.count_before(row, begin);
        CHECK(expanded(placement, {row, 1}, begin, seq_len, before) == Found(model.begin() + begin, model.end()));
      }
    }
  }
}

void lengths_of_two_batch_rows() {
  for (const std::int64_t stride : {0, 8}) {
    for (std::int64_t first = 0; first <= 4; ++first) {
      for (std::int64_t second = 0; second <= 4; ++second) {
        const std::vector<std::int64_t> lengths{first, second};
        Placement placement;
        placement.validity.lengths = view_of(lengths, DType::int64);
        placement.validity.lengths.row_stride_bytes = stride;
        Found model;
        const std::int64_t longest = stride == 0 ? first : std::max(first, second);
        for (std::int64_t l = 1; l < 4; ++l) model.push_back(l < longest ? std::optional<double>(l) : std::nullopt);
        CHECK(expanded(placement, {0, 2}, 1, 4) == model);
      }
    }
  }
}

template <class T>
void explicit_positions(DType dtype, double step) {
  constexpr unsigned seq_len = 4;
  for (unsigned code = 0; code < 1U << (3 * seq_len); ++code) {
    std::vector<T> positions;
    for (unsigned l = 0; l < seq_len; ++l) {
      positions.push_back(static_cast<T>((static_cast<int>(code >> (3 * l) & 7) - 2) * step));
    }
    for (unsigned bits = 0; bits < 1U << seq_len; ++bits) {
      const Mask mask(bits, seq_len);
      Placement placement{{}, mask.validity(seq_len)};
      placement.positions.values = view_of(positions, dtype);
      std::swap(placement.positions.values.row_stride_bytes, placement.positions.values.seq_stride_bytes);
      Found model;
      for (unsigned l = 0; l < seq_len; ++l) {
        model.push_back(mask.bytes[l] != 0 ? std::optional(static_cast<double>(positions[l])) : std::nullopt);
      }
      CHECK(expanded(placement, {0, 1}, 0, seq_len) == model);
      if (bits == 0) {  // one position for all
        placement.validity = {};
        placement.positions.values.seq_stride_bytes = 0;
        CHECK(expanded(placement, {0, 1}, 0, seq_len) == Found(seq_len, static_cast<double>(positions[0])));
      }
    }
  }
}

void packed_sequences() {
  constexpr std::int64_t seq_len = 4;
  const std::vector<std::int64_t> offsets{7, -5, INT64_MIN};  // no row of the last one
  for (std::int64_t first = 0; first <= seq_len; ++first) {
    for (std::int64_t second = first; second <= seq_len; ++second) {
      const std::vector<std::int64_t> starts{0, first, second, seq_len};
      for (const bool has_offsets : {false, true}) {
        if (has_offsets && second < seq_len) continue;
        Placement placement;
        placement.positions.sequence_starts = view_of(starts, DType::int64);
        std::swap(placement.positions.sequence_starts.row_stride_bytes,
                  placement.positions.sequence_starts.seq_stride_bytes);
        placement.positions.sequence_count = 3;
        if (has_offsets) placement.positions.offsets = view_of(offsets, DType::int64);
        Found model;
        for (std::int64_t l = 0; l < seq_len; ++l) {
          const std::size_t sequence = l < first ? 0 : l < second ? 1 : 2;
          model.push_back(l - starts[sequence] + (has_offsets ? offsets[sequence] : 0));
        }
        for (std::int64_t begin = 0; begin <= seq_len; ++begin) {
          for (std::int64_t end = begin; end <= seq_len; ++end) {
            CHECK(expanded(placement, {0, 1}, begin, end) == Found(model.begin() + begin, model.begin() + end));
          }
        }
      }
    }
  }
}

}  // namespace

int main() {
  masks_of_two_batch_rows();
  lengths_of_two_batch_rows();
  explicit_positions<std::int64_t>(DType::int64, 1.0);
  explicit_positions<double>(DType::float64, 0.5);
  packed_sequences();
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
