// SPDX-License-Identifier: BSD-3-Clause
// No flag of the build has added start-up code that changes how the process computes: subnormals are kept, and x87
// arithmetic has its full precision.
#include <cfloat>
#include <limits>

#include "check.h"
#include "fastpe/dispatch.h"

int main() {
  CHECK(!fastpe::available_instruction_sets().empty());  // links the core
  volatile float subnormal_float = std::numeric_limits<float>::denorm_min();
  volatile double subnormal_double = std::numeric_limits<double>::denorm_min();
  volatile double smallest = DBL_MIN;
  CHECK(subnormal_float * 1.0f > 0.0f);  // read as they are
  CHECK(subnormal_double * 1.0 > 0.0);
  CHECK(smallest * 0.5 > 0.0);  // and made
  volatile long double one = 1.0L;
  volatile long double step = std::numeric_limits<long double>::epsilon();
  volatile long double sum = one + step;
  CHECK(sum > one);
  return fastpe::testing::failures();
}
