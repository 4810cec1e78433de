// SPDX-License-Identifier: BSD-3-Clause
// What kernels and calls do with memory that their results do not show.
//
// Kernels stream where they should, and each thread's part of a call ends with a fence: without it, another thread may
// see that the call is done before it sees what the call stored. Processors drain their buffers so soon that hardly any
// run shows a fence that is missing, so fences are counted, in kernels that are compiled for this alone.
//
// Kernels fetch the rows that come next. If they fetched anything else, this would only take time.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "counted_kernels.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/hardware.h"
#include "fastpe/kernels/kernels.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/rotate.h"
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

constexpr std::uintptr_t line_bytes = 64;
using Lines = std::set<std::uintptr_t>;
struct Fetched {
  Lines into_second_level, into_first_level;
};
Fetched* fetched = nullptr;  // null: nobody looks at it
void count_fetch(const void* address, bool into_first_level) {
  if (fetched == nullptr) return;
  (into_first_level ? fetched->into_first_level : fetched->into_second_level)
      .insert(reinterpret_cast<std::uintptr_t>(address) / line_bytes);
}
}  // namespace fastpe::testing

namespace {

using namespace fastpe;
using fastpe::testing::Fetched;
using fastpe::testing::Lines;
using fastpe::testing::stores;

constexpr DType streamed_dtypes[] = {DType::float32, DType::float64};
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

// How many streaming stores a kernel does.
template <class Kernel, class Arguments>
int stores_of(Kernel kernel, const Arguments& arguments) {
  stores.all = 0;
  kernel(arguments);
  return stores.all;
}

template <class Kernel, class Arguments>
void check_streaming(Kernel kernel, const Arguments& arguments, bool streams) {
  CHECK_EQUAL(stores_of(kernel, arguments) > 0, streams);
}

constexpr std::int64_t whole_pair = blocks_at_once * block_rows;
constexpr std::int64_t most_narrow_bytes = 24 * 1024;

// An expansion of so many rows, from the first one of a block on. Its arrays have room for as many rows more.
struct ExpandedRows {
  ExpandedRows(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t shift, std::int64_t gap, bool adds)
      : padded(columns + 2 * column_padding),
        zeros(static_cast<std::size_t>(column_padding + (block_radius + 1) * padded)),
        x(dtype, 2 * rows * (columns + gap), shift, 128),
        out(dtype, 2 * rows * (columns + gap), shift, 128) {
    const double* const table = zeros.data() + column_padding;
    for (Anchor& anchor : e.anchors) anchor = {table, table, {}};
    e.fine = {table, table, table, table, padded, columns};
    e.first_row = -block_radius;
    e.last_row = e.first_row + rows - 1;
    e.columns = e.jump_column = columns;
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
              std::int64_t gap, bool adds, bool row_by_row = false) {
  ExpandedRows expanded(dtype, rows, columns, shift, gap, adds);
  expanded.e.streaming = true;
  expanded.e.streams_row_by_row = row_by_row;
  return stores_of(kernels.expand[index_of(dtype)], expanded.e);
}

// The stores of the angles of 5 rows.
int multiplying(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift, std::int64_t gap) {
  const std::int64_t rows = 5;
  const std::vector<double> zeros(static_cast<std::size_t>(columns + column_padding));
  const Array out(dtype, rows * (columns + gap), shift);
  Angles a{};
  a.out = out.data;
  a.out_row_stride_bytes = (columns + gap) * element_bytes(dtype);
  a.radians_high = a.radians_low = zeros.data();
  a.rows = rows;
  a.columns = columns;
  a.streaming = true;
  return stores_of(kernels.angles[index_of(dtype)], a);
}

// The stores of rows without gaps: of all lines, but for one that their neighbours share.
void every_line_is_streamed_once(const Kernels& kernels, std::int64_t lanes) {
  const std::int64_t register_bytes = lanes * 4;
  for (const DType dtype : streamed_dtypes) {
    const std::int64_t vector_bytes = lanes * element_bytes(dtype);
    const std::int64_t line = lanes >= 8 && vector_bytes < 64 ? 64 : vector_bytes;
    for (const std::int64_t columns : {32, 64, 256, 272, 1040}) {  // rows of whole lines
      const std::int64_t row_bytes = columns * element_bytes(dtype);
      for (const std::int64_t shift : {0, 2, 4, 8, 13}) {
        const bool has_seams = shift * element_bytes(dtype) % line != 0;
        const std::int64_t bytes = whole_pair * row_bytes - (has_seams ? line : 0);
        // Narrow vectors are streamed to narrow rows alone.
        const bool is_streamed = lanes >= 8 || whole_pair * row_bytes <= most_narrow_bytes;
        CHECK_EQUAL(expanding(kernels, dtype, whole_pair, columns, shift, 0, false) * register_bytes,
                    is_streamed ? bytes : 0);
        // Where rows are streamed best row by row, wide ones of float64 are not streamed.
        const bool streams = dtype == DType::float32 || row_bytes < 1024;
        CHECK_EQUAL(expanding(kernels, dtype, whole_pair, columns, shift, 0, false, true) * register_bytes,
                    streams && is_streamed ? bytes : 0);
        // The last line is not streamed if there is no seam, either.
        CHECK_EQUAL(multiplying(kernels, dtype, columns, shift, 0) * register_bytes, 5 * row_bytes - line);
        CHECK_EQUAL(multiplying(kernels, dtype, columns, shift, 16), 0);
      }
    }
  }
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

void interleaving(const Kernels& kernels, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t shift,
                  bool streams) {
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

// All lines but those at both ends of the array are streamed, if rows are no shorter than a line.
void duplicating(const Kernels& kernels, std::int64_t lanes) {
  const std::int64_t rows = 70, line = 64;
  for (const std::int64_t columns : {15, 16, 40, 64}) {
    for (const std::int64_t shift : {0, 4, 13}) {
      const std::int64_t row_bytes = columns * 4;
      const Array from(DType::float32, rows * columns, 0), out(DType::float32, rows * 2 * columns, shift);
      const std::int64_t head = shift == 0 ? 0 : line - shift * 4;
      const bool streams = lanes >= 8 && row_bytes >= line;
      const std::int64_t streamed = streams ? (2 * rows * row_bytes - head) / line * line : 0;
      const Duplication d{out.data, from.data, rows, row_bytes, true};
      CHECK_EQUAL(stores_of(kernels.duplicate, d) * lanes * 4, streamed);
    }
  }
}

// All lines but those at both ends of the array are streamed.
void rotating(const Kernels& kernels, std::int64_t lanes) {
  const std::int64_t rows = 70, line = lanes >= 8 ? 64 : 16;
  for (const DType dtype : all_dtypes) {
    const std::int64_t bytes = element_bytes(dtype);
    for (const std::int64_t columns : {40, 128, 256}) {
      for (const std::int64_t shift : {0, 4, 13}) {
        const Array x(dtype, rows * columns, 0), out(dtype, rows * columns, shift);
        const std::vector<double> ones(static_cast<std::size_t>(columns), 1.0);
        Rotation r{};
        r.out = out.data;
        r.x = x.data;
        r.out_row_stride_bytes = r.x_row_stride_bytes = columns * bytes;
        r.cosines = r.sines = reinterpret_cast<const char*>(ones.data());
        r.rows = rows;
        r.pairs = r.half = columns / 2;
        r.streaming = true;
        const std::int64_t head = (line - shift * bytes % line) % line;
        const std::int64_t streamed = (rows * columns * bytes - head) / line * line;
        CHECK_EQUAL(stores_of(kernels.rotate[index_of(dtype)], r) * lanes * 4, streamed);
      }
    }
  }
}

// `lanes` float32 values are a vector. Sums of expansions, and pairs in rows that are not long, are streamed only
// where vectors hold whole lines.
void every_streaming_kernel(const Kernels& kernels, std::int64_t lanes) {
  duplicating(kernels, lanes);
  rotating(kernels, lanes);
  for (const DType dtype : streamed_dtypes) {
    for (const std::int64_t shift : {0, 4}) {
      for (const std::int64_t gap : {0, 16}) {
        for (const std::int64_t columns : {128, 1024}) {
          const bool streams_sums = lanes * element_bytes(dtype) >= 64;
          CHECK_EQUAL(expanding(kernels, dtype, whole_pair, columns, shift, gap, false) > 0, lanes >= 8);
          CHECK_EQUAL(expanding(kernels, dtype, whole_pair, columns, shift, gap, true) > 0, streams_sums);
          // Fewer rows are streamed where they are narrow.
          CHECK_EQUAL(expanding(kernels, dtype, 20, columns, shift, gap, false) > 0, gap == 0 && columns == 128);
          CHECK_EQUAL(expanding(kernels, dtype, 20, columns, shift, gap, true), 0);
          combining(kernels, dtype, columns, shift, gap);
        }
      }
      interleaving(kernels, dtype, 3, 1024, shift, lanes == 16);
      interleaving(kernels, dtype, 1, 128, shift, lanes == 16);
      interleaving(kernels, dtype, 1, 1024, shift, lanes >= 8);
    }
  }
}

// ---- fetches

// Rows with a gap between them, which begin `shift` elements behind a line's boundary.
class FetchedRows : public Array {
 public:
  static constexpr std::int64_t count = 3, columns = 128, longest_vector_bytes = 128;
  static std::int64_t stride_bytes(DType dtype) { return (columns + 32) * element_bytes(dtype); }

  FetchedRows(DType dtype, std::int64_t shift)
      : Array(dtype, count * (columns + 32) + shift, shift, longest_vector_bytes), dtype_(dtype) {}
  void add_lines(Lines& lines, std::int64_t offset_bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(data + offset_bytes);
    const auto end = begin + static_cast<std::uintptr_t>(columns * element_bytes(dtype_));
    for (std::uintptr_t byte = begin; byte < end; ++byte) lines.insert(byte / fastpe::testing::line_bytes);
  }

 private:
  DType dtype_;
};

// has_next_out: whether other rows are written than are read. offsets_bytes: those of gathered rows, or null.
template <class Kernel, class Arguments>
void check_fetches(Kernel kernel, Arguments arguments, DType dtype, bool has_next_out,
                   const std::int64_t* offsets_bytes, std::int64_t shift = 0, bool streams = false) {
  const FetchedRows x(dtype, shift), next_x(dtype, shift), out(dtype, shift), next_out(dtype, shift);
  arguments.out = out.data;
  arguments.x = x.data;
  const std::int64_t stride_bytes = FetchedRows::stride_bytes(dtype);
  arguments.out_row_stride_bytes = arguments.x_row_stride_bytes = stride_bytes;
  arguments.rows = FetchedRows::count;
  if (offsets_bytes == nullptr) arguments.next_x = next_x.data;
  if (has_next_out) arguments.next_out = next_out.data;
  Lines expected;
  for (std::int64_t row = 0; row < FetchedRows::count; ++row) {
    offsets_bytes == nullptr ? next_x.add_lines(expected, row * stride_bytes)
                             : x.add_lines(expected, offsets_bytes[row + 1]);
    if (has_next_out) next_out.add_lines(expected, row * stride_bytes);
  }
  for (const bool fetches_close : {false, true}) {
    arguments.fetches_close = fetches_close;
    Fetched fetched;
    fastpe::testing::fetched = &fetched;
    kernel(arguments);
    fastpe::testing::fetched = nullptr;
    const bool into_first_level = fetches_close && !has_next_out && !streams;
    CHECK(fetched.into_first_level == (into_first_level ? expected : Lines()));
    CHECK(fetched.into_second_level == (into_first_level ? Lines() : expected));
  }
}

// A panel fetches the next one, and the last panel the first one of the next call's rows: each line of a row is
// fetched, in these rows or in those of the next call.
void expanding_fetches_what_comes_next(const Kernels& kernels, DType dtype, std::int64_t columns, std::int64_t shift,
                                       bool adds) {
  ExpandedRows expanded(dtype, whole_pair, columns, shift, 0, adds);
  expanded.e.fetches_ahead = true;
  Fetched fetched;
  fastpe::testing::fetched = &fetched;
  kernels.expand[index_of(dtype)](expanded.e);
  fastpe::testing::fetched = nullptr;
  CHECK(fetched.into_first_level.empty());
  const auto is_fetched = [&fetched](const char* byte) {
    return fetched.into_second_level.count(reinterpret_cast<std::uintptr_t>(byte) / fastpe::testing::line_bytes) > 0;
  };
  const std::int64_t row_bytes = columns * element_bytes(dtype);
  const char* const rows = (adds ? expanded.x : expanded.out).data;
  int missing = 0;
  for (std::int64_t at = 0; at < whole_pair * row_bytes; at += element_bytes(dtype)) {
    missing += is_fetched(rows + at) || is_fetched(rows + at + whole_pair * row_bytes) ? 0 : 1;
  }
  CHECK_EQUAL(missing, 0);
}

void every_fetching_kernel(const Kernels& kernels) {
  for (const DType dtype : all_dtypes) {
    // Of 1008 columns, not all rows begin at the same place in a line.
    for (const std::int64_t columns : {64, 128, 256, 320, 384, 512, 640, 768, 1008}) {
      for (const std::int64_t shift : {0, 4}) {
        for (const bool adds : {false, true}) expanding_fetches_what_comes_next(kernels, dtype, columns, shift, adds);
      }
    }
  }
  const std::vector<double> ones(FetchedRows::columns, 1.0);
  const char* const table = reinterpret_cast<const char*>(ones.data());
  for (const DType dtype : all_dtypes) {
    const std::int64_t stride_bytes = FetchedRows::stride_bytes(dtype);
    const std::int64_t offsets_bytes[] = {stride_bytes, 0, 0, 2 * stride_bytes};
    for (const bool has_next_out : {false, true}) {
      Combination c{};
      c.addend = table;
      c.columns = FetchedRows::columns;
      c.scale = c.alpha = 1.0;
      // Vectors that lie on their boundaries are fewer than lines if rows begin elsewhere.
      for (const std::int64_t shift : {0, 1, 4, 8}) {
        for (const bool unaligned : {false, true}) {
          c.unaligned = unaligned;
          c.x_offsets_bytes = nullptr;
          check_fetches(kernels.combine[index_of(dtype)], c, dtype, has_next_out, nullptr, shift);
          c.x_offsets_bytes = offsets_bytes;
          check_fetches(kernels.combine[index_of(dtype)], c, dtype, has_next_out, offsets_bytes, shift);
        }
        if (!can_stream(dtype)) continue;
        Combination streamed = c;
        streamed.streaming = true;
        check_fetches(kernels.combine[index_of(dtype)], streamed, dtype, false, offsets_bytes, shift, true);
        kernels.streaming_fence();
      }
      for (const bool interleaved : {false, true}) {
        for (const bool backwards : {false, true}) {
          Rotation r{};
          r.cosines = r.sines = table;
          r.pairs = r.half = FetchedRows::columns / 2;
          r.interleaved = interleaved;
          r.backwards = backwards;
          // The rows share a table row, or each has its own.
          for (const std::int64_t table_row_stride_bytes : {std::int64_t{0}, element_bytes(row_dtype(dtype))}) {
            r.table_row_stride_bytes = table_row_stride_bytes;
            check_fetches(kernels.rotate[index_of(dtype)], r, dtype, has_next_out, nullptr);
          }
        }
      }
    }
  }
}

// ---- calls

// Calls are large enough for two threads.
void every_call(std::int64_t lanes) {
  using namespace fastpe::testing;
  constexpr std::int64_t rows = 2000, columns = 384;
  constexpr std::int64_t narrow_columns = 32;
  const KeepingEncoder wide_encoder(spec_of(columns)), narrow_encoder(spec_of(narrow_columns));
  const KeepingEncoder turning_encoder(spec_of(columns, "timestep"));
  const auto check_fences = [&](const Operation& operation, bool streams, const KeepingEncoder& encoder) {
    for (const int threads : {1, 2}) {
      stores.all = 0;
      run_at(encoder, operation, positions_from(5), threads);
      CHECK_EQUAL(stores.all > 0, streams);
      CHECK_EQUAL(stores.unfenced_threads, 0);
    }
  };
  for (const DType dtype : streamed_dtypes) {
    const Array x(dtype, rows * columns, 0), first(dtype, rows * columns, 4), second(dtype, rows * columns, 4);
    const Rows from = rows_view(x.data, dtype, rows, columns), to = rows_view(first.data, dtype, rows, columns);
    const Rows sines = rows_view(second.data, dtype, rows, columns);
    const bool streams_wide_rows = dtype == DType::float32 || !processor_traits().streams_row_by_row;
    // Of narrow vectors, whether rows at a share's ends are streamed depends on how few they are.
    if (lanes >= 8) check_fences(Write(to), streams_wide_rows, wide_encoder);
    const Rows narrow = rows_view(first.data, dtype, rows, narrow_columns);
    if (lanes >= 8) check_fences(Write(narrow), true, narrow_encoder);
    check_fences(Add(read_only(from), to, 1, {}), streams_wide_rows && lanes * element_bytes(dtype) >= 64,
                 wide_encoder);
    const Pairing all{columns / 2, false, false, {{0, columns / 2}}},
        some{columns / 2, false, false, {{0, columns / 4}}};
    const bool has_room = columns * element_bytes(dtype) <= most_streamed_row_bytes;
    check_fences(Rotate({{read_only(from), to}}, 1, all), has_room && processor_traits().streams_rotations,
                 turning_encoder);
    check_fences(Rotate({{read_only(from), to}}, 1, some), false, turning_encoder);
    check_fences(Rotate({{read_only(to), to}}, 1, all), false, turning_encoder);
    check_fences(WriteTables({to, sines}, TableForm::repeat, columns / 2), lanes >= 8, wide_encoder);
  }
}

}  // namespace

int main() {
  for (const std::string& name : available_instruction_sets()) {
    const std::int64_t lanes = name == "avx512" ? 16 : name == "avx2" ? 8 : 4;
    use_instruction_set(name);
    every_streaming_kernel(active_kernels(), lanes);
    every_line_is_streamed_once(active_kernels(), lanes);
    active_kernels().streaming_fence();
    every_fetching_kernel(active_kernels());
    every_call(lanes);
    std::printf("%s: %d failures so far\n", name.c_str(), fastpe::testing::failures());
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
