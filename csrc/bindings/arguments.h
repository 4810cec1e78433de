// SPDX-License-Identifier: BSD-3-Clause
// What callers pass: the numbers and NumPy arrays behind objects, views of arrays, and new ones.
#pragma once

#include <cstdint>
#include <optional>

#include "fastpe/checks/array_view.h"
#include "fastpe/checks/placement.h"
#include "interpreter.h"

namespace fastpe::bindings {

// To be called when the module is loaded.
void load_numpy();

extern PyTypeObject* ndarray_type;

// ---- Numbers. All of these may run Python code.

inline bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

// An int that is not a bool, saturated where it does not fit; nothing for anything else.
std::optional<std::int64_t> integer_argument(PyObject* object);

// The same where it is to be a position, or the difference of two.
std::optional<std::int64_t> position_argument(PyObject* object, const char* name);

// How many positions there are; nothing where the object is to be an array of them.
std::optional<std::int64_t> position_count(PyObject* object);

double number_from(PyObject* object, const char* name);

// Arguments that may be missing: null, or, where it says so, None.
inline double factor_argument(PyObject* object, const char* name) {
  return object != nullptr ? number_from(object, name) : 1.0;
}
bool bool_argument(PyObject* object, const char* name);  // Python's or NumPy's; missing: False
int threads_argument(PyObject* object);                  // None: the default
std::optional<std::int64_t> seq_axis_argument(PyObject* object);

// ---- Arrays. These may run Python code.

// What nearly every call passes.
inline bool is_ndarray(PyObject* object) { return Py_TYPE(object) == ndarray_type; }

// By its type only: its __class__ may be Python code.
bool is_numpy_scalar(PyObject* object);
bool is_numpy_bool(PyObject* object);

// The array behind an object that may be written to, never a copy: an ndarray, or anything with DLPack, the buffer
// protocol or __array_interface__.
Object array_behind(PyObject* object, const char* name);
inline Object array_to_write(PyObject* object, const char* name) {
  return is_ndarray(object) ? shared(object) : array_behind(object, name);
}

// The same for what is only read, which may be a new array: of whatever numpy.asarray takes, or else of DLPack.
Object array_to_read(PyObject* object, const char* name);

// The same for a mask: integers 0 and 1, as tokenizers have them, become bool.
Object bools_from(PyObject* object, const char* name);

// An array of numbers, from any array-like: such inputs are only read, so a conversion changes nothing for the caller.
// Of native byte order and, if asked for, without gaps where it has several axes.
enum class Gaps { allowed, removed };
Object numbers_from(PyObject* object, const char* name, Numbers numbers, Gaps gaps = Gaps::allowed);

// An argument `dtype`, where it is given; a TypeError for those that fastpe does not write.
std::optional<DType> dtype_argument(PyObject* object);

// ---- These run no Python code, except for the text of an error.

// A TypeError for a dtype that no argument has.
ArrayView view_of(PyObject* array, const char* name);

// A ValueError where the size in bytes overflows. Making an ndarray starts no garbage collection, so it runs no Python
// code either.
Object new_array(DType dtype, const Shape& shape);
Object new_array(const double* values, std::int64_t count);

}  // namespace fastpe::bindings
