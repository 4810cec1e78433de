// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fastpe {

Error::Error(ErrorKind kind_, std::string argument_, std::string found_, std::string expected_, std::string remedy_)
    : kind(kind_),
      argument(std::move(argument_)),
      found(std::move(found_)),
      expected(std::move(expected_)),
      remedy(std::move(remedy_)) {
  const bool is_element = !found.empty() && found.front() == '[';
  sentence_ = joined({argument, is_element || argument.empty() ? "" : " ", found, expected.empty() ? "" : ", expected ",
                      expected, remedy.empty() ? "" : "; ", remedy});
}

std::string joined(Text parts) {
  std::string result;
  for (const TextPart& part : parts) {
    if (part.text.data() != nullptr) {
      result += part.text;
    } else if (part.is_float) {
      char text[32];
      int digits = 15;
      do {
        std::snprintf(text, sizeof text, "%.*g", digits, part.value);
      } while (++digits <= 17 && std::strtod(text, nullptr) != part.value);
      result += text;
    } else {
      result += std::to_string(part.number);
    }
  }
  return result;
}

void refuse(ErrorKind kind, const char* argument, Text found, Text expected, Text remedy) {
  throw Error(kind, argument, joined(found), joined(expected), joined(remedy));
}

std::string place_of(const Axes& axes, std::int64_t index, std::int64_t l) {
  std::string indices = std::to_string(l);
  for (int axis = axes.count - 1; axis >= 0; --axis) {
    const std::int64_t at = axis > 0 ? index % axes.shape[axis] : index;
    indices = joined({at, ", ", indices});
    index /= axes.shape[axis];
  }
  return joined({"[", indices, "]"});
}

}  // namespace fastpe
