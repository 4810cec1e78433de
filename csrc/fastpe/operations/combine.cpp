// SPDX-License-Identifier: BSD-3-Clause
#include "combine.h"

#include "fastpe/dispatch.h"

namespace fastpe {

void combine(const Combination& combination, DType dtype, DType addend_dtype) {
  const Kernels& kernels = active_kernels();
  const auto& of_dtypes = addend_dtype == dtype ? kernels.combine_same_dtype : kernels.combine;
  of_dtypes[index_of(dtype)](combination);
}

}  // namespace fastpe
