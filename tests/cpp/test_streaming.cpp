// SPDX-License-Identifier: BSD-3-Clause
// Kernels stream where they should, and each thread's part of a call ends with a fence: without it, another thread may
// see that the call is done before it sees what the call stored. Processors drain their buffers so soon that hardly any
// run shows a fence that is missing, so fences are counted, in kernels that are compiled for this alone.
#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "counted_kernels.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/kernels/kernels.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/write_tables.h"

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

constexpr DType dtypes[] = {DType::float32, DType::float64};

// An array of zeros that starts `shift` elements behind a cache line.
class Array {
 public:
  Array(DType dtype, std::int64_t elements, std::int64_t shift)
      : bytes_(static_cast<std::size_t>((elements + shift) * element_bytes(dtype) + 64)) {
    const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64);
    data = bytes_.data() + (64 - beyond) + shift * element_bytes(dtype);
  }
  char* data;

 private:
  std::vector<char> bytes_;
};

template <class Kernel, class Arguments>
void check_streaming(Kernel kernel, const Arguments& arguments, bool streams) {
  stores.all = 0;
  kernel(arguments);
  CHECK_EQUAL(stores.all > 0, streams);
}

void expanding(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift, std::int64_t gap,
               bool adds, bool streams) {
  const std::int64_t rows = 20, padded = columns + 2 * column_padding;
  const std::vector<double> zeros(static_cast<std::size_t>((block_radius + 1) * padded));
  const Array x(dtype, rows * (columns + gap), shift), out(dtype, rows * (columns + gap), shift);
  Expansion e{};
  for (Anchor& anchor : e.anchors) anchor = {zeros.data(), zeros.data(), {}};
  e.fine = {zeros.data(), zeros.data(), zeros.data(), zeros.data(), padded};
  e.first_row = -3;
  e.last_row = e.first_row + rows - 1;
  e.columns = e.jump_column = columns;
  e.out = out.data;
  e.x = adds ? x.data : nullptr;
  e.out_row_stride_bytes = e.x_row_stride_bytes = (columns + gap) * element_bytes(dtype);
  e.scale = e.alpha = e.bound = 1.0;
  e.streaming = true;
  check_streaming(kernels.expand[index_of(dtype)], e, streams);
}

void combining(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift, std::int64_t gap) {
  const std::int64_t rows = 3;
  const Array x(dtype, rows * (columns + gap), shift), out(dtype, rows * (columns + gap), shift);
  Combination c{};
  c.out = out.data;
  c.x = c.addend = x.data;
  c.out_row_stride_bytes = c.x_row_stride_bytes = c.addend_row_stride_bytes = (columns + gap) * element_bytes(dtype);
  c.rows = rows;
  c.columns = columns;
  c.scale = c.alpha = 1.0;
  c.streaming = true;
  check_streaming(kernels.combine[index_of(dtype)], c, true);
}

void interleaving(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift, bool streams) {
  const std::int64_t rows = 3;
  const Array x(dtype, rows * columns, 0), out(dtype, rows * 2 * columns, shift);
  Interleaving i{};
  i.out = out.data;
  i.first = i.second = x.data;
  i.out_row_stride_bytes = 2 * columns * element_bytes(dtype);
  i.row_stride_bytes = columns * element_bytes(dtype);
  i.rows = rows;
  i.columns = columns;
  i.streaming = true;
  check_streaming(kernels.interleave[index_of(dtype)], i, streams);
}

// `lanes` float32 values are a vector. Sums of expansions and pairs are streamed only where vectors hold whole lines.
void every_kernel(const Kernels& kernels, std::int64_t lanes) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t shift : {0, 4}) {
      for (const std::int64_t gap : {0, 16}) {
        for (const std::int64_t columns : {128, 1024}) {  // rows without a gap are narrow, or have seams
          expanding(kernels, dtype, columns, shift, gap, false, true);
          expanding(kernels, dtype, columns, shift, gap, true, lanes * element_bytes(dtype) >= 64);
          combining(kernels, dtype, columns, shift, gap);
        }
      }
      interleaving(kernels, dtype, 128, shift, lanes == 16);
    }
  }
}

// Calls are large enough for two threads.
void every_call(std::int64_t lanes) {
  using namespace fastpe::testing;
  constexpr std::int64_t rows = 2000, columns = 256;
  const KeepingEncoder encoder(spec_of(columns));
  const auto check_fences = [&](const Operation& operation, bool streams) {
    for (const int threads : {1, 2}) {
      stores.all = 0;
      run_at(encoder, operation, positions_from(5), threads);
      CHECK_EQUAL(stores.all > 0, streams);
      CHECK_EQUAL(stores.unfenced_threads, 0);
    }
  };
  for (const DType dtype : dtypes) {
    const Array x(dtype, rows * columns, 0), first(dtype, rows * columns, 4), second(dtype, rows * columns, 4);
    const Rows from = rows_view(x.data, dtype, rows, columns), to = rows_view(first.data, dtype, rows, columns);
    const Rows sines = rows_view(second.data, dtype, rows, columns);
    check_fences(Write(to), true);
    check_fences(Add(read_only(from), to, 1, {}), lanes * element_bytes(dtype) >= 64);
    check_fences(WriteTables({to, sines}, TableForm::repeat, columns / 2), lanes == 16);
  }
}

}  // namespace

int main() {
  for (const std::string& name : available_instruction_sets()) {
    const std::int64_t lanes = name == "avx512" ? 16 : name == "avx2" ? 8 : 4;
    use_instruction_set(name);
    every_kernel(active_kernels(), lanes);
    active_kernels().streaming_fence();
    every_call(lanes);
    std::printf("%s: %d failures so far\n", name.c_str(), fastpe::testing::failures());
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
