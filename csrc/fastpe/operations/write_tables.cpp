// SPDX-License-Identifier: BSD-3-Clause
#include "write_tables.h"

#include "copy.h"
#include "fastpe/dispatch.h"
#include "fastpe/hardware.h"

namespace fastpe {
namespace {

// How many copies of the cosines and of the sines a form has, each as adjacent columns; 0: its columns alternate.
int copies_of(TableForm form) {
  switch (form) {
    case TableForm::cos_sin:
    case TableForm::halves:
    case TableForm::sin_cos: return 1;
    case TableForm::tile: return 2;
    case TableForm::repeat:
    case TableForm::pairs: return 0;
  }
  return 0;
}

// Whether rows with each column twice are made once, in a tile, and written twice from there.
bool is_written_from_tile(TableForm form) {
  const bool has_columns_twice = form == TableForm::tile || form == TableForm::repeat;
  return has_columns_twice && processor_traits().streams_row_by_row;
}

OperationShape shape_of(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs) {
  OperationShape shape = shape_of_writing(out[0], out[0].item_count);
  shape.columns = shape.columns_at_once = 2 * pairs;
  shape.tile_dtype = out[0].dtype;
  shape.bytes_written *= arrays_of(form);
  for (int i = 0; i < arrays_of(form); ++i) {
    shape.has_contiguous_rows = shape.has_contiguous_rows && out[static_cast<std::size_t>(i)].has_contiguous_rows();
  }
  // A sink jumps equally far in each row.
  const bool are_rows_alike = arrays_of(form) == 1 || out[0].seq_stride_bytes == out[1].seq_stride_bytes;
  const int copies = is_written_from_tile(form) ? 0 : copies_of(form);
  shape.sinks = shape.has_contiguous_rows && are_rows_alike ? copies : 0;
  if (copies == 0) shape.jump_column = pairs;
  return shape;
}

}  // namespace

bool has_rows_of_its_own(TableForm form) {
  switch (form) {
    case TableForm::halves:
    case TableForm::cos_sin: return false;
    case TableForm::tile:
    case TableForm::repeat: return !is_written_from_tile(form);
    case TableForm::sin_cos:
    case TableForm::pairs: return true;
  }
  return false;
}

WriteTables::WriteTables(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs)
    : Operation(shape_of(out, form, pairs)), out_(out), form_(form), pairs_(pairs) {}

char* WriteTables::place_of(bool is_sine, int copy, std::int64_t item, std::int64_t l) const {
  const bool is_second_array = is_sine && arrays_of(form_) == 2;
  const bool is_second_half = form_ == TableForm::sin_cos ? !is_sine : form_ == TableForm::cos_sin && is_sine;
  return out_[is_second_array ? 1 : 0].row(item, l, (is_second_half ? 1 : copy) * pairs_);
}

Sink WriteTables::sink(int number, std::int64_t item, std::int64_t l, Columns columns) const {
  Sink sink{};
  sink.dtype = shape_.dtype;
  sink.columns = columns;
  sink.out = place_of(false, number, item, l);
  sink.out_row_stride_bytes = out_[0].seq_stride_bytes;
  sink.jump_column = pairs_;
  const auto address = [](const char* p) { return reinterpret_cast<std::intptr_t>(p); };
  sink.jump_bytes = address(place_of(true, number, item, l)) - address(sink.out) - pairs_ * element_bytes(shape_.dtype);
  return sink;
}

void WriteTables::apply(const Tile& tile, const Items& items, const Place& /*next*/, const Workspace& workspace) const {
  const bool streaming = workspace.memory.streaming;
  const std::int64_t bytes = element_bytes(shape_.dtype);
  const char* const cosines = tile.data;
  const char* const sines = tile.data + pairs_ * bytes + tile.jump_bytes;
  const Rows& sines_out = out_[arrays_of(form_) == 2 ? 1 : 0];
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    if (form_ == TableForm::repeat) {
      interleave(tile, cosines, cosines, out_[0], item, streaming);
      interleave(tile, sines, sines, out_[1], item, streaming);
      continue;
    }
    if (form_ == TableForm::pairs) {
      interleave(tile, cosines, sines, out_[0], item, streaming);
      continue;
    }
    if (form_ == TableForm::tile && can_duplicate(tile)) {
      duplicate(tile, cosines, out_[0], item, streaming);
      duplicate(tile, sines, out_[1], item, streaming);
      continue;
    }
    for (int copy = 0; copy < copies_of(form_); ++copy) {
      for (std::int64_t i = 0; i < tile.count; ++i) {
        const std::int64_t l = tile.l + i, at = i * tile.row_stride_bytes;
        copy_row(place_of(false, copy, item, l), out_[0].column_stride_bytes, cosines + at, bytes, pairs_, bytes);
        copy_row(place_of(true, copy, item, l), sines_out.column_stride_bytes, sines + at, bytes, pairs_, bytes);
      }
    }
  }
}

bool WriteTables::can_duplicate(const Tile& tile) const {
  const std::int64_t row_bytes = pairs_ * element_bytes(shape_.dtype);
  const auto has_gaps = [row_bytes](const Rows& out) { return out.seq_stride_bytes != 2 * row_bytes; };
  return shape_.has_contiguous_rows && tile.row_stride_bytes == row_bytes && !has_gaps(out_[0]) && !has_gaps(out_[1]);
}

void WriteTables::duplicate(const Tile& tile, const char* from, const Rows& out, std::int64_t item,
                            bool streaming) const {
  const std::int64_t row_bytes = pairs_ * element_bytes(shape_.dtype);
  active_kernels().duplicate({out.row(item, tile.l), from, tile.count, row_bytes, streaming});
}

void WriteTables::interleave(const Tile& tile, const char* first, const char* second, const Rows& out,
                             std::int64_t item, bool streaming) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  if (!out.has_contiguous_rows()) {
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const std::int64_t l = tile.l + i, at = i * tile.row_stride_bytes;
      copy_row(out.row(item, l, 0), 2 * out.column_stride_bytes, first + at, bytes, pairs_, bytes);
      copy_row(out.row(item, l, 1), 2 * out.column_stride_bytes, second + at, bytes, pairs_, bytes);
    }
    return;
  }
  Interleaving i{};
  i.out = out.row(item, tile.l);
  i.out_row_stride_bytes = out.seq_stride_bytes;
  i.first = first;
  i.second = second;
  i.row_stride_bytes = tile.row_stride_bytes;
  i.rows = tile.count;
  i.columns = pairs_;
  i.streaming = streaming;
  const bool has_gaps = i.row_stride_bytes != pairs_ * bytes || i.out_row_stride_bytes != 2 * pairs_ * bytes;
  if (!has_gaps) {
    i.columns *= i.rows;
    i.rows = 1;
  }
  active_kernels().interleave[index_of(shape_.dtype)](i);
}

}  // namespace fastpe
