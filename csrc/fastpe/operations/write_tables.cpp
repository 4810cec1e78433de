// SPDX-License-Identifier: BSD-3-Clause
#include "write_tables.h"

#include "copy.h"

namespace fastpe {
namespace {

// A row of one of the arrays: one range of values, or two of them, which follow each other or alternate.
enum class Values { none, cosines, sines };
struct RowForm {
  Values first = Values::none, second = Values::none;
  bool alternate = false;
};

using RowForms = std::array<RowForm, 2>;  // of each array

RowForms rows_of(TableForm form) {
  constexpr Values cosines = Values::cosines, sines = Values::sines, none = Values::none;
  switch (form) {
    case TableForm::halves: return {{{cosines, none, false}, {sines, none, false}}};
    case TableForm::tile: return {{{cosines, cosines, false}, {sines, sines, false}}};
    case TableForm::repeat: return {{{cosines, cosines, true}, {sines, sines, true}}};
    case TableForm::cos_sin: return {{{cosines, sines, false}, {}}};
    case TableForm::sin_cos: return {{{sines, cosines, false}, {}}};
    case TableForm::pairs: return {{{cosines, sines, true}, {}}};
  }
  return {};
}

// How many targets an encoding, whose rows are cosines, then sines, may be written into as it is made.
int targets_of(TableForm form) {
  switch (form) {
    case TableForm::cos_sin: return 1;
    case TableForm::halves:
    case TableForm::sin_cos: return 2;
    default: return 0;
  }
}

OperationShape shape_of(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs, bool is_new) {
  OperationShape shape = shape_of_writing(out[0], out[0].item_count);
  shape.columns = shape.columns_at_once = 2 * pairs;
  shape.tile_dtype = out[0].dtype;
  shape.bytes_written *= arrays_of(form);
  shape.may_be_non_temporal = !is_new;
  for (int i = 0; i < arrays_of(form); ++i) {
    shape.has_contiguous_rows = shape.has_contiguous_rows && out[static_cast<std::size_t>(i)].has_contiguous_rows();
  }
  shape.targets = shape.has_contiguous_rows ? targets_of(form) : 0;
  return shape;
}

}  // namespace

WriteTables::WriteTables(const std::array<Rows, 2>& out, TableForm form, std::int64_t pairs, bool is_new)
    : Operation(shape_of(out, form, pairs, is_new)), out_(out), form_(form), pairs_(pairs) {}

Target WriteTables::target(int number, std::int64_t item, std::int64_t l, Columns columns) const {
  const bool is_second_array = number == 1 && arrays_of(form_) == 2, is_second_half = number == 1 && !is_second_array;
  const bool has_all = targets_of(form_) == 1, is_sine = (number == 1) == (form_ != TableForm::sin_cos);
  const Rows& out = out_[is_second_array ? 1 : 0];
  return {shape_.dtype, has_all ? columns : Columns{is_sine ? pairs_ : 0, pairs_},
          out.row(item, l, is_second_half ? pairs_ : 0), out.seq_stride_bytes};
}

void WriteTables::apply(const Tile& tile, const Items& items, const Place& /*next*/,
                        const Workspace& /*workspace*/) const {
  const std::int64_t bytes = element_bytes(shape_.dtype);
  const RowForms forms = rows_of(form_);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    for (std::int64_t l = tile.l; l < tile.l + tile.count; ++l) {
      const char* const row = tile.row(l);
      const auto begin_of = [&](Values values) { return row + (values == Values::sines ? pairs_ * bytes : 0); };
      for (int i = 0; i < arrays_of(form_); ++i) {
        const RowForm& form = forms[static_cast<std::size_t>(i)];
        const Rows& out = out_[static_cast<std::size_t>(i)];
        if (form.alternate) {
          copy_alternately(out.row(item, l), out.column_stride_bytes, begin_of(form.first), begin_of(form.second),
                           pairs_, bytes);
          continue;
        }
        copy_row(out.row(item, l), out.column_stride_bytes, begin_of(form.first), bytes, pairs_, bytes);
        if (form.second == Values::none) continue;
        copy_row(out.row(item, l, pairs_), out.column_stride_bytes, begin_of(form.second), bytes, pairs_, bytes);
      }
    }
  }
}

}  // namespace fastpe
