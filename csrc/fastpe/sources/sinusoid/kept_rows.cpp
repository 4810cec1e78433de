// SPDX-License-Identifier: BSD-3-Clause
#include "kept_rows.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "expander.h"
#include "fastpe/hardware.h"
#include "fastpe/messages.h"
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

// What an encoder without max_len keeps in each dtype, and what all such encoders of a process keep together.
constexpr std::int64_t encoder_budget_bytes = std::int64_t{8} * 1024 * 1024;
constexpr std::int64_t process_budget_bytes = std::int64_t{16} * 1024 * 1024;

std::atomic<std::int64_t> all_kept_bytes{0}, automatically_kept_bytes{0};

bool take_from_budget(std::int64_t bytes) {
  if (automatically_kept_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes <= process_budget_bytes) return true;
  automatically_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

std::int64_t row_bytes_of(const Encoder& encoder, DType dtype) { return encoder.spec().d_model * element_bytes(dtype); }

std::int64_t checked_max_len(std::int64_t max_len, const Encoder& encoder) {
  const auto refuse = [max_len](const std::string& expected) {
    throw std::invalid_argument("max_len is " + std::to_string(max_len) + ", expected at most " + expected);
  };
  if (max_len < 0 || max_len > max_position) refuse("2**53");
  if (max_len > (INT64_MAX - lead_bytes) / row_bytes_of(encoder, DType::float64)) {
    refuse("2**63 bytes of rows, 8 for each column");
  }
  const std::int64_t bytes = max_len * row_bytes_of(encoder, DType::float32), memory = memory_bytes();
  if (memory > 0 && bytes > memory) {
    refuse(std::to_string(memory / row_bytes_of(encoder, DType::float32)) + ": its float32 rows would take " +
           gigabytes(bytes) + ", and this machine has " + gigabytes(memory) +
           "; choose fewer: positions beyond them are computed");
  }
  return max_len;
}

std::int64_t row_limit_for(const Encoder& encoder, std::optional<std::int64_t> max_len, DType dtype) {
  return max_len ? checked_max_len(*max_len, encoder) : encoder_budget_bytes / row_bytes_of(encoder, dtype);
}

}  // namespace

std::int64_t kept_row_bytes() { return all_kept_bytes.load(std::memory_order_relaxed); }

KeptRows::KeptRows(const Encoder& encoder, std::optional<std::int64_t> max_len)
    : encoder_(encoder),
      is_automatic_(!max_len),
      float32_rows_(row_limit_for(encoder, max_len, DType::float32)),
      float64_rows_(row_limit_for(encoder, max_len, DType::float64)),
      block_shift_(block_shift_for(row_bytes_of(encoder, DType::float64))) {}

KeptRows::~KeptRows() {
  const std::int64_t bytes = filled_bytes_.load(std::memory_order_relaxed);
  all_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_automatic_) automatically_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

const KeptRows::Memory& KeptRows::memory(DType dtype) const {
  return (dtype == DType::float64 ? float64_ : float32_).get([&] {
    const auto blocks = static_cast<std::size_t>(((row_limit(dtype) - 1) >> block_shift_) + 1);
    Memory memory;
    memory.bytes = AlignedBuffer<char>::uninitialized(lead_bytes + row_limit(dtype) * row_bytes_of(encoder_, dtype));
    memory.states = std::make_unique<std::atomic<State>[]>(blocks);  // fewer than the bytes, which were counted
    return memory;
  });
}

bool KeptRows::are_full(const Memory& memory, const Blocks& blocks) const {
  for (std::int64_t block = blocks.first; block <= blocks.last; ++block) {
    if (memory.states[static_cast<std::size_t>(block)].load(std::memory_order_acquire) != State::full) return false;
  }
  return true;
}

