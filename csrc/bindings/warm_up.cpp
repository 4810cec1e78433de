// SPDX-License-Identifier: BSD-3-Clause
#include "warm_up.h"

#include "call.h"
#include "scalars.h"

namespace fastpe::bindings {

PyObject* warm_up(const Encoder& encoder, const RowCache& rows, const WarmUpArguments& a) {
  const py::object asked = is_given(a.dtype) ? dtype_argument(a.dtype) : py::object();
  const DType dtype = dtype_of(result_dtype(asked, Array()), "dtype");
  const int max_threads = threads_argument(a.num_threads);
  run_interruptibly(true, "interrupted: some rows are not made yet; later calls make them",
                    [&](Interruption* interruption) {
                      encoder.prepare(dtype, interruption);
                      rows.fill_promised(row_dtype(dtype), max_threads, interruption);
                    });
  Py_RETURN_NONE;
}

}  // namespace fastpe::bindings
