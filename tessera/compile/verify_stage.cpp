#include "tessera/compile/verify_stage.h"

#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/plan/verify.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

Error wrong(std::string message) { return Error(ErrorCode::internal, std::move(message)); }

/// Every statement is in one part, behind those that compute what it reads.
Result<void> check_parts(const ir::Function& function, const TiledFunction& tiled) {
  constexpr std::size_t nowhere = ~std::size_t{0};
  std::vector<std::size_t> part_of(function.body.size(), nowhere);
  for (std::size_t p = 0; p < tiled.parts.size(); ++p)
    for (const std::uint32_t statement : tiled.parts[p].statements) {
      if (statement >= part_of.size()) return wrong(cat("part ", p, " has a statement that is not there"));
      if (part_of[statement] != nowhere) return wrong(cat("statement ", statement, " is in two parts"));
      part_of[statement] = p;
    }
  std::unordered_map<const ir::Var*, std::size_t> made_in;
  for (std::size_t s = 0; s < function.body.size(); ++s) {
    if (part_of[s] == nowhere) return wrong(cat("statement ", s, " is in no part"));
    for (const auto& target : function.body[s]->targets) made_in[target.get()] = part_of[s];
  }
  for (std::size_t s = 0; s < function.body.size(); ++s)
    for (const ir::Node* node : ir::post_order(*function.body[s]->value)) {
      const auto* var = ir::as<ir::Var>(*node);
      const auto made = var == nullptr ? made_in.end() : made_in.find(var);
      if (made != made_in.end() && made->second > part_of[s])
        return wrong(cat("part ", part_of[s], " reads what part ", made->second, " computes"));
    }
  return {};
}

/// A value is written before it is read, by a step of the plan.
Result<void> check_lives(const plan::Plan& plan, const plan::Binding& binding) {
  for (std::size_t i = 0; i < binding.ranges.size(); ++i) {
    const LiveRange& range = binding.ranges[i];
    if (range.last() >= plan.steps.size() || (!range.reads.empty() && range.reads.front() < range.first))
      return wrong(cat("%", binding.temporaries[i], " is read before it is written, or never written"));
  }
  return {};
}

/// No two values that live at once overlap.
Result<void> check_places(const plan::Binding& binding) {
  const MemoryLayout& memory = binding.memory;
  for (std::size_t a = 0; a < binding.ranges.size(); ++a) {
    const LiveRange& one = binding.ranges[a];
    if (memory.offsets[a] + one.bytes > memory.bytes)
      return wrong(cat("%", binding.temporaries[a], " lies outside of the block"));
    for (std::size_t b = 0; b < a; ++b) {
      const LiveRange& other = binding.ranges[b];
      const bool live_at_once = one.first <= other.last() && other.first <= one.last();
      const bool overlap = memory.offsets[a] < memory.offsets[b] + other.bytes &&
                           memory.offsets[b] < memory.offsets[a] + one.bytes;
      if (live_at_once && overlap)
        return wrong(
            cat("%", binding.temporaries[a], " lies where %", binding.temporaries[b], " still lives"));
    }
  }
  return {};
}

Result<void> check_plan(plan::Plan copy) { return plan::verify(copy); }

Result<void> check(const Pass& pass, const Stage& stage) {
  if (std::holds_alternative<BufferPass>(pass.run)) return check_places(*stage.memory);
  if (stage.memory) return check_lives(*stage.plan, *stage.memory);
  if (stage.plan) return check_plan(*stage.plan);
  if (stage.tiled) return check_parts(*stage.function, *stage.tiled);
  return check_valid(*stage.function);
}

}  // namespace

Result<void> compiler::verify_after(const Pass& pass, const Stage& stage) {
  auto fine = check(pass, stage);
  if (fine) return {};
  const std::string_view what = stage.memory  ? "memory"
                                : stage.plan  ? "plan"
                                : stage.tiled ? "tiling"
                                              : "function";
  return Error(ErrorCode::internal,
               cat("pass '", pass.name, "' wrote a wrong ", what, ": ", fine.error().message()))
      .note(fine.error().to_text());
}
