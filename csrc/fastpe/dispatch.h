// SPDX-License-Identifier: BSD-3-Clause
// Which instruction set's kernels run.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace fastpe {

// Names of the instruction sets compiled in that this processor runs, best first.
std::vector<std::string> available_instruction_sets();

// FASTPE_ISA, or else the best available; throws an Error for a name that is unknown or unavailable.
const char* active_instruction_set();
const Kernels& active_kernels();

// For tests, while no call runs: another of the available ones.
void use_instruction_set(const std::string& name);

}  // namespace fastpe
