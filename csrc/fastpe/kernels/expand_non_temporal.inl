// SPDX-License-Identifier: BSD-3-Clause
// Expansions of two whole blocks that are stored past the caches, so that no line is read before it is written.
//
// Method: only whole cache lines are stored, a line of each row in turn. Rows without gaps that do not begin on a
// line's boundary share the lines at their ends: the ends of both rows are stored next to each other in L1, and the
// line is loaded from there and stored two distances later, when both stores have reached the cache. The two lines at
// the ends of the two blocks are stored in part, by regular stores.
// Range: rows of whole lines that are aligned alike; out is not x. Error: that of expand, whose bits these are.
#pragma once

#include "expand.inl"

namespace fastpe {
namespace {

// The lines that the rows of two blocks share. Line k lies between rows k - 1 and k, counted from the first row.
template <class T>
class SharedLines {
  using Element = typename T::Element;
  static constexpr std::int64_t line = line_columns<T>;

 public:
  // A row's first `lead_columns` columns end where its first whole line begins.
  SharedLines(const Expansion& e, std::int64_t lead_columns)
      : e_(e), lead_columns_(lead_columns), heads_(e, 0, line), tails_(e, e.columns - line, line) {}

  // Makes the ends of rows that expand_row_set would make.
  template <Mode mode, int anchor_count, int sides>
  FASTPE_ALWAYS_INLINE void make(int first_anchor, std::int64_t distance) {
    const RowSet<T, anchor_count, sides> heads(heads_, first_anchor, distance), tails(tails_, first_anchor, distance);
    const auto line_before = [&](int a, int side) {
      return (first_anchor + a) * block_rows + block_radius + (sides == 2 && side == 0 ? -distance : distance);
    };
    for (std::int64_t column = 0; column < line; column += float_lanes) {
      heads.template each_row<mode>(column, [&](int a, int side, const typename T::Vector& result) {
        T::store(lines_[line_before(a, side)] + line + column, result);
      });
      tails.template each_row<mode>(column, [&](int a, int side, const typename T::Vector& result) {
        T::store(lines_[line_before(a, side) + 1] + column, result);
      });
    }
  }

  // Stores the lines between the rows at one distance from the anchors and those that are one row closer.
  void store_at(std::int64_t distance) const {
    for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
      const std::int64_t own = anchor * block_rows + block_radius;
      store_line(own - distance + 1);
      store_line(own + distance);
    }
  }
  // Stores what is left at the end.
  void finish() const {
    store_line(block_rows);
    copy_elements(begin_of(0) + (line - lead_columns_), lines_[0] + line, lead_columns_);
    copy_elements(begin_of(rows_of_two_blocks), lines_[rows_of_two_blocks] + lead_columns_, line - lead_columns_);
  }

 private:
  Element* begin_of(std::int64_t number) const {
    return reinterpret_cast<Element*>(e_.out + number * e_.out_row_stride_bytes) - (line - lead_columns_);
  }
  void store_line(std::int64_t number) const {
    for (std::int64_t column = 0; column < line; column += float_lanes) {
      T::stream(begin_of(number) + column, T::load(lines_[number] + lead_columns_ + column));
    }
  }

  const Expansion& e_;
  const std::int64_t lead_columns_;
  const Panel<T> heads_, tails_;
  // The last line of the row before, then the first line of the row behind: the shared line is in the middle.
  alignas(cache_line_bytes) Element lines_[rows_of_two_blocks + 1][2 * line];
};

// Stores the panel's columns, whole lines, of the rows that expand_row_set would make.
template <class T, Mode mode, int anchor_count, int sides>
FASTPE_ALWAYS_INLINE void store_lines(const Panel<T>& p, int first_anchor, std::int64_t distance) {
  constexpr int vectors = static_cast<int>(line_columns<T> / float_lanes);
  const RowSet<T, anchor_count, sides> rows(p, first_anchor, distance);
  for (std::int64_t column = 0; column < p.columns; column += line_columns<T>) {
    // A line's vectors are stored one right after the other: else its parts would leave the processor apart.
    typename T::Vector made[anchor_count][sides][vectors];
    for (int i = 0; i < vectors; ++i) {
      rows.template each_row<mode>(column + i * float_lanes, [&](int a, int side, const typename T::Vector& result) {
        made[a][side][i] = result;
      });
    }
    for (int a = 0; a < anchor_count; ++a) {
      for (int side = 0; side < sides; ++side) {
        for (int i = 0; i < vectors; ++i) T::stream(rows.out[a][side] + column + i * float_lanes, made[a][side][i]);
      }
    }
  }
}

template <class T, Mode mode>
void store_two_blocks(const Expansion& e, std::int64_t begin, std::int64_t columns, SharedLines<T>* shared) {
  const Panel<T> p(e, begin, columns);
  for (int anchor = 0; anchor < blocks_at_once; ++anchor) {
    store_lines<T, mode, 1, 1>(p, anchor, 0);
    if (shared != nullptr) shared->template make<mode, 1, 1>(anchor, 0);
  }
  for (std::int64_t distance = 1; distance <= block_radius; ++distance) {
    store_lines<T, mode, blocks_at_once, 2>(p, 0, distance);
    if (shared == nullptr) continue;
    shared->template make<mode, blocks_at_once, 2>(0, distance);
    if (distance > 2) shared->store_at(distance - 2);
  }
  if (shared == nullptr) return;
  shared->store_at(block_radius - 1);
  shared->store_at(block_radius);
  shared->finish();
}

// Returns false where rows are not alike, or are not two whole blocks: large arrays consist almost wholly of those.
template <class T, Mode mode>
bool expand_non_temporal(const Expansion& e) {
  constexpr std::int64_t line = line_columns<T>;
  const std::int64_t lead_columns = elements_to_alignment<T>(e.out, line_bytes<T>);
  const bool has_gaps = e.out_row_stride_bytes != e.columns * static_cast<std::int64_t>(sizeof(typename T::Element));
  const bool are_alike = e.out_row_stride_bytes % line_bytes<T> == 0 && e.columns % line == 0;
  if (!are_alike || !is_two_blocks(e) || (lead_columns != 0 && (has_gaps || e.columns < 2 * line))) return false;
  std::int64_t begin = lead_columns, end = e.columns;
  if (lead_columns != 0) {
    end -= line - lead_columns;
    SharedLines<T> shared(e, lead_columns);
    const std::int64_t columns = end - begin < panel_columns ? end - begin : panel_columns;
    store_two_blocks<T, mode>(e, begin, columns, &shared);
    begin += columns;
  }
  for (; begin < end; begin += panel_columns) {
    store_two_blocks<T, mode>(e, begin, end - begin < panel_columns ? end - begin : panel_columns, nullptr);
  }
  return true;
}

}  // namespace
}  // namespace fastpe
