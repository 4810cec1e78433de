// SPDX-License-Identifier: BSD-3-Clause
// What kernels and calls do with memory that their results do not show.
//
// Kernels store past the caches where they should, and each thread's part of a call ends with a fence: without it,
// another thread may see that the call is done before it sees what the call stored. Processors drain their buffers so
// soon that hardly any run shows a fence that is missing, so fences are counted, in kernels that are compiled only for
// this.
#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "counted_kernels.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/kernels/kernels.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/rotate.h"
#include "fastpe/operations/write.h"

namespace fastpe::testing {
Stores stores;
thread_local bool is_unfenced = false;
void count_store() {
  ++stores.all;
  if (!is_unfenced) ++stores.unfenced_threads;
  is_unfenced = true;
}
void count_fence() {
  if (is_unfenced) --stores.unfenced_threads;
  is_unfenced = false;
}
}  // namespace fastpe::testing

namespace {

using namespace fastpe;
using fastpe::testing::stores;

constexpr DType wide_dtypes[] = {DType::float32, DType::float64};
constexpr DType all_dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16};

// An array of zeros that starts `shift` elements behind a multiple of `alignment` bytes.
class Array {
 public:
  Array(DType dtype, std::int64_t elements, std::int64_t shift, std::int64_t alignment = 64)
      : bytes_(static_cast<std::size_t>((elements + shift) * element_bytes(dtype) + alignment)) {
    const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes_.data())) % alignment;
    data = bytes_.data() + (alignment - beyond) + shift * element_bytes(dtype);
  }
  char* data;

 private:
  std::vector<char> bytes_;
};

// How many non-temporal stores a kernel does.
template <class Kernel, class Arguments>
int stores_of(Kernel kernel, const Arguments& arguments) {
  stores.all = 0;
  kernel(arguments);
  return stores.all;
}

// An expansion of so many rows, from the first one of a block on. Its arrays have room for as many rows more.
struct ExpandedRows {
  ExpandedRows(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t shift, std::int64_t gap, bool adds)
      : padded(columns + 2 * column_padding),
        zeros(static_cast<std::size_t>((block_radius + 1) * padded)),
        x(dtype, 2 * rows * (columns + gap), shift, 128),
        out(dtype, 2 * rows * (columns + gap), shift, 128) {
    const double* const table = zeros.data();
    for (AnchorPhasors& anchor : e.anchors) anchor = {table, table, nullptr, nullptr, 1.0};
    e.fine = {table, table, table, table, padded};
    e.first_row = -block_radius;
    e.last_row = e.first_row + rows - 1;
    e.columns = columns;
    e.out = out.data;
    e.x = adds ? x.data : nullptr;
    e.out_row_stride_bytes = e.x_row_stride_bytes = (columns + gap) * element_bytes(dtype);
    e.scale = e.alpha = e.bound = 1.0;
  }

  const std::int64_t padded;
  const std::vector<double> zeros;
  const Array x, out;
  Expansion e{};
};

int expanding(const Kernels& kernels, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t shift,
              std::int64_t gap, bool adds) {
  ExpandedRows expanded(dtype, rows, columns, shift, gap, adds);
  expanded.e.non_temporal = true;
  return stores_of(kernels.expand[index_of(dtype)], expanded.e);
}

// Of a whole pair's rows without gaps, all lines are stored past the caches, but for one that its neighbours share.
void every_line_is_stored_once(const Kernels& kernels, std::int64_t lanes) {
  for (const DType dtype : all_dtypes) {
    const std::int64_t bytes = element_bytes(dtype), vector_bytes = lanes * bytes;
    const std::int64_t line = vector_bytes < 64 ? 64 : vector_bytes;
    const bool is_wide = lanes >= 8 && !is_16_bit(dtype);
    for (const bool adds : {false, true}) {
      for (const std::int64_t columns : {32, 64, 256, 272, 1040}) {  // rows of whole lines
        for (const std::int64_t shift : {0, 2, 4, 8, 13}) {
          const bool has_shared_lines = shift * bytes % line != 0;
          const std::int64_t stored = rows_of_two_blocks * columns * bytes - (has_shared_lines ? line : 0);
          CHECK_EQUAL(expanding(kernels, dtype, rows_of_two_blocks, columns, shift, 0, adds) * lanes * 4,
                      is_wide ? stored : 0);
          // Rows with gaps share no line, so those that do not begin on a line's boundary are stored through the
          // caches.
          CHECK_EQUAL(expanding(kernels, dtype, rows_of_two_blocks, columns, shift, 64, adds) * lanes * 4,
                      is_wide && !has_shared_lines ? stored : 0);
        }
      }
      CHECK_EQUAL(expanding(kernels, dtype, rows_of_two_blocks - 1, 256, 0, 0, adds), 0);
      CHECK_EQUAL(expanding(kernels, dtype, rows_of_two_blocks, 100, 0, 1, adds), 0);
    }
  }
}

