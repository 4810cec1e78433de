// SPDX-License-Identifier: BSD-3-Clause
// Contiguous arrays through the core's one entry point, and their elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fastpe/call/call.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/encoding.h"
#include "fastpe/sources/sinusoid/sinusoids.h"

namespace fastpe::testing {

inline Spec spec_of(std::int64_t d_model, const std::string& convention = "vaswani") {
  Spec spec;
  spec.d_model = d_model;
  spec.wanted_frequencies.frequency_count = d_model / 2;
  const double pairs = static_cast<double>(d_model) / 2;
  spec.wanted_frequencies.exponent_denominator = convention == "tensor2tensor" ? pairs - 1 : pairs;
  spec.interleaved = convention == "vaswani";
  spec.cosine_first = convention == "timestep";
  return spec;
}

// `value` must be one that the dtype holds.
inline void put(DType dtype, char* p, double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  if (dtype == DType::float64) {
    std::memcpy(p, &value, 8);
  } else if (dtype == DType::float32) {
    std::memcpy(p, &narrow, 4);
  } else if (dtype == DType::bfloat16) {
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(p, &high, 2);
  } else {
    const std::uint32_t exponent = (bits >> 23) & 255;
    const std::uint32_t half = exponent < 113 ? static_cast<std::uint32_t>(std::fabs(value) * 0x1p24)
                                              : ((exponent - 112) << 10 | ((bits >> 13) & 1023));
    const auto all = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | half);
    std::memcpy(p, &all, 2);
  }
}

inline Rows rows_view(void* data, DType dtype, std::int64_t seq_len, std::int64_t columns) {
  Rows view;
  view.data = static_cast<char*>(data);
  view.dtype = dtype;
  view.seq_len = seq_len;
  view.columns = columns;
  view.column_stride_bytes = element_bytes(dtype);
  view.seq_stride_bytes = columns * view.column_stride_bytes;
  return view;
}

inline Placement placement_from(std::int64_t first) {
  Placement placement;
  placement.first = first;
  return placement;
}

inline void run_at(const Encoding& embedding, const Operation& operation, const Placement& placement, int threads = 1) {
  const Sinusoids source(embedding, 0);
  run({source, operation, placement, threads}, nullptr);
}

template <class T>
std::vector<T> encode(const Encoding& embedding, DType dtype, std::int64_t first_position, std::int64_t seq_len,
                      int threads = 1) {
  const std::int64_t columns = embedding.encoder.spec().d_model;
  std::vector<T> out(static_cast<std::size_t>(seq_len * columns));
  run_at(embedding, Write(rows_view(out.data(), dtype, seq_len, columns), false), placement_from(first_position),
         threads);
  return out;
}

}  // namespace fastpe::testing
