// SPDX-License-Identifier: BSD-3-Clause
#include "kept_rows.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "expander.h"
#include "fastpe/parallel.h"

namespace fastpe {
namespace {

// Kept rows begin as far beyond a cache line's boundary as NumPy's large arrays: loads of both then straddle no lines.
constexpr std::int64_t lead_bytes = 16;
// A block takes well below a millisecond to fill, so that a small call that needs one stays a small call.
constexpr std::int64_t most_block_bytes = 1024 * 1024;
constexpr int most_block_shift = 9;

int block_shift_for(std::int64_t row_bytes) {
  int shift = most_block_shift;
  while (shift > 0 && (row_bytes << shift) > most_block_bytes) --shift;
  return shift;
}

std::int64_t checked_max_len(std::int64_t max_len, std::int64_t row_bytes) {
  const auto refuse = [max_len](const std::string& expected) {
    throw std::invalid_argument("max_len is " + std::to_string(max_len) + ", expected at most " + expected);
  };
  if (max_len < 0 || max_len > max_position) refuse("2**53");
  if (max_len > (INT64_MAX - lead_bytes) / row_bytes) refuse("2**63 bytes of rows, 8 for each column");
  return max_len;
}

std::int64_t row_bytes_of(const Encoder& encoder, DType dtype) { return encoder.spec().d_model * element_bytes(dtype); }

}  // namespace

KeptRows::KeptRows(const Encoder& encoder, RowPolicy policy)
    : encoder_(encoder),
      policy_{checked_max_len(policy.max_len, row_bytes_of(encoder, DType::float64))},
      block_shift_(block_shift_for(row_bytes_of(encoder, DType::float64))) {}

const KeptRows::Memory& KeptRows::memory(DType dtype) const {
  return (dtype == DType::float64 ? float64_ : float32_).get([&] {
    const auto blocks = static_cast<std::size_t>(((policy_.max_len - 1) >> block_shift_) + 1);
    Memory memory;
    memory.bytes = AlignedBuffer<char>::uninitialized(lead_bytes + policy_.max_len * row_bytes_of(encoder_, dtype));
    memory.states = std::make_unique<std::atomic<State>[]>(blocks);  // fewer than the bytes, which were counted
    return memory;
  });
}

TableView KeptRows::rows(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const {
  const Memory& kept = memory(dtype);
  const std::int64_t row_bytes = row_bytes_of(encoder_, dtype);
  const std::int64_t first = bounds.lowest >> block_shift_, last = bounds.highest >> block_shift_;
  const auto is_full = [&kept](std::int64_t block) {
    return kept.states[static_cast<std::size_t>(block)].load(std::memory_order_acquire) == State::full;
  };
  const auto are_full = [&] {
    for (std::int64_t block = first; block <= last; ++block) {
      if (!is_full(block)) return false;
    }
    return true;
  };
  if (!are_full()) {
    encoder_.prepare(dtype, interruption);
    const std::int64_t blocks = last - first + 1;
    const int threads = threads_for((blocks << block_shift_) * row_bytes, max_threads);
    const std::int64_t scratch_bytes = Expander(encoder_, 0).scratch_bytes(dtype, false);
    const auto scratch = AlignedBuffer<char>::uninitialized(threads * scratch_bytes);
    const bool completed =
        parallel_for(blocks, 1, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
          for (std::int64_t i = begin; i < end; ++i) {
            State expected = State::empty;
            std::atomic<State>& state = kept.states[static_cast<std::size_t>(first + i)];
            if (!state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) continue;
            fill(kept, dtype, first + i, scratch.data() + thread * scratch_bytes);
            state.store(State::full, std::memory_order_release);
          }
        });
    if (!completed) throw Interrupted{};
    if (!are_full()) return {};
  }
  return {kept.bytes.data() + lead_bytes, dtype, policy_.max_len, row_bytes};
}

const char* KeptRows::row_if_full(DType dtype, const Number& position) const {
  PositionBounds bounds;
  bounds.add(position);
  const bool is_made = (dtype == DType::float64 ? float64_ : float32_).is_made();
  if (!is_made || !keeps(dtype, bounds)) return nullptr;
  const Memory& kept = memory(dtype);
  const auto block = static_cast<std::size_t>(position.integer >> block_shift_);
  if (kept.states[block].load(std::memory_order_acquire) != State::full) return nullptr;
  return kept.bytes.data() + lead_bytes + position.integer * row_bytes_of(encoder_, dtype);
}

void KeptRows::fill(const Memory& memory, DType dtype, std::int64_t block, char* scratch) const {
  const Expander expander(encoder_, 0);
  const std::int64_t row_bytes = row_bytes_of(encoder_, dtype);
  const std::int64_t begin = block << block_shift_;
  const std::int64_t end = std::min(policy_.max_len, (block + 1) << block_shift_);
  Sink sink{};
  sink.dtype = dtype;
  sink.columns = {0, encoder_.spec().d_model};
  sink.out = memory.bytes.data() + lead_bytes + begin * row_bytes;
  sink.out_row_stride_bytes = row_bytes;
  expander.start(scratch, dtype, false);
  expander.expand({0, end - begin, number_of(begin)}, sink, scratch);
}

}  // namespace fastpe
