// SPDX-License-Identifier: BSD-3-Clause
// Sizes that no machine holds are refused before they are multiplied: a product that wraps would make a small buffer.
#include <cstdint>
#include <new>

#include "check.h"
#include "encode.h"
#include "fastpe/buffer.h"
#include "fastpe/machine.h"

namespace {

using fastpe::AlignedBuffer;

template <class T>
bool is_refused(std::int64_t count) {
  try {
    return AlignedBuffer<T>::uninitialized(count).data() == nullptr;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace

int main() {
  // Each of these times the element's size is a small number modulo 2^32 or 2^64.
  CHECK(is_refused<double>((std::int64_t{1} << 61) + 1000));
  CHECK(is_refused<char>(INT64_MIN + 1));
  CHECK(is_refused<char>(-1));
  if constexpr (sizeof(void*) == 4) {
    CHECK(is_refused<char>((std::int64_t{1} << 32) + 32000));
    CHECK(is_refused<double>((std::int64_t{1} << 29) + 1000));
    CHECK(is_refused<char>(std::int64_t{1} << 31));
    // Kept rows of 2^32 + 32000 bytes; a machine with less memory than their float32 rows take refuses max_len itself.
    const std::int64_t max_len = (std::int64_t{1} << 26) + 500;
    if (fastpe::memory_bytes() > max_len * 8 * 4) {
      const fastpe::Encoding embedding(fastpe::testing::spec_of(8), max_len);
      bool is_refused_later = false;
      try {
        fastpe::testing::encode<double>(embedding, fastpe::DType::float64, 5, 1);
      } catch (const std::bad_alloc&) {
        is_refused_later = true;
      }
      CHECK(is_refused_later);
    }
  }
  CHECK(!is_refused<double>(1000));
  CHECK_EQUAL(AlignedBuffer<double>(1000).data()[999], 0.0);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(AlignedBuffer<char>::uninitialized(1).data()) % 64, std::uintptr_t{0});
  return fastpe::testing::failures();
}
