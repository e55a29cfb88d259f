// A graph as a file or a text describes it: spellings instead of ops, names instead of values.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/source_text.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// A value that is named: a result of a node, an external by its name, or a literal.
struct DraftValue {
  enum class Kind : std::uint8_t { result, external, constant };
  Kind kind = Kind::external;
  std::uint32_t node = 0;    ///< result: of this node of the draft
  std::uint32_t result = 0;  ///< result: which one
  std::string name = {};     ///< external
  AttributeValue constant = false;
  std::size_t offset = 0;  ///< where it stands in the text
};

struct DraftType {
  std::optional<ir::Dtype> dtype = {};
  std::optional<ir::Shape> shape = {};
};

struct DraftNode {
  std::string id = {};
  std::string spelling = {};  ///< of the op
  std::vector<DraftValue> inputs = {};
  Attributes attributes = {};
  std::vector<DraftType> results = {};  ///< types as far as they are given
  bool lists_results = false;           ///< there are no others
  /// What an overwriting spelling overwrites; its first input if not given.
  std::optional<std::vector<DraftValue>> overwrites = {};
  std::vector<std::uint32_t> after = {};  ///< nodes that must run before
  std::size_t offset = 0;                 ///< where it stands in the text
};

struct GraphDraft {
  std::vector<DraftNode> nodes =
      {};  ///< in the order in which the program ran them, if it overwrites anything
  std::optional<std::vector<DraftValue>> outputs = {};            ///< absent: the sinks
  std::vector<std::pair<std::string, DraftType>> externals = {};  ///< types of externals
};

/// The graph with canonical op names. An overwriting spelling means its canonical op where it hides no hazard
/// (see in_place.h) and stays as it is elsewhere. An error, with its place in `source`, if the nodes form a
/// cycle or a result is used that a node does not have.
[[nodiscard]] Result<Graph> build_graph(GraphDraft draft, ir::OpFactsRef facts, const SourceText& source);

/// Names of nodes as a file refers to them: "id", or "id:k" for result k.
class NodeNames {
 public:
  /// False if the name is taken.
  bool add(const std::string& id);
  /// The first id that also reads as a result of another node, if there is one. To be asked when all are
  /// added.
  [[nodiscard]] const std::string* ambiguous() const;
  struct Found {
    std::uint32_t node = 0;
    std::uint32_t result = 0;
    bool is_whole_node = false;  ///< written without a result
  };
  [[nodiscard]] std::optional<Found> find(const std::string& name) const;
  /// Whether the name can only be meant as a result of a node, but the number is none: "s:01", "s:10000".
  [[nodiscard]] bool is_bad_result(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::string> ids_;
};

}  // namespace tessera::pattern
