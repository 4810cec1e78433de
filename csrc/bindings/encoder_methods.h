// SPDX-License-Identifier: BSD-3-Clause
// The encoder's methods: what they take, and their docstrings. The functions of the same names have the prose.
#pragma once

#include "call.h"
#include "method.h"

namespace fastpe::bindings {

#define FASTPE_ENCODE(Required, Optional)                                                                       \
  Required(positions) Optional(dtype, None) Optional(offset, None) Optional(mask, None) Optional(lengths, None) \
      Optional(channels, None) Optional(num_threads, None) Optional(out, None)

#define FASTPE_ADD_IN_PLACE(Required, Optional)                                                               \
  Required(x) FASTPE_ROW_ARGUMENTS(Optional) Optional(scale, 1.0) Optional(alpha, 1.0) Optional(seq_axis, -2) \
      Optional(channels, None) Optional(table, None) Optional(num_threads, None)

#define FASTPE_ADD(Required, Optional) FASTPE_ADD_IN_PLACE(Required, Optional) Optional(out, None)

#define FASTPE_EMBED(Required, Optional)                                                                 \
  Required(ids) Required(table) FASTPE_ROW_ARGUMENTS(Optional) Optional(scale, 1.0) Optional(alpha, 1.0) \
      Optional(position_table, None) Optional(num_threads, None) Optional(out, None)

FASTPE_ARGUMENTS(EncodeArguments, FASTPE_ENCODE);
FASTPE_ARGUMENTS(AddArguments, FASTPE_ADD);
FASTPE_ARGUMENTS(EmbedArguments, FASTPE_EMBED);

FASTPE_METHOD(EncodeMethod, "encode", EncodeArguments, FASTPE_ENCODE, R"doc(Encode positions.

Refer to `fastpe.encode` for the arguments, the result and the errors.

Examples
--------
>>> import fastpe
>>> fastpe.PositionalEncoding(4).encode(2)
array([[0.        , 1.        , 0.        , 1.        ],
       [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]], dtype=float32)
)doc");

FASTPE_METHOD(AddInPlaceMethod, "add_", AddArguments, FASTPE_ADD_IN_PLACE,
              R"doc(Add the encoding to embeddings, in place.

Refer to `fastpe.add_` for the arguments, the result and the errors.

Examples
--------
>>> import numpy as np, fastpe
>>> x = np.zeros((2, 3, 4), np.float32)
>>> fastpe.PositionalEncoding(4).add_(x, offset=np.array([0, 7])) is x
True
>>> x[:, 0]
array([[0.        , 1.        , 0.        , 1.        ],
       [0.6569866 , 0.75390226, 0.06994285, 0.997551  ]], dtype=float32)
)doc");

FASTPE_METHOD(AddMethod, "add", AddArguments, FASTPE_ADD, R"doc(Add the encoding to embeddings, into another array.

Refer to `fastpe.add` for the arguments, the result and the errors.

Examples
--------
>>> import numpy as np, fastpe
>>> fastpe.PositionalEncoding(4).add(np.ones((2, 4)), scale=2.0)
array([[2.        , 3.        , 2.        , 3.        ],
       [2.84147098, 2.54030231, 2.00999983, 2.99995   ]])
)doc");

FASTPE_METHOD(EmbedMethod, "embed", EmbedArguments, FASTPE_EMBED, R"doc(Gather embeddings and add the encoding.

Refer to `fastpe.embed` for the arguments, the result and the errors.

Examples
--------
>>> import numpy as np, fastpe
>>> fastpe.PositionalEncoding(4).embed([1, 0], np.arange(8.0).reshape(2, 4))
array([[4.        , 6.        , 6.        , 8.        ],
       [0.84147098, 1.54030231, 2.00999983, 3.99995   ]])
)doc");

}  // namespace fastpe::bindings
