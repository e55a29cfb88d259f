// What is known of an op beyond its name. Modules that have no catalogue are handed this; who has the cards
// answers (op/op_facts.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::ir {

/// What a spelling of an op means.
struct OpSpelling {
  std::string_view canonical;
  /// It overwrites its first input (`add_`, `operator.iadd`). It means the canonical op only where nobody reads
  /// the overwritten value afterwards; who has the whole program decides.
  bool in_place = false;
};

/// May be asked from any thread. The same answers every time.
class OpFacts {
 public:
  virtual ~OpFacts() = default;
  /// Whether the op of that canonical name has the trait.
  [[nodiscard]] virtual bool has(std::string_view op, std::string_view trait) const = 0;
  /// The traits that there are, sorted.
  [[nodiscard]] virtual std::vector<std::string> traits() const = 0;
  /// The functional, method, module, in-place, ONNX and PyTorch FX names of an op all mean the op. An unknown
  /// name is an op of its own, and the view is that of the argument.
  [[nodiscard]] virtual OpSpelling find(std::string_view spelling) const = 0;
};

using OpFactsRef = std::shared_ptr<const OpFacts>;

}  // namespace tessera::ir
