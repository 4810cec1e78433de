// SPDX-License-Identifier: BSD-3-Clause
#include "resize.h"

#include <algorithm>

#include "fastpe/buffer.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"
#include "fastpe/operations/copy.h"
#include "fastpe/parallel.h"
#include "request.h"

namespace fastpe {
namespace {

// Blocks of columns are done one after the other, so that the rows between the two axes stay in L2.
constexpr std::int64_t most_scratch_bytes = 128 * 1024;
constexpr std::int64_t fewest_block_columns = 16;
// Between two work units, a call finds out whether it was interrupted.
constexpr std::int64_t products_at_once = 256 * 1024;

constexpr std::int64_t float64_bytes = sizeof(double);

// The learned cells of each new one, and their weights.
struct Taps {
  std::int64_t cells, count;
  const std::int64_t* indices;
  const double* weights;

  Taps of_cell(std::int64_t cell) const { return {1, count, indices + cell * count, weights + cell * count}; }
};

void require_contiguous(const ArrayView& array, DType dtype) {
  require_dtype(array, dtype, "");
  require_readable(array);
  if (!array.is_contiguous) refuse_value(array.name, {"has gaps"}, {"a contiguous array"});
}

Taps checked_taps(const ResizedAxis& axis) {
  const ArrayView &indices = axis.indices, &weights = axis.weights;
  require_contiguous(indices, DType::int64);
  require_contiguous(weights, DType::float64);
  if (indices.axes != 2 || indices.last() < 1) {
    refuse_shape(indices, {"[cells, taps], one tap or more"});
  }
  require_shape(weights, Shape(indices));
  const Taps taps{indices.shape[0], indices.shape[1], reinterpret_cast<const std::int64_t*>(indices.data),
                  reinterpret_cast<const double*>(weights.data)};
  for (std::int64_t i = 0; i < taps.cells * taps.count; ++i) {
    if (taps.indices[i] >= 0 && taps.indices[i] < axis.side) continue;
    refuse_value(indices.name, {"has ", taps.indices[i]}, {"learned cells, from 0 to ", axis.side - 1});
  }
  return taps;
}

// [rows, columns] behind axes of length 1.
ArrayView checked_rows(const ArrayView& array, std::int64_t rows, std::int64_t columns) {
  const ArrayView view = without_axes_in_front(array, 2);
  require_shape(view, {rows, columns});
  return view;
}

class Resize {
 public:
  explicit Resize(const ResizeRequest& request)
      : rows_(checked_taps(request.rows)),
        columns_(checked_taps(request.columns)),
        learned_columns_(request.columns.side),
        class_tokens_(request.class_tokens),
        merge_size_(request.merge_size) {
    const std::int64_t width = request.table.axes > 0 ? request.table.last() : 0;
    const std::int64_t learned = class_tokens_ + request.rows.side * learned_columns_;
    const std::int64_t made = class_tokens_ + rows_.cells * columns_.cells;
    table_ = table_of(checked_rows(request.table, learned, width));
    const ArrayView out = checked_rows(request.out, made, width);
    dtype_of(out);
    require_writable(out, nullptr);
    require_disjoint(out, request.table);
    out_ = writable_rows_of(out, 0);
    const std::int64_t fitting = most_scratch_bytes / (learned_columns_ + 1) / float64_bytes;
    block_columns_ = std::max(fitting / fewest_block_columns, std::int64_t{1}) * fewest_block_columns;
  }

  // A piece of work is a block's columns of one row of the new grid, or of all class tokens.
  std::int64_t pieces() const { return (out_.columns + block_columns_ - 1) / block_columns_ * pieces_per_block(); }
  std::int64_t products_per_piece() const {
    return block_columns_ * (learned_columns_ * rows_.count + columns_.cells * columns_.count);
  }
  // Of one thread: a row of the grid that is new only along the first axis, and one of the new rows.
  std::int64_t scratch_bytes() const { return (learned_columns_ + 1) * block_columns_ * float64_bytes; }

