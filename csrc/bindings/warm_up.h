// SPDX-License-Identifier: BSD-3-Clause
// The method warm_up() of encoders and rotary embeddings.
#pragma once

#include "fastpe/sources/sinusoid/row_cache.h"
#include "method.h"

namespace fastpe::bindings {

#define FASTPE_WARM_UP(Required, Optional) Optional(dtype, None) Optional(num_threads, None)

FASTPE_ARGUMENTS(WarmUpArguments, FASTPE_WARM_UP);

FASTPE_METHOD(WarmUpMethod, "warm_up", WarmUpArguments, FASTPE_WARM_UP,
              R"doc(Make what later calls read: the tables of one dtype, and all rows that `max_len` promises.

A server calls it before its first request, so that no request spends time on them. Results are the same without it.

Parameters
----------
dtype : dtype, optional
    The dtype of the arrays in later calls; float32 by default. Rows are kept in float32 and float64, and 16-bit arrays
    read those of float32.
num_threads : int, optional
    The largest number of threads.

Raises
------
MemoryError
    If there is no memory for the rows. Calls would raise it, too: choose a smaller `max_len`.

Examples
--------
>>> import numpy as np, fastpe
>>> encoding = fastpe.PositionalEncoding(768, max_len=512)
>>> encoding.warm_up()
>>> fastpe.show_config()["kept_row_bytes"] >= 512 * 768 * 4
True
)doc");

// The rows of `rows` are those of `encoder`.
PyObject* warm_up(const Encoder& encoder, const RowCache& rows, const WarmUpArguments& arguments);

}  // namespace fastpe::bindings
