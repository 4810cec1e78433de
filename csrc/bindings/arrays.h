// SPDX-License-Identifier: BSD-3-Clause
// NumPy arrays in, views out. Nothing is converted here that a caller would have to see again: what does not fit is
// refused with a message that names the argument, what was found, what was expected, and the remedy.
#pragma once

#include <pybind11/numpy.h>

#include <string>
#include <vector>

#include "fastpe/apply.h"

namespace fastpe::bindings {

namespace py = pybind11;

enum class Access { read, write };

// Exactly a numpy.ndarray: what nearly every call passes, told in no time.
bool is_ndarray(PyObject* object);

// The array behind an object, never a copy: an ndarray, or anything with the buffer protocol or __array_interface__.
py::array array_of(PyObject* object, const char* name);

// The dtype as the core knows it; a TypeError for any other.
DType dtype_of(const py::array& array, const char* name);
DType dtype_of(const py::dtype& dtype, const char* name);

void require_native_order(const py::dtype& dtype, const char* name);

// Aligned, native byte order and, for writing, writable and without overlap in itself.
void require_access(const py::array& array, const char* name, Access access);

// Rows along seq_axis, columns along the last axis, all other axes the batch.
RowsView rows_of(const py::array& array, DType dtype, int seq_axis);

// [rows, columns] with contiguous columns.
TableView table_of(const py::array& array, const char* name);

void require_shape(const py::array& array, const std::vector<py::ssize_t>& shape, const char* name);
void require_dtype(const py::array& array, const py::array& like, const char* name, const char* like_name);

// A ValueError where the two share memory. The same elements in the same place are no partial overlap.
bool is_same_memory(const py::array& a, const py::array& b);
void require_disjoint(const py::array& a, const char* a_name, const py::array& b, const char* b_name);

// A new array of the shape; a ValueError where its size in bytes overflows.
py::array new_array(const py::dtype& dtype, const std::vector<py::ssize_t>& shape);

// An array of numbers, from any array-like: such inputs are only read, so a conversion changes nothing for the caller.
enum class Numbers { integers, integers_or_floats };
py::array numbers_of(PyObject* object, const char* name, Numbers kind);
NumberType number_type_of(const py::array& array);

std::string shape_text(const std::vector<py::ssize_t>& shape);
std::string shape_text(const py::array& array);
std::string type_name(PyObject* object);

inline py::ssize_t last(const py::array& array) { return array.shape(array.ndim() - 1); }

}  // namespace fastpe::bindings
