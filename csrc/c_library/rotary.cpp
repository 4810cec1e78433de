// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "call.h"
#include "fastpe/checks/rotation.h"
#include "fastpe/embeddings/rotary_embedding.h"
#include "fastpe/operations/write.h"
#include "fastpe/operations/write_tables.h"
#include "fastpe/sources/sinusoid/angles.h"
#include "fastpe/sources/sinusoid/rotary_frequencies.h"

namespace fastpe::c_library {
namespace {

// ---- Scalings

struct Field {
  const char* name;
  double value;
  unsigned required_by, optional_for;  // a bit for each type
};

constexpr unsigned bit_of(int32_t type) { return 1u << type; }

void require_in_range(const char* name, double value) {
  if (1.0 / largest_scaling_number <= value && value <= largest_scaling_number) return;
  refuse_value(name, {"is ", value}, {"a number from 2**-31 to 2**31"});
}

// The fields that a type has are in range, and the others 0: they would belong to another type.
void check_fields(const fastpe_scaling& s, bool has_attention_factor) {
  constexpr unsigned all = (bit_of(FASTPE_SCALING_PROPORTIONAL) << 1) - bit_of(FASTPE_SCALING_LINEAR);
  constexpr unsigned dynamic = bit_of(FASTPE_SCALING_DYNAMIC), yarn = bit_of(FASTPE_SCALING_YARN),
                     longrope = bit_of(FASTPE_SCALING_LONGROPE), llama3 = bit_of(FASTPE_SCALING_LLAMA3),
                     proportional = bit_of(FASTPE_SCALING_PROPORTIONAL);
  const unsigned factor_optional = proportional | (has_attention_factor ? longrope : 0u);
  const auto number = [](std::int64_t integer) { return static_cast<double>(integer); };
  const Field fields[] = {
      {"factor", s.factor, all & ~factor_optional, factor_optional},
      {"original_length", number(s.original_length), dynamic | yarn | longrope | llama3, 0},
      {"length", number(s.length), dynamic, 0},
      {"beta_fast", s.beta_fast, 0, yarn},
      {"beta_slow", s.beta_slow, 0, yarn},
      {"mscale", s.mscale, 0, yarn},
      {"mscale_all_dim", s.mscale_all_dim, 0, yarn},
      {"low_freq_factor", s.low_freq_factor, llama3, 0},
      {"high_freq_factor", s.high_freq_factor, llama3, 0},
      {"divisor_count", number(s.divisor_count), longrope, 0},
      {"rotated_count", number(s.rotated_count), 0, proportional},
      {"no_truncate", number(s.no_truncate), 0, yarn},
  };
  const unsigned type = bit_of(s.type);
  for (const Field& field : fields) {
    if (field.value == 0.0 && (field.required_by & type) == 0) continue;
    if (((field.required_by | field.optional_for) & type) == 0) {
      refuse_value(field.name, {"is ", field.value}, {"0: this type of scaling does not use it"});
    }
    require_in_range(field.name, field.value);
  }
}

std::vector<double> divisors_of(const fastpe_scaling& s, std::int64_t count) {
  const std::vector<double> divisors = copy_of<double>(s.divisors, s.divisor_count, count, "divisor_count");
  for (const double divisor : divisors) require_in_range("divisors", divisor);
  return divisors;
}

RotaryScaling scaling_of(const fastpe_scaling& s, std::int64_t rotary_dim, double base, bool has_attention_factor) {
  if (s.type < FASTPE_SCALING_LINEAR || s.type > FASTPE_SCALING_PROPORTIONAL) {
    refuse_value("type", {"is ", s.type}, {"FASTPE_SCALING_LINEAR or another of the header's"});
  }
  check_fields(s, has_attention_factor);
  static_assert(static_cast<int>(RotaryScaling::Type::proportional) == FASTPE_SCALING_PROPORTIONAL);
  RotaryScaling scaling;
  scaling.type = static_cast<RotaryScaling::Type>(s.type);
  scaling.factor = or_else(s.factor, 1.0);
  scaling.trained_length = static_cast<double>(s.original_length);
  scaling.length = std::max(static_cast<double>(s.length), scaling.trained_length);
  scaling.beta_fast = or_else(s.beta_fast, 32.0);
  scaling.beta_slow = or_else(s.beta_slow, 1.0);
  scaling.mscale = s.mscale;
  scaling.mscale_all_dim = s.mscale_all_dim;
  scaling.low_turns = s.low_freq_factor;
  scaling.high_turns = s.high_freq_factor;
  scaling.truncate = s.no_truncate == 0;
  scaling.rotated_count = s.rotated_count;
  if (s.type == FASTPE_SCALING_YARN) {
    if (scaling.beta_fast < scaling.beta_slow) {
      refuse_value("beta_fast", {"is ", scaling.beta_fast}, {"at least beta_slow, ", scaling.beta_slow});
    }
    if (base < 2.0) refuse_value("base", {"is ", base}, {"at least 2: yarn divides by its logarithm"});
  }
  if (s.type == FASTPE_SCALING_LONGROPE) {
    if (s.original_length < 2) refuse_value("original_length", {"is ", scaling.trained_length}, {"at least 2"});
    scaling.divisors = divisors_of(s, rotary_dim / 2);
  }
  if (s.low_freq_factor > s.high_freq_factor) {
    refuse_value("low_freq_factor", {"is ", s.low_freq_factor}, {"at most high_freq_factor, ", s.high_freq_factor});
  }
  return scaling;
}

// ---- Options

constexpr std::int64_t largest_dim = std::int64_t{1} << 20;

// `factor` becomes what a scaling says.
WantedFrequencies frequencies_of(const fastpe_rotary_options& options, double& factor) {
  WantedFrequencies spec;
  spec.frequency_count = options.rotary_dim / 2;
  spec.exponent_denominator = static_cast<double>(options.rotary_dim / 2);
  spec.arguments = "base, scaling and frequencies";
  spec.given = copy_of<double>(options.frequencies, options.frequency_count, spec.frequency_count, "frequency_count");
  if (options.frequencies != nullptr) {
    if (options.base != 0.0) refuse_both("frequencies", "base");
    if (options.scaling != nullptr) refuse_both("frequencies", "scaling");
    return spec;
  }
  if (!(std::isfinite(options.base) && options.base >= 1.0)) {
    refuse_value("base", {"is ", options.base}, {"the model's rope_theta, a finite number of at least 1"});
  }
  spec.base = options.base;
  if (options.scaling == nullptr) return spec;
  const RotaryScaling scaling =
      scaling_of(*options.scaling, options.rotary_dim, options.base, options.attention_factor != 0.0);
  RotaryFrequencies scaled = rotary_frequencies(options.rotary_dim, options.base, scaling);
  spec.given = std::move(scaled.radians);
  factor = scaled.attention_factor;
  return spec;
}

// Positions of several coordinates cannot be counted.
void set_rotary_rows(Placement& placement, const RowArguments& rows, const Extent& extent, int coordinate_count) {
  if (coordinate_count == 0) return set_rows(placement, rows, extent);
  refuse_given({&rows.offsets, &rows.cu_seqlens}, "NULL: several coordinates have no order");
  if (!rows.positions.is_given()) refuse_value("positions", {"is NULL"}, {"[.., ", coordinate_count, "]"});
  set_explicit_positions(placement.positions, rows.positions, extent, coordinate_count);
  set_validity(placement, rows, extent);
}

// ---- Tables

// In the order of the header's numbers, from 1 on; without the angles.
constexpr TableForm forms[] = {TableForm::halves,  TableForm::tile,    TableForm::repeat,
                               TableForm::cos_sin, TableForm::sin_cos, TableForm::pairs};
static_assert(FASTPE_TABLES_HALVES == 1 && FASTPE_TABLES_PAIRS == std::size(forms));

}  // namespace
}  // namespace fastpe::c_library

