// SPDX-License-Identifier: BSD-3-Clause
// out = PE. Rows that are not valid become zero.
#pragma once

#include "operation.h"

namespace fastpe {

class Write final : public Operation {
 public:
  // `is_new`: the call made the array. Its memory has no pages yet, and is stored to through the caches.
  Write(const Rows& out, bool is_new);

  void apply(const Tile& tile, const Items& items, const Place& next, const Workspace& workspace) const override;
  Target target(int number, std::int64_t item, std::int64_t l, Columns columns) const override;
  void skip(std::int64_t item, std::int64_t l, std::int64_t count, Columns columns) const override;

 private:
  Rows out_;
};

}  // namespace fastpe
