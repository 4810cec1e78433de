// SPDX-License-Identifier: BSD-3-Clause
#include "encoding.h"

#include <algorithm>
#include <new>
#include <utility>

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

std::int64_t checked_max_len(std::int64_t max_len, const Encoder& encoder) {
  if (max_len < 0 || max_len > max_position) refuse_value("max_len", {"is ", max_len}, {"0 to 2**53"});
  if (max_len > INT64_MAX / row_bytes_of(encoder, DType::float64)) {
    refuse_value("max_len", {"is ", max_len}, {"at most 2**63 bytes of rows, 8 for each column"});
  }
  const std::int64_t bytes = max_len * row_bytes_of(encoder, DType::float32), memory = memory_bytes();
  if (memory > 0 && bytes > memory) {
    refuse_value(
        "max_len", {"is ", max_len, ", float32 rows of ", bytes >> 30, " GiB"},
        {"at most ", memory / row_bytes_of(encoder, DType::float32), ": this machine has ", memory >> 30, " GiB"},
        {"choose fewer: positions beyond them are computed"});
  }
  return max_len;
}

}  // namespace

std::int64_t kept_row_bytes() { return all_kept_bytes.load(std::memory_order_relaxed); }

Encoding::KeptRows::KeptRows(DType dtype_, const Encoder& encoder, std::optional<std::int64_t> max_len)
    : dtype(dtype_),
      row_bytes(row_bytes_of(encoder, dtype)),
      limit(max_len ? checked_max_len(*max_len, encoder) : encoder_budget_bytes / row_bytes) {}

Encoding::Encoding(Spec spec, std::optional<std::int64_t> max_len, std::int64_t first_position_,
                   double embedding_scale_, std::optional<std::int64_t> padding_idx_)
    : encoder(std::move(spec)),
      first_position(first_position_),
      embedding_scale(embedding_scale_),
      padding_idx(padding_idx_),
      is_automatic_(!max_len),
      float32_(DType::float32, encoder, max_len),
      float64_(DType::float64, encoder, max_len),
      chunk_shift_(chunk_shift_for(float64_.row_bytes)) {}

Encoding::~Encoding() {
  const std::int64_t bytes = filled_bytes_.load(std::memory_order_relaxed);
  all_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_automatic_) automatically_kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

const Encoding::Memory& Encoding::memory_of(const KeptRows& rows) const {
  return rows.memory.get([&] {
    const auto chunks = static_cast<std::size_t>(((rows.limit - 1) >> chunk_shift_) + 1);
    Memory memory;
    memory.bytes = AlignedBuffer<char>::uninitialized(rows.limit * rows.row_bytes);
    memory.states = std::make_unique<std::atomic<State>[]>(chunks);  // fewer than the bytes, which were counted
    return memory;
  });
}

Tile Encoding::kept_rows(DType dtype, const PositionBounds& bounds) const {
  const KeptRows& kept = rows_of(dtype);
  if (!can_keep(dtype, bounds) || !kept.memory.is_made()) return {};
  const Memory& memory = memory_of(kept);
  const Range chunks = chunks_of(bounds);
  for (std::int64_t chunk = chunks.first; chunk < chunks.end(); ++chunk) {
    if (memory.states[static_cast<std::size_t>(chunk)].load(std::memory_order_acquire) != State::full) return {};
  }
  return {
      {memory.bytes.data(), kept.row_bytes, element_bytes(dtype)}, dtype, {0, kept.limit}, {0, encoder.spec().d_model}};
}

void Encoding::reserve(DType dtype, const PositionBounds& bounds) const {
  if (!is_automatic_ && can_keep(dtype, bounds)) memory_of(rows_of(dtype));
}

std::int64_t Encoding::first_to_fill(const Memory& memory, const Range& chunks) const {
  std::int64_t first = -1;
  for (std::int64_t chunk = chunks.first; chunk < chunks.end(); ++chunk) {
    std::atomic<State>& state = memory.states[static_cast<std::size_t>(chunk)];
    if (!is_automatic_) {
      if (state.load(std::memory_order_relaxed) == State::empty) return chunk;
      continue;
    }
    State found = State::empty;
    if (!state.compare_exchange_strong(found, State::used_once) && found == State::used_once && first < 0)
      first = chunk;
  }
  return first;
}

void Encoding::keep(DType dtype, const PositionBounds& bounds, std::int64_t bytes_written, int max_threads,
                    Interruption* interruption) const {
  if (!can_keep(dtype, bounds)) return;
  if (is_automatic_ && !was_used_.exchange(true, std::memory_order_relaxed)) return;
  const KeptRows& rows = rows_of(dtype);
  try {
    const Range chunks = chunks_of(bounds);
    const std::int64_t first = first_to_fill(memory_of(rows), chunks);
    if (first < 0) return;
    const std::int64_t more = is_automatic_ ? 0 : bytes_written / (rows.row_bytes << chunk_shift_);
    fill(rows, {first, std::min(chunks.end() - first, 1 + more)}, is_automatic_ ? 1 : max_threads, interruption);
  } catch (const std::bad_alloc&) {  // the rows are made again
  }
}

void Encoding::warm_up(DType dtype, int max_threads, Interruption* interruption) const {
  encoder.prepare(dtype, interruption);
  const KeptRows& rows = rows_of(dtype);
  if (!is_automatic_ && rows.limit > 0)
    fill(rows, {0, ((rows.limit - 1) >> chunk_shift_) + 1}, max_threads, interruption);
}

void Encoding::fill(const KeptRows& rows, const Range& chunks, int max_threads, Interruption* interruption) const {
  const Memory& memory = memory_of(rows);
  const int threads = threads_for((chunks.count << chunk_shift_) * rows.row_bytes, max_threads);
  const std::int64_t scratch_bytes = whole_cache_lines(encoder.scratch_bytes(rows.dtype, false));
  const auto scratch = AlignedBuffer<char>::uninitialized(threads * scratch_bytes);
  const bool completed =
      parallel_for(chunks.count, 1, threads, interruption, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t i = begin; i < end; ++i) {
          fill_chunk(rows, memory, chunks.first + i, scratch.data() + thread * scratch_bytes);
        }
      });
  if (!completed) throw Interrupted{};
}

void Encoding::fill_chunk(const KeptRows& rows, const Memory& memory, std::int64_t chunk, char* scratch) const {
  std::atomic<State>& state = memory.states[static_cast<std::size_t>(chunk)];
  const State before = is_automatic_ ? State::used_once : State::empty;
  State expected = before;
  if (!state.compare_exchange_strong(expected, State::filling, std::memory_order_relaxed)) return;
  const std::int64_t begin = chunk << chunk_shift_;
  const std::int64_t count = std::min(rows.limit - begin, std::int64_t{1} << chunk_shift_);
  const std::int64_t bytes = count * rows.row_bytes;
  if (is_automatic_ && !take_from_budget(bytes)) return state.store(before, std::memory_order_relaxed);
  encoder.start(scratch, rows.dtype, false);
  encoder.write_rows(
      {0, count, number_of(begin)},
      {{memory.bytes.data() + begin * rows.row_bytes, rows.row_bytes}, rows.dtype, {0, encoder.spec().d_model}}, 0,
      scratch);
  filled_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  all_kept_bytes.fetch_add(bytes, std::memory_order_relaxed);
  state.store(State::full, std::memory_order_release);
}

}  // namespace fastpe
