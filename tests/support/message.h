// What a call says that must fail.
#pragma once

#include <string>

#include "tessera/base/error.h"

namespace tessera::fixture {

/// The text of the exception that `f` throws; empty if it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.error().to_text();
  }
  return "";
}

}  // namespace tessera::fixture
