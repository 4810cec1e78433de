// SPDX-License-Identifier: BSD-3-Clause
// C++ exceptions as Python's errors, and what they say of objects.
#pragma once

#include <string>

#include "fastpe/error.h"
#include "interpreter.h"

namespace fastpe::bindings {

// To be called when the module is loaded: then an Error becomes a TypeError, ValueError or IndexError with the
// attribute `_fields`, a dict.
void register_errors();
// Sets Python's error of the exception that is being handled, as pybind11 does for its own functions.
void set_error();

// Whether Python's error of this moment is about an object, and not about the process.
bool is_error_of_object();
// What Python's error of this moment says, which is put away.
std::string taken_error();

// For messages.
std::string str_of(PyObject* object);
// In one line, or else its type, such as of an int that Python writes no digits of.
std::string repr_of(PyObject* object);
std::string a_type(PyObject* object);  // as "an int"

}  // namespace fastpe::bindings
