// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "call.h"
#include "fastpe/dispatch.h"

namespace fastpe::c_library {
namespace {

// Of a fixed size: that there is no memory must be told without any.
struct LastError {
  char argument[64];
  char message[960];
};
thread_local LastError last_error{};

fastpe_status record(fastpe_status status, const char* argument, const char* message) {
  std::snprintf(last_error.argument, sizeof last_error.argument, "%s", argument);
  std::snprintf(last_error.message, sizeof last_error.message, "%s", message);
  return status;
}

}  // namespace

fastpe_status status_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      // The remedies are calls of Python's.
      const Error without_remedy(error.kind, error.argument, error.found, error.expected, "");
      return record(error.kind == ErrorKind::type ? FASTPE_INVALID_TYPE : FASTPE_INVALID_VALUE, error.argument.c_str(),
                    without_remedy.what());
    } catch (const std::bad_alloc&) {
      return record(FASTPE_OUT_OF_MEMORY, "", "there is not enough memory");
    } catch (const std::exception& error) {
      return record(FASTPE_INTERNAL_ERROR, "", error.what());
    }
  } catch (...) {
    return record(FASTPE_OUT_OF_MEMORY, "", "there is not enough memory to say what is wrong");
  }
}

}  // namespace fastpe::c_library

int32_t fastpe_version(void) { return FASTPE_VERSION; }

const char* fastpe_instruction_set(void) {
  const char* name = "";
  fastpe::c_library::status_of([&] { name = fastpe::active_instruction_set(); });
  return name;
}

const char* fastpe_error_message(void) { return fastpe::c_library::last_error.message; }
const char* fastpe_error_argument(void) { return fastpe::c_library::last_error.argument; }