struct fastpe_rotary : fastpe::RotaryEmbedding {
  using RotaryEmbedding::RotaryEmbedding;
  std::int64_t head_dim = 0;
};

using namespace fastpe;
using namespace fastpe::c_library;

fastpe_status fastpe_rotary_create(const fastpe_rotary_options* options, fastpe_rotary** rotary) {
  return make_handle(rotary, "rotary", [&] {
    const fastpe_rotary_options& given = required(options, "options");
    check_environment();
    if (given.rotary_dim < 2 || given.rotary_dim > largest_dim || given.rotary_dim % 2 != 0) {
      refuse_value("rotary_dim", {"is ", given.rotary_dim}, {"an even number from 2 to 2**20"});
    }
    if (given.pairing != FASTPE_PAIRING_HALVES && given.pairing != FASTPE_PAIRING_INTERLEAVED) {
      refuse_value("pairing", {"is ", given.pairing}, {"FASTPE_PAIRING_HALVES or FASTPE_PAIRING_INTERLEAVED"});
    }
    if (given.head_dim != 0 && given.head_dim < given.rotary_dim) {
      refuse_value("head_dim", {"is ", given.head_dim}, {"at least rotary_dim, ", given.rotary_dim, ", or 0"});
    }
    const double wanted_factor = given.attention_factor;
    if (!std::isfinite(wanted_factor) || wanted_factor < 0.0) {
      refuse_value("attention_factor", {"is ", wanted_factor}, {"a finite number above 0, or 0 for the scaling's"});
    }
    double factor = 1.0;
    const WantedFrequencies frequencies = frequencies_of(given, factor);
    const std::vector<int> coordinates =
        copy_of<int>(given.coordinates, given.coordinates_count, given.rotary_dim / 2, "coordinates_count");
    auto made = std::make_unique<fastpe_rotary>(
        frequencies, given.pairing == FASTPE_PAIRING_INTERLEAVED, or_else(wanted_factor, factor),
        FrequencyCoordinates(coordinates, given.rotary_dim / 2, "coordinates"), given.max_len);
    made->head_dim = given.head_dim;
    return made;
  });
}

