// What the bytes of an archive mean: which types have which fields, which ops there are. Two builds that
// differ in it do not read each other's plans.
#pragma once

#include "tessera/base/hash.h"

namespace tessera::plan::archive {

/// Of this build: all field lists, enumerations and op cards. Follows from them, so that nobody has to
/// remember to count a version up.
[[nodiscard]] Hash128 schema();

}  // namespace tessera::plan::archive
