#include "tessera/tensor/run_program.h"

#include "tessera/engine/engine.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using engine::Node;
using engine::PlanRunner;
using engine::StoredValue;
using engine::ValueView;

namespace {

using EngineRef = std::shared_ptr<engine::Engine>;

bool is_on(const Tensor& tensor, const EngineRef& engine) {
  return tensor.node()->component->engine() == engine;
}

/// In one go those of the engine that runs the program.
Result<void> evaluate(std::span<const Tensor> inputs, const EngineRef& engine, Here here) {
  SmallVector<Node*, 8> nodes;
  for (const Tensor& input : inputs) {
    if (input.node()->is_stored()) continue;
    is_on(input, engine) ? nodes.push_back(input.node()) : void(input.eval(here));
  }
  return nodes.empty() ? Result<void>() : engine->evaluate(nodes);
}

/// A copy on the engine of a tensor of another.
Result<StoredValue> copied(const Tensor& tensor, engine::Engine& engine, Here here) {
  const auto bytes = tensor.bytes(here);
  const auto shape = tensor.node()->shape();
  const op::Array elements{tensor.dtype(), op::contiguous({shape.begin(), shape.end()}),
                           const_cast<std::byte*>(bytes.data())};
  engine::Storage copy = TESSERA_TRY(engine.copy_in(elements));
  return StoredValue{tensor.dtype(), std::move(copy)};
}

}  // namespace

Result<std::vector<Tensor>> tessera::detail::run_program(PlanRunner& runner, const EngineRef& engine,
                                                         std::span<const Tensor> inputs,
                                                         std::span<const std::uint64_t> parameters,
                                                         Here here) {
  TESSERA_TRY(evaluate(inputs, engine, here));
  SmallVector<ValueView, 8> given;
  std::vector<StoredValue> copies;
  for (const Tensor& input : inputs) {
    if (is_on(input, engine)) {
      const Node& node = *input.node();
      given.push_back({node.dtype, node.storage.load(std::memory_order_acquire)});
    } else {
      copies.reserve(inputs.size());  // views of them stay
      copies.push_back(TESSERA_TRY(copied(input, *engine, here)));
      given.push_back(copies.back().view());
    }
  }
  auto results = TESSERA_TRY(runner.run(std::span<const ValueView>(given.data(), given.size()), parameters));
  std::vector<Tensor> out;
  out.reserve(results.size());
  for (StoredValue& result : results) {
    const op::Extents shape = result.storage.layout.shape;
    out.push_back(Tensor::adopt(engine::make_leaf(engine, result.dtype, {shape.data(), shape.size()},
                                                  std::move(result.storage), caller_of(here))));
  }
  return out;
}
