// SPDX-License-Identifier: BSD-3-Clause
// Usage: test_c_sums reference_sums.txt; the tables that the C library makes have the sums listed there.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../cpp/check.h"
#include "../cpp/sha256.h"
#include "fastpe/fastpe.h"
#include "reference_tables.h"

namespace {

// Sign, exponent and 6 bits suffice for the embeddings' values, so that every dtype holds them exactly.
void store(char* to, const std::string& dtype, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto high = static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t exponent = (bits >> 23) & 0xff;
  const auto half = static_cast<std::uint16_t>(
      exponent == 0 ? 0 : (((bits >> 16) & 0x8000) | ((exponent - 112) << 10) | ((bits >> 13) & 0x3ff)));
  const auto wide = static_cast<double>(value);
  if (dtype == "float32") std::memcpy(to, &value, 4);
  if (dtype == "float64") std::memcpy(to, &wide, 8);
  if (dtype == "float16") std::memcpy(to, &half, 2);
  if (dtype == "bfloat16") std::memcpy(to, &high, 2);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fastpe;
  if (*fastpe_instruction_set() == '\0') return 77;  // which this machine does not have
  std::ifstream file(argc > 1 ? argv[1] : "");
  CHECK(file.is_open());
  int lines = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    std::string operation, convention, dtype, sum;
    reference_table table{};
    std::istringstream(text) >> operation >> convention >> dtype >> table.first >> table.rows >> table.d_model >> sum;
    table.operation = operation.c_str();
    table.convention = convention.c_str();
    table.dtype = dtype.c_str();
    ++lines;
    for (const std::int32_t threads : {1, 3}) {
      std::vector<char> out(reference_table_bytes(&table));
      const std::ptrdiff_t bytes = dtype == "float64" ? 8 : dtype == "float32" ? 4 : 2;
      for (std::ptrdiff_t i = 0; i * bytes < static_cast<std::ptrdiff_t>(out.size()); ++i) {
        store(out.data() + i * bytes, dtype, static_cast<float>(i * 37 % 101 - 50) / 8.0f);
      }
      CHECK_EQUAL(write_reference_table(&table, threads, out.data()), 0);
      const std::uint16_t one = 1;
      unsigned char first_byte;
      std::memcpy(&first_byte, &one, 1);
      for (auto at = out.begin(); first_byte == 0 && at != out.end(); at += bytes) std::reverse(at, at + bytes);
      CHECK_EQUAL(testing::sha256(out.data(), out.size()), sum);
    }
  }
  CHECK(lines > 0);
  std::printf("%d tables on %s\n", lines, fastpe_instruction_set());
  return testing::failures() > 0 ? 1 : 0;
}
