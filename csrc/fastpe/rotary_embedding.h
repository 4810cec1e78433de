// SPDX-License-Identifier: BSD-3-Clause
// A rotary embedding: an encoder whose rows are cosines, then sines, times a factor; and the pairs that they rotate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "fastpe/lazy.h"
#include "fastpe/operations/rotate.h"
#include "fastpe/sources/sinusoid/coordinates.h"

namespace fastpe {

struct RotaryEmbedding {
  RotaryEmbedding(const FrequencySpec& frequencies, bool interleaved, double attention_factor,
                  FrequencyAxes frequency_axes, std::optional<std::int64_t> max_len);

  // The encoder whose rows have this factor: the embedding's own, 1, or the inverse. Only rows of the own one are kept.
  const Encoder& encoder(double row_factor) const;
  // The factor of the rows by which arrays are rotated, or rotated back. A ValueError where it is not finite.
  double row_factor(bool inverse) const;
  // What rows of this factor rotate, by the angles or by the negative ones. Pairs of frequency 0 keep their bits where
  // the factor is 1.
  const Pairing& pairing(double row_factor, bool by_negative_angles) const {
    return (row_factor == 1.0 ? turning : all)[by_negative_angles];
  }
  // Calls use(source) with rows of this factor.
  template <class Use>
  void with_rows(double row_factor, const Use& use) const {
    const Encoder& chosen = encoder(row_factor);
    const RowCache* const kept = &chosen == &core ? &rows : nullptr;
    if (axes.count > 0) {
      use(CoordinateSinusoids(chosen, kept, axes));
    } else {
      use(Sinusoids(chosen, kept, 0));
    }
  }

  Encoder core;
  RowCache rows;
  std::int64_t pairs;
  double factor;
  std::array<Pairing, 2> all, turning;
  FrequencyAxes axes;
  Lazy<std::unique_ptr<Encoder>> unscaled, inverse;
};

}  // namespace fastpe
