// SPDX-License-Identifier: BSD-3-Clause
#include "fastpe/requests/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "call.h"
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

namespace fastpe::c_library {
namespace {

static_assert(FASTPE_SCALING_YARN == static_cast<int>(RotaryScaling::Type::yarn));
static_assert(FASTPE_SCALING_DIVISORS == static_cast<int>(RotaryScaling::Type::divisors));

// By its names in the core. A field that is 0 is not given.
RotaryScaling scaling_of(const fastpe_scaling& s, std::int64_t pairs) {
  require_zeros("fastpe_scaling", s.reserved);
  if (s.type < FASTPE_SCALING_LINEAR || s.type > FASTPE_SCALING_DIVISORS) {
    refuse_value("type", {"is ", s.type}, {"FASTPE_SCALING_LINEAR or another of the header's"});
  }
  if (s.truncate != FASTPE_TRUNCATE_YES && s.truncate != FASTPE_TRUNCATE_NO) {
    refuse_value("truncate", {"is ", s.truncate}, {"FASTPE_TRUNCATE_YES or FASTPE_TRUNCATE_NO"});
  }
  const auto given_or_none = [](auto number) {
    return number != 0 ? std::optional<double>(static_cast<double>(number)) : std::nullopt;
  };
  RotaryScaling scaling;
  scaling.type = static_cast<RotaryScaling::Type>(s.type);
  scaling.factor = given_or_none(s.factor);
  scaling.original_max_position_embeddings = given_or_none(s.original_max_position_embeddings);
  scaling.seq_len = given_or_none(s.seq_len);
  scaling.beta_fast = given_or_none(s.beta_fast);
  scaling.beta_slow = given_or_none(s.beta_slow);
  scaling.mscale = given_or_none(s.mscale);
  scaling.mscale_all_dim = given_or_none(s.mscale_all_dim);
  scaling.low_freq_factor = given_or_none(s.low_freq_factor);
  scaling.high_freq_factor = given_or_none(s.high_freq_factor);
  scaling.rotated_count = given_or_none(s.rotated_count);
  if (s.truncate == FASTPE_TRUNCATE_NO) scaling.truncate = false;
  if (s.divisors != nullptr || s.divisor_count != 0) {
    scaling.divisors = copy_of(s.divisors, s.divisor_count, pairs, "divisor_count");
  }
  return scaling;
}

bool is_interleaved(int32_t pairing) {
  if (pairing == FASTPE_PAIRING_HALVES || pairing == FASTPE_PAIRING_INTERLEAVED) {
    return pairing == FASTPE_PAIRING_INTERLEAVED;
  }
  refuse_value("pairing", {"is ", pairing}, {"FASTPE_PAIRING_HALVES or FASTPE_PAIRING_INTERLEAVED"});
}

RotaryEmbedding embedding_of(const fastpe_rotary_options& options) {
  constexpr std::int64_t largest_dim = 1 << 20;
  const std::int64_t rotary_dim = options.rotary_dim, pairs = rotary_dim / 2;
  if (rotary_dim < 2 || rotary_dim > largest_dim || rotary_dim % 2 != 0) {
    refuse_value("rotary_dim", {"is ", rotary_dim}, {"an even number from 2 to 2**20"});
  }
  require_zeros("fastpe_rotary_options", options.reserved, options.reserved_int32);
  const bool interleaved = is_interleaved(options.pairing);
  if (options.head_dim != 0 && options.head_dim < rotary_dim) {
    refuse_value("head_dim", {"is ", options.head_dim},
                 {"at least rotary_dim, ", rotary_dim, ", or 0, which means rotary_dim"});
  }
  const double wanted_factor = options.attention_factor;
  if (!std::isfinite(wanted_factor) || wanted_factor < 0.0) {
    refuse_value("attention_factor", {"is ", wanted_factor}, {"a finite number above 0, or 0 for the scaling's"});
  }
  WantedFrequencies frequencies;
  frequencies.frequency_count = pairs;
  frequencies.exponent_denominator = static_cast<double>(pairs);
  frequencies.arguments = "base, scaling and frequencies";
  frequencies.given = copy_of(options.frequencies, options.frequency_count, pairs, "frequency_count");
  double factor = 1.0;
  if (options.frequencies != nullptr) {
    if (options.base != 0.0) refuse_both("frequencies", "base");
    if (options.scaling != nullptr) refuse_both("frequencies", "scaling");
  } else if (options.scaling != nullptr) {
    RotaryScaling scaling = scaling_of(*options.scaling, pairs);
    scaling.has_attention_factor = wanted_factor != 0.0;
    RotaryFrequencies scaled = rotary_frequencies(rotary_dim, options.base, scaling);
    frequencies.given = std::move(scaled.radians);
    factor = scaled.attention_factor;
  } else {
    require_base(options.base);
    frequencies.base = options.base;
  }
  std::vector<double> axes;
  if (options.frequency_axes != nullptr) axes.assign(options.frequency_axes, options.frequency_axes + pairs);
  const std::int64_t head_dim = options.head_dim != 0 ? options.head_dim : rotary_dim;
  return {frequencies, or_else(wanted_factor, factor), {axes, pairs}, head_dim, interleaved, false, options.max_len};
}

// The request of a rotation, and what it refers to.
struct RotateCall {
  RotateCall(const fastpe_array* arrays, const fastpe_array* outs, int32_t given_count, int32_t seq_axis,
             const fastpe_rows* rows, int32_t inverse, int32_t num_threads) {
    constexpr const char* names[][2] = {{"x[0]", "out[0]"}, {"x[1]", "out[1]"}, {"x[2]", "out[2]"}, {"x[3]", "out[3]"},
                                        {"x[4]", "out[4]"}, {"x[5]", "out[5]"}, {"x[6]", "out[6]"}, {"x[7]", "out[7]"}};
    static_assert(std::size(names) == FASTPE_MAX_ROTATED);
    required(arrays, "x");
    if (given_count < 1 || given_count > FASTPE_MAX_ROTATED) {
      refuse_value("count", {"is ", given_count}, {"1 to ", FASTPE_MAX_ROTATED, " arrays"});
    }
    if (inverse != 0 && inverse != 1) refuse_value("inverse", {"is ", inverse}, {"0 or 1"});
    const auto count = static_cast<std::size_t>(given_count);
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = views.of(&arrays[i], names[i][0]);
      if (outs != nullptr) out[i] = views.of(&outs[i], names[i][1]);
    }
    request.is_in_place = outs == nullptr;
    request.arrays = {x, count};
    request.outs = {out, request.is_in_place ? 0 : count};
    request.seq_axis = seq_axis;
    request.is_inverse = inverse == 1;
    views.fill(request, rows, num_threads);
  }
  RotateCall(const RotateCall&) = delete;

