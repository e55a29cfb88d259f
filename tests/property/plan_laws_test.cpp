// Laws of the passes from a function to the memory of its plan, on random programs: tile and lower keep the
// value, make the same again, and change nothing where there is nothing to join; every use of a value lies in
// its life, no two values that live at once overlap, and memory is between the bound and what no reuse takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tessera/base/step_order.h"
#include "tessera/base/text.h"
#include "tessera/compile/lower.h"
#include "tessera/compile/plan_function.h"
#include "tessera/compile/tiling.h"
#include "tessera/engine/devices.h"
#include "tessera/plan/package.h"
#include "tessera/plan/verify.h"
#include "tests/differential/runs.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

const pattern::Target& fusing() {
  static const pattern::Target target{.name = "test", .sources = {compiler::fused_regions()}};
  return target;
}

/// Every pass that can be left out is, but for one.
compiler::PlanOptions only(std::string_view pass) {
  compiler::PlanOptions out;
  for (const std::string_view name : compiler::optional_pass_names())
    if (name != pass) out.pipeline.disabled.emplace_back(name);
  return out;
}

/// Calls `visit` with the programs of some seeds, and says how many it said true of.
template <class Visit>
std::size_t for_each_program(std::uint64_t count, const Visit& visit) {
  std::size_t out = 0;
  for (std::uint64_t seed = 1; seed <= fixture::repeats(count); ++seed)
    for (const bool is_symbolic : {false, true}) {
      SCOPED_TRACE(cat("seed ", seed, is_symbolic ? ", symbolic" : ""));
      // What functions of the process compute cannot be written, and equal bytes are how plans are compared.
      const Program program =
          random_program(seed, {.gradients = false, .symbolic = is_symbolic, .customs = false});
      out += visit(program) ? 1 : 0;
      if (testing::Test::HasFailure()) return out;
    }
  return out;
}

std::string bytes_of(plan::Plan plan) {
  plan::Package package;
  package.programs.push_back(plan::program_of(std::make_shared<const plan::Plan>(std::move(plan))));
  const plan::Program& program = package.programs[0];
  package.inputs.resize(program.inputs.size());
  package.outputs.resize(program.outputs.size());
  package.parameters.resize(program.parameters.size());
  return value_or_throw(plan::to_bytes(package));
}

/// The plan of a program as it is written, if there is one: a size may depend on data.
std::optional<plan::Plan> plan_of(const Program& program) {
  const auto planned = compiler::plan_function(program.function, fusing(), only("tile"));
  if (!planned) return std::nullopt;
  return *planned->plan;
}

/// Its lives, if the sizes allow any.
std::optional<plan::Binding> lives_of(const plan::Plan& plan, const Program& program) {
  const auto layouts = plan::contiguous_inputs(plan, program.sizes);
  auto out =
      layouts ? plan::find_lives(plan, program.sizes, *layouts) : Result<plan::Binding>(layouts.error());
  if (!out) return std::nullopt;
  return *std::move(out);
}

}  // namespace

TEST(TileLaws, EveryStatementIsInOnePartAndTheSameAgain) {
  const std::size_t joined = for_each_program(150, [](const Program& program) {
    const ir::Function& function = *program.function;
    const auto tiled = value_or_throw(compiler::tile(function, fusing()));
    std::vector<std::uint32_t> statements;
    for (const compiler::TiledPart& part : tiled.parts)
      statements.insert(statements.end(), part.statements.begin(), part.statements.end());
    std::sort(statements.begin(), statements.end());
    EXPECT_EQ(statements.size(), function.body.size());
    for (std::uint32_t i = 0; i < statements.size(); ++i) EXPECT_EQ(statements[i], i);
    const auto again = value_or_throw(compiler::tile(function, fusing()));
    EXPECT_EQ(to_text(function, again), to_text(function, tiled));
    return tiled.parts.size() < function.body.size();
  });
  EXPECT_GT(joined, fixture::repeats(20U));
}

TEST(TileLaws, WithoutTilesEveryStatementStaysAsItIs) {
  const pattern::Target none{.name = "none", .sources = {}};
  for_each_program(60, [&](const Program& program) {
    const auto tiled = value_or_throw(compiler::tile(*program.function, none));
    EXPECT_EQ(tiled.parts.size(), program.function->body.size());
    for (const compiler::TiledPart& part : tiled.parts)
      EXPECT_TRUE(part.statements.size() == 1 && part.kernel == nullptr && part.ops == nullptr);
    return true;
  });
}

TEST(TileAndLowerLaws, KeepTheValue) {
  const auto device = value_or_throw(engine::find_device("reference"));
  const std::size_t ran = for_each_program(100, [&](const Program& program) {
    const auto expected = run_reference(*program.function, program, program.first_parameters);
    if (!expected) return false;
    for (const std::string_view pass : {"", "tile"}) {
      const auto got = run_planned(program, only(pass), *device, fusing(), program.first_parameters);
      if (!got && got.error().code() == ErrorCode::unsupported) return false;
      EXPECT_TRUE(got) << got.error().to_text();
      if (!got) return false;
      const auto other = difference(*expected, *got);
      EXPECT_FALSE(other) << pass << ": " << *other;
    }
    return true;
  });
  EXPECT_GT(ran, fixture::repeats(50U));
}

