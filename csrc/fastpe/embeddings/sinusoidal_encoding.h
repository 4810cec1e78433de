// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "fastpe/sources/sinusoid/row_cache.h"

namespace fastpe {

// An encoder, the rows of it that are kept, and the position of the first row.
struct SinusoidalEncoding {
  explicit SinusoidalEncoding(Spec spec, std::optional<std::int64_t> max_len, std::int64_t first = 0)
      : encoder(std::move(spec)), row_cache(encoder, max_len), first_position(first) {}

  const Encoder encoder;
  const RowCache row_cache;
  const std::int64_t first_position;
};

}  // namespace fastpe
