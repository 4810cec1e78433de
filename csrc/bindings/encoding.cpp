// SPDX-License-Identifier: BSD-3-Clause
// The methods of the class Encoding.
#include "fastpe/requests/encoding.h"

#include "call.h"

namespace fastpe::bindings {
namespace {

PyObject* encode(Encoding& self, const Arguments& a) {
  PythonCall call;
  EncodeRequest request;
  call.to_write_if_given(request.out, a.out);
  request.dtype = dtype_argument(a.dtype);
  call.fill_written(request, a);

  call.take_views();
  fastpe::encode(self, request, call);
  return call.returned(a.out);
}

// A part of x holds the encoding's columns from first_column on, and x all of them.
template <bool is_in_place, bool is_part>
PyObject* add(Encoding& self, const Arguments& a) {
  PythonCall call;
  AddRequest request;
  request.is_in_place = is_in_place;
  is_in_place ? call.to_write(request.x, a.x, "x") : call.to_read(request.x, a.x, "x");
  call.to_write_if_given(request.out, a.out);
  call.to_read_if_given(request.table, a.table, "table");
  if (a.seq_axis == Py_None) refuse_type("seq_axis", {"is None"}, {"an int, an axis of x other than the last"});
  request.seq_axis = seq_axis_argument(a.seq_axis);
  if (is_part) request.first_column = integer_argument(a.first_column);
  call.fill(request, a);
  request.factors = {factor_argument(a.scale, "scale"), factor_argument(a.alpha, "alpha")};

  call.take_views();
  fastpe::add(&self, request, call);
  return call.returned(is_in_place ? a.x : a.out);
}

PyObject* embed(Encoding& self, const Arguments& a) {
  PythonCall call;
  EmbedRequest request;
  call.to_read(request.table, a.table, "table");
  call.numbers(request.ids, a.ids, "ids", Numbers::integers, Gaps::removed);
  call.to_read_if_given(request.position_table, a.position_table, "position_table");
  call.to_write_if_given(request.out, a.out);
  call.fill(request, a);
  request.factors = {is_given(a.scale) ? number_from(a.scale, "scale") : self.embedding_scale,
                     factor_argument(a.alpha, "alpha")};

  call.take_views();
  fastpe::embed(self, request, call);
  return call.returned(a.out);
}

}  // namespace

#define FASTPE_ADD "x, *" FASTPE_PLACEMENT ", scale=1.0, alpha=1.0, seq_axis=-2, table=None, num_threads=None"

void add_encoding_methods(py::handle type) {
  add_common_methods<Encoding>(type);
  add_method<encode>(type, "encode",
                     "positions, *, dtype=None, offset=None, valid=None, lengths=None, num_threads=None, out=None");
  add_method<add<true, false>>(type, "add_", FASTPE_ADD);
  add_method<add<false, false>>(type, "add", FASTPE_ADD ", out=None");
  add_method<add<false, true>>(type, "_add_part",
                               "x, first_column, *" FASTPE_PLACEMENT
                               ", scale=1.0, alpha=1.0, seq_axis=-2, num_threads=None, out=None");
  add_method<embed>(type, "embed",
                    "ids, table, *" FASTPE_PLACEMENT
                    ", scale=None, alpha=1.0, position_table=None, num_threads=None, out=None");
}

}  // namespace fastpe::bindings
