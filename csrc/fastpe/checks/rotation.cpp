// SPDX-License-Identifier: BSD-3-Clause
#include "rotation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "fastpe/error.h"

namespace fastpe {
namespace {

constexpr const char* in_a_call_of_its_own = "rotate it in a call of its own";

// The argument that differs from row to row of a batch.
const char* per_row_argument(const PlacementArguments& arguments, int coordinate_count) {
  if (arguments.cu_seqlens.is_given()) return nullptr;
  const auto differs = [](const ArrayView& array, int axes) {
    return array.is_given() && array.axes >= axes && array.shape[0] != 1;
  };
  if (differs(arguments.offsets, 1)) return arguments.offsets.name;
  if (differs(arguments.lengths, 1)) return arguments.lengths.name;
  if (differs(arguments.positions, coordinate_count > 0 ? 3 : 2)) return arguments.positions.name;
  return differs(arguments.valid, 2) ? arguments.valid.name : nullptr;
}

// Whether each column is there twice: at k and at k + distance for k = 0, step, 2 step .. Rows whose columns are all
// alike, as those of position 0 and of padding, say nothing.
bool has_twins(const ConstRows& table, std::int64_t twins, std::int64_t step, std::int64_t distance) {
  const std::int64_t bytes = element_bytes(table.dtype);
  bool is_told = false;
  for (std::int64_t row = table.item_count * table.seq_len - 1; row >= 0; --row) {
    const char* const data = row_of(table, row);
    const auto are_equal = [&](std::int64_t one, std::int64_t other, std::int64_t columns) {
      return std::memcmp(data + one * bytes, data + other * bytes, static_cast<std::size_t>(columns * bytes)) == 0;
    };
    if (are_equal(0, 1, 2 * twins - 1)) continue;
    for (std::int64_t k = 0; k < twins; ++k) {
      if (!are_equal(k * step, k * step + distance, 1)) return false;
    }
    is_told = true;
  }
  return is_told;
}

enum class Twins { none, tiled, repeated };
Twins twins_of(const ConstRows& cosines, const ConstRows& sines) {
  const std::int64_t columns = cosines.columns, half = columns / 2;
  if (columns % 2 != 0) return Twins::none;
  if (has_twins(cosines, half, 1, half) && has_twins(sines, half, 1, half)) return Twins::tiled;
  return has_twins(cosines, half, 2, 1) && has_twins(sines, half, 2, 1) ? Twins::repeated : Twins::none;
}

// Whether the points (cosine, sine) of all columns of one row lie on one circle around 0, and are not all one point.
bool are_on_circle(const NumbersView& cosines, const NumbersView& sines, std::int64_t columns) {
  constexpr double rounding = 1e-4;  // of float32, with room to spare
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  bool are_all_same = true;
  for (std::int64_t k = 0; k < columns; ++k) {
    const double cosine = cosines.at(0, k).value, sine = sines.at(0, k).value;
    const double squared_radius = cosine * cosine + sine * sine;
    if (!(squared_radius > 0.0)) return false;
    least = std::min(least, squared_radius);
    most = std::max(most, squared_radius);
    are_all_same = are_all_same && cosine == cosines.at(0, 0).value;
  }
  return !are_all_same && most <= least * (1.0 + rounding);
}

bool are_cosines_and_sines(const ArrayView& cos, const ArrayView& sin) {
  constexpr std::ptrdiff_t fewest_columns = 4;  // fewer may lie on a circle by chance
  const bool is_wide = cos.dtype == DType::float32 || cos.dtype == DType::float64;
  if (!is_wide || cos.dtype != sin.dtype || cos.axes != sin.axes || cos.axes == 0 || cos.is_empty() ||
      !std::equal(cos.shape, cos.shape + cos.axes, sin.shape) || cos.last() < fewest_columns) {
    return false;
  }
  const auto last_row = [](const ArrayView& array) {
    const char* data = array.data;
    for (int axis = 0; axis + 1 < array.axes; ++axis) data += (array.shape[axis] - 1) * array.strides_bytes[axis];
    return NumbersView{data, array.dtype, 0, array.last_stride_bytes()};
  };
  return are_on_circle(last_row(cos), last_row(sin), cos.last());
}

}  // namespace

const char* rotated_name(std::size_t index) {
  constexpr const char* names[] = {"x", "the second array", "the third array", "the fourth array", "the fifth array"};
  return index < std::size(names) ? names[index] : "one of the arrays";
}

RotationChecks::RotationChecks(Slice<ArrayView> arrays, const PlacementArguments& arguments, const Rules& rules)
    : arrays_(arrays), rules_(rules), is_packed_(arguments.cu_seqlens.is_given()) {
  dtype_of(x());
  refuse_tables();
  const char* const per_row = per_row_argument(arguments, rules.coordinate_count);
  for (const ArrayView& array : arrays_) {
    if (is_integer(array.dtype) || array.dtype == DType::boolean) {
      refuse_type(array.name, {"has dtype ", name_of(array.dtype)}, {name_of(x().dtype), " as ", x().name, " has"},
                  {"give positions=, offset=, by= and the like by their names"});
    }
    require_same_dtype(array, x());
    seq_axis_of(array);
    rules.in_place ? require_writable(array, "rotate(.., out=)") : require_readable(array);
    if (array.last() < rules.rotary_dim) {
      refuse_value(array.name, {"has ", array.last(), " columns"},
                   {"at least ", rules.rotary_dim, ", those that are rotated"},
                   {"pass wider heads, or ", rules.narrower});
    }
    if (rules.head_dim != 0 && array.last() != rules.head_dim && array.last() != rules.rotary_dim) {
      const std::string part =
          rules.head_dim == rules.rotary_dim ? "" : joined({", or ", rules.rotary_dim, " of its part"});
      refuse_value(array.name, {"has ", array.last(), " columns"}, {rules.head_dim, " of a head", part},
                   {"pass heads, such as ", in_code(array.name), ".reshape(.., heads, ", rules.head_dim,
                    ") with seq_axis=-3, or give head_dim= if only a part of a head is rotated"});
    }
    if (&array == &x()) {
      extent_ = extent_of_array(array);
    } else {
      check_like_x(array, per_row);
    }
  }
  if (!rules.in_place) return;
  for (const ArrayView& array : arrays_) {
    for (const ArrayView* other = arrays_.items; other != &array; ++other) require_disjoint(*other, array);
  }
}

// Which axis is the sequence cannot be told from a shape, and another one is wrong in silence.
int RotationChecks::seq_axis_of(const ArrayView& array) const {
  if (!rules_.seq_axis && array.axes > 2) {
    refuse_value("seq_axis", {"is missing, and ", array.name, " has shape ", shape_text(array)},
                 {"the axis of the sequence"},
                 {"give seq_axis=-2 for [B, heads, L, D], -3 for [B, L, heads, D], 0 for packed [N, heads, D]"});
  }
  return fastpe::seq_axis_of(array, rules_.seq_axis, "head_dim");
}

// Heads are all axes but the batch's, the sequence's and the last.
Extent RotationChecks::extent_of_array(const ArrayView& array) const {
  const int seq_axis = seq_axis_of(array);
  const bool has_batch = !is_packed_ && array.axes > 2 && !(array.axes == 3 && seq_axis == 0);
  return {has_batch ? array.shape[seq_axis == 0 ? 1 : 0] : 1, array.shape[seq_axis], has_batch, seq_axis_remedy};
}

// Cosines and sines among the queries and keys would be rotated as well. They have no axis of heads.
void RotationChecks::refuse_tables() const {
  for (std::size_t i = 1; i + 1 < arrays_.count; ++i) {
    if (arrays_[i].axes >= x().axes || !are_cosines_and_sines(arrays_[i], arrays_[i + 1])) continue;
    refuse_value(arrays_[i].name, {"and the next array are cosines and sines"}, {"only queries and keys"},
                 {"leave them out of the call of an embedding, or call fastpe.rotate_by_tables_(q, k, cos=.., sin=.., "
                  "interleaved=..)"});
  }
}

// The axis that may be the sequence where the given one is not: arrays differ in the number of heads.
std::string RotationChecks::other_seq_axis(const ArrayView& array) const {
  for (int from_end = 2; from_end <= std::min(array.axes, x().axes); ++from_end) {
    const std::int64_t length = x().shape[x().axes - from_end];
    if (length == array.shape[array.axes - from_end] && x().axes - from_end > (x().axes > 3 ? 0 : -1)) {
      return joined({"give seq_axis=", -from_end, " if the sequence is the axis of ", length});
    }
  }
  return "bring both into one order of axes, such as by np.swapaxes, or rotate each in a call of its own";
}

void RotationChecks::check_like_x(const ArrayView& array, const char* per_row) {
  const bool counts_from_end = rules_.seq_axis.value_or(-2) == -2;
  if (array.axes != x().axes && !counts_from_end) {
    refuse_value(array.name, {"has shape ", shape_text(array)},
                 {"as many axes as ", x().name, ", ", shape_text(x()), ", with seq_axis=", *rules_.seq_axis},
                 {"pass an axis of length 1 if one head is shared"});
  }
  const Extent extent = extent_of_array(array);
  if (extent.seq_len != extent_.seq_len) {
    refuse_value(array.name,
                 {"has ", extent.seq_len, " rows along its sequence, axis ", seq_axis_of(array) - array.axes},
                 {extent_.seq_len, " as ", x().name, " has"}, {other_seq_axis(array)});
  }
  if (extent.batch_rows == extent_.batch_rows && extent.has_batch == extent_.has_batch) return;
  if (per_row != nullptr) {
    refuse_value(
        array.name, {"has shape ", shape_text(array)},
        {"a batch of ", extent_.batch_rows, " as ", x().name, " has, since ", per_row, " is given for each row"},
        {in_a_call_of_its_own});
  }
  // All rows have the same positions: there is no batch then.
  extent_.batch_rows = 1;
  extent_.has_batch = extent_.has_batch && extent.has_batch;
}

CheckedTables checked_tables(const ArrayView& cos, const ArrayView& sin, const ArrayView& x, std::int64_t head_dim) {
  if ((cos.axes != 2 && cos.axes != 3) || cos.last() == 0) {
    refuse_value("cos", {"has shape ", shape_text(cos)}, {"[rows, pairs] or [B, L, pairs], one pair or more"},
                 {cos.axes > 3 ? "take out the axis of heads, such as cos[:, 0]" : ""});
  }
  require_shape(sin, Shape(cos));
  require_same_dtype(sin, cos);
  const CheckedTables tables{batched_table_of(cos), batched_table_of(sin)};
  // Where whole heads are rotated, their width says how many pairs there are.
  if (head_dim == 0 && (x.axes == 0 || x.last() != cos.last())) return tables;
  const Twins twins = twins_of(tables.cosines, tables.sines);
  if (twins == Twins::none) return tables;
  refuse_value("cos", {"has each column twice, and so has sin"}, {"[.., pairs]: one for each pair of columns"},
               {twins == Twins::tiled ? joined({"pass cos[..., :", cos.last() / 2, "]"})
                                      : std::string("pass np.ascontiguousarray(cos[..., ::2])"),
                ", and the same of sin"});
}

void require_table_dtype(const ArrayView& table, const ArrayView& x) {
  if (table.dtype == DType::float32 || table.dtype == x.dtype) return;
  refuse_type(table.name, {"has dtype ", name_of(table.dtype)},
              {x.dtype == DType::float32 ? "" : "float32, or ", name_of(x.dtype), " as ", x.name, " has"},
              {conversion(table, name_of(x.dtype))});
}

}  // namespace fastpe
