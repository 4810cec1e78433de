// SPDX-License-Identifier: BSD-3-Clause
#include "sinusoids.h"

#include <stdexcept>

#include "fastpe/messages.h"

namespace fastpe {

void refuse_position(const std::string& where, const Number& position) {
  throw std::invalid_argument(where + " is " + text_of(position) +
                              ", expected a finite position of magnitude at most 2**53; beyond it not every integer "
                              "has a float64 of its own");
}

bool Sinusoids::has_ready_rows(DType dtype, const PositionBounds& bounds) const {
  return kept_ != nullptr && kept_->keeps(dtype, bounds);
}

TableView Sinusoids::ready_rows(DType dtype, const PositionBounds& bounds, int max_threads,
                                Interruption* interruption) const {
  TableView rows = kept_->rows(dtype, bounds, max_threads, interruption);
  if (rows.data != nullptr) rows.data += expander_.first_column() * element_bytes(dtype);
  return rows;
}

}  // namespace fastpe
