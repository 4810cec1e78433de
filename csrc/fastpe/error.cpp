// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"

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

std::string joined(Parts parts) {
  std::string result;
  for (const Part& part : parts) {
    if (part.text.data() == nullptr) {
      result += std::to_string(part.number);
    } else {
      result += part.text;
    }
  }
  return result;
}

void refuse(ErrorKind kind, const char* argument, Parts found, Parts expected, Parts remedy) {
  throw Error(kind, argument, joined(found), joined(expected), joined(remedy));
}

}  // namespace fastpe
