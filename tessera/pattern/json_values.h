// Reading what graph files and pattern files have in common: attribute values, types, lists of names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/pattern/graph_draft.h"

namespace tessera::pattern {

/// A boolean, a number, a text, or a list of one of these. A number without point and exponent is an integer.
[[nodiscard]] Result<AttributeValue> read_attribute(const JsonCursor& json);

/// A list of strings; a single string is a list of one.
[[nodiscard]] Result<std::vector<std::string>> read_names(const JsonCursor& json);

/// Reads "dtype" and "shape" of an object, each if it is there. Sizes are numbers, or names for sizes that
/// are not known; equal names in one file are one size.
class TypeReader {
 public:
  [[nodiscard]] Result<DraftType> read(const JsonCursor& object);

 private:
  [[nodiscard]] Result<ir::Dim> read_dim(const JsonCursor& json);
  std::map<std::string, ir::ExprRef> sizes_;
};

/// A dtype by its name.
[[nodiscard]] Result<ir::Dtype> read_dtype(const JsonCursor& json);

}  // namespace tessera::pattern
