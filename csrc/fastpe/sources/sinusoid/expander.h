// SPDX-License-Identifier: BSD-3-Clause
// Expands rows of an encoder from anchors.
#pragma once

#include "encoder.h"
#include "fastpe/positions.h"
#include "fastpe/tile.h"

namespace fastpe {

class Expander {
 public:
  // Columns from first_column on. The encoder must be prepared for the dtype of what is expanded.
  Expander(const Encoder& encoder, std::int64_t first_column) : encoder_(encoder), first_column_(first_column) {}

  const Encoder& encoder() const { return encoder_; }
  std::int64_t first_column() const { return first_column_; }

  // Scratch memory of one thread, which begins on a cache line's boundary. start() comes before expand().
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const;
  void start(char* scratch, DType dtype, bool in_any_order) const;

  void expand(const Run& run, const Sink& sink, char* scratch) const;

 private:
  struct HeldPhasors;
  // Which of the held phasors are an anchor's, or its group's centre's, and how many anchors it is from the centre.
  struct HeldAnchor {
    std::int64_t slot;
    std::int64_t distance;
  };
  std::int64_t hold(HeldPhasors& phasors, std::int64_t anchor, std::int64_t number) const;
  HeldAnchor hold_anchor(HeldPhasors& phasors, std::int64_t anchor) const;
  HeldAnchor hold_fraction(HeldPhasors& phasors, double position) const;

  const Encoder& encoder_;
  std::int64_t first_column_;
};

}  // namespace fastpe
