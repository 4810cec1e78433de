// SPDX-License-Identifier: BSD-3-Clause
#include "row_cache.h"

#include <algorithm>
#include <new>

#include "fastpe/cache_line.h"
#include "fastpe/error.h"
#include "fastpe/machine.h"
#include "fastpe/parallel.h"

namespace fastpe {
namespace {

// A chunk takes well below a millisecond to fill, so that a small call that needs one stays a small call.
constexpr std::int64_t most_chunk_bytes = 1024 * 1024;
constexpr int most_chunk_shift = 9;

int chunk_shift_for(std::int64_t row_bytes) {
  int shift = most_chunk_shift;
  while (shift > 0 && (row_bytes << shift) > most_chunk_bytes) --shift;
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

std::int64_t gibibytes(std::int64_t bytes) { return bytes >> 30; }

std::int64_t checked_max_len(std::int64_t max_len, const Encoder& encoder) {
  if (max_len < 0 || max_len > max_position) refuse_value("max_len", {"is ", max_len}, {"0 to 2**53"});
  if (max_len > INT64_MAX / row_bytes_of(encoder, DType::float64)) {
    refuse_value("max_len", {"is ", max_len}, {"at most 2**63 bytes of rows, 8 for each column"});
  }
  const std::int64_t bytes = max_len * row_bytes_of(encoder, DType::float32), memory = memory_bytes();
  if (memory > 0 && bytes > memory) {
    refuse_value(
        "max_len", {"is ", max_len, ", float32 rows of ", gibibytes(bytes), " GiB"},
        {"at most ", memory / row_bytes_of(encoder, DType::float32), ": this machine has ", gibibytes(memory), " GiB"},
        {"choose fewer: positions beyond them are computed"});
  }
  return max_len;
}

std::int64_t row_limit_for(const Encoder& encoder, std::optional<std::int64_t> max_len, DType dtype) {
  return max_len ? checked_max_len(*max_len, encoder) : encoder_budget_bytes / row_bytes_of(encoder, dtype);
}

}  // namespace

std::int64_t kept_row_bytes() { return all_kept_bytes.load(std::memory_order_relaxed); }

RowCache::RowCache(const Encoder& encoder, std::optional<std::int64_t> max_len)
    : encoder_(encoder),
      is_automatic_(!max_len),
      float32_rows_(row_limit_for(encoder, max_len, DType::float32)),
      float64_rows_(row_limit_for(encoder, max_len, DType::float64)),
      chunk_shift_(chunk_shift_for(row_bytes_of(encoder, DType::float64))) {}

RowCache::~RowCache() {
  const std::int64_t bytes = filled_bytes_.load(std::memory_order_relaxed);
  all_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_automatic_) automatically_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

const RowCache::Memory& RowCache::memory(DType dtype) const {
  return lazy_memory(dtype).get([&] {
    const auto chunks = static_cast<std::size_t>(((row_limit(dtype) - 1) >> chunk_shift_) + 1);
    Memory memory;
    memory.bytes = AlignedBuffer<char>::uninitialized(row_limit(dtype) * row_bytes_of(encoder_, dtype));
    memory.states = std::make_unique<std::atomic<State>[]>(chunks);  // fewer than the bytes, which were counted
    return memory;
  });
}

TableView RowCache::find(DType dtype, const PositionBounds& bounds) const {
  if (!can_keep(dtype, bounds) || !lazy_memory(dtype).is_made()) return {};
  const Memory& kept = memory(dtype);
  const Chunks chunks = chunks_of(bounds);
  for (std::int64_t chunk = chunks.first; chunk <= chunks.last; ++chunk) {
    if (kept.states[static_cast<std::size_t>(chunk)].load(std::memory_order_acquire) != State::full) return {};
  }
  return {kept.bytes.data(), dtype, row_limit(dtype), row_bytes_of(encoder_, dtype)};
}

const char* RowCache::find_row(DType dtype, const Number& position) const {
  PositionBounds bounds;
  bounds.add(position);
  const TableView rows = find(dtype, bounds);
  return rows.data == nullptr ? nullptr : rows.row(position.integer);
}

void RowCache::reserve(DType dtype, const PositionBounds& bounds) const {
  if (!is_automatic_ && can_keep(dtype, bounds)) memory(dtype);
}

void RowCache::keep(DType dtype, const PositionBounds& bounds, int max_threads,
                    Interruption* interruption) const noexcept {
  if (!can_keep(dtype, bounds)) return;
  // An encoder that is used once needs no memory for rows.
  if (is_automatic_ && !was_used_.exchange(true, std::memory_order_relaxed)) return;
  try {
    const Memory& kept = memory(dtype);
    if (is_automatic_) {
      fill_one_used_again(kept, dtype, chunks_of(bounds));
    } else {
      fill_all(kept, dtype, chunks_of(bounds), max_threads, interruption);
    }
  } catch (const std::bad_alloc&) {  // the rows are made again
  } catch (const Interrupted&) {     // which the caller also finds out
  }
}

void RowCache::fill_promised(DType dtype, int max_threads, Interruption* interruption) const {
  if (is_automatic_ || row_limit(dtype) == 0) return;
  fill_all(memory(dtype), dtype, {0, (row_limit(dtype) - 1) >> chunk_shift_}, max_threads, interruption);
}

void RowCache::fill_all(const Memory& memory, DType dtype, const Chunks& chunks, int max_threads,
                        Interruption* interruption) const {
  const std::int64_t count = chunks.last - chunks.first + 1;
  const int threads = threads_for((count << chunk_shift_) * row_bytes_of(encoder_, dtype), max_threads);
  const std::int64_t scratch_bytes = whole_cache_lines(encoder_.scratch_bytes(dtype, false));
  const auto scratch = AlignedBuffer<char>::uninitialized(threads * scratch_bytes);
  const bool completed =
      parallel_for(count, 1, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t i = begin; i < end; ++i) {
          State expected = State::empty;
          std::atomic<State>& state = memory.states[static_cast<std::size_t>(chunks.first + i)];
          if (!state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) continue;
          fill(memory, dtype, chunks.first + i, scratch.data() + thread * scratch_bytes);
          state.store(State::full, std::memory_order_release);
        }
      });
  if (!completed) throw Interrupted{};
}

