// Everything a training consists of: parameters, what the optimiser remembers, the state of random numbers,
// and how far it got. Saved and loaded, it goes on bit for bit as if it had never stopped.
#pragma once

#include <map>
#include <string>

#include "tessera/nn/optimizer.h"
#include "tessera/nn/parameters.h"

namespace tessera::nn {

struct TrainingState {
  Parameters parameters;
  optim::OptimizerState optimizer;
  /// What the program itself wants to find again: the epoch, the seed of its data.
  std::map<std::string, std::int64_t> progress;
  static constexpr auto fields() {
    return std::tuple{field("parameters", &TrainingState::parameters),
                      field("optimizer", &TrainingState::optimizer)};
  }
};

/// Writes a safetensors file whole, with the random state of `engine` (null: the default engine): a failure
/// leaves the old file. Computes what is not computed yet.
void save_training(const std::string& path, const TrainingState& state,
                   const std::shared_ptr<engine::Engine>& engine = nullptr, Here here = {});

/// Reads what save_training wrote, and sets the random state of `engine`. Throws Exception, and changes
/// nothing, if the file is no such file.
[[nodiscard]] TrainingState load_training(const std::string& path,
                                          const std::shared_ptr<engine::Engine>& engine = nullptr,
                                          Here here = {});

}  // namespace tessera::nn
