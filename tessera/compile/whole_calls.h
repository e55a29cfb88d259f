// Which composites stay one call on a device with tiles, which has none for those that are no kernel.
#pragma once

#include "tessera/op/call_info.h"

namespace tessera::compiler {

/// What is one kernel; and what would lose too much if each of its parts were rounded to 16 bits.
[[nodiscard]] bool stays_whole(const op::CallInfo& call);

/// The same where every bit counts: only what would take many times as long op by op is written out as its
/// parts. The device rounds these where it rounds what it fuses.
[[nodiscard]] bool stays_whole_unless_costly(const op::CallInfo& call);

}  // namespace tessera::compiler
