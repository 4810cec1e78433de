// SPDX-License-Identifier: BSD-3-Clause
#include "write_tables.h"

#include "copy.h"
#include "fastpe/dispatch.h"

namespace fastpe {
namespace {

// How many pieces of whole columns a form consists of; 0: its columns alternate.
int pieces_of(TableForm form) {
  switch (form) {
    case TableForm::cos_sin: return 1;
    case TableForm::halves:
    case TableForm::sin_cos: return 2;
    case TableForm::tile: return 4;
    case TableForm::repeat:
    case TableForm::pairs: return 0;
  }
  return 0;
}

OperationShape shape_of(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs) {
  OperationShape shape = shape_of_writing(out[0], out[0].item_count);
  shape.columns = shape.columns_at_once = 2 * pairs;
  shape.tile_dtype = out[0].dtype;
  shape.bytes_written *= arrays_of(form);
  for (int i = 0; i < arrays_of(form); ++i) {
    shape.has_contiguous_rows = shape.has_contiguous_rows && out[static_cast<std::size_t>(i)].has_contiguous_rows();
  }
  shape.sinks = shape.has_contiguous_rows ? pieces_of(form) : 0;
  return shape;
}

}  // namespace

WriteTables::WriteTables(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs)
    : Operation(shape_of(out, form, pairs)), out_(out), form_(form), pairs_(pairs) {}

WriteTables::Piece WriteTables::piece(int number) const {
  const Columns cosines{0, pairs_}, sines{pairs_, pairs_};
  const Piece halves[] = {{0, cosines, 0}, {1, sines, 0}};
  const Piece tile[] = {{0, cosines, 0}, {0, cosines, pairs_}, {1, sines, 0}, {1, sines, pairs_}};
  const Piece sin_cos[] = {{0, sines, 0}, {0, cosines, pairs_}};
  if (form_ == TableForm::halves) return halves[number];
  if (form_ == TableForm::tile) return tile[number];
  if (form_ == TableForm::sin_cos) return sin_cos[number];
  return {0, {0, 2 * pairs_}, 0};
}

Sink WriteTables::sink(int number, std::int64_t item, std::int64_t l, Columns /*columns*/) const {
  const Piece p = piece(number);
  const Rows& out = out_[static_cast<std::size_t>(p.array)];
  Sink sink{};
  sink.dtype = out.dtype;
  sink.columns = p.columns;
  sink.out = out.row(item, l, p.out_column);
  sink.out_row_stride_bytes = out.seq_stride_bytes;
  return sink;
}

void WriteTables::apply(const Tile& tile, const Items& items, const Place& /*next*/, const Workspace& workspace) const {
  const Columns cosines{0, pairs_}, sines{pairs_, pairs_};
  const bool streaming = workspace.memory.streaming;
  const std::int64_t bytes = element_bytes(shape_.dtype);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    if (form_ == TableForm::repeat) {
      interleave(tile, out_[0], item, cosines, cosines, streaming);
      interleave(tile, out_[1], item, sines, sines, streaming);
      continue;
    }
    if (form_ == TableForm::pairs) {
      interleave(tile, out_[0], item, cosines, sines, streaming);
      continue;
    }
    for (int number = 0; number < pieces_of(form_); ++number) {
      const Piece p = piece(number);
      const Rows& out = out_[static_cast<std::size_t>(p.array)];
      for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
        copy_row(out.row(item, l, p.out_column), out.column_stride_bytes, tile.row(l) + p.columns.first * bytes, bytes,
                 p.columns.count, bytes);
      }
    }
  }
}

void WriteTables::interleave(const Tile& tile, const Rows& out, std::int64_t item, const Columns& first,
                             const Columns& second, bool streaming) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  if (!out.has_contiguous_rows()) {
    for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
      copy_row(out.row(item, l, 0), 2 * out.column_stride_bytes, tile.row(l) + first.first * bytes, bytes, pairs_,
               bytes);
      copy_row(out.row(item, l, 1), 2 * out.column_stride_bytes, tile.row(l) + second.first * bytes, bytes, pairs_,
               bytes);
    }
    return;
  }
  Interleaving i{};
  i.out = out.row(item, tile.l);
  i.out_row_stride_bytes = out.seq_stride_bytes;
  i.first = tile.row(tile.l) + first.first * bytes;
  i.second = tile.row(tile.l) + second.first * bytes;
  i.row_stride_bytes = tile.row_stride_bytes;
  i.rows = tile.count;
  i.columns = pairs_;
  i.streaming = streaming;
  active_kernels().interleave[index_of(shape_.dtype)](i);
}

}  // namespace fastpe