void fastpe_rotary_destroy(fastpe_rotary* rotary) { delete rotary; }

fastpe_status fastpe_rotary_warm_up(const fastpe_rotary* rotary, int32_t dtype, int32_t threads) {
  return status_of([&] {
    const fastpe_rotary& self = required(rotary, "rotary");
    warm_up(self.row_cache, dtype, threads);
  });
}

fastpe_status fastpe_tables(const fastpe_rotary* rotary, int32_t form, const fastpe_array* first,
                            const fastpe_array* second, const fastpe_rows* rows, int32_t threads) {
  return status_of([&] {
    const fastpe_rotary& self = required(rotary, "rotary");
    if (form < FASTPE_TABLES_HALVES || form > FASTPE_TABLES_ANGLES) {
      refuse_value("form", {"is ", form}, {"FASTPE_TABLES_HALVES or another of the header's"});
    }
    const bool is_angles = form == FASTPE_TABLES_ANGLES, is_pairs = form == FASTPE_TABLES_PAIRS;
    const TableForm table_form = is_angles ? TableForm::cos_sin : forms[form - 1];
    const std::size_t arrays = is_angles ? 1 : static_cast<std::size_t>(arrays_of(table_form));
    if ((second != nullptr) != (arrays == 2)) {
      refuse_value("second", {second == nullptr ? "is NULL" : "was given"},
                   {arrays == 2 ? "an array: this form has two" : "NULL: this form has one array"});
    }
    const View views[] = {{&required(first, "first"), "first"}, {second, "second"}};
    const RowsView given(rows);
    refuse_given({&given->mask, &given->lengths}, "NULL: tables have no padding");
    Shape columns;
    columns.add_axis(is_angles || is_pairs ? self.pairs() : columns_per_pair(table_form) * self.pairs());
    if (is_pairs) columns.add_axis(2);
    Placement placement;
    std::array<Rows, 2> written;
    for (std::size_t i = 0; i < arrays; ++i) {
      const ArrayView& view = *views[i];
      const Extent extent = written_extent(view, columns, *given);
      if (i == 0) set_rotary_rows(placement, *given, extent, self.coordinates.count);
      require_shape(view, Shape(*views[0]));
      require_same_dtype(view, *views[0]);
      const int row_axes = view.axes - columns.axes();
      written[i] = is_pairs ? writable_rows_of_pairs(view, dtype_of(view), row_axes)
                            : writable_rows_of(view, dtype_of(view), row_axes - 1);
    }
    require_disjoint(*views[0], *views[1]);
    if (is_angles) {
      const DType dtype = dtype_of(*views[0]);
      if (dtype != row_dtype(dtype)) refuse_type("first", {"has 16 bits"}, {"float32 or float64 for angles"});
      run_call(AngleRows(self.encoder, self.coordinates), Write(written[0], false), placement, threads);
    } else {
      const WriteTables write(written, table_form, self.pairs(), false);
      self.with_source(self.row_factor(false),
                       [&](const Source& source) { run_call(source, write, placement, threads); });
    }
  });
}

fastpe_status fastpe_rotate(const fastpe_rotary* rotary, const fastpe_array* x, int32_t count, int32_t seq_axis,
                            const fastpe_rows* rows, int32_t inverse, int32_t threads) {
  constexpr const char* names[] = {"x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "x[5]", "x[6]", "x[7]"};
  static_assert(std::size(names) == FASTPE_MAX_ROTATED);
  return status_of([&] {
    const fastpe_rotary& self = required(rotary, "rotary");
    required(x, "x");
    if (count < 1 || count > FASTPE_MAX_ROTATED) {
      refuse_value("count", {"is ", count}, {"1 to ", FASTPE_MAX_ROTATED, " arrays"});
    }
    View storage[FASTPE_MAX_ROTATED];
    ArrayView views[FASTPE_MAX_ROTATED];
    const auto arrays = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < arrays; ++i) views[i] = storage[i].set(&x[i], names[i]);
    const RowsView given(rows);
    const std::int64_t wanted_axis = seq_axis;
    const RotatedArrays checked({views, arrays}, *given,
                                {2 * self.pairs(), &wanted_axis, true, self.coordinates.count, "", self.head_dim});
    Placement placement;
    set_rotary_rows(placement, *given, checked.extent(), self.coordinates.count);
    RotatedArray rotated[FASTPE_MAX_ROTATED];
    checked.set_in_place(*given, rotated);
    const double row_factor = self.row_factor(inverse != 0);
    const Rotate rotate({rotated, arrays}, checked.extent().rows, self.pairing(row_factor, inverse != 0));
    self.with_source(row_factor, [&](const Source& source) { run_call(source, rotate, placement, threads); });
  });
}
