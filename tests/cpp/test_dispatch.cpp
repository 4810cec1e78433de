// SPDX-License-Identifier: BSD-3-Clause
// Usage: test_dispatch [name | "refused"], what FASTPE_ISA in the environment is expected to lead to.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"

using namespace fastpe;

int main(int argc, char** argv) {
  const std::string expected = argc > 1 ? argv[1] : "";
  if (expected == "refused") {
    CHECK_THROWS(Error, active_instruction_set(), "FASTPE_ISA");
    return fastpe::testing::failures() > 0 ? 1 : 0;
  }
  const std::vector<std::string> names = available_instruction_sets();
  CHECK_EQUAL(names.back(), std::string("baseline"));
  CHECK_EQUAL(std::string(active_instruction_set()), expected.empty() ? names.front() : expected);
  for (const std::string& name : names) {
    CHECK_EQUAL(std::count(names.begin(), names.end(), name), 1);
    use_instruction_set(name);
    CHECK_EQUAL(std::string(active_instruction_set()), name);
  }
  for (const char* wrong : {"sse9", "", "AVX2", "avx2 "}) {
    CHECK_THROWS(Error, use_instruction_set(wrong), wrong);
  }
  CHECK_EQUAL(std::string(active_instruction_set()), std::string("baseline"));
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
