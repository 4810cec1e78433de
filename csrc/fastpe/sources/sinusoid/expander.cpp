// SPDX-License-Identifier: BSD-3-Clause
#include "expander.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "blocks.h"
#include "fastpe/dispatch.h"
#include "fastpe/hardware.h"

namespace fastpe {
namespace {

constexpr std::int64_t most_slots = 8;

// Positions in any order need the groups of a sequence again; consecutive positions do not.
std::int64_t slots_for(DType dtype, bool in_any_order) {
  return in_any_order && dtype != DType::float64 ? most_slots : blocks_at_once;
}

// A turn costs accuracy, so every anchor has phasors of its own in float64.
bool is_compensated(DType dtype) { return dtype == DType::float64; }

Anchor from_column(Anchor anchor, std::int64_t column) {
  anchor.values += column;
  anchor.slopes += column;
  if (anchor.turn.cosines != nullptr) {
    anchor.turn.cosines += column;
    anchor.turn.sines += column;
  }
  return anchor;
}

FineTables from_column(FineTables tables, std::int64_t column) {
  tables.cosines += column;
  tables.sines += column;
  if (tables.cosine_lows != nullptr) {
    tables.cosine_lows += column;
    tables.sine_lows += column;
  }
  return tables;
}

// Rows that jump from one array to another are streamed in two pieces. So are rows of several panels that are fetched
// ahead: each panel fetches the next one of its array.
void write(const Expansion& expansion, DType dtype) {
  const auto kernel = active_kernels().expand[index_of(dtype)];
  const std::int64_t column = expansion.jump_column;
  const bool has_gaps = expansion.out_row_stride_bytes != column * element_bytes(dtype);
  const bool fetches_panels = expansion.fetches_ahead && expansion.columns > panel_columns;
  const bool has_pieces = (expansion.streaming || fetches_panels) && !has_gaps;
  if (expansion.jump_bytes == 0 || !has_pieces) return kernel(expansion);
  Expansion piece = expansion;
  piece.jump_bytes = 0;
  piece.columns = column;
  kernel(piece);
  piece.columns = expansion.columns - column;
  piece.out += column * element_bytes(dtype) + expansion.jump_bytes;
  piece.fine = from_column(expansion.fine, column);
  for (Anchor& anchor : piece.anchors) anchor = from_column(anchor, column);
  kernel(piece);
}

}  // namespace

// At the head of a thread's scratch memory: phasors that its next expansions may want again.
struct alignas(64) Expander::HeldPhasors {
  static constexpr std::int64_t no_anchor = INT64_MIN;
  static constexpr std::int64_t at_fraction = INT64_MIN + 1;  // the first slot holds the position `fraction` itself

  bool compensated;
  double fraction;
  std::int64_t slots;
  std::int64_t stride;
  std::int64_t anchors[most_slots];

  // Kernels may read column_padding columns before the first one: of slot 0, they are in this struct.
  double* values(std::int64_t slot) { return reinterpret_cast<double*>(this + 1) + slot * stride; }
  double* slopes(std::int64_t slot) { return values(slots + slot); }
};

std::int64_t Expander::scratch_bytes(DType dtype, bool in_any_order) const {
  static_assert(sizeof(HeldPhasors) >= column_padding * sizeof(double));
  return static_cast<std::int64_t>(sizeof(HeldPhasors)) +
         2 * slots_for(dtype, in_any_order) * encoder_.table_stride() * static_cast<std::int64_t>(sizeof(double));
}

void Expander::start(char* scratch, DType dtype, bool in_any_order) const {
  HeldPhasors& phasors = *new (scratch) HeldPhasors;
  phasors.compensated = is_compensated(dtype);
  phasors.slots = slots_for(dtype, in_any_order);
  phasors.stride = encoder_.table_stride();
  std::fill(std::begin(phasors.anchors), std::end(phasors.anchors), HeldPhasors::no_anchor);
}

// The phasors of an anchor. Two anchors (or groups) whose numbers differ by one can both be held.
Anchor Expander::held(HeldPhasors& phasors, std::int64_t anchor, std::int64_t number) const {
  const auto slot =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(number) % static_cast<std::uint64_t>(phasors.slots));
  double* const values = phasors.values(slot);
  double* const slopes = phasors.slopes(slot);
  if (phasors.anchors[slot] != anchor) {
    encoder_.write_phasors(anchor, 0.0, phasors.compensated, values, slopes);
    phasors.anchors[slot] = anchor;
  }
  return {values + first_column_, slopes + first_column_, {}};
}

