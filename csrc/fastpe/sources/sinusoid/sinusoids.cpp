// SPDX-License-Identifier: BSD-3-Clause
#include "sinusoids.h"

namespace fastpe {

TableView Sinusoids::find(DType dtype, const PositionBounds& bounds) const {
  if (cache_ == nullptr) return {};
  TableView rows = cache_->find(dtype, bounds);
  if (rows.data != nullptr) rows.data += first_column_ * element_bytes(dtype);
  return rows;
}

}  // namespace fastpe
