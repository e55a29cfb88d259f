#include "tessera/runtime/cuda/joined_turn.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/kernel_signature.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::uint32_t warp = 32, most_turn_threads = 1024;

/// Threads of the one block that can do what the node does; 0 if it needs more.
std::uint32_t threads_for(const PlanNode& node) {
  const auto is_line = [](const Extent3& extent) { return extent.y == 1 && extent.z == 1; };
  if (!is_line(node.grid) || !is_line(node.block)) return 0;
  if (node.grid.x == 1) return node.block.x % warp == 0 ? node.block.x : 0;
  const std::uint64_t all = std::uint64_t{node.grid.x} * node.block.x;
  return node.source->walks && all <= most_turn_threads ? static_cast<std::uint32_t>(all) : 0;
}

/// The kernel as a function that another one calls.
std::string as_function(const KernelSignature& kernel, std::string_view entry) {
  return cat(kernel.before, "static __device__ __forceinline__ void ", entry, "(",
             join(kernel.parameters, ", "), kernel.body);
}

std::string names_of(const KernelSignature& kernel, std::string_view prefix) {
  std::vector<std::string> out;
  for (const std::string_view parameter : kernel.parameters)
    out.push_back(cat(prefix, KernelSignature::name_of(parameter)));
  return join(out, ", ");
}

/// The type of a turn's parameter outside of its namespace: one that is the language's own, or `index`.
std::string outer_type(std::string_view parameter) {
  const std::string_view type = KernelSignature::type_of(parameter);
  return cat(type == "index" ? "end_of_turn::" : "", type);
}

/// Both texts say what they use, under the same names: one of them stands in a namespace.
SourceRef joined_source(const Source& computing, const Source& turn, std::uint32_t threads) {
  const auto first = signature_of(computing), second = signature_of(turn);
  if (!first || !second) return nullptr;
  std::string parameters;
  for (const std::string_view parameter : second->parameters)
    parameters += cat(outer_type(parameter), " turn_", KernelSignature::name_of(parameter), ", ");
  Source out{.entry = "computed_turn", .waits = computing.waits};
  out.text =
      cat("namespace end_of_turn {\n", as_function(*second, turn.entry), "}\n",
          as_function(*first, computing.entry), "extern \"C\" __global__ void __launch_bounds__(", threads,
          ") ", out.entry, "(", parameters, join(first->parameters, ", "), ") {\n  ", computing.entry, "(",
          names_of(*first, ""), ");\n  __syncthreads();\n  end_of_turn::", turn.entry, "(",
          names_of(*second, "turn_"), ");\n}\n");
  return std::make_shared<const Source>(std::move(out));
}

}  // namespace

std::optional<PlanNode> tessera::runtime::cuda::joined_turn(const PlanNode& computing, const PlanNode& turn) {
  const bool is_generated = !computing.is_join && computing.conditional.kind == Conditional::Kind::none &&
                            computing.kind == Launch::Kind::kernel && computing.source->user == nullptr &&
                            computing.condition == 0;
  if (!is_generated || turn.shared_bytes != 0) return std::nullopt;
  const std::uint32_t threads = threads_for(computing);
  if (threads == 0) return std::nullopt;
  PlanNode out = computing;
  // One block that walks may have more threads than it has work: the turn has its own.
  out.block.x = computing.source->walks ? std::max(threads, turn.block.x) : threads;
  out.grid.x = 1;
  out.source = joined_source(*computing.source, *turn.source, out.block.x);
  if (out.source == nullptr) return std::nullopt;
  out.condition = turn.condition;
  out.arguments = turn.arguments;
  out.arguments.insert(out.arguments.end(), computing.arguments.begin(), computing.arguments.end());
  return out;
}
