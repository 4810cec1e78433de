// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with an argument, as fields. The core words its sentences here; the package does the same for its own.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

#include "arrays.h"

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

// A part of a text: a text, an integer, or a float64 in as many digits as tell it from its neighbours.
struct TextPart {
  TextPart(const char* text_) : text(text_) {}
  TextPart(const std::string& text_) : text(text_) {}
  TextPart(int number_) : number(number_) {}
  TextPart(long number_) : number(number_) {}
  TextPart(long long number_) : number(number_) {}
  TextPart(double value_) : value(value_), is_float(true) {}
  TextPart(const Number& number_)
      : number(number_.integer), value(number_.value), is_float(!number_.is_exact_integer()) {}

  // The text, or where its data is null, one of the numbers.
  std::string_view text;
  std::int64_t number = 0;
  double value = 0.0;
  bool is_float = false;
};
using Text = std::initializer_list<TextPart>;

std::string joined(Text parts);

[[noreturn]] void refuse(ErrorKind kind, const char* argument, Text found, Text expected, Text remedy);
[[noreturn]] inline void refuse_value(const char* argument, Text found, Text expected, Text remedy = {}) {
  refuse(ErrorKind::value, argument, found, expected, remedy);
}
[[noreturn]] inline void refuse_type(const char* argument, Text found, Text expected, Text remedy = {}) {
  refuse(ErrorKind::type, argument, found, expected, remedy);
}

// The place of an element, for `found`: "[2, 7]". `index` counts through `axes`, and `l` is the last index.
std::string place_of(const Axes& axes, std::int64_t index, std::int64_t l);

}  // namespace fastpe