TableView KeptRows::rows(DType dtype, const PositionBounds& bounds, int max_threads, Interruption* interruption) const {
  // An encoder that is used once needs no memory for rows.
  if (is_automatic_ && !was_asked_.load(std::memory_order_relaxed)) {
    was_asked_.store(true, std::memory_order_relaxed);
    return {};
  }
  const Blocks blocks{bounds.lowest >> block_shift_, bounds.highest >> block_shift_};
  try {
    const Memory& kept = memory(dtype);
    if (!are_full(kept, blocks)) {
      if (is_automatic_) {
        fill_one_asked_again(kept, dtype, blocks, interruption);
      } else {
        fill_all(kept, dtype, blocks, max_threads, interruption);
      }
      if (!are_full(kept, blocks)) return {};
    }
    return {kept.bytes.data() + lead_bytes, dtype, row_limit(dtype), row_bytes_of(encoder_, dtype)};
  } catch (const std::bad_alloc&) {
    // The caller did not ask for rows to be kept, and can do without.
    if (!is_automatic_) throw;
    return {};
  }
}

void KeptRows::fill_promised(DType dtype, int max_threads, Interruption* interruption) const {
  if (!has_promised_rows() || dtype != row_dtype(dtype)) return;
  fill_all(memory(dtype), dtype, {0, (row_limit(dtype) - 1) >> block_shift_}, max_threads, interruption);
}

void KeptRows::fill_all(const Memory& memory, DType dtype, const Blocks& blocks, int max_threads,
                        Interruption* interruption) const {
  encoder_.prepare(dtype, interruption);
  const std::int64_t count = blocks.last - blocks.first + 1;
  const int threads = threads_for((count << block_shift_) * row_bytes_of(encoder_, dtype), max_threads);
  const std::int64_t scratch_bytes = Expander(encoder_, 0).scratch_bytes(dtype, false);
  const auto scratch = AlignedBuffer<char>::uninitialized(threads * scratch_bytes);
  const bool completed =
      parallel_for(count, 1, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t i = begin; i < end; ++i) {
          State expected = State::empty;
          std::atomic<State>& state = memory.states[static_cast<std::size_t>(blocks.first + i)];
          if (!state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) continue;
          fill(memory, dtype, blocks.first + i, scratch.data() + thread * scratch_bytes);
          state.store(State::full, std::memory_order_release);
        }
      });
  if (!completed) throw Interrupted{};
}

void KeptRows::fill_one_asked_again(const Memory& memory, DType dtype, const Blocks& blocks,
                                    Interruption* interruption) const {
  std::int64_t again = -1;
  for (std::int64_t block = blocks.first; block <= blocks.last; ++block) {
    State state = State::empty;
    std::atomic<State>& current = memory.states[static_cast<std::size_t>(block)];
    if (current.compare_exchange_strong(state, State::asked_for, std::memory_order_relaxed)) continue;
    if (state == State::asked_for && again < 0) again = block;
  }
  if (again < 0) return;
  encoder_.prepare(dtype, interruption);
  const auto scratch = AlignedBuffer<char>::uninitialized(Expander(encoder_, 0).scratch_bytes(dtype, false));
  if (!take_from_budget(block_bytes(dtype, again))) return;
  State expected = State::asked_for;
  std::atomic<State>& state = memory.states[static_cast<std::size_t>(again)];
  if (state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) {
    fill(memory, dtype, again, scratch.data());
    state.store(State::full, std::memory_order_release);
  } else {
    automatically_kept_bytes.fetch_sub(block_bytes(dtype, again), std::memory_order_relaxed);
  }
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

std::int64_t KeptRows::block_bytes(DType dtype, std::int64_t block) const {
  const std::int64_t begin = block << block_shift_, end = (block + 1) << block_shift_;
  return (std::min(row_limit(dtype), end) - begin) * row_bytes_of(encoder_, dtype);
}

void KeptRows::fill(const Memory& memory, DType dtype, std::int64_t block, char* scratch) const {
  const Expander expander(encoder_, 0);
  const std::int64_t row_bytes = row_bytes_of(encoder_, dtype);
  const std::int64_t begin = block << block_shift_;
  const std::int64_t rows = block_bytes(dtype, block) / row_bytes;
  Sink sink{};
  sink.dtype = dtype;
  sink.columns = {0, encoder_.spec().d_model};
  sink.out = memory.bytes.data() + lead_bytes + begin * row_bytes;
  sink.out_row_stride_bytes = row_bytes;
  expander.start(scratch, dtype, false);
  expander.expand({0, rows, number_of(begin)}, sink, scratch);
  filled_bytes_.fetch_add(rows * row_bytes, std::memory_order_relaxed);
  all_kept_bytes.fetch_add(rows * row_bytes, std::memory_order_relaxed);
}

}  // namespace fastpe
