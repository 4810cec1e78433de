// SPDX-License-Identifier: BSD-3-Clause
#include "method.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace fastpe::bindings {
namespace {

// Alive as long as the process: CPython keeps pointers to docstrings.
const char* leaked_copy(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

[[noreturn]] void refuse_call(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw py::error_already_set();
}

struct KnownArgument {
  std::string_view name;
  PyObject* Arguments::* member;
};
#define FASTPE_KNOWN(name) {#name, &Arguments::name},
constexpr KnownArgument known_arguments[] = {FASTPE_FOR_EACH_ARGUMENT(FASTPE_KNOWN)};

constexpr std::string_view end_of_signature = "\n--\n\n";

}  // namespace

PyMethodDef Signature::load(const char* name, const char* parameters, Entry entry) {
  name_ = name;
  bool has_star = false;
  for (std::string_view rest = parameters; !rest.empty();) {
    const std::string_view parameter = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), parameter.size() + 2));
    if (parameter.front() == '*') {
      has_star = true;
      has_others_ = parameter.size() > 1;
    } else {
      const std::string its_name(parameter.substr(0, parameter.find('=')));
      const auto known = std::find_if(std::begin(known_arguments), std::end(known_arguments),
                                      [&](const KnownArgument& each) { return each.name == its_name; });
      if (known == std::end(known_arguments) || count_ == most_names) Py_FatalError(name_);
      if (its_name == parameter) required_ |= 1U << count_;
      members_[count_] = known->member;
      names_[count_++] = not_null(PyUnicode_InternFromString(its_name.c_str())).release().ptr();
      if (!has_star) by_place_ = count_;
    }
  }
  const char* const comma = *parameters != '\0' ? ", " : "";
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry)), METH_FASTCALL | METH_KEYWORDS,
          leaked_copy(joined({name, "($self, /", comma, parameters, ")", std::string(end_of_signature)}))};
}

Arguments Signature::parse(PyObject* const* given, Py_ssize_t count, PyObject* keywords) const {
  Arguments arguments;
  const Py_ssize_t named = std::min<Py_ssize_t>(count, by_place_);
  for (Py_ssize_t i = 0; i < named; ++i) arguments.*members_[i] = given[i];
  if (has_others_) {
    arguments.others = given + named;
    arguments.other_count = count - named;
  } else if (count > named) {
    const bool is_one = by_place_ == 1;
    refuse_call(joined({name_, "() takes ", by_place_, is_one ? " positional argument" : " positional arguments",
                        " but ", count, count == 1 ? " was given" : " were given",
                        hint_of(not_null(PyUnicode_New(0, 0)).ptr(), count_)}));
  }
  const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < keyword_count; ++k) {
    PyObject*& value = arguments.*members_[index_of(PyTuple_GET_ITEM(keywords, k))];
    if (value != nullptr) {
      refuse_call(joined({name_, "() got multiple values for argument ", repr_of(PyTuple_GET_ITEM(keywords, k))}));
    }
    value = given[count + k];
  }
  for (int i = 0; required_ >> i != 0; ++i) {
    if (arguments.*members_[i] != nullptr || (required_ >> i & 1U) == 0) continue;
    refuse_call(joined({name_, "() missing 1 required ", i < by_place_ ? "positional" : "keyword-only",
                        " argument: ", repr_of(names_[i]), hint_of(names_[i], 0)}));
  }
  return arguments;
}

int Signature::index_of(PyObject* keyword) const {
  for (int i = 0; i < count_; ++i) {
    if (names_[i] == keyword) return i;
  }
  for (int i = 0; i < count_; ++i) {
    if (PyUnicode_Compare(names_[i], keyword) == 0) return i;
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  refuse_call(joined({name_, "() got an unexpected keyword argument ", repr_of(keyword), hint_of(keyword, count_)}));
}

std::string Signature::hint_of(PyObject* name, int known_count) const {
  const Object known = not_null(PyTuple_New(known_count));
  for (int i = 0; i < known_count; ++i) PyTuple_SET_ITEM(known.ptr(), i, Py_NewRef(names_[i]));
  const Object package = not_null(PyImport_ImportModule("fastpe._arguments"));
  return str_of(not_null(PyObject_CallMethod(package.ptr(), "hint", "OO", name, known.ptr())).ptr());
}

void document(const py::handle& method, const std::string& prose) {
  if (!Py_IS_TYPE(method.ptr(), &PyMethodDescr_Type))
    refuse_type("method", {"is ", a_type(method.ptr())}, {"one of this module"});
  PyMethodDef& definition = *reinterpret_cast<PyMethodDescrObject*>(method.ptr())->d_method;
  const std::string_view old = definition.ml_doc;
  const std::string signature(old.substr(0, old.find(end_of_signature) + end_of_signature.size()));
  definition.ml_doc = leaked_copy(signature + prose);
}

}  // namespace fastpe::bindings
