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
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/operations/add.h"
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

// Sign, exponent and 6 bits suffice for the embeddings' values, so that every dtype holds them exactly.
void store(char* to, DType dtype, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto high = static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t exponent = (bits >> 23) & 0xff;
  const std::uint16_t half =
      exponent == 0
          ? std::uint16_t{0}
          : static_cast<std::uint16_t>(((bits >> 16) & 0x8000) | ((exponent - 112) << 10) | ((bits >> 13) & 0x3ff));
  const double wide = static_cast<double>(value);
  switch (dtype) {
    case DType::float32: std::memcpy(to, &value, 4); break;
    case DType::float64: std::memcpy(to, &wide, 8); break;
    case DType::float16: std::memcpy(to, &half, 2); break;
    case DType::bfloat16: std::memcpy(to, &high, 2); break;
  }
}

std::string sum_of(const Line& line, int threads) {
  const DType dtype = dtype_named(line.dtype);
  const testing::KeepingEncoder encoder(testing::spec_of(line.d_model, line.convention));
  const std::int64_t bytes = line.rows * line.d_model * element_bytes(dtype);
  std::vector<char> out(static_cast<std::size_t>(bytes));
  const Rows view = testing::rows_view(out.data(), dtype, line.rows, line.d_model);
  Positions positions = testing::positions_from(line.first);
  std::vector<double> fractions(static_cast<std::size_t>(line.rows));
  if (line.operation == "fractional") {
    for (std::size_t i = 0; i < fractions.size(); ++i) {
      fractions[i] = static_cast<double>(line.first) + 0.375 * static_cast<double>(i);
    }
    positions.values = {reinterpret_cast<const char*>(fractions.data()), NumberType::float64, 0, sizeof(double)};
  } else if (line.operation == "add") {
    for (std::int64_t i = 0; i < line.rows * line.d_model; ++i) {
      store(out.data() + i * element_bytes(dtype), dtype, static_cast<float>(i * 37 % 101 - 50) / 8.0f);
    }
    testing::run_at(encoder, Add(view, 1, {1.25, 0.75}), positions, threads);
    return testing::sha256(out.data(), out.size());
  }
  testing::run_at(encoder, Write(view), positions, threads);
  return testing::sha256(out.data(), out.size());
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
