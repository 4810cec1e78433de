// SPDX-License-Identifier: BSD-3-Clause
// Sinusoids of positions with several coordinates, as images and videos have them: each frequency turns with one of
// them. A row is put together from the rows of its coordinates, and has their bits.
#pragma once

#include <vector>

#include "expander.h"
#include "fastpe/sources/source.h"
#include "kept_rows.h"
#include "sinusoids.h"

namespace fastpe {

// Which coordinate turns each frequency. Rows are cosines, then sines.
struct FrequencyAxes {
  std::vector<int> of_frequency;
  int count = 0;  // of coordinates; 0: positions are single numbers
};

class CoordinateSinusoids final : public Source {
 public:
  // If `kept` is null, no rows are kept.
  CoordinateSinusoids(const Encoder& encoder, const KeptRows* kept, const FrequencyAxes& axes)
      : Source({-max_position, max_position, true}, {1, 1}), expander_(encoder, 0), kept_(kept), axes_(axes) {}

  [[noreturn]] void refuse(const std::string& where, const Number& position) const override {
    refuse_position(where, position);
  }
  // A row consists of several kept rows, so none is ready as a whole.
  bool has_ready_rows(DType, const PositionBounds&) const override { return false; }
  TableView ready_rows(DType, const PositionBounds&, int, Interruption*) const override { return {}; }

  bool expands() const override { return true; }
  // Also fills the kept rows that the call needs.
  void prepare(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const override;
  bool is_prepared(DType dtype) const override { return expander_.encoder().is_prepared(dtype); }
  std::int64_t scratch_bytes(DType dtype, bool in_any_order) const override;
  void start(char* scratch, DType dtype, bool in_any_order) const override;
  void expand(const Run& run, const Sink& sink, char* scratch) const override;

 private:
  struct HeldRows;
  const char* row_at(const Number& coordinate, int axis, DType dtype, char* scratch) const;

  Expander expander_;
  const KeptRows* kept_;
  const FrequencyAxes& axes_;
};

}  // namespace fastpe
