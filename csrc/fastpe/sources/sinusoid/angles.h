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

  [[noreturn]] void refuse(const std::string& where, const Number& position) const override {
    refuse_position(where, position);
  }
  bool has_ready_rows(DType, const PositionBounds&) const override { return false; }
  TableView ready_rows(DType, const PositionBounds&, int, Interruption*) const override { return {}; }
  bool expands() const override { return true; }
  void expand(const Run& run, const Sink& sink, char* scratch) const override;

 private:
  const Encoder& encoder_;
  const int* axes_;
};

}  // namespace fastpe
