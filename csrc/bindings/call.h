// SPDX-License-Identifier: BSD-3-Clause
// A call in the making, of which every method makes two phases:
//
//   1. Whatever can run Python code: arguments become plain numbers and ndarrays that the call owns. A caller's
//      __index__, __float__, __array__, __getattr__ .. may meanwhile reshape any array, also one that was taken before.
//   2. Shapes, strides, dtypes and pointers are taken and checked against each other. No Python code runs, so that what
//      was checked holds: the functions of this phase take no PyObject.
//
// Then the call runs, on views of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "arrays.h"
#include "fastpe/call/run.h"
#include "method.h"
#include "scalars.h"

namespace fastpe::bindings {

// ---- Phase 1

// Which rows there are and where, of every method that takes an array of them.
#define FASTPE_ROW_ARGUMENTS(Optional)                                                          \
  Optional(offset, None) Optional(positions, None) Optional(mask, None) Optional(lengths, None) \
      Optional(cu_seqlens, None)

struct RowArguments {
  FASTPE_ROW_ARGUMENTS(FASTPE_MEMBER_O)
};

template <class Arguments>
RowArguments row_arguments(const Arguments& a) {
#define FASTPE_TAKEN(name, otherwise) a.name,
  return {FASTPE_ROW_ARGUMENTS(FASTPE_TAKEN)};
#undef FASTPE_TAKEN
}

// All that is only read, but for x; what was not given is none.
struct Inputs {
  std::optional<std::int64_t> offset;
  Array offsets, positions, mask, lengths, cu_seqlens;
  const char* positions_name = "positions";
  Array learned;          // a table instead of the encoding
  Array vocabulary, ids;  // of embed
  Array cosines, sines;   // tables of a rotation
};

[[noreturn]] void raise_given_together(const char* a_name, const char* b_name);

inline void refuse_together(PyObject* a, const char* a_name, PyObject* b, const char* b_name) {
  if (is_given(a) && is_given(b)) raise_given_together(a_name, b_name);
}

void read_rows(Inputs& inputs, const RowArguments& rows);

// Nothing where no seq_axis was given.
std::optional<std::int64_t> seq_axis_argument(PyObject* object);

py::dtype dtype_argument(PyObject* object);

// A number of positions; nothing where the object is to be an array of them.
std::optional<std::int64_t> position_count(PyObject* object);

struct Channels {
  std::int64_t first = 0, end = 0;
};
Channels channels_from(PyObject* channels, std::int64_t d_model);

inline std::optional<Channels> channels_argument(PyObject* channels, std::int64_t d_model) {
  if (!is_given(channels)) return std::nullopt;
  return channels_from(channels, d_model);
}

// ---- Phase 2

// What a call is made of beside its source and its operation.
struct PendingCall {
  Positions positions;
  Validity validity;
  int max_threads = 1;
  bool is_in_place = false;  // The output holds the input, which a second call would change once more.
};

// What per-row arguments are given for: the first axis of a batch, or 1 without one, and the sequence.
struct Extent {
  std::int64_t rows;
  std::int64_t seq_len;
  bool has_batch;
  // The same if the axis before were the sequence's, for errors; none for calls without seq_axis=.
  std::int64_t other_rows = 1;
  std::int64_t other_seq_len = -1;
};

Extent extent_of(const Array& array, int seq_axis);

void set_mask(PendingCall& call, const Array& mask, const Extent& extent);
void set_lengths(PendingCall& call, const Array& lengths, const Extent& extent);

// Positions and validity of the rows.
void set_rows(PendingCall& call, const Inputs& inputs, const Extent& extent);

// Positions that are given, one for each row; with several coordinates, the array has one more axis at the end.
void set_explicit_positions(PendingCall& call, const Array& positions, const Extent& extent, const char* name,
                            int coordinate_count = 0);

// The same of any shape, which is the result's too, but for its columns.
void set_any_positions(PendingCall& call, const Array& positions, const char* name, int coordinate_count = 0);
NumbersView numbers_view(const Array& array, const char* name, Numbers numbers);

// The shape of counted positions: a batch axis comes from the arguments that have one.
Shape counted_shape(const Inputs& inputs, std::int64_t count);

inline Shape shape_of(const Array& array) { return {array.shape(), array.shape() + array.ndim()}; }

// The dtype asked for, or else that of `out`, or else float32.
py::dtype result_dtype(const py::object& asked, const Array& out);

std::int64_t checked_first_channel(const std::optional<Channels>& channels, std::int64_t d_model, std::int64_t columns,
                                   const char* name);

// The first of the encoding's columns.
inline std::int64_t first_channel(const std::optional<Channels>& channels, std::int64_t d_model, std::int64_t columns,
                                  const char* name) {
  return !channels && columns == d_model ? 0 : checked_first_channel(channels, d_model, columns, name);
}

int seq_axis_of(const std::optional<std::int64_t>& seq_axis, const Array& array, const char* name = "x",
                const char* last_axis = "d_model");

TableView learned_table(const Array& table, const Array& like, const char* like_name, std::int64_t columns,
                        const char* name);

// `given` checked, or a new array. `like` is the argument that has the dtype, if no dtype can be asked for.
Array output(Array given, const py::dtype& dtype, const Shape& shape, const char* like, const char* name = "out");

// The message names both arrays where `out` has a name.
void refuse_shared_inputs(const Inputs& inputs, const Array& out, const char* out_name = nullptr);

// ---- The run

// Runs the call; a signal's exception where it was interrupted.
void finish(const PendingCall& call, const Source& source, const Operation& operation);

// Runs `body`, which throws Interrupted when a signal came; then the signal's exception is thrown. A KeyboardInterrupt
// tells what there is to know of the state that is left.
void run_interruptibly(bool releases_interpreter, const char* what_to_know,
                       const std::function<void(Interruption*)>& body);

}  // namespace fastpe::bindings
