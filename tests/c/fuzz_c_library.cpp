// SPDX-License-Identifier: BSD-3-Clause
// Usage: fuzz_c_library SEED CALLS; random calls, most of them nearly right. A refused call writes nothing, and every
// other call writes elements of its outputs only: not the gaps between them, and not the guard bytes around them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fastpe/fastpe.h"

namespace {

std::mt19937_64 random_bits;

std::int64_t from_to(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random_bits() % static_cast<std::uint64_t>(most - least + 1));
}
bool one_in(int count) { return from_to(1, count) == 1; }
template <class T>
T one_of(std::initializer_list<T> values) {
  return values.begin()[from_to(0, static_cast<std::int64_t>(values.size()) - 1)];
}
double any_number() {
  return one_of({0.0, 1.0, -1.0, 0.5, 2.0, 10000.0, 5e5, 1e300, 1e-300, std::nan(""),
                 std::numeric_limits<double>::infinity(), static_cast<double>(from_to(-100, 100)) / 8});
}

std::int64_t bytes_of(std::int32_t dtype) {
  constexpr std::int64_t bytes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return 1 <= dtype && dtype <= FASTPE_BOOL ? bytes[dtype - 1] : 8;
}

// Memory that one array fills, or several that overlap.
struct Memory {
  static constexpr std::int64_t guard = 64;
  std::vector<unsigned char> bytes, before;
  std::vector<bool> may_change;

  void keep() {
    before = bytes;
    may_change.assign(bytes.size(), false);
  }
  bool is_as_allowed(bool is_refused) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != before[i] && (is_refused || !may_change[i])) return false;
    }
    return true;
  }
};

struct RandomArray {
  std::vector<std::int64_t> shape, strides_bytes;
  std::shared_ptr<Memory> memory;
  std::int64_t first = 0;  // byte of the memory
  fastpe_array c{};

  RandomArray(std::vector<std::int64_t> lengths, std::int32_t dtype) : shape(std::move(lengths)) {
    if (one_in(40)) shape.insert(shape.begin(), 1);
    if (one_in(40) && !shape.empty())
      shape[static_cast<std::size_t>(from_to(0, std::int64_t(shape.size()) - 1))] = from_to(0, 3);
    if (one_in(60)) dtype = static_cast<std::int32_t>(from_to(-1, FASTPE_BOOL + 1));
    const std::int64_t element = bytes_of(dtype);
    const bool is_contiguous = one_in(2);
    std::vector<std::size_t> order(shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    if (!is_contiguous && one_in(3)) std::shuffle(order.begin(), order.end(), random_bits);
    strides_bytes.resize(shape.size());
    std::int64_t stride = element, low = 0, high = 0;
    for (const std::size_t axis : order) {
      if (!is_contiguous && one_in(4)) stride += element * from_to(0, 3);
      if (!is_contiguous && one_in(40)) stride += 1;
      strides_bytes[axis] = stride;
      if (!is_contiguous && one_in(8)) strides_bytes[axis] = -stride;
      if (!is_contiguous && one_in(40)) strides_bytes[axis] = 0;
      const std::int64_t reach = strides_bytes[axis] * std::max<std::int64_t>(shape[axis] - 1, 0);
      (reach < 0 ? low : high) += reach;
      stride *= std::max<std::int64_t>(shape[axis], 1);
    }
    memory = std::make_shared<Memory>();
    memory->bytes.resize(static_cast<std::size_t>(2 * Memory::guard + high - low + element));
    for (unsigned char& byte : memory->bytes) byte = static_cast<unsigned char>(random_bits());
    first = Memory::guard - low + (one_in(60) ? 1 : 0);
    c.strides_bytes = is_contiguous && one_in(2) ? nullptr : strides_bytes.data();
    c.axes = static_cast<std::int32_t>(shape.size());
    c.dtype = dtype;
  }
  RandomArray(const RandomArray&) = delete;
  RandomArray& operator=(const RandomArray&) = delete;

  const fastpe_array* view() {
    c.data = memory->bytes.data() + first;
    c.shape = shape.data();
    return &c;
  }
  template <class Set>
  void for_each_element(const Set& set, std::size_t axis = 0, std::int64_t at = 0) {
    if (axis == shape.size()) return set(first + at);
    for (std::int64_t i = 0; i < shape[axis]; ++i) for_each_element(set, axis + 1, at + i * strides_bytes[axis]);
  }
  void allow_changes() {
    for_each_element([&](std::int64_t at) {
      for (std::int64_t i = 0; i < bytes_of(c.dtype); ++i) memory->may_change[static_cast<std::size_t>(at + i)] = true;
    });
  }
  template <class Make>
  void fill(const Make& make) {
    for_each_element([&](std::int64_t at) {
      unsigned char* const to = memory->bytes.data() + at;
      const double value = make();
      const auto integer = static_cast<std::int64_t>(std::isfinite(value) && std::fabs(value) < 1e18 ? value : 0);
      const auto small = static_cast<float>(value);
      if (c.dtype == FASTPE_FLOAT32) return static_cast<void>(std::memcpy(to, &small, 4));
      if (c.dtype == FASTPE_FLOAT64) return static_cast<void>(std::memcpy(to, &value, 8));
      std::memcpy(to, &integer, static_cast<std::size_t>(bytes_of(c.dtype)));  // little-endian
    });
  }
};
using Arrays = std::vector<std::unique_ptr<RandomArray>>;

RandomArray& added(Arrays& arrays, std::vector<std::int64_t> shape, std::int32_t dtype) {
  arrays.push_back(std::make_unique<RandomArray>(std::move(shape), dtype));
  return *arrays.back();
}

std::int32_t integer_dtype() { return static_cast<std::int32_t>(from_to(FASTPE_INT8, FASTPE_UINT64)); }

struct RandomRows {
  fastpe_rows c{};
  Arrays arrays;

