// SPDX-License-Identifier: BSD-3-Clause
#include "table.h"

#include <stdexcept>

#include "fastpe/messages.h"

namespace fastpe {

void LearnedTable::refuse(const std::string& where, const Number& position) const {
  throw std::out_of_range(where + " is " + text_of(position) + ", expected an integer from 0 to " +
                          std::to_string(table_.rows - 1) + ": the position table has " + std::to_string(table_.rows) +
                          " rows; pass a longer table or smaller positions");
}

}  // namespace fastpe
