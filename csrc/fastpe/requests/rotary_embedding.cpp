// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_embedding.h"

#include <cmath>
#include <utility>
#include <vector>

#include "fastpe/error.h"

namespace fastpe {
namespace {

Spec spec_of(const WantedFrequencies& frequencies, double factor) {
  constexpr bool interleaved = false, cosine_first = true;
  return {2 * frequencies.frequency_count, frequencies, interleaved, cosine_first, factor};
}

std::vector<PairRange> turning_pairs(const Encoder& encoder) {
  std::vector<PairRange> turning;
  const std::vector<double>& radians = encoder.frequencies().radians.high;
  for (std::int64_t k = 0; k < encoder.frequency_count(); ++k) {
    if (radians[static_cast<std::size_t>(k)] == 0.0) continue;
    if (turning.empty() || turning.back().first + turning.back().count < k) turning.push_back({k, 0});
    ++turning.back().count;
  }
  return turning;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const WantedFrequencies& frequencies, double attention_factor,
                                 FrequencyCoordinates coordinates_of, const Heads& heads_,
                                 std::optional<std::int64_t> max_len)
    : SinusoidalEncoding(spec_of(frequencies, attention_factor), max_len),
      coordinates(std::move(coordinates_of)),
      heads(heads_) {
  const bool interleaved = heads.interleaved;
  const std::vector<PairRange> all{{0, pairs()}}, turning = turning_pairs(encoder);
  pairings_ = {{{pairs(), interleaved, false, all},
                {pairs(), interleaved, true, all},
                {pairs(), interleaved, false, turning},
                {pairs(), interleaved, true, turning}}};
}

const SinusoidalEncoding& RotaryEmbedding::encoding_with(double row_factor) const {
  if (row_factor == encoder.spec().output_scale) return *this;
  return *(row_factor == 1.0 ? with_factor_one_ : with_inverse_factor_).get([&] {
    return std::make_unique<SinusoidalEncoding>(spec_of(encoder.spec().wanted_frequencies, row_factor), 0);
  });
}

double RotaryEmbedding::row_factor(bool is_inverse) const {
  const double factor = encoder.spec().output_scale;
  if (!is_inverse) return factor;
  const double inverse_factor = 1.0 / factor;
  if (std::isfinite(inverse_factor)) return inverse_factor;
  refuse_value("inverse", {"was asked for"}, {"an attention_factor that has a finite inverse, not ", factor});
}

}  // namespace fastpe