  RandomRows(std::int64_t batch, std::int64_t length) {
    if (one_in(3)) c.offset = one_of<std::int64_t>({1, -5, 1000000, std::int64_t{1} << 53, INT64_MIN, INT64_MAX});
    if (one_in(5)) c.offsets = filled({batch}, integer_dtype(), [] { return double(from_to(-9, 99)); });
    if (one_in(4)) {
      std::vector<std::int64_t> shape{length};
      if (one_in(2)) shape.insert(shape.begin(), one_in(4) ? 1 : batch);
      const bool is_wild = one_in(10);
      c.positions = filled(shape, one_in(2) ? integer_dtype() : one_of<std::int32_t>({FASTPE_FLOAT32, FASTPE_FLOAT64}),
                           [&] { return is_wild ? any_number() : double(from_to(0, 40)) / one_of({1.0, 1.0, 4.0}); });
    }
    if (one_in(6)) {
      std::vector<std::int64_t> shape{length};
      if (one_in(2)) shape.insert(shape.begin(), batch);
      c.mask = filled(shape, FASTPE_BOOL, [] { return double(from_to(0, 1)); });
    }
    if (one_in(6))
      c.lengths = filled({batch}, integer_dtype(), [&] { return double(from_to(0, length + (one_in(9) ? 1 : 0))); });
    if (one_in(8)) {
      double at = 0;
      const std::int64_t count = from_to(1, 3);
      c.cu_seqlens = filled({count + 1}, integer_dtype(), [&, i = 0]() mutable {
        at = i == 0 ? 0 : i == count ? double(length) : double(from_to(std::int64_t(at), length));
        ++i;
        return at;
      });
    }
  }

