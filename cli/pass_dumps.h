// What passes made of a program, for --dump-after.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/compile/pipeline.h"

namespace tessera::cli {

/// Must stay where it is as long as a pipeline that it follows.
class PassDumps {
 public:
  /// Fails if there is no pass of one of these names.
  [[nodiscard]] Result<void> want(std::vector<std::string> passes);
  /// Notes what comes behind the wanted passes.
  void follow(compiler::PipelineOptions& pipeline);
  /// Whether one of them comes behind those over functions.
  [[nodiscard]] bool want_plan() const;
  /// Says what the passes that come next work on, if there are several programs.
  void about(std::string program) { about_ = std::move(program); }

  void print() const;
  /// As the member "dumps".
  void write(JsonWriter& json) const;

 private:
  std::vector<std::string> wanted_;
  std::string about_;
  std::vector<std::pair<std::string, std::string>> dumps_;  ///< behind which pass, and the text
};

}  // namespace tessera::cli