Anchor Expander::anchor_at(HeldPhasors& phasors, std::int64_t anchor) const {
  if (phasors.compensated) return held(phasors, anchor, anchor);
  const GroupPosition at = group_position(anchor);
  Anchor result = held(phasors, at.centre * group_anchors, at.centre);
  result.turn = encoder_.anchor_turn(at.distance, first_column_);
  return result;
}

void Expander::expand(const Run& run, const Sink& sink, char* scratch) const {
  HeldPhasors& phasors = *std::launder(reinterpret_cast<HeldPhasors*>(scratch));
  Expansion expansion{};
  expansion.fine = encoder_.fine_tables(sink.dtype, first_column_ + sink.columns.first);
  expansion.columns = sink.columns.count;
  expansion.out_row_stride_bytes = sink.out_row_stride_bytes;
  expansion.jump_column = sink.jump_column;
  expansion.jump_bytes = sink.jump_bytes;
  expansion.x_row_stride_bytes = sink.x_row_stride_bytes;
  expansion.scale = sink.scale;
  expansion.alpha = sink.alpha;
  expansion.bound = std::fabs(encoder_.spec().output_scale);
  expansion.fetches_ahead = sink.memory.fetches_ahead;
  expansion.streaming = sink.memory.streaming;
  expansion.streams_row_by_row = processor_traits().streams_row_by_row;
  const auto first_of_sink = [&sink](const Anchor& anchor) { return from_column(anchor, sink.columns.first); };
  if (!run.position.is_integer) {
    const double anchor = std::nearbyint(run.position.value / static_cast<double>(block_rows));
    const double residual = run.position.value - anchor * static_cast<double>(block_rows);
    // Near the smallest doubles the error of a product underflows, and instruction sets would differ.
    const double distinct = std::fabs(residual) < 0x1p-500 ? 0.0 : residual;
    const bool is_held = phasors.anchors[0] == HeldPhasors::at_fraction && phasors.fraction == run.position.value;
    if (!is_held) {
      encoder_.write_phasors(static_cast<std::int64_t>(anchor), distinct, phasors.compensated, phasors.values(0),
                             phasors.slopes(0));
      phasors.anchors[0] = HeldPhasors::at_fraction;
      phasors.fraction = run.position.value;
    }
    expansion.anchors[0] = first_of_sink({phasors.values(0) + first_column_, phasors.slopes(0) + first_column_, {}});
    expansion.out = sink.out;
    expansion.x = sink.x;
    write(expansion, sink.dtype);
    return;
  }
  for (std::int64_t done = 0; done < run.count;) {
    const BlockPosition at = block_position(run.position.integer + done);
    const std::int64_t count = std::min(run.count - done, at.rows_to_end() + (blocks_at_once - 1) * block_rows);
    expansion.first_row = at.row;
    expansion.last_row = at.row + count - 1;
    expansion.anchors[0] = first_of_sink(anchor_at(phasors, at.anchor));
    if (expansion.last_row > block_radius) expansion.anchors[1] = first_of_sink(anchor_at(phasors, at.anchor + 1));
    expansion.out = sink.out + done * sink.out_row_stride_bytes;
    expansion.x = sink.x == nullptr ? nullptr : sink.x + done * sink.x_row_stride_bytes;
    write(expansion, sink.dtype);
    done += count;
  }
}

}  // namespace fastpe
