// The canonical form as people read it: "t0=matmul(in0,in1)", "t1=relu(t0)".
//
// Where there is more to say it is said: "t0:f32[2]=sum(in0:f32[2,3],$0){axis=1} write". A type stands where
// its value is first met. A result that is read and still held outside is marked "live", one that is neither
// "dead".
#pragma once

#include <string>
#include <vector>

#include "tessera/stream/encoding.h"

namespace tessera::stream {

/// One line per op of an encoding that `trace` gave, in canonical order. Two encodings are equal if their
/// lines are, as long as no values were asked for.
[[nodiscard]] std::vector<std::string> readable(const Trace& trace, const Encoding& encoding);

}  // namespace tessera::stream
