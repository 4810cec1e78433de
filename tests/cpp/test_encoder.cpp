// SPDX-License-Identifier: BSD-3-Clause
// Blocks and groups, values against sines and cosines computed with 400 bits, and the arithmetic of adding, on every
// instruction set.
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "encode.h"
#include "fastpe/dispatch.h"
#include "fastpe/error.h"
#include "fastpe/operations/add.h"
#include "fastpe/sources/sinusoid/blocks.h"

namespace {

using namespace fastpe;
using fastpe::testing::encode;
using fastpe::testing::KeepingEncoder;
using fastpe::testing::positions_from;
using fastpe::testing::rows_view;
using fastpe::testing::run_at;
using fastpe::testing::spec_of;

void blocks_cover_every_position_once() {
  std::vector<std::int64_t> positions = {max_position, max_position - 1, -max_position, 1 - max_position};
  for (std::int64_t p = -200; p <= 200; ++p) positions.push_back(p);
  for (const std::int64_t p : positions) {
    const BlockPosition at = block_position(p);
    CHECK_EQUAL(at.anchor * block_rows + at.row, p);
    CHECK(at.row >= -block_radius && at.row <= block_radius);
    const BlockPosition mirrored = block_position(-p);
    CHECK_EQUAL(mirrored.anchor, -at.anchor);
    CHECK_EQUAL(mirrored.row, -at.row);
    const GroupPosition group = group_position(at.anchor);
    CHECK_EQUAL(group.centre * group_anchors + group.distance, at.anchor);
    CHECK(group.distance >= -group_radius && group.distance <= group_radius);
    CHECK_EQUAL(group_position(mirrored.anchor).distance, -group.distance);
  }
}

struct Known {
  std::int64_t position;
  double values[8];  // of d_model 8
};

constexpr Known known[] = {
    {0, {0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0}},
    {1,
     {0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1, 0x1.98eaecb8bcb2cp-4, 0x1.fd712f9a817c1p-1, 0x1.47acae915e807p-7,
      0x1.fff9724ad97aap-1, 0x1.0624da5218a62p-10, 0x1.ffffef390876cp-1}},
    {100000,
     {0x1.24daa9c527e96p-5, -0x1.ffac3841b3da7p-1, -0x1.38f2fa75d9289p-2, -0x1.e780e88ec4409p-1, 0x1.a75cc150a206bp-1,
      0x1.1ff026793f1bbp-1, -0x1.03425b78c4db8p-1, 0x1.b981dbf665fdfp-1}},
    {16777216,
     {-0x1.8f22f8433d6eep-1, 0x1.40ad67f3f0c9ap-1, -0x1.d6df07f51d3a8p-1, -0x1.921dab72ab8cep-2, -0x1.fc841e4a72078p-1,
      0x1.dd04443a1d757p-4, 0x1.cae09b6d6fac8p-1, 0x1.c6347e6d91415p-2}},
    {1000000000000,
     {-0x1.38f4477984352p-1, 0x1.9538731dff223p-1, 0x1.db7dbc47abb83p-1, 0x1.7bbf860c90a11p-2, -0x1.f334c7896a4e3p-2,
      0x1.bf098901c931ap-1, 0x1.1778cae83c69bp-1, 0x1.acff8c7364234p-1}},
    {max_position,
     {-0x1.b2a66c8f35586p-1, -0x1.0e9918bb35aacp-1, 0x1.b0760c4b5d594p-3, -0x1.f47472f3e8847p-1, -0x1.97b86a86213afp-1,
      -0x1.35b0b8ef2eb26p-1, -0x1.b824f710142f8p-1, -0x1.0590f6d3b72adp-1}},
};

double ulp(double value) {
  const double magnitude = std::fabs(value);
  return std::nextafter(magnitude, 2.0) - magnitude;
}

void values_are_exact() {
  const KeepingEncoder encoder(spec_of(8));
  for (const Known& row : known) {
    for (const std::int64_t sign : {1, -1}) {
      const std::vector<float> narrow = encode<float>(encoder, DType::float32, sign * row.position, 1);
      const std::vector<double> wide = encode<double>(encoder, DType::float64, sign * row.position, 1);
      for (std::size_t column = 0; column < 8; ++column) {
        const double expected = column % 2 == 0 ? static_cast<double>(sign) * row.values[column] : row.values[column];
        CHECK_EQUAL(narrow[column], static_cast<float>(expected));
        CHECK(std::fabs(wide[column] - expected) <= ulp(expected) + 2e-16);
      }
    }
  }
}

void bits_do_not_depend_on_where_a_call_starts() {
  const std::int64_t rows = 200, columns = 70;
  const KeepingEncoder encoder(spec_of(columns)), cached(spec_of(columns), 100);
  const std::vector<float> whole = encode<float>(encoder, DType::float32, -50, rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const KeepingEncoder* each : {&encoder, &cached}) {
      const std::vector<float> one = encode<float>(*each, DType::float32, row - 50, 1);
      CHECK(std::equal(one.begin(), one.end(), whole.data() + row * columns));
    }
  }
  CHECK(encode<float>(encoder, DType::float32, -50, rows, 7) == whole);
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    CHECK(encode<std::uint16_t>(cached, dtype, 3, 5) == encode<std::uint16_t>(encoder, dtype, 3, 5));
  }
}

