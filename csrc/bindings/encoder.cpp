// SPDX-License-Identifier: BSD-3-Clause
// The methods of the class Encoder.
#include <cstdint>
#include <optional>

#include "call.h"
#include "classes.h"
#include "fastpe/requests/encoding.h"

namespace fastpe::bindings {
namespace {

// ---- add_, add

#define FASTPE_ADD "x, *, " FASTPE_PLACEMENT ", scale=1.0, alpha=1.0, seq_axis=-2, table=None, num_threads=None"
struct AddArguments {
  PyObject* x;
  PlacementObjects placement;
  PyObject *scale, *alpha, *seq_axis, *table, *num_threads;
};
struct AddApartArguments {
  AddArguments common;
  PyObject* out;
};

// For an x that holds the encoding's columns from first_column on.
struct AddColumnsArguments {
  PyObject *x, *first_column;
  PlacementObjects placement;
  PyObject *scale, *alpha, *seq_axis, *num_threads, *out;
};

PyObject* add_either_way(BoundEncoder& self, const AddArguments& a, bool in_place, PyObject* out,
                         std::optional<std::int64_t> first_column = std::nullopt) {
  PythonCall call;
  AddRequest request;
  request.is_in_place = in_place;
  in_place ? call.to_write(request.x, a.x, "x") : call.to_read(request.x, a.x, "x");
  call.to_write_if_given(request.out, out);
  call.to_read_if_given(request.table, a.table, "table");
  if (a.seq_axis == Py_None) refuse_type("seq_axis", {"is None"}, {"an int, an axis of x other than the last"});
  request.seq_axis = seq_axis_argument(a.seq_axis);
  request.first_column = first_column;
  call.place(request.placement, a.placement);
  request.factors = {factor_argument(a.scale, "scale"), factor_argument(a.alpha, "alpha")};
  request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::add(&self, request, call);
  return call.returned(in_place ? a.x : out);
}

PyObject* add_in_place(BoundEncoder& self, const AddArguments& a) { return add_either_way(self, a, true, nullptr); }
PyObject* add(BoundEncoder& self, const AddApartArguments& a) { return add_either_way(self, a.common, false, a.out); }
PyObject* add_columns(BoundEncoder& self, const AddColumnsArguments& a) {
  const AddArguments common{a.x, a.placement, a.scale, a.alpha, a.seq_axis, nullptr, a.num_threads};
  return add_either_way(self, common, false, a.out, integer_argument(a.first_column));
}

// ---- encode

struct EncodeArguments {
  PyObject *positions, *dtype, *offset, *valid, *lengths, *num_threads, *out;
};

PyObject* encode(BoundEncoder& self, const EncodeArguments& a) {
  PythonCall call;
  EncodeRequest request;
  call.to_write_if_given(request.out, a.out);
  request.dtype = dtype_argument(a.dtype);
  call.place_written(request.placement, a.positions, {a.offset, nullptr, a.valid, a.lengths});
  request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::encode(self, request, call);
  return call.returned(a.out);
}

// ---- embed

struct EmbedArguments {
  PyObject *ids, *table;
  PlacementObjects placement;
  PyObject *scale, *alpha, *position_table, *num_threads, *out;
};

PyObject* embed(BoundEncoder& self, const EmbedArguments& a) {
  PythonCall call;
  EmbedRequest request;
  call.to_read(request.table, a.table, "table");
  call.numbers(request.ids, a.ids, "ids", Numbers::integers, Order::contiguous);
  call.to_read_if_given(request.position_table, a.position_table, "position_table");
  call.to_write_if_given(request.out, a.out);
  call.place(request.placement, a.placement);
  request.padding_idx = self.padding_idx;
  request.factors = {is_given(a.scale) ? number_from(a.scale, "scale") : self.embedding_scale,
                     factor_argument(a.alpha, "alpha")};
  request.max_threads = threads_argument(a.num_threads);

  call.take_views();
  fastpe::embed(self, request, call);
  return call.returned(a.out);
}

}  // namespace

void add_encoder_methods(py::handle type) {
  add_common_methods<BoundEncoder>(type);
  add_method<encode>(type, "encode",
                     "positions, *, dtype=None, offset=None, valid=None, lengths=None, num_threads=None, out=None");
  add_method<add_in_place>(type, "add_", FASTPE_ADD);
  add_method<add>(type, "add", FASTPE_ADD ", out=None");
  add_method<add_columns>(type, "_add_columns",
                          "x, first_column, *, " FASTPE_PLACEMENT
                          ", scale=1.0, alpha=1.0, seq_axis=-2, num_threads=None, out=None");
  add_method<embed>(type, "embed",
                    "ids, table, *, " FASTPE_PLACEMENT
                    ", scale=None, alpha=1.0, position_table=None, num_threads=None, out=None");
}

}  // namespace fastpe::bindings
