// SPDX-License-Identifier: BSD-3-Clause
#include "expander.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "blocks.h"
#include "fastpe/cache_line.h"
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

// Columns that one call of the kernel writes.
struct Piece {
  Expansion expansion;  // to begin with, what is the same for all rows
  std::int64_t first_column;
  char* out;  // of the sink's first row
  alignas(most_line_bytes) char ends_between[most_line_bytes];
};

constexpr int most_pieces = 2;

// Rows that jump from one array to another are streamed in two pieces. So are rows of several panels that are fetched
// ahead: each panel fetches the next one of its array.
bool has_two_pieces(const Sink& sink) {
  const bool has_gaps = sink.out_row_stride_bytes != sink.jump_column * element_bytes(sink.dtype);
  const bool fetches_panels = sink.memory.fetches_ahead && sink.columns.count > panel_columns;
  return sink.jump_bytes != 0 && !has_gaps && (sink.memory.streaming || fetches_panels);
}

void set_piece(const Encoder& encoder, const Sink& sink, std::int64_t first_column, Piece& piece) {
  piece.first_column = first_column;
  piece.out = sink.out;
  Expansion& expansion = piece.expansion;
  expansion = {};
  expansion.ends_between = piece.ends_between;
  encoder.set_fine_tables(sink.dtype, first_column, expansion.fine);
  expansion.columns = sink.columns.count;
  expansion.out_row_stride_bytes = sink.out_row_stride_bytes;
  expansion.jump_column = sink.jump_column;
  expansion.jump_bytes = sink.jump_bytes;
  expansion.x_row_stride_bytes = sink.x_row_stride_bytes;
  expansion.scale = sink.scale;
  expansion.alpha = sink.alpha;
  expansion.bound = std::fabs(encoder.spec().output_scale);
  expansion.fetches_ahead = sink.memory.fetches_ahead;
  expansion.streaming = sink.memory.streaming;
  expansion.streams_row_by_row = processor_traits().streams_row_by_row;
}

// Sets the pieces of a sink and returns how many there are.
int set_pieces(const Encoder& encoder, const Sink& sink, std::int64_t first_column, Piece (&pieces)[most_pieces]) {
  set_piece(encoder, sink, first_column, pieces[0]);
  if (!has_two_pieces(sink)) return 1;
  set_piece(encoder, sink, first_column + sink.jump_column, pieces[1]);
  pieces[0].expansion.jump_bytes = pieces[1].expansion.jump_bytes = 0;
  pieces[0].expansion.columns = sink.jump_column;
  pieces[1].expansion.columns = sink.columns.count - sink.jump_column;
  pieces[1].out += sink.jump_column * element_bytes(sink.dtype) + sink.jump_bytes;
  return 2;
}

}  // namespace

// At the head of a thread's scratch memory: phasors that its next expansions may want again.
struct alignas(cache_line_bytes) Expander::HeldPhasors {
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

// Two anchors (or groups) whose numbers differ by one can both be held.
std::int64_t Expander::hold(HeldPhasors& phasors, std::int64_t anchor, std::int64_t number) const {
  const auto slot =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(number) % static_cast<std::uint64_t>(phasors.slots));
  if (phasors.anchors[slot] != anchor) {
    encoder_.write_phasors(anchor, 0.0, phasors.compensated, phasors.values(slot), phasors.slopes(slot));
    phasors.anchors[slot] = anchor;
  }
  return slot;
}

Expander::HeldAnchor Expander::hold_anchor(HeldPhasors& phasors, std::int64_t anchor) const {
  if (phasors.compensated) return {hold(phasors, anchor, anchor), 0};
  const GroupPosition at = group_position(anchor);
  return {hold(phasors, at.centre * group_anchors, at.centre), at.distance};
}

// A position that is no integer is an anchor of its own.
Expander::HeldAnchor Expander::hold_fraction(HeldPhasors& phasors, double position) const {
  const double anchor = std::nearbyint(position / static_cast<double>(block_rows));
  const double residual = position - anchor * static_cast<double>(block_rows);
  // Near the smallest doubles the error of a product underflows, and instruction sets would differ.
  const double distinct = std::fabs(residual) < 0x1p-500 ? 0.0 : residual;
  if (phasors.anchors[0] != HeldPhasors::at_fraction || phasors.fraction != position) {
    encoder_.write_phasors(static_cast<std::int64_t>(anchor), distinct, phasors.compensated, phasors.values(0),
                           phasors.slopes(0));
    phasors.anchors[0] = HeldPhasors::at_fraction;
    phasors.fraction = position;
  }
  return {0, 0};
}

// What a kernel reads is stored field by field. Copies of it load several fields at once, before they have reached the
// cache, and so wait for all earlier stores: streamed rows of 256 bytes would take up to 5 % longer (Zen 4).
void Expander::expand(const Run& run, const Sink& sink, char* scratch) const {
  HeldPhasors& phasors = *std::launder(reinterpret_cast<HeldPhasors*>(scratch));
  const auto kernel = active_kernels().expand[index_of(sink.dtype)];
  const bool is_turned = run.position.is_integer && !phasors.compensated;
  Piece pieces[most_pieces];
  const int piece_count = set_pieces(encoder_, sink, first_column_ + sink.columns.first, pieces);
  constexpr std::int64_t pair_rows = blocks_at_once * block_rows;
  bool takes_ends = false;
  for (std::int64_t done = 0; done < run.count;) {
    HeldAnchor held[blocks_at_once];
    int anchor_count = 1;
    std::int64_t row = 0, count = 1;
    if (run.position.is_integer) {
      const BlockPosition at = block_position(run.position.integer + done);
      row = at.row;
      count = std::min(run.count - done, at.rows_to_end() + (blocks_at_once - 1) * block_rows);
      held[0] = hold_anchor(phasors, at.anchor);
      if (count > at.rows_to_end()) held[anchor_count++] = hold_anchor(phasors, at.anchor + 1);
    } else {
      held[0] = hold_fraction(phasors, run.position.value);
    }
    const std::int64_t end = done + count;
    const bool leaves_ends = row == -block_radius && count == pair_rows && run.count - end >= pair_rows;
    for (int p = 0; p < piece_count; ++p) {
      Expansion& expansion = pieces[p].expansion;
      const std::int64_t first_column = pieces[p].first_column;
      for (int i = 0; i < anchor_count; ++i) {
        Anchor& anchor = expansion.anchors[i];
        anchor.values = phasors.values(held[i].slot) + first_column;
        anchor.slopes = phasors.slopes(held[i].slot) + first_column;
        if (is_turned) encoder_.set_anchor_turn(held[i].distance, first_column, anchor.turn);
      }
      expansion.takes_ends = takes_ends;
      expansion.leaves_ends = leaves_ends;
      expansion.first_row = row;
      expansion.last_row = row + count - 1;
      expansion.out = pieces[p].out + done * sink.out_row_stride_bytes;
      expansion.x = sink.x == nullptr ? nullptr : sink.x + done * sink.x_row_stride_bytes;
      kernel(expansion);
    }
    takes_ends = leaves_ends;
    done = end;
  }
}

}  // namespace fastpe