void RowCache::fill_one_used_again(const Memory& memory, DType dtype, const Chunks& chunks) const {
  std::int64_t again = -1;
  for (std::int64_t chunk = chunks.first; chunk <= chunks.last; ++chunk) {
    State state = State::empty;
    std::atomic<State>& current = memory.states[static_cast<std::size_t>(chunk)];
    if (current.compare_exchange_strong(state, State::used_once, std::memory_order_relaxed)) continue;
    if (state == State::used_once && again < 0) again = chunk;
  }
  if (again < 0) return;
  const auto scratch = AlignedBuffer<char>::uninitialized(encoder_.scratch_bytes(dtype, false));
  if (!take_from_budget(chunk_bytes(dtype, again))) return;
  State expected = State::used_once;
  std::atomic<State>& state = memory.states[static_cast<std::size_t>(again)];
  if (state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) {
    fill(memory, dtype, again, scratch.data());
    state.store(State::full, std::memory_order_release);
  } else {
    automatically_kept_bytes.fetch_sub(chunk_bytes(dtype, again), std::memory_order_relaxed);
  }
}

std::int64_t RowCache::chunk_bytes(DType dtype, std::int64_t chunk) const {
  const std::int64_t begin = chunk << chunk_shift_, end = (chunk + 1) << chunk_shift_;
  return (std::min(row_limit(dtype), end) - begin) * row_bytes_of(encoder_, dtype);
}

void RowCache::fill(const Memory& memory, DType dtype, std::int64_t chunk, char* scratch) const {
  const std::int64_t row_bytes = row_bytes_of(encoder_, dtype);
  const std::int64_t begin = chunk << chunk_shift_;
  const std::int64_t rows = chunk_bytes(dtype, chunk) / row_bytes;
  const Target target{dtype, {0, encoder_.spec().d_model}, memory.bytes.data() + begin * row_bytes, row_bytes};
  encoder_.start(scratch, dtype, false);
  encoder_.expand({0, rows, number_of(begin)}, target, 0, scratch);
  filled_bytes_.fetch_add(rows * row_bytes, std::memory_order_relaxed);
  all_kept_bytes.fetch_add(rows * row_bytes, std::memory_order_relaxed);
}

}  // namespace fastpe
