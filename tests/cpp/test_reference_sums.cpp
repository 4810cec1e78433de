// SPDX-License-Identifier: BSD-3-Clause
// Usage: test_reference_sums reference_sums.txt; the tables listed there, on every instruction set and with 1 and 3
// threads, have the SHA-256 sums listed there.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/operations/add.h"
#include "fastpe/operations/rotate.h"
#include "fastpe/operations/write.h"
#include "sha256.h"

namespace {

using namespace fastpe;

struct Line {
  std::string operation, convention, dtype;
  std::int64_t first, rows, d_model;
  std::string sum;
};

DType dtype_named(const std::string& name) {
  const char* const names[] = {"float32", "float64", "float16", "bfloat16"};
  return static_cast<DType>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

// The stored sums are of little-endian bytes.
std::string sum_of_elements(std::vector<char> bytes, DType dtype) {
  const std::uint16_t one = 1;
  unsigned char first_byte;
  std::memcpy(&first_byte, &one, 1);
  const auto size = static_cast<std::ptrdiff_t>(element_bytes(dtype));
  for (auto at = bytes.begin(); first_byte == 0 && at != bytes.end(); at += size) std::reverse(at, at + size);
  return testing::sha256(bytes.data(), bytes.size());
}

void store_embeddings(std::vector<char>& out, DType dtype) {
  const std::int64_t bytes = element_bytes(dtype);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(out.size()) / bytes; ++i) {
    testing::put(dtype, out.data() + i * bytes, static_cast<double>(i * 37 % 101 - 50) / 8.0);
  }
}

void write_tables(const Encoding& embedding, const std::string& form, const Rows& all, const Placement& placement,
                  int threads) {
  const TableForm& found = *std::find_if(std::begin(table_forms), std::end(table_forms),
                                         [&](const TableForm& each) { return form == each.name; });
  const std::int64_t pairs = embedding.encoder.frequency_count();
  const std::int64_t columns = found.columns_per_pair * pairs;
  const Rows first = testing::rows_view(all.data, all.dtype, all.seq_len, columns);
  const Rows second = testing::rows_view(all.data + first.bytes(), all.dtype, all.seq_len, columns);
  testing::run_at(embedding, Write({first, second}, found, pairs, false), placement, threads);
}

std::string sum_of(const Line& line, int threads) {
  const DType dtype = dtype_named(line.dtype);
  const std::string prefix = "rotary_";
  const bool is_rotary = line.operation.rfind(prefix, 0) == 0;
  const std::string operation = is_rotary ? line.operation.substr(prefix.size()) : line.operation;
  // A row of a rotary embedding's encoding has cosines, then sines.
  const Encoding embedding(testing::spec_of(line.d_model, is_rotary ? "timestep" : line.convention), 0);
  const std::int64_t pairs = line.d_model / 2;
  const bool is_angles = is_rotary && line.convention == "angles";
  const bool is_doubled = is_rotary && (line.convention == "tile" || line.convention == "repeat");
  const std::int64_t columns = is_angles ? pairs : is_doubled ? 2 * line.d_model : line.d_model;
  std::vector<char> out(static_cast<std::size_t>(line.rows * columns * element_bytes(dtype)));
  const Rows view = testing::rows_view(out.data(), dtype, line.rows, columns);
  Placement placement = testing::placement_from(line.first);
  std::vector<double> fractions(static_cast<std::size_t>(line.rows));
  if (operation == "fractional") {
    for (std::size_t i = 0; i < fractions.size(); ++i) {
      fractions[i] = static_cast<double>(line.first) + 0.375 * static_cast<double>(i);
    }
    placement.values = {reinterpret_cast<const char*>(fractions.data()), DType::float64, 0, sizeof(double)};
  }
  if (operation == "add" || operation == "rotation") store_embeddings(out, dtype);
  if (operation == "add") {
    testing::run_at(embedding, Add({read_only(view), view}, 1, {1.25, 0.75}, false), placement, threads);
  } else if (operation == "rotation") {
    const Pairing pairing{pairs, line.convention == "interleaved", false, {{0, pairs}}};
    const ReadWrite array = heads_of(read_only(view), view);
    testing::run_at(embedding, Rotate({&array, 1}, 1, pairing, false), placement, threads);
  } else if (is_angles) {
    run({AngleRows(embedding.encoder, FrequencyCoordinates{}), Write(view, false), placement, threads}, nullptr);
  } else if (is_rotary) {
    write_tables(embedding, line.convention, view, placement, threads);
  } else {
    testing::run_at(embedding, Write(view, false), placement, threads);
  }
  return sum_of_elements(std::move(out), dtype);
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  CHECK(file.is_open());
  int lines = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    Line line;
    std::istringstream(text) >> line.operation >> line.convention >> line.dtype >> line.first >> line.rows >>
        line.d_model >> line.sum;
    ++lines;
    for (const std::string& name : available_instruction_sets()) {
      use_instruction_set(name);
      for (const int threads : {1, 3}) {
        const std::string found = sum_of(line, threads);
        if (found != line.sum) std::fprintf(stderr, "%s, %d threads: %s\n", name.c_str(), threads, text.c_str());
        CHECK_EQUAL(found, line.sum);
      }
    }
  }
  CHECK(lines > 0);
  std::printf("%d tables on", lines);
  for (const std::string& name : available_instruction_sets()) std::printf(" %s", name.c_str());
  std::printf("\n");
  return testing::failures() > 0 ? 1 : 0;
}
