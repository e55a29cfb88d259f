#include "tessera/runtime/cuda/joined_turn.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/condition_source.h"
#include "tessera/runtime/cuda/kernel_signature.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::uint32_t warp = 32, most_turn_threads = 1024;
/// Of what a turn computes, in shared memory.
constexpr std::int64_t most_bytes_in_block = 16 << 10;

/// Threads of the one block that can do what the node does; 0 if it needs more.
std::uint32_t threads_for(const PlanNode& node) {
  const auto is_line = [](const Extent3& extent) { return extent.y == 1 && extent.z == 1; };
  if (!is_line(node.grid) || !is_line(node.block)) return 0;
  if (node.grid.x == 1) return node.block.x % warp == 0 ? node.block.x : 0;
  const std::uint64_t all = std::uint64_t{node.grid.x} * node.block.x;
  return node.source->walks && all <= most_turn_threads ? static_cast<std::uint32_t>(all) : 0;
}

/// The next turn writes to the block's memory what this one read there. Kernels do not share it, but a body
/// that runs again is the same kernel for tools that look for races.
constexpr std::string_view last_barrier = "  __syncthreads();\n";

/// A kernel of the two, with what it is given.
struct Part {
  KernelSignature signature;
  std::span<const PlanArgument> arguments;
};

/// Names of the next bytes that stay in the block, by their places in `next`; others have none.
std::vector<std::string> names_in_block(const PlanNode& computing, const PlanNode& turn,
                                        std::span<const NextBytes> next) {
  std::vector<std::string> out(next.size());
  std::int64_t bytes = 0;
  for (const NextBytes& one : next) bytes += one.bytes;
  if (!computing.after.empty() || computing.shared_bytes != 0 || bytes > most_bytes_in_block) return out;
  const auto is_inside = [](const PlanArgument& argument, const NextBytes& one) {
    return argument.kind == PlanArgument::Kind::address && argument.address.base == one.at.base &&
           argument.address.index == one.at.index && argument.address.byte > one.at.byte &&
           argument.address.byte < one.at.byte + one.bytes;
  };
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto uses_part = [&](const PlanArgument& argument) { return is_inside(argument, next[i]); };
    const bool is_whole = std::none_of(computing.arguments.begin(), computing.arguments.end(), uses_part) &&
                          std::none_of(turn.arguments.begin(), turn.arguments.end(), uses_part);
    if (is_whole) out[i] = cat("next", i);
  }
  return out;
}

/// What a part is called with: its parameters, or what is in the block instead.
std::string called_with(const Part& part, std::string_view prefix, std::span<const NextBytes> next,
                        std::span<const std::string> in_block) {
  std::vector<std::string> out;
  for (std::size_t p = 0; p < part.signature.parameters.size(); ++p) {
    const std::string_view parameter = part.signature.parameters[p];
    out.push_back(cat(prefix, KernelSignature::name_of(parameter)));
    for (std::size_t i = 0; i < next.size(); ++i)
      if (!in_block[i].empty() && part.arguments[p].kind == PlanArgument::Kind::address &&
          part.arguments[p].address == next[i].at)
        out.back() = cat("(", KernelSignature::type_of(parameter), ")", in_block[i]);
  }
  return join(out, ", ");
}

/// The type of a turn's parameter outside of its namespace: one that is the language's own, or `index`.
std::string outer_type(std::string_view parameter) {
  const std::string_view type = KernelSignature::type_of(parameter);
  return cat(type == "index" ? "end_of_turn::" : "", type);
}

/// The computing kernel as a function.
std::string computing_text(const KernelSignature& kernel, std::string_view entry) {
  return cat(kernel.before, "static __device__ __forceinline__ void ", entry, "(",
             join(kernel.parameters, ", "), kernel.body);
}

/// The turn as a function that calls `compute` before it needs what that computes, and `decide` at its end.
std::string turn_text(const KernelSignature& kernel, std::string_view entry) {
  const std::size_t computed = kernel.body.find(computed_mark), decided = kernel.body.find(decided_mark);
  if (computed == std::string_view::npos || decided == std::string_view::npos) return "";
  const std::size_t between = computed + computed_mark.size();
  return cat(kernel.before, "template <class F, class G>\nstatic __device__ __forceinline__ void ", entry,
             "(", join(kernel.parameters, ", "), ", const F& compute, const G& decide",
             kernel.body.substr(0, computed), "  compute();\n",
             kernel.body.substr(between, decided - between), "  decide(again);\n",
             kernel.body.substr(decided + decided_mark.size()));
}

/// What surrounds the call of a turn: its last argument, and what stands before and behind it. Within a block
/// that goes on, the barrier behind `compute` keeps a thread that decides from being ahead of one that reads.
struct TurnFrame {
  std::string_view begin, decide, end;
};
constexpr TurnFrame frame_of(Turns turns) {
  if (turns == Turns::one)
    return {"", "end_of_turn::cudaGraphSetConditional(turn_condition, again ? 1 : 0);", last_barrier};
  return {"  __shared__ bool goes_on;\n  do {\n", "goes_on = again;",
          "  __syncthreads();\n  } while (goes_on);\n"
          "  if (threadIdx.x == 0) end_of_turn::cudaGraphSetConditional(turn_condition, 0);\n"};
}

/// Both texts say what they use, under the same names: one of them stands in a namespace.
SourceRef joined_source(const PlanNode& computing, const PlanNode& turn, std::uint32_t threads,
                        std::span<const NextBytes> next, Turns turns) {
  const auto first = signature_of(*computing.source), second = signature_of(*turn.source);
  if (!first || !second || first->parameters.size() != computing.arguments.size() ||
      second->parameters.size() != turn.arguments.size())
    return nullptr;
  const std::string ending = turn_text(*second, turn.source->entry);
  if (ending.empty()) return nullptr;
  const std::vector<std::string> in_block = names_in_block(computing, turn, next);
  std::string parameters, memory;
  for (const std::string_view parameter : second->parameters)
    parameters += cat(outer_type(parameter), " turn_", KernelSignature::name_of(parameter), ", ");
  for (std::size_t i = 0; i < next.size(); ++i)
    if (!in_block[i].empty())
      memory += cat("  __shared__ __align__(16) unsigned char ", in_block[i], "[", next[i].bytes, "];\n");
  Source out{.entry = "computed_turn", .waits = computing.source->waits};
  const TurnFrame frame = frame_of(turns);
  out.text =
      cat("namespace end_of_turn {\n", ending, "}\n", computing_text(*first, computing.source->entry),
          "extern \"C\" __global__ void __launch_bounds__(", threads, ") ", out.entry, "(", parameters,
          join(first->parameters, ", "), ") {\n", memory, frame.begin, "  end_of_turn::", turn.source->entry,
          "(", called_with({*second, turn.arguments}, "turn_", next, in_block), ", [=] {\n    ",
          computing.source->entry, "(", called_with({*first, computing.arguments}, "", next, in_block),
          ");\n    __syncthreads();\n  }, [=](bool again) { ", frame.decide, " });\n", frame.end, "}\n");
  return std::make_shared<const Source>(std::move(out));
}

}  // namespace

std::optional<PlanNode> tessera::runtime::cuda::joined_turn(const PlanNode& computing, const PlanNode& turn,
                                                            std::span<const NextBytes> next, Turns turns) {
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
  out.source = joined_source(computing, turn, out.block.x, next, turns);
  if (out.source == nullptr) return std::nullopt;
  out.condition = turn.condition;
  out.arguments = turn.arguments;
  out.arguments.insert(out.arguments.end(), computing.arguments.begin(), computing.arguments.end());
  return out;
}
