// SPDX-License-Identifier: BSD-3-Clause
// Checks that count their failures: a test's main() returns failures().
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

namespace fastpe::testing {

inline int& failures() {
  static int count = 0;
  return count;
}

template <class A, class B>
void check_equal(const A& found, const B& expected, const char* what, const char* file, int line) {
  if (found == expected) return;
  ++failures();
  std::ostringstream text;
  text.precision(17);
  text << file << ":" << line << ": " << what << " is " << found << ", expected " << expected;
  std::fprintf(stderr, "%s\n", text.str().c_str());
}

inline void check(bool condition, const std::string& what, const char* file, int line) {
  if (condition) return;
  ++failures();
  std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, what.c_str());
}

}  // namespace fastpe::testing

#define CHECK(condition) fastpe::testing::check((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(found, expected) fastpe::testing::check_equal((found), (expected), #found, __FILE__, __LINE__)