  Views views;
  ArrayView x[FASTPE_MAX_ROTATED], out[FASTPE_MAX_ROTATED];
  RotateRequest request{};
};

}  // namespace
}  // namespace fastpe::c_library

struct fastpe_rotary {
  explicit fastpe_rotary(const fastpe_rotary_options& options) : embedding(fastpe::c_library::embedding_of(options)) {}

  fastpe::RotaryEmbedding embedding;
};

using namespace fastpe;
using namespace fastpe::c_library;

fastpe_status fastpe_rotary_create(const fastpe_rotary_options* options, fastpe_rotary** rotary) {
  return create(options, rotary, "rotary");
}

void fastpe_rotary_destroy(fastpe_rotary* rotary) { delete rotary; }

fastpe_status fastpe_rotary_warm_up(const fastpe_rotary* rotary, int32_t dtype, int32_t num_threads) {
  return status_of([&] {
    const RotaryEmbedding& self = required(rotary, "rotary").embedding;
    warm_up(self, dtype, num_threads);
  });
}

fastpe_status fastpe_rotary_frequencies(const fastpe_rotary* rotary, double* frequencies, int64_t count,
                                        double* attention_factor) {
  return status_of([&] {
    const RotaryEmbedding& self = required(rotary, "rotary").embedding;
    if (frequencies != nullptr && count != self.pairs()) refuse_value("count", {"is ", count}, {self.pairs()});
    if (frequencies != nullptr) std::copy_n(self.encoder.frequencies().radians.high.begin(), count, frequencies);
    if (attention_factor != nullptr) *attention_factor = self.encoder.spec().output_scale;
  });
}

