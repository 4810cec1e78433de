// SPDX-License-Identifier: BSD-3-Clause
#include "rotated_arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "fastpe/error.h"

namespace fastpe {
namespace {

// The argument that has an entry for each row of a batch. Only of `positions` and `valid` may one entry be for all.
const char* per_row_argument(const Request& request, int coordinate_count) {
  if (request.cu_seqlens.is_given()) return nullptr;
  const auto differs = [](const ArrayView& array, int axes) {
    return array.is_given() && array.axes >= axes && array.shape[0] != 1;
  };
  for (const ArrayView* const array : {&request.offsets, &request.lengths}) {
    if (array->is_given() && array->axes > 0) return array->name;
  }
  if (differs(request.positions, coordinate_count > 0 ? 3 : 2)) return request.positions.name;
  return differs(request.valid, 2) ? request.valid.name : nullptr;
}

// Whether each column is there twice: at k and at k + distance for k = 0, step, 2 step .. Rows whose columns are all
// alike, as those of position 0 and of padding, do not tell.
bool has_twins(const ConstRows& table, std::int64_t step, std::int64_t distance) {
  const auto bytes = static_cast<std::size_t>(element_bytes(table.dtype));
  bool is_told = false;
  for (std::int64_t row = table.item_count * table.seq_len - 1; row >= 0; --row) {
    const char* const data = row_of(table, row);
    const auto are_equal = [&](std::int64_t one, std::int64_t other) {
      return std::memcmp(data + one * table.column_stride_bytes, data + other * table.column_stride_bytes, bytes) == 0;
    };
    for (std::int64_t k = 0; k < table.columns / 2; ++k) {
      if (!are_equal(k * step, k * step + distance)) return false;
      is_told = is_told || !are_equal(0, k * step);
    }
  }
  return is_told;
}

bool have_twins(const ConstRows& cosines, const ConstRows& sines) {
  const auto both = [&](std::int64_t step, std::int64_t distance) {
    return has_twins(cosines, step, distance) && has_twins(sines, step, distance);
  };
  return cosines.columns % 2 == 0 && (both(1, cosines.columns / 2) || both(2, 1));
}

// Of tables with a column for each column of a head. Only the caller knows how they are arranged: with two angles in a
// pair, they are no rotation.
[[noreturn]] void refuse_columns_of_heads(const ArrayView& cos, bool interleaved) {
  const std::int64_t half = cos.last() / 2;
  refuse_value(
      "cos", {"has ", cos.last(), " columns, and each pair of columns of x has one angle"},
      {"[.., pairs], such as ", half, " columns"},
      {interleaved ? joined({"if cos[..., ::2] equals cos[..., 1::2], pass cos[..., ::2]"})
                   : joined({"if cos[..., :", half, "] equals cos[..., ", half, ":], pass cos[..., :", half, "]"}),
       ", and the same of sin"});
}

// Cosines and sines among the queries and keys would be rotated as well. They have no axis of heads.
void refuse_tables(const View<ArrayView>& arrays) {
  for (std::size_t i = 1; i + 1 < arrays.count; ++i) {
    const ArrayView &cos = arrays[i], &sin = arrays[i + 1];
    if (cos.axes >= arrays[0].axes || !std::equal(cos.shape, cos.shape + cos.axes, sin.shape, sin.shape + sin.axes)) {
      continue;
    }
    refuse_value(cos.name, {"and the next array have shape ", shape_text(cos), ", as cosines and sines have"},
                 {"queries and keys, which have an axis of length 1 for a single head"},
                 {"leave cosines and sines out, or call fastpe.rotate_by_tables_ with them"});
  }
}

// Heads are all axes but the batch's, the sequence's and the last.
Extent extent_of_heads(const ArrayView& array, const RotateRequest& request) {
  const int seq_axis = seq_axis_of(array, request);
  Extent extent = extent_of(array, seq_axis, seq_axis_remedy);
  if (request.cu_seqlens.is_given() || (array.axes == 3 && seq_axis == 0)) {
    extent.has_batch = false;
    extent.batch_rows = 1;
  }
  return extent;
}

// The axis that may be the sequence where the given one is not: arrays differ in the number of heads.
std::string other_seq_axis(const ArrayView& array, const ArrayView& x) {
  for (int from_end = 2; from_end <= std::min(array.axes, x.axes); ++from_end) {
    const std::int64_t length = x.shape[x.axes - from_end];
    if (length == array.shape[array.axes - from_end] && x.axes - from_end > (x.axes > 3 ? 0 : -1)) {
      return joined({"give seq_axis=", -from_end, " if the sequence is the axis of ", length});
    }
  }
  return "bring both into one order of axes, such as by np.swapaxes, or rotate each in a call of its own";
}

void require_width(const ArrayView& array, const ExpectedHeads& heads) {
  if (array.last() < heads.rotary_dim) {
    refuse_value(array.name, {"has ", array.last(), " columns"},
                 {"at least ", heads.rotary_dim, ", those that are rotated"},
                 {"pass wider heads, or rotate by fewer pairs"});
  }
  if (heads.head_dim == 0 || array.last() == heads.head_dim || array.last() == heads.rotary_dim) return;
  const bool is_whole = heads.head_dim == heads.rotary_dim, are_several = array.last() % heads.head_dim == 0;
  const TextPart name = in_code(array.name);
  const std::string split = joined({", or pass ", name, ".reshape(*", name, ".shape[:-1], -1, ", heads.head_dim,
                                    ") with seq_axis=-3 if these are several heads"});
  refuse_value(
      array.name, {"has ", array.last(), " columns"},
      {heads.head_dim, " of a head", is_whole ? "" : joined({", or ", heads.rotary_dim, " of its part"})},
      {heads.partial, "head_dim=", array.last(), " if only a part of each head is rotated", are_several ? split : ""});
}

// `common` is the extent of the arrays before this one, and becomes theirs and this one's.
void require_like_x(const ArrayView& array, const RotateRequest& request, const char* per_row, Extent& common) {
  const ArrayView& x = request.arrays[0];
  if (array.axes != x.axes && request.seq_axis.value_or(-2) != -2) {
    refuse_shape(array, {"as many axes as ", x.name, ", ", shape_text(x), ", with seq_axis=", *request.seq_axis},
                 {"pass an axis of length 1 if one head is shared"});
  }
  const Extent extent = extent_of_heads(array, request);
  if (extent.seq_len != common.seq_len) {
    refuse_value(array.name,
                 {"has ", extent.seq_len, " rows along its sequence, axis ", seq_axis_of(array, request) - array.axes},
                 {common.seq_len, " as ", x.name, " has"}, {other_seq_axis(array, x)});
  }
  if (extent.batch_rows == common.batch_rows && extent.has_batch == common.has_batch) return;
  if (per_row != nullptr) {
    refuse_shape(array,
                 {"a batch of ", common.batch_rows, " as ", x.name, " has, since ", per_row, " is given for each row"},
                 {"rotate it in a call of its own"});
  }
  // All rows have the same positions: there is no batch then.
  common.batch_rows = 1;
  common.has_batch = common.has_batch && extent.has_batch;
}

}  // namespace

const char* rotated_name(std::size_t index) {
  constexpr const char* names[] = {"x", "the second array", "the third array", "the fourth array", "the fifth array"};
  return index < std::size(names) ? names[index] : "one of the arrays";
}

// Which axis is the sequence cannot be told from a shape, and another one is wrong in silence.
int seq_axis_of(const ArrayView& array, const RotateRequest& request) {
  if (!request.seq_axis && array.axes > 2) {
    refuse_value("seq_axis", {"is missing, and ", array.name, " has shape ", shape_text(array)},
                 {"the axis of the sequence"},
                 {"give seq_axis=-2 for [B, heads, L, D], -3 for [B, L, heads, D], 0 for packed [N, heads, D]"});
  }
  return seq_axis_of(array, request.seq_axis, "head_dim");
}

Extent checked_extent(const RotateRequest& request, const ExpectedHeads& heads) {
  const ArrayView& x = request.arrays[0];
  dtype_of(x);
  refuse_tables(request.arrays);
  const char* const per_row = per_row_argument(request, heads.coordinate_count);
  Extent extent;
  for (const ArrayView& array : request.arrays) {
    if (is_integer(array.dtype) || array.dtype == DType::boolean) {
      refuse_dtype(array, {name_of(x.dtype), " as ", x.name, " has"},
                   {"give positions=, offset=, by= and the like by their names"});
    }
    require_same_dtype(array, x);
    seq_axis_of(array, request);
    request.is_in_place ? require_writable(array, "rotate(.., out=)") : require_readable(array);
    require_width(array, heads);
    if (&array == &x) {
      extent = extent_of_heads(x, request);
    } else {
      require_like_x(array, request, per_row, extent);
    }
  }
  if (!request.is_in_place) return extent;
  for (const ArrayView& array : request.arrays) {
    for (const ArrayView* other = &x; other != &array; ++other) require_disjoint(*other, array);
  }
  return extent;
}

void check_tables(const GivenTables& tables, const ArrayView& x) {
  const ArrayView &cos = tables.cos, &sin = tables.sin;
  if ((cos.axes != 2 && cos.axes != 3) || cos.last() == 0) {
    refuse_shape(cos, {"[rows, pairs] or [B, L, pairs], one pair or more, and no axis of heads"});
  }
  require_shape(sin, Shape(cos));
  require_same_dtype(sin, cos);
  // Where whole heads are rotated, their width says how many pairs there are.
  const bool is_whole = tables.head_dim == 0;
  if (is_whole && x.axes > 0 && x.last() == cos.last()) refuse_columns_of_heads(cos, tables.interleaved);
  const ConstRows cosines = batched_table_of(cos), sines = batched_table_of(sin);
  if (!is_whole && have_twins(cosines, sines)) refuse_columns_of_heads(cos, tables.interleaved);
}

void require_table_dtype(const ArrayView& table, const ArrayView& x) {
  if (table.dtype == DType::float32 || table.dtype == x.dtype) return;
  refuse_dtype(table, {x.dtype == DType::float32 ? "" : "float32, or ", name_of(x.dtype), " as ", x.name, " has"},
               {conversion(table, name_of(x.dtype))});
}

}  // namespace fastpe