void combining(const Kernels& kernels, DType dtype, bool is_wide, std::int64_t shift, std::int64_t gap) {
  const std::int64_t rows = 3, columns = 128;
  const std::int64_t elements = rows * (columns + gap);
  const DType addend_dtype = is_16_bit(dtype) ? DType::float32 : dtype;
  const Array x(dtype, elements, shift), out(dtype, elements, shift), addend(addend_dtype, elements, shift);
  Combination c{};
  c.out = out.data;
  c.x = x.data;
  c.tile = addend.data;
  c.out_row_stride_bytes = c.x_row_stride_bytes = (columns + gap) * element_bytes(dtype);
  c.tile_row_stride_bytes = (columns + gap) * element_bytes(addend_dtype);
  c.rows = rows;
  c.columns = columns;
  c.scale = c.alpha = 1.0;
  c.non_temporal = true;
  CHECK_EQUAL(stores_of(kernels.combine[index_of(dtype)], c) > 0, is_wide);
}

// ---- calls

// Calls are large enough for two threads.
void every_call(std::int64_t lanes) {
  using namespace fastpe::testing;
  constexpr std::int64_t rows = 2000, columns = 384, narrow_columns = 32;
  const Encoding wide_embedding(spec_of(columns), 0), narrow_embedding(spec_of(narrow_columns), 0);
  const Encoding rotary_embedding(spec_of(columns, "timestep"), 0);
  const auto check_fences = [&](const Operation& operation, bool bypasses_cache, const Encoding& embedding) {
    for (const int threads : {1, 2}) {
      stores.all = 0;
      run_at(embedding, operation, placement_from(5), threads);
      CHECK_EQUAL(stores.all > 0, bypasses_cache && lanes >= 8);
      CHECK_EQUAL(stores.unfenced_threads, 0);
    }
  };
  for (const DType dtype : wide_dtypes) {
    const Array x(dtype, rows * columns, 0), first(dtype, rows * columns, 4), second(dtype, rows * columns, 4);
    const Rows from = rows_view(x.data, dtype, rows, columns), to = rows_view(first.data, dtype, rows, columns);
    const Rows sines = rows_view(second.data, dtype, rows, columns);
    const Rows narrow = rows_view(first.data, dtype, rows, narrow_columns);
    check_fences(Write(to, false), true, wide_embedding);
    check_fences(Write(to, true), false, wide_embedding);
    check_fences(Write(narrow, false), true, narrow_embedding);
    check_fences(Add({read_only(from), to}, 1, {}, false), true, wide_embedding);
    check_fences(Add({read_only(from), to}, 1, {}, true), false, wide_embedding);
    check_fences(Add({read_only(to), to}, 1, {}, false), false, wide_embedding);
    const TableForm& cos_sin = table_forms[3];
    const Pairing all{columns / 2, false, false, {{0, columns / 2}}};
    const ReadWrite rotated[] = {heads_of(read_only(from), to), heads_of(read_only(to), to)};
    check_fences(Rotate({&rotated[0], 1}, 1, all, false), true, rotary_embedding);
    check_fences(Rotate({&rotated[0], 1}, 1, all, true), false, rotary_embedding);
    check_fences(Rotate({&rotated[1], 1}, 1, all, false), false, rotary_embedding);
    check_fences(Write({to, sines}, cos_sin, columns / 2, false), true, rotary_embedding);
    check_fences(Write({to, sines}, cos_sin, columns / 2, true), false, rotary_embedding);
  }
}

}  // namespace

int main() {
  for (const std::string& name : available_instruction_sets()) {
    const std::int64_t lanes = name == "avx512" ? 16 : name == "avx2" ? 8 : 4;
    use_instruction_set(name);
    const Kernels& kernels = active_kernels();
    every_line_is_stored_once(kernels, lanes);
    for (const DType dtype : all_dtypes) {
      for (const std::int64_t shift : {0, 4}) {
        for (const std::int64_t gap : {0, 16}) {
          combining(kernels, dtype, lanes >= 8 && !is_16_bit(dtype), shift, gap);
        }
      }
    }
    kernels.store_fence();
    every_call(lanes);
    std::printf("%s: %d failures so far\n", name.c_str(), fastpe::testing::failures());
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
