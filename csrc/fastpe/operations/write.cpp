// SPDX-License-Identifier: BSD-3-Clause
#include "write.h"

#include <cstring>

#include "copy.h"

namespace fastpe {
namespace {

void flip_signs(const Block<char>& block, std::int64_t rows, std::int64_t columns, std::int64_t bytes) {
  constexpr std::uint16_t one = 1;
  char first;
  std::memcpy(&first, &one, 1);
  const std::int64_t sign_byte = first == 1 ? bytes - 1 : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      char& byte = block.row(row)[column * block.column_stride_bytes + sign_byte];
      byte = static_cast<char>(byte ^ '\x80');
    }
  }
}

}  // namespace

// Each item is its own batch row: to copy rows that are only written takes as long as to make them again.
Write::Write(const Rows& out, bool is_new) : Operation(shape_of_writing(out, out.item_count)), out_{out, {}} {
  parts_[part_count_++] = {0, 0, out.columns, 0, 1};
  finish_shape(is_new);
}

Write::Write(const std::array<Rows, 2>& out, const TableForm& form, std::int64_t pairs, bool is_new)
    : Operation(shape_of_writing(out[0], out[0].item_count)), out_(out) {
  for (; part_count_ < form.part_count; ++part_count_) {
    const TableForm::Part& part = form.parts[part_count_];
    const std::int64_t to = part.step == 1 ? part.to * pairs : part.to;
    parts_[part_count_] = {part.array, part.from * pairs, part.count * pairs, to, part.step, part.is_negative};
  }
  shape_.columns = 2 * pairs;
  shape_.most_columns = INT64_MAX;
  finish_shape(is_new);
}

void Write::finish_shape(bool is_new) {
  shape_.tile_dtype = shape_.dtype;
  shape_.may_be_non_temporal = !is_new;
  bool can_be_targets = true;
  std::int64_t written = 0;
  shape_.bytes_written = out_[0].bytes() + out_[1].bytes();
  for (const Part& part : parts()) {
    written += part.count;
    shape_.order = common_order(shape_.order, out_of(part).order());
    can_be_targets = can_be_targets && part.step == 1;
  }
  // A column that stands in several places is made once and copied.
  if (can_be_targets && written == shape_.columns && shape_.order == Order::rows) {
    shape_.targets = static_cast<int>(part_count_);
  }
}

void Write::apply(const Tile& tile, const Range& items, const Access& /*access*/, char* /*scratch*/) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  for (const Part& part : parts()) {
    const Rows& out = out_of(part);
    const Range columns = columns_of(part, tile.columns);
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      Block<char> to = out.block(item, tile.rows.first, part.to + columns.first);
      to.column_stride_bytes *= part.step;
      copy_block(to, tile.block.from(0, part.from + columns.first - tile.columns.first), tile.rows.count, columns.count,
                 bytes);
      if (part.is_negative) flip_signs(to, tile.rows.count, columns.count, bytes);
    }
  }
}

Target Write::target(int number, std::int64_t item, std::int64_t l) const {
  const Part& part = parts_[static_cast<std::size_t>(number)];
  const Rows& out = out_of(part);
  return {{out.row(item, l, part.to), out.seq_stride_bytes}, shape_.dtype, {part.from, part.count}};
}

void Write::write_invalid(const Range& items, const Range& rows, const Range& columns) const {
  for (const Part& part : parts()) {
    const Range written = columns_of(part, columns);
    for (std::int64_t item = items.first; item < items.end(); ++item) {
      Block<char> to = out_of(part).block(item, rows.first, part.to + written.first);
      to.column_stride_bytes *= part.step;
      zero_block(to, rows.count, written.count, element_bytes(shape_.dtype));
    }
  }
}

}  // namespace fastpe
