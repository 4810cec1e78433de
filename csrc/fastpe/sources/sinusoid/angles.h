// SPDX-License-Identifier: BSD-3-Clause
// The angles themselves as a source: position times frequency, in radians, rounded once.
#pragma once

#include "encoder.h"
#include "fastpe/sources/source.h"
#include "sinusoids.h"

namespace fastpe {

// Column k belongs to frequency k. Where positions have several coordinates, axes[k] says which one it is multiplied
// by; else axes is null.
class AngleRows final : public Source {
 public:
  AngleRows(const Encoder& encoder, const int* axes)
      : Source({-max_position, max_position, true}, {1, 1}), encoder_(encoder), axes_(axes) {}

  void expand(const Span& span, const Target& target, char* scratch) const override;

 private:
  const Encoder& encoder_;
  const int* axes_;
};

}  // namespace fastpe
