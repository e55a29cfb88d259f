// What the C interface says of a call that failed.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/capi/tessera.h"

namespace tessera::fixture {

/// The last error has this in it.
inline testing::AssertionResult says(const char* text) {
  if (std::strstr(tsr_last_error(), text) != nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the last error is: " << tsr_last_error();
}

}  // namespace tessera::fixture
