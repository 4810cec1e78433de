// SPDX-License-Identifier: BSD-3-Clause
#include "fastpe/requests/encoding.h"

#include <cstdint>
#include <iterator>
#include <optional>

#include "call.h"
#include "fastpe/sources/sinusoid/conventions.h"

namespace fastpe::c_library {
namespace {

static_assert(FASTPE_VASWANI == 1 && FASTPE_STABLE_AUDIO3 == std::size(conventions));

const Convention& convention_of(int32_t number) {
  if (1 <= number && number <= static_cast<int32_t>(std::size(conventions))) return conventions[number - 1];
  refuse_value("convention", {"is ", number}, {"FASTPE_VASWANI or another of the header's"});
}

Spec spec_of(const fastpe_encoding_options& options) {
  require_zeros("fastpe_encoding_options", options.reserved, options.reserved_int32);
  const Convention& convention = convention_of(options.convention);
  const std::int64_t d = options.d_model;
  if (d < 1) refuse_value("d_model", {"is ", d}, {"1 to 2**20"});
  const ConventionNumbers numbers = numbers_of(convention, d);
  if (options.frequencies != nullptr && (options.base != 0.0 || options.freq_scale != 0.0)) {
    refuse_both("frequencies", "base or freq_scale");
  }
  const WantedFrequencies frequencies{
      numbers.frequency_count,
      or_else(options.base, convention.base),
      numbers.exponent_denominator,
      or_else(options.freq_scale, convention.freq_scale),
      copy_of(options.frequencies, options.frequency_count, numbers.frequency_count, "frequency_count"),
      "d_model, base, freq_scale and frequencies"};
  return {d, frequencies, convention.interleaved, convention.cosine_first, numbers.output_scale};
}

void add_either_way(const Encoding* encoding, const fastpe_const_array* table, const fastpe_array* x,
                    const fastpe_array* out, int32_t seq_axis, const fastpe_rows* rows, double scale, double alpha,
                    int32_t num_threads) {
  Views views;
  AddRequest request;
  request.x = views.of(&required(x, "x"), "x");
  request.out = views.of(out, "out");
  request.is_in_place = out == nullptr;
  request.table = views.of(table, "table");
  views.fill(request, rows, num_threads);
  request.factors = {scale, alpha};
  request.seq_axis = seq_axis;
  CFrontEnd front_end;
  add(encoding, request, front_end);
}

}  // namespace
}  // namespace fastpe::c_library

struct fastpe_encoding : fastpe::Encoding {
  explicit fastpe_encoding(const fastpe_encoding_options& options)
      : Encoding(fastpe::c_library::spec_of(options), options.max_len,
                 fastpe::c_library::convention_of(options.convention).first_position) {}
};

using namespace fastpe;
using namespace fastpe::c_library;

fastpe_status fastpe_encoding_create(const fastpe_encoding_options* options, fastpe_encoding** encoding) {
  return create(options, encoding, "encoding");
}

void fastpe_encoding_destroy(fastpe_encoding* encoding) { delete encoding; }

fastpe_status fastpe_encoding_warm_up(const fastpe_encoding* encoding, int32_t dtype, int32_t num_threads) {
  return status_of([&] {
    const fastpe_encoding& self = required(encoding, "encoding");
    warm_up(self, dtype, num_threads);
  });
}

fastpe_status fastpe_encode(const fastpe_encoding* encoding, const fastpe_array* out, const fastpe_rows* rows,
                            int32_t num_threads) {
  return status_of([&] {
    Views views;
    EncodeRequest request;
    request.out = views.of(&required(out, "out"), "out");
    views.fill(request, rows, num_threads);
    request.are_those_of_out = true;
    CFrontEnd front_end;
    encode(required(encoding, "encoding"), request, front_end);
  });
}

fastpe_status fastpe_add(const fastpe_encoding* encoding, const fastpe_array* x, const fastpe_array* out,
                         int32_t seq_axis, const fastpe_rows* rows, double scale, double alpha, int32_t num_threads) {
  return status_of([&] {
    add_either_way(&required(encoding, "encoding"), nullptr, x, out, seq_axis, rows, scale, alpha, num_threads);
  });
}

fastpe_status fastpe_add_table(const fastpe_const_array* table, const fastpe_array* x, const fastpe_array* out,
                               int32_t seq_axis, const fastpe_rows* rows, double scale, double alpha,
                               int32_t num_threads) {
  return status_of(
      [&] { add_either_way(nullptr, &required(table, "table"), x, out, seq_axis, rows, scale, alpha, num_threads); });
}