// All but the last: C has no dtype for complex numbers.
constexpr auto form_count = static_cast<int32_t>(std::size(table_forms) - 1);
static_assert(FASTPE_TABLES_HALVES == 1 && FASTPE_TABLES_ANGLES == form_count);
static_assert(std::string_view(table_forms[form_count].name) == "complex");

fastpe_status fastpe_tables(const fastpe_rotary* rotary, int32_t form, const fastpe_array* first,
                            const fastpe_array* second, const fastpe_rows* rows, int32_t num_threads) {
  return status_of([&] {
    const RotaryEmbedding& self = required(rotary, "rotary").embedding;
    if (form < 1 || form > form_count) {
      refuse_value("form", {"is ", form}, {"FASTPE_TABLES_HALVES or another of the header's"});
    }
    Views views;
    TablesRequest request(table_forms[form - 1]);
    const bool has_two = request.form.array_count == 2;
    if ((second != nullptr) != has_two) {
      refuse_value("second", {has_two ? "is NULL" : "was given"},
                   {has_two ? "an array: this form has two" : "NULL: this form has one array"});
    }
    request.out[0] = views.of(&required(first, "first"), "first");
    request.out[1] = views.of(second, "second");
    views.fill(request, rows, num_threads);
    request.are_those_of_out = true;
    CFrontEnd front_end;
    write_tables(self, request, front_end);
  });
}

fastpe_status fastpe_rotate(const fastpe_rotary* rotary, const fastpe_array* x, const fastpe_array* out, int32_t count,
                            int32_t seq_axis, const fastpe_rows* rows, int32_t inverse, int32_t num_threads) {
  return status_of([&] {
    const RotateCall call(x, out, count, seq_axis, rows, inverse, num_threads);
    CFrontEnd front_end;
    rotate(required(rotary, "rotary").embedding, call.request, front_end);
  });
}

fastpe_status fastpe_shift(const fastpe_rotary* rotary, const fastpe_array* x, const fastpe_array* out, int32_t count,
                           int32_t seq_axis, const fastpe_const_array* by, const fastpe_rows* rows,
                           int32_t num_threads) {
  return status_of([&] {
    RotateCall call(x, out, count, seq_axis, rows, 0, num_threads);
    RotateRequest& request = call.request;
    if (request.offset) refuse_value("offset", {"was given"}, {"0: `by` says how far keys move"});
    for (const ArrayView* const each : {&request.offsets, &request.positions, &request.cu_seqlens}) {
      if (each->is_given()) refuse_value(each->name, {"was given"}, {"NULL: `by` says how far keys move"});
    }
    request.positions = call.views.of(&required(by, "by"), "by");
    request.is_shift = true;
    CFrontEnd front_end;
    rotate(required(rotary, "rotary").embedding, request, front_end);
  });
}

fastpe_status fastpe_rotate_by_tables(const fastpe_const_array* cos, const fastpe_const_array* sin, int32_t pairing,
                                      int64_t head_dim, const fastpe_array* x, const fastpe_array* out, int32_t count,
                                      int32_t seq_axis, const fastpe_rows* rows, int32_t inverse, int32_t num_threads) {
  return status_of([&] {
    RotateCall call(x, out, count, seq_axis, rows, inverse, num_threads);
    if (head_dim < 0) refuse_value("head_dim", {"is ", head_dim}, {"1 or more, or 0 for as many as the tables rotate"});
    CFrontEnd front_end;
    rotate_by_tables({call.views.of(&required(cos, "cos"), "cos"), call.views.of(&required(sin, "sin"), "sin"),
                      is_interleaved(pairing), head_dim},
                     call.request, front_end);
  });
}
