// What a program that was run gave: shown, printed as JSON, saved.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/engine/profile.h"
#include "tessera/op/array.h"

namespace tessera::cli {

struct NamedOutput {
  enum class Kind : std::uint8_t { tensor, sequence, none };
  std::string name;
  Kind kind = Kind::tensor;
  std::vector<op::HostTensor> tensors;
};

struct RunOutcome {
  std::vector<NamedOutput> outputs;
  std::vector<double> seconds;   ///< of each run
  engine::Profile profile = {};  ///< of all runs, if that was asked for
};

struct RunOutputOptions {
  std::string folder;  ///< where .npy files go; empty: nowhere
  bool json = false;
  bool quiet = false;
};

/// An error if the folder is not there and cannot be made, or cannot be written to: asked before a run.
[[nodiscard]] Result<void> check_can_make(const std::string& folder);
/// Saves, then prints.
[[nodiscard]] Result<void> show(const RunOutcome& outcome, const RunOutputOptions& options);

}  // namespace tessera::cli
