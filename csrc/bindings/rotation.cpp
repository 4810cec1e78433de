// SPDX-License-Identifier: BSD-3-Clause
#include "rotation.h"

#include <algorithm>
#include <iterator>

#include "fastpe/sources/rotary_tables.h"

namespace fastpe::bindings {
namespace {

// Whether something was given for each row of a batch apart.
bool is_per_row(const Array& array, int axes) { return array && array.ndim() >= axes && array.shape(0) != 1; }

const char* per_row_argument(const Inputs& inputs, int coordinate_axes) {
  if (inputs.cu_seqlens) return nullptr;
  if (is_per_row(inputs.offsets, 1)) return "offset";
  if (is_per_row(inputs.lengths, 1)) return "lengths";
  if (is_per_row(inputs.positions, 2 + coordinate_axes)) return inputs.positions_name;
  if (is_per_row(inputs.mask, 2)) return "mask";
  return nullptr;
}

// A packed array [N, heads, D] without seq_axis=0 would have its heads cut into sequences.
void suggest_first_axis(const Array& x, int seq_axis, const Array& cu_seqlens) {
  if (cu_seqlens.ndim() != 1 || cu_seqlens.shape(0) < 1) return;
  const std::int64_t last_row = cu_seqlens.shape(0) - 1;
  const std::int64_t rows = numbers_view(cu_seqlens, "cu_seqlens", Numbers::integers).integer_at(0, last_row);
  if (rows == x.shape(seq_axis) || rows != x.shape(0)) return;
  throw py::value_error("cu_seqlens ends at " + std::to_string(rows) + ", expected the number of rows along axis " +
                        std::to_string(seq_axis) + " of x, " + shape_text(x) + "; give seq_axis=0 for [N, heads, D]");
}

const char* name_of(std::size_t index) {
  constexpr const char* names[] = {"x", "others[0]", "others[1]", "others[2]", "others[3]"};
  return index < std::size(names) ? names[index] : "one of the others";
}

constexpr const char* by_their_names = "; give positions=, offset=, by= and the like by their names";

// Whether it is a number, or a list that begins with an integer.
bool are_positions(PyObject* object) {
  if (PyLong_Check(object) || PyFloat_Check(object)) return true;
  auto first = py::reinterpret_borrow<py::object>(object);
  for (int axis = 0; axis < 2 && (PyList_Check(first.ptr()) || PyTuple_Check(first.ptr())); ++axis) {
    if (py::len(first) == 0) return false;
    first = run_python([&] { return PySequence_GetItem(first.ptr(), 0); });
  }
  return PyLong_Check(first.ptr()) != 0;
}

void refuse_numbers(const Array& array, const char* name, const Array& x) {
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u' && kind != 'b') return;
  throw py::type_error(std::string(name) + " has dtype " + str_of(array.dtype()) + ", expected " + str_of(x.dtype()) +
                       " as x has" + by_their_names);
}

NumbersView last_row(const Array& array) {
  const char* data = static_cast<const char*>(array.data());
  for (py::ssize_t axis = 0; axis + 1 < array.ndim(); ++axis) data += (array.shape(axis) - 1) * array.strides(axis);
  const NumberType type = array.itemsize() == 4 ? NumberType::float32 : NumberType::float64;
  return {data, type, 0, array.strides(array.ndim() - 1)};
}

bool are_cosines_and_sines(const Array& cos, const Array& sin) {
  constexpr py::ssize_t fewest_columns = 4;  // fewer may lie on a circle by chance
  const bool is_float = cos.dtype().kind() == 'f' && cos.itemsize() >= 4 && cos.dtype().num() == sin.dtype().num();
  const bool has_same_shape =
      cos.ndim() == sin.ndim() && std::equal(cos.shape(), cos.shape() + cos.ndim(), sin.shape());
  if (!is_float || !has_same_shape || cos.ndim() == 0 || cos.size() == 0 || last(cos) < fewest_columns) return false;
  return are_on_circle(last_row(cos), last_row(sin), last(cos));
}

}  // namespace

void RotationArrays::take(PyObject* x, const Others& others, Access access) {
  taken_.reserve(1 + static_cast<std::size_t>(others.other_count));
  taken_.push_back({access == Access::write ? array_of(x, "x") : array_from(x, "x")});
  for (Py_ssize_t i = 0; i < others.other_count; ++i) {
    PyObject* const other = others.others[i];
    const char* const name = name_of(taken_.size());
    if (!is_ndarray(other) && are_positions(other)) {
      const bool is_sequence = PyList_Check(other) || PyTuple_Check(other);
      throw py::type_error(std::string(name) + " is " +
                           (is_sequence ? "a " + type_name(other) + " of integers" : repr_of(other)) +
                           ", expected a numpy.ndarray" + by_their_names);
    }
    taken_.push_back({array_of(other, name)});
  }
}

// Heads are all axes but the batch's, the sequence's and the last.
Extent RotationArrays::Taken::extent(bool is_packed) const {
  const bool has_batch = !is_packed && array.ndim() > 2 && !(array.ndim() == 3 && seq_axis == 0);
  Extent extent{has_batch ? array.shape(seq_axis == 0 ? 1 : 0) : 1, array.shape(seq_axis), has_batch};
  if (array.ndim() > 2 && seq_axis == array.ndim() - 2) {
    if (array.ndim() > 3) extent.other_rows = array.shape(0);
    extent.other_seq_len = array.shape(seq_axis - 1);
  }
  return extent;
}

void RotationArrays::check(const Requirement& requirement, const Inputs& inputs) {
  dtype_ = dtype_of(x(), "x", requirement.access);
  const char* const per_row = per_row_argument(inputs, requirement.coordinate_axes);
  refuse_tables();
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const Array& array = taken_[i].array;
    const char* const name = name_of(i);
    if (i > 0) {
      refuse_numbers(array, name, x());
      require_dtype(array, x(), name, "x");
    }
    taken_[i].seq_axis = seq_axis_of(requirement.seq_axis, array, name, "head_dim");
    require_access(array, name, requirement.access, requirement.instead);
    if (last(array) < requirement.rotary_dim) {
      throw py::value_error(std::string(name) + " has " + std::to_string(last(array)) + " columns, expected at least " +
                            std::to_string(requirement.rotary_dim) + ", those that are rotated; pass wider heads, or " +
                            requirement.narrower);
    }
    const Extent extent = taken_[i].extent(static_cast<bool>(inputs.cu_seqlens));
    if (i == 0) {
      extent_ = extent;
      if (!requirement.seq_axis && inputs.cu_seqlens) suggest_first_axis(array, taken_[i].seq_axis, inputs.cu_seqlens);
    } else {
      check_like_first(array, name, extent, requirement, per_row);
    }
  }
  if (per_row != nullptr && !extent_.has_batch) {
    const bool has_heads = x().ndim() == 3;
    const std::string positions = inputs.positions_name;
    throw py::value_error(std::string(per_row) + " is given for each row of a batch, but x, " + shape_text(x()) +
                          (has_heads ? ", [N, heads, D], has no batch axis; pass " + positions + "=[N], or x[:, None]"
                                     : ", has no batch axis; pass " + positions +
                                           "=[L], or x[None], or x[:, None] of rows of several sequences"));
  }
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) require_disjoint(taken_[j].array, name_of(j), taken_[i].array, name_of(i));
  }
}

