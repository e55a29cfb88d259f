// Cards for readers: signatures, JSON, and the names nearest to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/op/card.h"

namespace tessera::op {

/// "leaky_relu(x: T, alpha: scalar T = 0.01) -> y: T", without the attributes.
[[nodiscard]] std::string signature(const Card& card);

/// "axes: integers = []", "shape: shape" if it is required, "axis: integer, may be absent".
[[nodiscard]] std::string describe(const AttributeSpec& spec);

/// "floats", "numbers", "all", … for the sets that have a name, otherwise the dtypes with blanks between.
[[nodiscard]] std::string describe(DtypeSet set);

/// The letters of dtypes that the inputs of a card use: "T", "U".
[[nodiscard]] std::vector<std::string_view> type_letters(const Card& card);
/// The dtypes behind a letter.
[[nodiscard]] DtypeSet dtypes_of(const Card& card, std::string_view letter);

/// The traits that hold, in the order of the card: "elementwise", "commutative", …
[[nodiscard]] std::vector<std::string_view> trait_names(const Card& card);

/// Everything a card says, as one object.
JsonWriter& write_json(JsonWriter& json, const Card& card);

/// The names of ops most like `name`, best first; empty if none is close.
[[nodiscard]] std::vector<std::string_view> nearest_ops(std::string_view name);

}  // namespace tessera::op