  void do_piece(std::int64_t piece, char* scratch) const {
    const std::int64_t first = piece / pieces_per_block() * block_columns_;
    const Range block{first, std::min(block_columns_, out_.columns - first)};
    const std::int64_t row = piece % pieces_per_block() - 1;
    row < 0 ? copy_class_tokens(block, scratch) : make_row(row, block, scratch);
  }

 private:
  std::int64_t pieces_per_block() const { return 1 + rows_.cells; }

  void copy_class_tokens(const Range& block, char* scratch) const {
    constexpr std::int64_t itself = 0;
    constexpr double whole = 1.0;
    const Taps token{1, 1, &itself, &whole};
    for (std::int64_t i = 0; i < class_tokens_; ++i) {
      add_rows(i, 0, 1, token, block, scratch);
      write_row(i, token, block, scratch);
    }
  }

  void make_row(std::int64_t row, const Range& block, char* scratch) const {
    add_rows(class_tokens_, learned_columns_, learned_columns_, rows_.of_cell(row), block, scratch);
    const std::int64_t m = merge_size_;
    const std::int64_t first = class_tokens_ + row / m * m * columns_.cells + row % m * m;
    for (std::int64_t column = 0; column < columns_.cells; ++column) {
      write_row(first + column / m * m * m + column % m, columns_.of_cell(column), block, scratch);
    }
  }

  // Sums along the first axis, from so many rows of the table on, into the scratch memory.
  void add_rows(std::int64_t first, std::int64_t rows_between, std::int64_t count, const Taps& taps, const Range& block,
                char* scratch) const {
    Resizing r = resizing(taps, block);
    r.x = table_.row(first) + block.first * element_bytes(table_.dtype);
    r.x_row_stride_bytes = table_.row_stride_bytes;
    r.tap_stride_bytes = rows_between * table_.row_stride_bytes;
    r.out = scratch;
    r.out_row_stride_bytes = block_columns_ * float64_bytes;
    r.rows = count;
    active_kernels().resize_to_float64[index_of(table_.dtype)](r);
  }

  // Sums along the second axis, of rows of the scratch memory, into a row of `out`.
  void write_row(std::int64_t row, const Taps& taps, const Range& block, char* scratch) const {
    Resizing r = resizing(taps, block);
    r.x = scratch;
    r.tap_stride_bytes = block_columns_ * float64_bytes;
    const Block<char> to = out_.block(0, row, block.first);
    const std::int64_t bytes = element_bytes(out_.dtype);
    const bool is_apart = !to.has_contiguous_columns(bytes);
    r.out = is_apart ? scratch + learned_columns_ * r.tap_stride_bytes : to.data;
    r.rows = 1;
    active_kernels().resize_from_float64[index_of(out_.dtype)](r);
    if (is_apart) copy_block(to, {r.out, 0, bytes}, 1, block.count, bytes);
  }

  static Resizing resizing(const Taps& taps, const Range& block) {
    Resizing r{};
    r.tap_numbers = taps.indices;
    r.weights = taps.weights;
    r.taps = taps.count;
    r.columns = block.count;
    return r;
  }

  Taps rows_, columns_;
  TableView table_;
  Rows out_;
  std::int64_t learned_columns_, class_tokens_, merge_size_, block_columns_;
};

}  // namespace

void resize_rows(const ResizeRequest& request, Interruption* interruption) {
  const Resize resize(request);
  const std::int64_t pieces = resize.pieces(), products = resize.products_per_piece();
  const std::int64_t at_once = std::max<std::int64_t>(1, products_at_once / std::max<std::int64_t>(1, products));
  const int threads = threads_for(pieces * products, request.max_threads);
  const std::int64_t scratch_bytes = whole_cache_lines(resize.scratch_bytes());
  const auto scratch = AlignedBuffer<char>::uninitialized(threads * scratch_bytes);
  const bool completed =
      parallel_for(pieces, at_once, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t piece = begin; piece < end; ++piece) {
          resize.do_piece(piece, scratch.data() + thread * scratch_bytes);
        }
      });
  if (!completed) throw Interrupted{};
}

}  // namespace fastpe
