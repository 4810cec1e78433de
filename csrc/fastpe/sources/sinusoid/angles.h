// SPDX-License-Identifier: BSD-3-Clause
// The angles themselves as a source: position times frequency, in radians, rounded to float64 and, for float32,
// once more.
#pragma once

#include "coordinates.h"
#include "encoder.h"
#include "fastpe/sources/source.h"

namespace fastpe {

// Column k belongs to frequency k, and where positions have several coordinates, to one of them.
class AngleRows final : public Source {
 public:
  AngleRows(const Encoder& encoder, const FrequencyCoordinates& coordinates)
      : Source({-max_position, max_position, true}, {}), encoder_(encoder), coordinates_(coordinates) {}

  void write_rows(const Span& span, const Target& target, char* scratch) const override;

 private:
  const Encoder& encoder_;
  const FrequencyCoordinates& coordinates_;
};

}  // namespace fastpe