TEST(LowerLaws, APlanIsValidHasWhatItsFunctionTakesAndIsTheSameAgain) {
  const std::size_t planned = for_each_program(150, [](const Program& program) {
    const ir::Function& function = *program.function;
    const auto tiled = value_or_throw(compiler::tile(function, fusing()));
    const auto plan = compiler::lower(function, tiled);
    if (!plan) return false;
    plan::Plan copy = *plan;
    const auto fine = plan::verify(copy);
    EXPECT_TRUE(fine) << fine.error().to_text();
    EXPECT_EQ(plan->inputs.size(), function.params.size());
    EXPECT_EQ(plan->outputs.size(), function.results.size());
    EXPECT_EQ(bytes_of(value_or_throw(compiler::lower(function, tiled))), bytes_of(*plan));
    return true;
  });
  EXPECT_GT(planned, fixture::repeats(50U));
}

TEST(LivenessLaws, EveryUseOfAValueLiesInItsLife) {
  std::size_t uses = 0;
  for_each_program(150, [&](const Program& program) {
    const auto plan = plan_of(program);
    const auto binding = plan ? lives_of(*plan, program) : std::nullopt;
    if (!binding) return false;
    std::vector<std::size_t> range_of(plan->values.size(), binding->ranges.size());
    for (std::size_t i = 0; i < binding->temporaries.size(); ++i) range_of[binding->temporaries[i]] = i;
    for (plan::StepId s = 0; s < plan->steps.size(); ++s) {
      const auto expect_alive = [&](plan::ValueId value) {
        const plan::ValueId root = binding->roots[value] < range_of.size() ? binding->roots[value] : value;
        if (range_of[root] == binding->ranges.size()) return;  // has no memory of its own in the plan
        const LiveRange& range = binding->ranges[range_of[root]];
        EXPECT_TRUE(range.first <= s && s <= range.last()) << "step " << s << ", %" << value;
        ++uses;
      };
      if (binding->is_view[s]) continue;  // computes nothing
      for (const plan::ValueId value : plan->steps[s].results) expect_alive(value);
      for (const plan::ValueId value : plan->steps[s].inputs) expect_alive(value);
    }
    for (const LiveRange& range : binding->ranges)
      EXPECT_TRUE(std::is_sorted(range.reads.begin(), range.reads.end()));
    const auto again = lives_of(*plan, program);
    EXPECT_EQ(plan::to_text(*plan, *again), plan::to_text(*plan, *binding));
    return true;
  });
  EXPECT_GT(uses, fixture::repeats(1'000U));
}

namespace {

/// Whether all uses of one are over before the other begins: in the list, or by a path of waits.
bool is_over(const LiveRange& one, const LiveRange& other, const StepOrder* order) {
  if (order == nullptr) return one.last() < other.first;
  const auto is_before = [&](std::uint32_t step) { return order->is_before(step, other.first); };
  return is_before(one.first) && std::all_of(one.reads.begin(), one.reads.end(), is_before);
}

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/// The most that lives at once, in the listed order.
std::uint64_t most_alive(const plan::Binding& binding, std::size_t steps) {
  std::uint64_t out = 0;
  for (std::uint32_t s = 0; s < steps; ++s) {
    std::uint64_t alive = 0;
    for (const LiveRange& range : binding.ranges)
      if (range.first <= s && s <= range.last()) alive += aligned_bytes(range.bytes);
    out = std::max(out, alive);
  }
  return out;
}

}  // namespace

TEST(AssignBuffersLaws, NoTwoValuesThatLiveAtOnceOverlapAndThePeakIsBetweenItsBounds) {
  std::size_t shared = 0;
  for_each_program(150, [&](const Program& program) {
    const auto plan = plan_of(program);
    const auto lives = plan ? lives_of(*plan, program) : std::nullopt;
    if (!lives) return false;
    const StepOrder by_waits(plan::dependencies(*plan));
    for (const plan::Running running : {plan::Running::one_by_one, plan::Running::side_by_side}) {
      const StepOrder* order = running == plan::Running::one_by_one ? nullptr : &by_waits;
      plan::Binding binding = *lives;
      plan::assign_buffers(*plan, binding, running);
      const MemoryLayout& memory = binding.memory;
      for (std::size_t a = 0; a < binding.ranges.size(); ++a) {
        EXPECT_LE(memory.offsets[a] + binding.ranges[a].bytes, memory.bytes);
        EXPECT_EQ(memory.offsets[a] % memory_alignment, 0U);
        for (std::size_t b = 0; b < a; ++b) {
          if (!overlap(memory.offsets[a], binding.ranges[a].bytes, memory.offsets[b],
                       binding.ranges[b].bytes))
            continue;
          ++shared;
          EXPECT_TRUE(is_over(binding.ranges[a], binding.ranges[b], order) ||
                      is_over(binding.ranges[b], binding.ranges[a], order))
              << "%" << binding.temporaries[a] << " and %" << binding.temporaries[b];
        }
      }
      EXPECT_EQ(memory.lower_bound, most_alive(binding, plan->steps.size()));
      EXPECT_GE(memory.bytes, memory.lower_bound);
      EXPECT_LE(memory.bytes, memory.without_reuse);
      plan::Binding again = *lives;
      plan::assign_buffers(*plan, again, running);
      EXPECT_EQ(plan::to_text(*plan, again), plan::to_text(*plan, binding));
      plan::assign_buffers(*plan, again, running);
      EXPECT_EQ(plan::to_text(*plan, again), plan::to_text(*plan, binding)) << "not idempotent";
    }
    return true;
  });
  EXPECT_GT(shared, 100U);
}
