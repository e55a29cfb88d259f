// What is known of an op beyond its name. The matcher asks whether an op is commutative, the region grower
// whether it works element by element; neither keeps a list of ops. Whoever has the catalogue answers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::pattern {

/// Traits that this room asks for by itself. A pattern may name any other.
namespace trait {
inline constexpr std::string_view commutative = "commutative";  ///< the order of the inputs does not matter
inline constexpr std::string_view elementwise =
    "elementwise";  ///< one result element from one element of each input
inline constexpr std::string_view reduction = "reduction";  ///< runs over its first input, gives less
inline constexpr std::string_view broadcast = "broadcast";  ///< repeats its input along some axes
inline constexpr std::string_view view = "view";  ///< the result may share the storage of the first input
}  // namespace trait

/// May be asked from any thread.
class Traits {
 public:
  virtual ~Traits() = default;
  /// Whether the op of that canonical name has the trait. The same answer every time.
  [[nodiscard]] virtual bool has(std::string_view op, std::string_view trait) const = 0;
  /// The traits that there are, sorted. A pattern that asks for another one is wrong.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
};

using TraitsRef = std::shared_ptr<const Traits>;

/// Lists of ops by trait, over another source of traits.
class ListedTraits final : public Traits {
 public:
  /// `base` may be null: then only what is listed here counts.
  explicit ListedTraits(TraitsRef base = nullptr) : base_(std::move(base)) {}

  /// `op` has `trait`, whatever the base says.
  void add(std::string_view trait, std::string_view op);
  /// From here on the base is not asked about `trait`.
  void hide_base(std::string_view trait);

  [[nodiscard]] bool has(std::string_view op, std::string_view trait) const override;
  [[nodiscard]] std::vector<std::string> names() const override;

 private:
  struct Entry {
    bool hides_base = false;
    std::set<std::string, std::less<>> ops;
  };

  TraitsRef base_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Nothing if `traits` has that trait, else what is wrong with the name.
[[nodiscard]] std::optional<std::string> find_unknown_trait(const Traits& traits, std::string_view trait);

/// What counts where nobody has a catalogue: the traits of the ops that the table of spellings knows.
[[nodiscard]] TraitsRef default_traits();

}  // namespace tessera::pattern
