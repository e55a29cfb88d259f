// The traits that this module asks for by itself, and traits that a graph gives its ops.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "tessera/ir/op_facts.h"

namespace tessera::pattern {

/// A pattern may name any other.
namespace trait {
inline constexpr std::string_view commutative = "commutative";  ///< the order of the inputs does not matter
inline constexpr std::string_view elementwise =
    "elementwise";                                      ///< one result element from one element of each input
inline constexpr std::string_view indexed = "indexed";  ///< the same, and it depends on where it is
inline constexpr std::string_view reduction = "reduction";  ///< runs over its first input, gives less
inline constexpr std::string_view broadcast = "broadcast";  ///< repeats its input along some axes
inline constexpr std::string_view view = "view";  ///< the result may share the storage of the first input
inline constexpr std::string_view activation = "activation";  ///< may be computed at the end of a product
}  // namespace trait

/// Lists of ops by trait, over what is known besides.
class ListedTraits final : public ir::OpFacts {
 public:
  explicit ListedTraits(ir::OpFactsRef base) : base_(std::move(base)) {}

  /// `op` has `trait`, whatever the base says.
  void add(std::string_view trait, std::string_view op);
  /// From here on the base is not asked about `trait`.
  void hide_base(std::string_view trait);

  [[nodiscard]] bool has(std::string_view op, std::string_view trait) const override;
  [[nodiscard]] std::vector<std::string> traits() const override;
  [[nodiscard]] ir::OpSpelling find(std::string_view spelling) const override {
    return base_->find(spelling);
  }

 private:
  struct Entry {
    bool hides_base = false;
    std::set<std::string, std::less<>> ops;
  };

  ir::OpFactsRef base_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Nothing if there is such a trait, else what is wrong with the name.
[[nodiscard]] std::optional<std::string> find_unknown_trait(const ir::OpFacts& facts, std::string_view trait);

}  // namespace tessera::pattern
