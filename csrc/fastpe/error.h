// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with an argument, as fields. The sentence is worded here, and nowhere else.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fastpe {

enum class ErrorKind { value, type, index };

// what() is "<argument> <found>, expected <expected>; <remedy>", without those that are empty. `found` may begin with
// the place of an element of the argument, as in "[2, 7] is nan".
class Error final : public std::exception {
 public:
  Error(ErrorKind kind_, std::string argument_, std::string found_, std::string expected_, std::string remedy_);
  const char* what() const noexcept override { return sentence_.c_str(); }

  const ErrorKind kind;
  const std::string argument, found, expected, remedy;

 private:
  std::string sentence_;
};

// A part of a text: a text, or an integer.
struct Part {
  Part(const char* text_) : text(text_) {}
  Part(const std::string& text_) : text(text_) {}
  Part(int number_) : number(number_) {}
  Part(long number_) : number(number_) {}
  Part(long long number_) : number(number_) {}

  std::string_view text;
  std::int64_t number = 0;  // where text.data() is null
};
using Parts = std::initializer_list<Part>;

std::string joined(Parts parts);

[[noreturn]] void refuse(ErrorKind kind, const char* argument, Parts found, Parts expected, Parts remedy);
[[noreturn]] inline void refuse_value(const char* argument, Parts found, Parts expected, Parts remedy = {}) {
  refuse(ErrorKind::value, argument, found, expected, remedy);
}
[[noreturn]] inline void refuse_type(const char* argument, Parts found, Parts expected, Parts remedy = {}) {
  refuse(ErrorKind::type, argument, found, expected, remedy);
}

}  // namespace fastpe
