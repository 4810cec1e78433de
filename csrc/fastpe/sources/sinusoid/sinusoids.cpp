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

TableView Sinusoids::find(DType dtype, const PositionBounds& bounds) const {
  if (cache_ == nullptr) return {};
  TableView rows = cache_->find(dtype, bounds);
  if (rows.data != nullptr) rows.data += first_column_ * element_bytes(dtype);
  return rows;
}

}  // namespace fastpe
