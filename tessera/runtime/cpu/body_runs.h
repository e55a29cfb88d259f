// The bodies of a region (a branch, what a loop repeats) as plans of their own. Which of them comes next, and
// how often, is the interpreter's affair (op/interpreter.h); what they compute runs as any plan does.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/runtime/cpu/cpu_executable.h"

namespace tessera::runtime::cpu {

/// One thread at a time.
class BodyRuns {
 public:
  using Tensors = std::vector<op::HostTensor>;

  /// `depth` regions lie around the bodies.
  BodyRuns(std::shared_ptr<CpuDevice> device, std::shared_ptr<MemoryPool> pool, unsigned depth)
      : device_(std::move(device)), pool_(std::move(pool)), depth_(depth) {}

  /// The results of a body; nothing if it has no plan. Inputs that nobody else holds may be overwritten.
  /// `numbers` are the parameters by slot, of all that the body has, as ir::number_bits.
  [[nodiscard]] Result<std::optional<Tensors>> run(const ir::FunctionRef& function, Tensors& inputs,
                                                   std::span<const std::int64_t> sizes,
                                                   std::span<const std::uint64_t> numbers);

 private:
  class Body;

  std::shared_ptr<CpuDevice> device_;
  std::shared_ptr<MemoryPool> pool_;
  unsigned depth_;
  std::unordered_map<const ir::Function*, std::shared_ptr<Body>> bodies_;  ///< null: has no plan
};

}  // namespace tessera::runtime::cpu
