// SPDX-License-Identifier: BSD-3-Clause
// Contiguous arrays through the core's one entry point.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fastpe/apply.h"
#include "fastpe/encoder.h"

namespace fastpe::testing {

inline Spec spec_of(std::int64_t d_model, const std::string& convention = "vaswani") {
  Spec spec;
  spec.d_model = d_model;
  spec.frequencies.frequency_count = d_model / 2;
  const double pairs = static_cast<double>(d_model) / 2;
  spec.frequencies.exponent_denominator = convention == "tensor2tensor" ? pairs - 1 : pairs;
  spec.interleaved = convention == "vaswani";
  spec.cosine_first = convention == "timestep";
  return spec;
}

inline RowsView rows_view(void* data, DType dtype, std::int64_t seq_len, std::int64_t columns) {
  RowsView view;
  view.data = static_cast<char*>(data);
  view.dtype = dtype;
  view.seq_len = seq_len;
  view.columns = columns;
  view.column_stride_bytes = element_bytes(dtype);
  view.seq_stride_bytes = columns * view.column_stride_bytes;
  return view;
}

inline Job encode_job(const Encoder& encoder, const RowsView& out, std::int64_t first_position, int threads = 1) {
  Job job;
  job.encoder = &encoder;
  job.out = out;
  job.positions.first = first_position;
  job.max_threads = threads;
  return job;
}

template <class T>
std::vector<T> encode(const Encoder& encoder, DType dtype, std::int64_t first_position, std::int64_t seq_len,
                      int threads = 1) {
  const std::int64_t columns = encoder.spec().d_model;
  std::vector<T> out(static_cast<std::size_t>(seq_len * columns));
  run(encode_job(encoder, rows_view(out.data(), dtype, seq_len, columns), first_position, threads), nullptr);
  return out;
}

}  // namespace fastpe::testing
