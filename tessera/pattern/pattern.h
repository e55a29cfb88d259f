// A pattern: a small graph to look for, and the kernel that computes it.
//
// What a pattern node lists is complete, what it does not list is open. If it lists inputs, a node of the
// graph must have exactly those; if it lists attributes, exactly those. A node without either takes any.
//
// External inputs have identity: one name never stands for two values, two names may stand for one, and none
// stands for a value that the match itself computes. Results that are not declared as outputs must not escape
// from a match.
//
// Patterns are written in C++ (pattern_builder.h), in JSON (pattern_json.h) or in a short text
// (pattern_text.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/dtype.h"
#include "tessera/pattern/condition.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

struct Tile;

/// Which ops a node may be: one of `names`, or any that has all of `traits`.
struct OpCondition {
  std::vector<std::string> names = {};  ///< canonical
  std::vector<std::string> traits = {};

  bool operator==(const OpCondition&) const = default;
};

/// What stands in a slot of a pattern node.
struct PatternInput {
  enum class Kind : std::uint8_t {
    node,      ///< result `result` of pattern node `index`
    external,  ///< external `index`
    any,       ///< any value from outside the match, without a name
  };
  Kind kind = Kind::any;
  std::uint32_t index = 0;
  std::uint32_t result = 0;

  bool operator==(const PatternInput&) const = default;
};

/// A value from outside the match.
struct PatternExternal {
  std::string name = {};  ///< empty for a constant without a name
  bool is_constant = false;
  ValueCondition value = {};           ///< of a constant scalar
  std::vector<ir::Dtype> dtypes = {};  ///< one of these; empty: any
};

/// How many ops in a row a node stands for. Each takes the one before as an input; its other inputs are open
/// and come from outside the match. Only the last may be an output.
struct Repeat {
  std::uint32_t least = 1;
  std::uint32_t most = 1;  ///< `none`: any number

  bool operator==(const Repeat&) const = default;
};

struct PatternNode {
  std::string id = {};
  OpCondition op = {};
  bool lists_inputs = false;  ///< `inputs` is complete; else further inputs may follow
  std::vector<PatternInput> inputs = {};
  bool lists_attributes = false;  ///< no other attributes than those below are allowed
  std::vector<AttributeCondition> attributes = {};
  std::vector<ir::Dtype> dtypes = {};  ///< of the first result, one of these; empty: any
  /// The node may be missing. Then its consumers take what stands in slot `passes`.
  bool is_optional = false;
  std::uint32_t passes = 0;
  Repeat repeat = {};
};

/// A result that may escape from a match.
struct PatternOutput {
  std::uint32_t node = 0;
  std::uint32_t result = 0;
  bool is_whole_node = true;  ///< every result of the node

  bool operator==(const PatternOutput&) const = default;
};

/// What a match costs: `compute` if it is set, else `base` and `per_node` for each node of the graph it
/// covers.
struct PatternCost {
  double base = 1;
  double per_node = 0;
  std::function<double(const Graph&, const Tile&)> compute = {};
};

struct PatternParts {
  std::string name = {};
  std::string kernel = {};  ///< empty: as the name
  std::vector<PatternNode> nodes = {};
  std::vector<PatternExternal> externals = {};
  std::vector<PatternOutput> outputs = {};
  PatternCost cost = {};
  /// What else must hold of a match; null: nothing.
  std::function<bool(const Graph&, const Tile&)> where = {};
};

/// The nodes no node of the pattern reads: the outputs, if none are declared.
[[nodiscard]] std::vector<PatternOutput> sinks_of(const std::vector<PatternNode>& nodes);

/// The pattern with some of its optional nodes left out and the others taken for granted.
struct Variant {
  std::vector<PatternNode> nodes;
  std::vector<std::uint32_t> original;  ///< by node: its number in the pattern
  std::vector<PatternOutput> outputs;
};

/// A pattern that was checked. Cheap to move; may be shared between threads.
class Pattern {
 public:
  /// The pattern, or what is wrong with it: no nodes, an id twice, a reference to nothing, a cycle, parts
  /// that do not hang together, a cost that is negative or not finite.
  [[nodiscard]] static Result<Pattern> create(PatternParts parts);

  [[nodiscard]] const std::string& name() const { return parts_.name; }
  [[nodiscard]] const std::string& kernel() const { return parts_.kernel; }
  [[nodiscard]] const PatternParts& parts() const { return parts_; }
  /// At least one; the one with all nodes first.
  [[nodiscard]] const std::vector<Variant>& variants() const { return variants_; }

 private:
  explicit Pattern(PatternParts parts) : parts_(std::move(parts)) {}
  Result<void> check() const;
  Result<void> expand();

  PatternParts parts_;
  std::vector<Variant> variants_;
};

}  // namespace tessera::pattern
