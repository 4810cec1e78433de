// SPDX-License-Identifier: BSD-3-Clause
#include "rotary_embedding.h"

#include <cmath>
#include <utility>
#include <vector>

#include "error.h"

namespace fastpe {
namespace {

Spec spec_of(const FrequencySpec& frequencies, double factor) {
  Spec spec;
  spec.d_model = 2 * frequencies.frequency_count;
  spec.frequencies = frequencies;
  spec.interleaved = false;
  spec.cosine_first = true;
  spec.output_scale = factor;
  return spec;
}

std::vector<Columns> turning_pairs(const Encoder& encoder) {
  std::vector<Columns> turning;
  const std::vector<double>& radians = encoder.frequencies().radians.high;
  for (std::int64_t k = 0; k < encoder.spec().frequencies.frequency_count; ++k) {
    if (radians[static_cast<std::size_t>(k)] == 0.0) continue;
    if (turning.empty() || turning.back().first + turning.back().count < k) turning.push_back({k, 0});
    ++turning.back().count;
  }
  return turning;
}

std::array<Pairing, 2> directions_of(std::int64_t pairs, bool interleaved, const std::vector<Columns>& rotated) {
  return {{{pairs, interleaved, false, rotated}, {pairs, interleaved, true, rotated}}};
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const FrequencySpec& frequencies, bool interleaved, double attention_factor,
                                 FrequencyAxes frequency_axes, std::optional<std::int64_t> max_len)
    : core(spec_of(frequencies, attention_factor)),
      rows(core, max_len),
      pairs(frequencies.frequency_count),
      factor(attention_factor),
      all(directions_of(pairs, interleaved, {{0, pairs}})),
      turning(directions_of(pairs, interleaved, turning_pairs(core))),
      axes(std::move(frequency_axes)) {}

const Encoder& RotaryEmbedding::encoder(double row_factor) const {
  if (row_factor == factor) return core;
  const auto make = [&] { return std::make_unique<Encoder>(spec_of(core.spec().frequencies, row_factor)); };
  return *(row_factor == 1.0 ? unscaled : inverse).get(make);
}

double RotaryEmbedding::row_factor(bool is_inverse) const {
  if (!is_inverse) return factor;
  const double inverse_factor = 1.0 / factor;
  if (std::isfinite(inverse_factor)) return inverse_factor;
  refuse_value("inverse", {"is True"}, {"an attention_factor that has a finite inverse, not ", factor});
}

}  // namespace fastpe
