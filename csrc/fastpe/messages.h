// SPDX-License-Identifier: BSD-3-Clause
// Places and values as error messages write them.
#pragma once

#include <cstdint>
#include <string>

#include "arrays.h"

namespace fastpe {

std::string text_of(double value);
std::string text_of(const Number& number);
std::string gigabytes(std::int64_t bytes);  // "25.3 GB"

// The element of an array at [.. index of the axes .., l]: "ids[2, 7]".
std::string place(const char* name, const Axes& axes, std::int64_t index, std::int64_t l);

// Rows of arguments fit the axis before the one that is taken for the sequence.
inline constexpr const char* remedy_of_other_axis = "; if axis -3 is the sequence, pass seq_axis=-3";

}  // namespace fastpe