void adding_rounds_as_written() {
  const std::int64_t batch = 3, rows = 45, columns = 33;
  const KeepingEncoder encoder(spec_of(columns + 1));
  const std::vector<float> pe = encode<float>(encoder, DType::float32, 5, rows);
  std::vector<float> x(static_cast<std::size_t>(batch * rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 101) / 7.0f;
  std::vector<float> out(x.size());
  Rows in = rows_view(x.data(), DType::float32, rows, columns);
  in.add_items(batch, rows * columns * 4);
  Rows to = in;
  to.data = reinterpret_cast<char*>(out.data());
  const Factors factors{1.7, 0.3};
  run_at(encoder, Add(read_only(in), to, batch, factors, false), positions_from(5));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto at = static_cast<std::size_t>((b * rows + row) * columns + column);
        const float scaled = x[at] * static_cast<float>(factors.scale);
        const float addend =
            pe[static_cast<std::size_t>(row * (columns + 1) + column)] * static_cast<float>(factors.alpha);
        CHECK_EQUAL(out[at], scaled + addend);
      }
    }
  }
}

void wrong_specs_and_positions_are_refused() {
  CHECK_THROWS(Error, Encoder(spec_of(0)), "d_model");
  CHECK_THROWS(Error, KeepingEncoder(spec_of(8), -1), "max_len");
  CHECK_THROWS(Error, KeepingEncoder(spec_of(8), max_position + 1), "max_len");
  Spec no_base = spec_of(8);
  no_base.frequencies.base = 0.0;
  CHECK_THROWS(Error, Encoder{no_base}, "base");
  const KeepingEncoder encoder(spec_of(8));
  std::vector<float> out(16, 7.0f);
  for (const std::int64_t first : {max_position, -max_position - 1}) {
    const Write write(rows_view(out.data(), DType::float32, 2, 8), false);
    CHECK_THROWS(Error, run_at(encoder, write, positions_from(first)), "position");
  }
  for (const float value : out) CHECK_EQUAL(value, 7.0f);
}

}  // namespace

int main() {
  blocks_cover_every_position_once();
  wrong_specs_and_positions_are_refused();
  for (const std::string& name : available_instruction_sets()) {
    use_instruction_set(name);
    values_are_exact();
    bits_do_not_depend_on_where_a_call_starts();
    adding_rounds_as_written();
    std::printf("%s: %d failures so far\n", name.c_str(), fastpe::testing::failures());
  }
  return fastpe::testing::failures() > 0 ? 1 : 0;
}
