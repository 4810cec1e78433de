// SPDX-License-Identifier: BSD-3-Clause
#include "fastpe/requests/attention.h"

#include <cstdint>

#include "call.h"

using namespace fastpe;
using namespace fastpe::c_library;

fastpe_status fastpe_relative_buckets(const fastpe_const_array* relative_positions, int32_t bidirectional,
                                      int64_t num_buckets, int64_t max_distance, const fastpe_array* out) {
  return status_of([&] {
    Views views;
    if (bidirectional != 0 && bidirectional != 1) refuse_value("bidirectional", {"is ", bidirectional}, {"0 or 1"});
    relative_buckets({views.of(&required(relative_positions, "relative_positions"), "relative_positions"),
                      views.of(&required(out, "out"), "out"), bidirectional == 1, num_buckets, max_distance});
  });
}

fastpe_status fastpe_alibi_slopes(double max_bias, const fastpe_array* out) {
  return status_of([&] {
    Views views;
    alibi_slopes(max_bias, views.of(&required(out, "out"), "out"));
  });
}

fastpe_status fastpe_position_ids(const fastpe_const_array* mask, const fastpe_array* out) {
  return status_of([&] {
    Views views;
    position_ids(views.of(&required(mask, "mask"), "mask"), views.of(&required(out, "out"), "out"));
  });
}
