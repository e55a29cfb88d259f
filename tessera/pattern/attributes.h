// Comparing and hashing attribute values, floats by their bits.
#pragma once

#include <optional>

#include "tessera/base/hash.h"
#include "tessera/ir/attribute.h"

namespace tessera::pattern {

using ir::Attributes;
using ir::AttributeValue;

/// Whether two values have one type and one content. A NaN equals itself, 0.0 and -0.0 differ.
[[nodiscard]] bool same_value(const AttributeValue& a, const AttributeValue& b);
[[nodiscard]] bool same_attributes(const Attributes& a, const Attributes& b);

/// Equal values have equal hashes.
void add_to_hash(Hasher& hasher, const AttributeValue& value);
[[nodiscard]] Hash128 hash_of(const Attributes& attributes);

}  // namespace tessera::pattern
