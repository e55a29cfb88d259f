#include "tessera/capi/gate.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "tessera/capi/tessera.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

/// The last error of a thread. A text that cannot be stored for lack of memory leaves one that needs none.
struct LastError {
  std::string text;
  const char* shown = "";

  template <class... Args>
  void set(const Args&... args) noexcept {
    try {
      text = cat(args...);
      shown = text.c_str();
    } catch (...) {
      shown = "no memory for the message";
    }
  }
};

thread_local Place current_place;

/// A text of the same content that lives as long as the process: nodes keep pointers to it. A program has few
/// files, and asks for the same again and again.
const char* kept_forever(const char* file) {
  static auto* mutex = new std::mutex;
  static auto* files = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return files->insert(file).first->c_str();
}

LastError& last_error() {
  thread_local LastError error;
  return error;
}

}  // namespace

int tessera::capi::code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::shape:
      return TSR_ERROR_SHAPE;
    case ErrorCode::parse:
      return TSR_ERROR_PARSE;
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return TSR_ERROR_INVALID_OPERATION;
    case ErrorCode::not_found:
      return TSR_ERROR_NOT_FOUND;
    case ErrorCode::cycle:
      return TSR_ERROR_CYCLE;
    case ErrorCode::limit:
      return TSR_ERROR_EXECUTION;
    case ErrorCode::memory:
      return TSR_ERROR_MEMORY;
    case ErrorCode::io:
      return TSR_ERROR_IO;
    case ErrorCode::device:
      return TSR_ERROR_DEVICE;
    case ErrorCode::internal:
      return TSR_ERROR_INTERNAL;
  }
  return TSR_ERROR_INTERNAL;
}

int tessera::capi::report(const char* function) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    const SourceSpan at{place().file, place().line, 0};
    last_error().set(function, ": ", at.known() && !failure.has_place ? at.to_text() + ": " : "",
                     failure.message);
    return failure.code;
  } catch (const Exception& exception) {
    last_error().set(function, ": ", exception.what());
    return code_of(exception.error().code());
  } catch (const std::bad_alloc&) {
    last_error().set(function, ": no memory");
    return TSR_ERROR_MEMORY;
  } catch (const std::exception& exception) {
    last_error().set(function, ": ", exception.what());
    return TSR_ERROR_INTERNAL;
  } catch (...) {
    last_error().set(function, ": an unknown exception was thrown");
    return TSR_ERROR_INTERNAL;
  }
}

Place tessera::capi::place() noexcept { return current_place; }

void tessera::capi::leave_place() noexcept { current_place = {}; }

int tsr_at(const char* file, int line) noexcept {
  leave_place();
  Place next;
  const int code = guard("tsr_at", [&] {
    if (file != nullptr) next = {kept_forever(file), static_cast<std::uint32_t>(std::max(line, 0))};
  });
  current_place = next;
  return code;
}

void tessera::capi::require(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(TSR_ERROR_NULL, "'", name, "' is null");
}

void tessera::capi::require_array(const void* array, int count, const char* name) {
  if (count < 0) fail(TSR_ERROR_INVALID_OPERATION, "the length of '", name, "' is ", count);
  if (count > 0) require(array, name);
}

const char* tsr_last_error() noexcept { return last_error().shown; }

const char* tsr_error_name(int code) noexcept {
#define TSR_NAME(name) \
  case name:           \
    return #name;
  switch (code) {
    TSR_NAME(TSR_OK)
    TSR_NAME(TSR_ERROR_SHAPE)
    TSR_NAME(TSR_ERROR_INVALID_OPERATION)
    TSR_NAME(TSR_ERROR_MERGE)
    TSR_NAME(TSR_ERROR_CYCLE)
    TSR_NAME(TSR_ERROR_EXECUTION)
    TSR_NAME(TSR_ERROR_NULL)
    TSR_NAME(TSR_ERROR_HANDLE)
    TSR_NAME(TSR_ERROR_RANK)
    TSR_NAME(TSR_ERROR_DEVICE)
    TSR_NAME(TSR_ERROR_MEMORY)
    TSR_NAME(TSR_ERROR_NOT_FOUND)
    TSR_NAME(TSR_ERROR_IO)
    TSR_NAME(TSR_ERROR_INTERNAL)
    TSR_NAME(TSR_ERROR_PARSE)
    default:
      return "unknown";
  }
#undef TSR_NAME
}

const char* tsr_version() noexcept { return TESSERA_VERSION; }
