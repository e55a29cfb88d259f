// What validation found: errors and warnings, each with the block, the node, the parameter and the place it
// belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/json.h"

namespace tessera::description {

enum class Severity : std::uint8_t { error, warning };

struct Diagnostic {
  Severity severity = Severity::error;
  ErrorCode code = ErrorCode::invalid_argument;
  std::string block;       ///< empty: none
  std::string node;        ///< a node or a region; empty: none
  bool is_region = false;  ///< whether `node` is one
  std::string parameter;   ///< empty: none
  std::string message;
  SourceSpan at;

  /// "graph.json:3:5: error: block 'b', node 'k', parameter 'x': message"
  [[nodiscard]] std::string to_text() const;
};

/// Collects diagnostics. Those beyond a limit are counted, not kept: a hostile file can be wrong a million
/// times.
class Report {
 public:
  explicit Report(std::size_t limit = 1'000) : limit_(limit) {}

  void add(Diagnostic diagnostic);
  /// Adds all of another one.
  void add(Report other);

  [[nodiscard]] bool ok() const { return errors_ == 0; }
  [[nodiscard]] std::size_t errors() const { return errors_; }
  [[nodiscard]] std::size_t warnings() const { return warnings_; }
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return kept_; }
  /// Those of one block, or of one node, in the order they were found.
  [[nodiscard]] std::vector<Diagnostic> of_block(std::string_view block) const;
  [[nodiscard]] std::vector<Diagnostic> of_node(std::string_view node) const;
  /// All of them, one a line, and how many were left out.
  [[nodiscard]] std::string to_text() const;
  /// The first error, with the others as notes. REQUIRES !ok().
  [[nodiscard]] Error to_error() const;

 private:
  std::size_t limit_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
  std::vector<Diagnostic> kept_;
};

JsonWriter& write_json(JsonWriter& json, const Diagnostic& diagnostic);

/// A name from a file as messages show it: in single quotes, printable, not longer than a line.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace tessera::description
