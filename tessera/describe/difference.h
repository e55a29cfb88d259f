// What has changed between two descriptions, as far as a plan cares.
#pragma once

#include <string>
#include <vector>

#include "tessera/describe/description.h"

namespace tessera::description {

struct Difference {
  /// The first difference that needs a new structure; empty if there is none.
  std::string structure;
  /// Positions in the lists of the descriptions, valid if the structure is the same.
  struct Number {
    std::uint32_t node = 0;
    std::uint32_t parameter = 0;
  };
  std::vector<Number> numbers;        ///< values of scalars
  std::vector<std::uint32_t> shapes;  ///< of buffers
  std::vector<std::uint32_t> grids;   ///< of nodes
  std::vector<std::uint32_t> ops;     ///< nodes that call another op, or with other attributes

  [[nodiscard]] bool is_empty() const {
    return structure.empty() && numbers.empty() && shapes.empty() && grids.empty() && ops.empty();
  }
};

/// Compares. Places and the name of the description do not count.
[[nodiscard]] Difference compare(const Description& before, const Description& after);

}  // namespace tessera::description
