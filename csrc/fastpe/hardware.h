// SPDX-License-Identifier: BSD-3-Clause
// What decides how calls use this machine's caches and memory.
#pragma once

#include <cstdint>

namespace fastpe {

// The sizes of one processor's first-level data cache and of its second-level cache.
std::int64_t first_level_cache_bytes();
std::int64_t second_level_cache_bytes();

// Outputs larger than this may bypass the cache: what a call may expect of the last level, which processors share, also
// those of other virtual machines; or FASTPE_STREAMING_BYTES.
std::int64_t streaming_threshold_bytes();

// How kinds of processors differ, as far as it was measured. What is true or false here is so on an Intel server, and
// on processors that were not measured.
struct ProcessorTraits {
  // Arrays up to this size are expected to stay in the cache from one call to the next.
  std::int64_t cached_array_bytes = 0;
  // The part of a tile that stays in the cache beside x, if x is in the cache, too. It has to be in the first level:
  // read from the second, it would halve the speed of everything that passes through.
  std::int64_t resident_tile_bytes = 0;
  // One sequence of up to this size is added to ready rows faster than to rows that are made at their place.
  std::int64_t largest_read_bytes = 0;
  // The last level gives rows in half of the time that it takes to make them.
  bool reads_rows_from_last_level = false;
  // The processor fetches one sequence and its ready rows from memory in time.
  bool fetches_sequences_itself = false;
  // One thread stores encodings, tables and angles plainly up to this size, if they are made at their place.
  std::int64_t largest_plain_bytes = 0;
  // So does a team of threads up to this one.
  std::int64_t largest_plain_bytes_of_team = 0;
  // Streaming stores that go to several rows in turn are slow, and so is making a value twice.
  bool streams_row_by_row = false;
  // The processor fetches batches of float32 and float64 from memory in time, for one thread that sums them in place.
  bool fetches_batches_itself = false;
  // Rows of another item may be fetched into the first level, where it has room.
  bool fetches_items_close = true;
  // In memory, sums are faster if stores begin where rows do, and not on a vector's boundary.
  bool has_unaligned_sums = false;
  // Ready rows are added in halves of AVX-512's vectors if each is at an offset of its own, or if they are added to one
  // sequence that the second level does not hold.
  bool adds_ready_rows_in_halves = false;
  // Pairs are turned in halves of AVX-512's vectors if their cosines are loaded for each row.
  bool rotates_in_halves = false;
  // Rotations into another array, in memory, are better streamed.
  bool streams_rotations = false;
};
const ProcessorTraits& processor_traits();

// The size of this machine's memory; 0 if it is unknown.
std::int64_t memory_bytes();

}  // namespace fastpe