 private:
  template <class Make>
  const fastpe_array* filled(const std::vector<std::int64_t>& shape, std::int32_t dtype, Make make) {
    RandomArray& array = added(arrays, shape, dtype);
    array.fill([&] { return make(); });
    return array.view();
  }
};

int calls_that_ran = 0, calls_refused = 0;

// Makes the call, and says whether all memory is as it may be.
template <class Call>
bool is_clean(Arrays& outputs, RandomRows& rows, const Call& call) {
  for (Arrays* const arrays : {&outputs, &rows.arrays}) {
    for (const auto& array : *arrays) array->memory->keep();
  }
  const fastpe_status status = call();
  const bool is_refused = status != FASTPE_OK;
  ++(is_refused ? calls_refused : calls_that_ran);
  if (status < FASTPE_OK || status > FASTPE_INVALID_TYPE || (is_refused && *fastpe_error_message() == '\0')) {
    std::fprintf(stderr, "status %d: %s\n", status, fastpe_error_message());
    return false;
  }
  if (!is_refused) {
    for (const auto& array : outputs) array->allow_changes();
  }
  for (Arrays* const arrays : {&outputs, &rows.arrays}) {
    for (const auto& array : *arrays) {
      if (array->memory->is_as_allowed(is_refused)) continue;
      std::fprintf(stderr, "memory changed that may not, after status %d: %s\n", status, fastpe_error_message());
      return false;
    }
  }
  return true;
}

// Now and then, two arrays share memory.
void share(RandomArray& a, const RandomArray& b) {
  if (!one_in(20) || b.memory->bytes.size() < a.memory->bytes.size()) return;
  a.memory = b.memory;
}

std::int32_t any_dtype() { return static_cast<std::int32_t>(from_to(FASTPE_FLOAT32, FASTPE_BFLOAT16)); }
std::int32_t any_threads() { return one_of<std::int32_t>({0, 1, 2, 3, 1, 1, -1}); }

bool try_encoding() {
  fastpe_encoding_options options{};
  options.d_model = from_to(one_in(20) ? -1 : 1, 40);
  options.max_len = one_of<std::int64_t>({0, 1, 20, 50, 300, one_in(20) ? INT64_MAX : 4});
  options.convention =
      static_cast<std::int32_t>(from_to(one_in(20) ? -1 : 1, FASTPE_DOUBLED_EXPONENT + (one_in(20) ? 1 : 0)));
  if (one_in(8)) options.base = any_number();
  if (one_in(8)) options.freq_scale = any_number();
  std::vector<double> frequencies(static_cast<std::size_t>(from_to(1, 20)));
  for (double& frequency : frequencies) frequency = any_number();
  if (one_in(16)) {
    options.frequencies = frequencies.data();
    options.frequency_count = static_cast<std::int64_t>(frequencies.size());
  }
  fastpe_encoding* encoding = nullptr;
  if (fastpe_encoding_create(&options, &encoding) != FASTPE_OK) return encoding == nullptr;
  if (one_in(4)) fastpe_encoding_warm_up(encoding, any_dtype(), any_threads());
  bool clean = true;
  for (int i = 0; i < 12 && clean; ++i) {
    const std::int64_t batch = from_to(1, 4), length = from_to(0, 40);
    RandomRows rows(batch, length);
    Arrays outputs;
    std::vector<std::int64_t> shape{length, options.d_model};
    if (one_in(2)) shape.insert(shape.begin(), batch);
    if (one_in(2)) {
      RandomArray& out = added(outputs, shape, any_dtype());
      clean = is_clean(outputs, rows, [&] { return fastpe_encode(encoding, out.view(), &rows.c, any_threads()); });
      continue;
    }
    const auto axis = static_cast<std::int32_t>(one_in(4) ? from_to(-4, 3) : -2);
    if (one_in(4)) shape.insert(shape.begin(), batch);
    const std::int32_t dtype = any_dtype();
    RandomArray& x = added(rows.arrays, shape, dtype);  // is only read
    RandomArray& out = added(outputs, shape, dtype);
    share(out, x);
    const bool in_place = one_in(2);
    clean = is_clean(outputs, rows, [&] {
      return fastpe_add(encoding, in_place ? out.view() : x.view(), in_place ? nullptr : out.view(), axis, &rows.c,
                        one_of({1.0, 1.0, any_number()}), one_of({1.0, 1.0, any_number()}), any_threads());
    });
  }
  fastpe_encoding_destroy(encoding);
  return clean;
}

bool try_rotary() {
  fastpe_rotary_options options{};
  options.rotary_dim = one_in(20) ? from_to(-1, 9) : 2 * from_to(1, 20);
  options.max_len = one_of<std::int64_t>({0, 1, 20, 50, 300});
  options.base = one_in(20) ? any_number() : 10000.0;
  options.pairing = static_cast<std::int32_t>(one_in(20) ? from_to(0, 3) : from_to(1, 2));
  if (one_in(4)) options.attention_factor = one_in(8) ? any_number() : 1.25;
  fastpe_scaling scaling{};
  std::vector<double> divisors(20, 1.5);
  if (one_in(3)) {
    options.scaling = &scaling;
    scaling.type = static_cast<std::int32_t>(one_in(20) ? from_to(0, 8) : from_to(1, 7));
    scaling.factor = one_in(8) ? any_number() : 4.0;
    if (one_in(2)) scaling.original_length = one_in(8) ? from_to(-2, 2) : 64;
    if (one_in(4)) scaling.length = from_to(0, 200);
    if (one_in(4)) scaling.low_freq_factor = one_in(8) ? any_number() : 1.0;
    if (one_in(4)) scaling.high_freq_factor = one_in(8) ? any_number() : 4.0;
    if (one_in(4)) scaling.beta_fast = any_number();
    if (one_in(4)) scaling.mscale = any_number();
    if (one_in(4)) scaling.rotated_count = from_to(-1, 21);
    if (one_in(4)) {
      scaling.divisors = divisors.data();
      scaling.divisor_count = std::clamp<std::int64_t>(options.rotary_dim / 2, 0, 20);
    }
  }
  fastpe_rotary* rotary = nullptr;
  if (fastpe_rotary_create(&options, &rotary) != FASTPE_OK) return rotary == nullptr;
  if (one_in(4)) fastpe_rotary_warm_up(rotary, any_dtype(), any_threads());
  bool clean = true;
  const std::int64_t pairs = options.rotary_dim / 2;
  for (int i = 0; i < 12 && clean; ++i) {
    const std::int64_t batch = from_to(1, 4), length = from_to(0, 40);
    RandomRows rows(batch, length);
    Arrays outputs;
    const std::int32_t dtype = any_dtype();
    if (one_in(2)) {
      const auto form = static_cast<std::int32_t>(one_in(20) ? from_to(0, 8) : from_to(1, 7));
      std::vector<std::int64_t> shape{length};
      if (one_in(2)) shape.insert(shape.begin(), batch);
      const bool is_narrow = form == FASTPE_TABLES_HALVES || form >= FASTPE_TABLES_PAIRS;
      shape.push_back(is_narrow ? pairs : 2 * pairs);
      if (form == FASTPE_TABLES_PAIRS) shape.push_back(2);
      RandomArray& first = added(outputs, shape, dtype);
      RandomArray* second = form <= FASTPE_TABLES_REPEAT && !one_in(20) ? &added(outputs, shape, dtype) : nullptr;
      if (second != nullptr) share(*second, first);
      clean = is_clean(outputs, rows, [&] {
        return fastpe_tables(rotary, form, first.view(), second == nullptr ? nullptr : second->view(), &rows.c,
                             any_threads());
      });
      continue;
    }
    const std::int32_t axis = one_of<std::int32_t>({-2, -2, -3, static_cast<std::int32_t>(from_to(-4, 3))});
    const std::int64_t count = from_to(1, 3), columns = options.rotary_dim + from_to(0, 3);
    std::vector<fastpe_array> views;
    for (std::int64_t k = 0; k < count; ++k) {
      std::vector<std::int64_t> shape{batch, from_to(1, 3), columns};
      shape.insert(shape.begin() + (axis == -3 ? 1 : 2), length);
      if (one_in(10)) shape.erase(shape.begin());
      RandomArray& x = added(outputs, shape, dtype);
      if (k > 0) share(x, *outputs.front());
      views.push_back(*x.view());
    }
    const std::int32_t inverse = one_in(30) ? 2 : static_cast<std::int32_t>(from_to(0, 1));
    clean = is_clean(outputs, rows, [&] {
      return fastpe_rotate(rotary, views.data(), static_cast<std::int32_t>(count), axis, &rows.c, inverse,
                           any_threads());
    });
  }
  fastpe_rotary_destroy(rotary);
  return clean;
}

}  // namespace

int main(int argc, char** argv) {
  const long long seed = argc > 1 ? std::atoll(argv[1]) : 1, calls = argc > 2 ? std::atoll(argv[2]) : 1000;
  for (long long handle = 0; calls_that_ran + calls_refused < calls; ++handle) {
    random_bits.seed(static_cast<std::uint64_t>(seed) * 1000003 + static_cast<std::uint64_t>(handle));
    if (one_in(2) ? try_encoding() : try_rotary()) continue;
    std::fprintf(stderr, "seed %lld, handle %lld\n", seed, handle);
    return 1;
  }
  std::printf("%d calls ran, %d were refused\n", calls_that_ran, calls_refused);
  return calls_that_ran > calls / 10 && calls_refused > calls / 10 ? 0 : 1;
}
