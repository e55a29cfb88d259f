// The models that several suites measure, and the numbers in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/compare/worker.h"
#include "tessera/pattern/tile_source.h"
#include "tessera/tessera.h"

namespace tessera::benchmarks {

/// Tensors of one workload, each with numbers of its own.
class Inputs {
 public:
  explicit Inputs(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  Tensor operator()(Shape shape, compare::Spread spread = {});
  Tensor weight(std::int64_t in, std::int64_t out);
  Tensor bias(std::int64_t size) { return (*this)({size}, {.scale = 0.1}); }
  [[nodiscard]] const std::shared_ptr<Engine>& engine() const { return engine_; }

 private:
  std::shared_ptr<Engine> engine_;
  std::uint32_t seed_ = 0;
};

/// Three layers with relu between them; the last has at least as many as there are classes, 10.
struct MlpWidths {
  std::int64_t in = 784, hidden = 512, out = 10;
};
[[nodiscard]] nn::Parameters mlp_parameters(Inputs& in, MlpWidths widths = {});
[[nodiscard]] Tensor mlp(const nn::Parameters& p, const Tensor& x);
/// The loss of a batch whose classes are 0, 1, … 9, 0, …
[[nodiscard]] nn::Loss mlp_loss(Inputs& in, std::int64_t batch, MlpWidths widths = {});

/// A transformer block: norm, attention and sum, then norm, two products with a gelu between, and sum.
[[nodiscard]] nn::Parameters block_parameters(Inputs& in, std::int64_t width);
[[nodiscard]] Tensor block(const nn::Parameters& p, const Tensor& x, std::int64_t heads);

[[nodiscard]] Tensor chain_of_adds(Tensor x, const Tensor& y, std::int64_t count);

/// One step of plain gradient descent; the loss before it.
Tensor training_step(nn::Parameters& p, const nn::Loss& loss);

/// Every op is a kernel of its own.
[[nodiscard]] std::shared_ptr<const pattern::TileSource> no_tiles();

}  // namespace tessera::benchmarks
