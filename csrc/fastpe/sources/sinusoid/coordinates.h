// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids of positions with several coordinates, as images and videos have them: each frequency belongs to one
// of them. A row is put together from the rows of its coordinates, and has their bits.
#pragma once

#include <vector>

#include "encoder.h"
#include "fastpe/sources/source.h"
#include "row_cache.h"
#include "sinusoids.h"

namespace fastpe {

// Which coordinate each frequency belongs to. Rows are cosines, then sines.
struct FrequencyAxes {
  std::vector<int> of_frequency;
  int count = 0;  // of coordinates; 0: positions are single numbers
};

class CoordinateSinusoids final : public Source {
 public:
  // If `cache` is null, no rows are kept.
  CoordinateSinusoids(const Encoder& encoder, const RowCache* cache, const FrequencyAxes& axes)
      : Source({-max_position, max_position, true}, {1, 1}), encoder_(encoder), cache_(cache), axes_(axes) {}

  // A row consists of several kept rows, so none is there as a whole: find() is not overridden.
  void keep(DType dtype, const PositionBounds& bounds, int max_threads,
            Interruption* interruption) const noexcept override {
    if (cache_ != nullptr) cache_->keep(dtype, bounds, max_threads, interruption);
  }
  void prepare(DType dtype, const PositionBounds& bounds, bool will_keep, Interruption* interruption) const override;
  bool is_prepared(DType dtype) const override { return encoder_.is_prepared(dtype); }
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const override;
  void start(char* scratch, DType dtype, bool in_any_order) const override;
  void expand(const Span& span, const Target& target, char* scratch) const override;

 private:
  struct LastRows;
  const char* row_at(const Number& coordinate, int axis, DType dtype, char* scratch) const;

  const Encoder& encoder_;
  const RowCache* cache_;
  const FrequencyAxes& axes_;
};

}  // namespace fastpe