// Cosines and sines among the queries and keys would be rotated as well. They have no axis of heads.
void RotationArrays::refuse_tables() const {
  for (std::size_t i = 1; i + 1 < taken_.size(); ++i) {
    const Array &cos = taken_[i].array, &sin = taken_[i + 1].array;
    if (cos.ndim() >= x().ndim() || !are_cosines_and_sines(cos, sin)) continue;
    throw py::value_error(std::string(name_of(i)) + " and " + name_of(i + 1) +
                          " are cosines and sines, expected queries and keys alone; leave them out of the call of an "
                          "embedding, or call fastpe.rotate_(q, k, cos=.., sin=.., interleaved=..)");
  }
}

void RotationArrays::check_like_first(const Array& array, const char* name, const Extent& extent,
                                      const Requirement& requirement, const char* per_row) {
  const bool counts_from_end = !requirement.seq_axis || *requirement.seq_axis == -2;
  if (array.ndim() != x().ndim() && !counts_from_end) {
    const bool is_shorter = array.ndim() < x().ndim();
    std::string index = "[";
    for (py::ssize_t i = 1; i < std::min(array.ndim(), x().ndim()); ++i) index += ":, ";
    index += "None]";
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected as many axes as x, " +
                          shape_text(x()) + ", with seq_axis=" + std::to_string(*requirement.seq_axis) + "; pass " +
                          (is_shorter ? name : name_of(0)) + index + " if one head is shared");
  }
  if (extent.seq_len != extent_.seq_len) {
    throw py::value_error(std::string(name) + " has " + std::to_string(extent.seq_len) +
                          " rows along its sequence, expected " + std::to_string(extent_.seq_len) +
                          " as x has; rotate it in a call of its own");
  }
  if (extent.rows == extent_.rows && extent.has_batch == extent_.has_batch) return;
  if (per_row != nullptr) {
    throw py::value_error(std::string(name) + " has shape " + shape_text(array) + ", expected a batch of " +
                          std::to_string(extent_.rows) + " as x has, since " + per_row +
                          " is given for each row; rotate it in a call of its own");
  }
  // All rows have the same positions: there is no batch then.
  extent_ = {1, extent_.seq_len, extent_.has_batch && extent.has_batch};
}

void RotationArrays::refuse_shared(const Inputs& inputs) const {
  for (std::size_t i = 0; i < taken_.size(); ++i) refuse_shared_inputs(inputs, taken_[i].array, name_of(i));
}

std::vector<RotatedArray> RotationArrays::in_place() {
  std::vector<RotatedArray> rotated;
  rotated.reserve(taken_.size());
  for (Taken& each : taken_) {
    const Rows rows = writable_rows_of(each.array, dtype_, each.seq_axis);
    rotated.push_back({read_only(rows), rows});
  }
  return rotated;
}

}  // namespace fastpe::bindings
