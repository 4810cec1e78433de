// SPDX-License-Identifier: BSD-3-Clause
// A call in the making: arguments checked against each other, views of their arrays, and the job run at last.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"

namespace fastpe::bindings {

struct Keywords {
  PyObject* offset = nullptr;
  PyObject* positions = nullptr;
  PyObject* mask = nullptr;
  PyObject* lengths = nullptr;
  PyObject* cu_seqlens = nullptr;
};

// The job and the arrays that its views point into.
struct Call {
  Job job;
  RowsView x;
  std::vector<py::array> kept;

  py::array keep(py::array array) {
    kept.push_back(array);
    return array;
  }
};

struct Extent {
  std::int64_t rows;  // of per-row arguments: the first batch axis, or 1 without one
  std::int64_t seq_len;
  bool has_batch;
};

Extent extent_of(const RowsView& view);

void refuse_together(PyObject* a, const char* a_name, PyObject* b, const char* b_name);

// One integer per row: an int for all of them, or an array [rows].
NumbersView per_row_integers(Call& call, PyObject* object, std::int64_t rows, const char* name, const char* axis);

void set_mask(Call& call, PyObject* mask, const Extent& extent);

// Positions and validity of the rows of `view`.
void set_rows(Call& call, const Keywords& k, const RowsView& view);

// The first of the encoding's columns.
std::int64_t channels_argument(PyObject* channels, std::int64_t d_model, std::int64_t columns, const char* name);

int seq_axis_argument(PyObject* object, const py::array& x);

TableView learned_argument(Call& call, PyObject* object, const py::array& like, const char* like_name,
                           std::int64_t columns, const char* name);

// `out` as given, checked, or a new array.
py::array output(PyObject* out, const py::dtype& dtype, const std::vector<py::ssize_t>& shape);

void refuse_shared_inputs(const Call& call, const py::array& out);

// Runs the job; a signal's exception where it was interrupted.
void finish(const Call& call);

}  // namespace fastpe::bindings
