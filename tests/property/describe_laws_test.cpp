// Laws of schedules, on random descriptions: whatever uses a buffer at the same time does not write it,
// memory is shared only by users that are ordered, and every order that the waits allow gives the same
// result.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <regex>

#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/describe/read_json.h"
#include "tessera/describe/verify_schedule.h"

using namespace tessera;
using namespace tessera::description;

namespace {

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

/// y[i] = mix of all that is read, so that any other order gives another value.
void mix(KernelCall& call) {
  std::uint64_t state = static_cast<std::uint64_t>(call.integer(0)) * 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 1; i < call.size(); ++i) {
    const Argument& argument = call.argument(i);
    if (!reads(argument.access) || argument.data == nullptr) continue;
    const std::size_t count = argument.counter != nullptr ? static_cast<std::size_t>(call.count(i))
                                                          : call.values<std::uint64_t>(i).size();
    for (std::size_t k = 0; k < count; ++k)
      state = (state ^ call.values<std::uint64_t>(i)[k]) * 0xff51afd7ed558ccdULL + k;
  }
  for (std::size_t i = 1; i < call.size(); ++i) {
    const Argument& argument = call.argument(i);
    if (argument.access == Access::append) {
      call.append<std::uint64_t>(i, state + i);
    } else if (writes(argument.access)) {
      for (std::uint64_t& y : call.values<std::uint64_t>(i)) y = state = state * 6364136223846793005ULL + i;
    }
  }
}

/// A random description over named buffers and edges; most are valid.
Builder random_description(Random& random) {
  Builder b;
  b.kernels().add("mix", mix);
  const std::int64_t named = 1 + below(random, 5);
  for (std::int64_t i = 0; i < named; ++i) {
    const Extents shape{1 + below(random, 40)};
    const std::string id = cat("b", i);
    switch (below(random, 3)) {
      case 0:
        b.external(id, Dtype::u64, shape);
        break;
      case 1:
        b.graph(id, Dtype::u64, shape);
        break;
      default:
        b.temporary(id, Dtype::u64, shape);
    }
  }
  b.external("flag", Dtype::i32, {1}).external("count", Dtype::i32, {1});
  if (below(random, 2) == 0) b.if_else("branch", "flag");
  if (below(random, 2) == 0) b.for_count_in("loop", "count");
  const bool has_branch =
      std::ranges::any_of(b.description().regions, [](const Region& r) { return r.id == "branch"; });
  const bool has_loop =
      std::ranges::any_of(b.description().regions, [](const Region& r) { return r.id == "loop"; });
  const std::int64_t appended = below(random, 4) == 0 ? below(random, named) : -1;
  const std::int64_t nodes = 2 + below(random, 14);
  for (std::int64_t n = 0; n < nodes; ++n) {
    std::vector<Parameter> parameters = {integer("seed", n)};
    const std::int64_t pins = 1 + below(random, 3);
    for (std::int64_t p = 0; p < pins; ++p) {
      const std::int64_t buffer = below(random, named);
      const PinOptions options{.buffer = cat("b", buffer)};
      const std::string name = cat("p", p);
      const std::int64_t access = below(random, 4);
      if (access == 0) parameters.push_back(read_write(name, options));
      if (access == 1)
        parameters.push_back(buffer == appended ? append(name, options) : write(name, options));
      if (access == 2) parameters.push_back(read(name, options));
      if (access == 3) parameters.push_back(read(name, {.required = false}));
    }
    parameters.push_back(write("own", {.dtype = Dtype::u64, .shape = cat("[", 1 + below(random, 30), "]")}));
    const std::int64_t where = below(random, 6);
    b.within(where == 0 && has_branch ? "branch"
             : where == 1 && has_loop ? "loop"
                                      : "",
             where == 0 && has_branch ? below(random, 2) : 0);
    b.kernel(cat("n", n), "mix", std::move(parameters));
  }
  // Edges mostly go with a hidden order that is not the order of the listing.
  std::vector<std::int64_t> hidden(static_cast<std::size_t>(nodes));
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = static_cast<std::int64_t>(i);
  std::shuffle(hidden.begin(), hidden.end(), random);
  for (std::int64_t e = below(random, 2 * nodes); e-- > 0;) {
    std::int64_t from = below(random, nodes), to = below(random, nodes);
    if (hidden[static_cast<std::size_t>(from)] > hidden[static_cast<std::size_t>(to)]) std::swap(from, to);
    if (from == to) continue;
    for (const Parameter& p : b.description().nodes[static_cast<std::size_t>(to)].parameters)
      if (!p.required && std::ranges::none_of(b.description().edges, [&](const Edge& edge) {
            return edge.to == PinName{cat("n", to), p.name};
          })) {
        b.edge({cat("n", from), "own"}, {cat("n", to), p.name});
        break;
      }
    if (below(random, 4) == 0) b.dependency(cat("n", from), cat("n", to));
  }
  return b;
}

/// All pairs of steps that are ordered, by brute force.
std::vector<std::vector<bool>> ordered_pairs(const Sequence& sequence) {
  const std::size_t n = sequence.steps.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (const Wait& wait : sequence.steps[i].waits) {
      before[wait.step][i] = true;
      for (std::size_t k = 0; k < n; ++k)
        if (before[k][wait.step]) before[k][i] = true;
    }
  return before;
}

/// What the nodes of a step do with a buffer: bit 0 reads, bit 1 writes. Goes into regions.
void collect_uses(const Program& program, const Step& step, std::map<std::uint32_t, int>& out) {
  const Graph& graph = program.graph;
  if (step.kind == StepKind::zero || step.kind == StepKind::reset_counter) {
    out[step.index] |= 2;
  } else if (step.kind == StepKind::node) {
    for (const Pin& pin : graph.nodes[step.index].pins)
      if (pin.buffer != no_index)
        out[pin.buffer] |= (reads(pin.declared.access) ? 1 : 0) | (writes(pin.declared.access) ? 2 : 0);
  } else {
    if (graph.condition[step.index] != no_index) out[graph.condition[step.index]] |= 1;
    for (std::uint32_t s = graph.first_branch[step.index]; s < graph.first_branch[step.index + 1]; ++s)
      for (const Step& inner : program.schedule.sequences[s].steps) collect_uses(program, inner, out);
  }
}

bool overlap(const Program& program, std::uint32_t a, std::uint32_t b) {
  const auto& homes = program.schedule.memory.homes;
  if (a == b) return true;
  if (homes[a].kind != Home::Kind::shared || homes[b].kind != Home::Kind::shared) return false;
  const std::uint64_t end_a = homes[a].offset + program.graph.buffers[a].bytes;
  const std::uint64_t end_b = homes[b].offset + program.graph.buffers[b].bytes;
  return homes[a].offset < end_b && homes[b].offset < end_a;
}

/// Steps that touch the same memory, one of them writing, and are not ordered: the buffers of two; empty if
/// there are none.
std::string race_in(const Program& program) {
  for (const Sequence& sequence : program.schedule.sequences) {
    const auto before = ordered_pairs(sequence);
    std::vector<std::map<std::uint32_t, int>> uses(sequence.steps.size());
    for (std::size_t i = 0; i < uses.size(); ++i) collect_uses(program, sequence.steps[i], uses[i]);
    for (std::size_t i = 0; i < uses.size(); ++i)
      for (std::size_t k = i + 1; k < uses.size(); ++k)
        for (const auto& [a, how_a] : uses[i])
          for (const auto& [b, how_b] : uses[k])
            if (((how_a | how_b) & 2) != 0 && overlap(program, a, b) && !before[i][k])
              return cat(program.graph.buffers[a].name, " and ", program.graph.buffers[b].name);
  }
  return {};
}

/// The steps in another order that respects all waits.
Sequence shuffled(const Sequence& sequence, Random& random) {
  const std::size_t n = sequence.steps.size();
  std::vector<std::size_t> place(n);
  std::vector<bool> done(n);
  Sequence out{.levels = sequence.levels};
  while (out.steps.size() < n) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < n; ++i)
      if (!done[i] &&
          std::ranges::all_of(sequence.steps[i].waits, [&](const Wait& w) { return done[w.step]; }))
        ready.push_back(i);
    const std::size_t next = ready[static_cast<std::size_t>(below(random, std::ssize(ready)))];
    done[next] = true;
    place[next] = out.steps.size();
    out.steps.push_back(sequence.steps[next]);
  }
  for (Step& step : out.steps)
    for (Wait& wait : step.waits) wait.step = static_cast<std::uint32_t>(place[wait.step]);
  return out;
}

/// External buffers after two launches.
std::map<std::string, std::vector<std::uint64_t>> results(std::shared_ptr<const Program> program,
                                                          const KernelTable& kernels) {
  std::map<std::string, std::vector<std::uint64_t>> memory;
  Bindings bindings;
  for (const Buffer& buffer : program->description->buffers)
    if (buffer.lifetime == Lifetime::external) {
      auto& words = memory[buffer.id];
      words.assign(static_cast<std::size_t>(buffer.shape[0]), 3);
      bindings[buffer.id] = std::as_writable_bytes(std::span(words));
    }
  HostExecutable exe{.memory = value_or_throw(HostMemory::allocate(*program, bindings, nullptr, nullptr))};
  for (std::uint32_t i = 0; i < program->graph.nodes.size(); ++i)
    exe.nodes.push_back(value_or_throw(bind_node(*program, i, exe.memory, kernels)));
  exe.grouping = one_by_one(*program);
  exe.program = std::move(program);
  for (int launch = 0; launch < 2; ++launch) value_or_throw(run(exe, ProfilingLevel::none));
  return memory;
}

}  // namespace

TEST(DescribeLaws, SchedulesNeverRaceAndEveryAllowedOrderGivesTheSameResult) {
  int valid = 0;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    Random random(seed);
    Builder b = random_description(random);
    const Validation v = validate(b.finish(), &b.kernels());
    if (v.program == nullptr) continue;
    ++valid;
    SCOPED_TRACE(cat("seed ", seed));
    EXPECT_EQ(race_in(*v.program), "");
    const auto expected = results(v.program, b.kernels());
    for (int trial = 0; trial < 3; ++trial) {
      auto other = std::make_shared<Program>(*v.program);
      for (Sequence& sequence : other->schedule.sequences) sequence = shuffled(sequence, random);
      EXPECT_EQ(results(other, b.kernels()), expected);
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(valid, 1'000) << "too few of the random descriptions are valid to say much";
}

namespace {

/// The levels that the waits of a sequence say.
void set_levels(Sequence& sequence) {
  sequence.levels = 0;
  for (Step& step : sequence.steps) {
    step.level = 0;
    for (const Wait& wait : step.waits)
      step.level = std::max(step.level, sequence.steps[wait.step].level + 1);
    sequence.levels = std::max(sequence.levels, step.level + 1);
  }
}

/// A wait is gone, two steps stand in each other's place, or a buffer lies elsewhere.
void change(Schedule& schedule, Random& random) {
  auto& steps =
      schedule.sequences[static_cast<std::size_t>(below(random, std::ssize(schedule.sequences)))].steps;
  const auto any = [&](auto& list) -> auto& {
    return list[static_cast<std::size_t>(below(random, std::ssize(list)))];
  };
  switch (below(random, 3)) {
    case 0:
      if (!steps.empty())
        if (auto& waits = any(steps).waits; !waits.empty())
          waits.erase(waits.begin() + below(random, std::ssize(waits)));
      break;
    case 1:
      if (!steps.empty()) std::swap(any(steps), any(steps));
      break;
    default:
      any(schedule.memory.homes).offset = 64 * static_cast<std::uint64_t>(below(random, 8));
  }
  for (Sequence& sequence : schedule.sequences) set_levels(sequence);
}

}  // namespace

TEST(DescribeLaws, EveryScheduleIsVerifiedAndWhatIsVerifiedDoesNotRace) {
  int verified = 0, refused = 0;
  for (std::uint64_t seed = 20'000; seed < 22'000; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Random random(seed);
    Builder b = random_description(random);
    const auto description = b.finish();
    const Validation v = validate(description, &b.kernels());
    if (v.program == nullptr) continue;
    Schedule other = v.program->schedule;
    for (Sequence& sequence : other.sequences) sequence = shuffled(sequence, random);
    for (const Schedule& schedule : {v.program->schedule, other}) {
      const auto same = verified_program(description, schedule);
      ASSERT_TRUE(same) << same.error().to_text();
      EXPECT_EQ(results(*same, b.kernels()), results(v.program, b.kernels()));
    }
    for (int trial = 0; trial < 5; ++trial) {
      Schedule changed = v.program->schedule;
      change(changed, random);
      const auto program = verified_program(description, changed);
      ++(program ? verified : refused);
      if (program) {
        EXPECT_EQ(race_in(**program), "");
      }
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(verified, 500);
  EXPECT_GT(refused, 500);
}

TEST(DescribeLaws, SharingMemoryDoesNotChangeResults) {
  int valid = 0;
  for (std::uint64_t seed = 10'000; seed < 12'000; ++seed) {
    Random random(seed);
    Builder b = random_description(random);
    const Validation v = validate(b.finish(), &b.kernels());
    if (v.program == nullptr) continue;
    ++valid;
    auto apart = std::make_shared<Program>(*v.program);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < apart->graph.buffers.size(); ++i)
      if (apart->schedule.memory.homes[i].kind == Home::Kind::shared) {
        apart->schedule.memory.homes[i].offset = end;
        end += (apart->graph.buffers[i].bytes + 63) / 64 * 64;
      }
    apart->schedule.memory.shared_bytes = end;
    const MemoryPlan& plan = v.program->schedule.memory;
    EXPECT_LE(plan.lower_bound, plan.shared_bytes);
    EXPECT_LE(plan.shared_bytes, plan.without_reuse);
    EXPECT_EQ(results(apart, b.kernels()), results(v.program, b.kernels())) << "seed " << seed;
  }
  EXPECT_GT(valid, 700);
}

TEST(DescribeLaws, EveryMutationOfAFileGetsAnAnswer) {
  std::ifstream file(TESSERA_SOURCE_DIR "/examples/describe/particles.json");
  const std::string example((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_GT(example.size(), 1'000U);
  // The places of words in quotes and of numbers, and what they are: a mutation puts one in the place of
  // another.
  std::vector<std::pair<std::size_t, std::size_t>> words;
  const std::regex word("\"[^\"]*\"|-?[0-9.]+");
  for (std::sregex_iterator at(example.begin(), example.end(), word), end; at != end; ++at)
    words.emplace_back(at->position(), at->length());
  const std::vector<std::string> others = {"null", "-1", "9223372036854775807", "1e300", "\"\"", "[]",
                                           "{}",   "0",  "\"until_rest\""};
  int valid = 0, invalid = 0, unreadable = 0;
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    Random random(seed);
    std::string text = example;
    for (std::int64_t times = 1 + below(random, 3); times-- > 0;) {
      const auto [position, length] = words[static_cast<std::size_t>(below(random, std::ssize(words)))];
      const auto [from, size] = words[static_cast<std::size_t>(below(random, std::ssize(words)))];
      const bool takes_word = below(random, 3) != 0;
      if (position + length > text.size()) continue;
      text.replace(position, length,
                   takes_word ? example.substr(from, size)
                              : others[static_cast<std::size_t>(below(random, std::ssize(others)))]);
    }
    auto reading = read_description("mutant", text);
    if (!reading) {
      ++unreadable;
      continue;
    }
    const bool is_read = reading->problems.ok();
    const Validation v =
        validate(std::make_shared<const Description>(std::move(reading->description)), nullptr);
    EXPECT_EQ(v.report.ok(), v.program != nullptr) << text;
    ++(is_read && v.report.ok() ? valid : invalid);
    if (v.program != nullptr) {
      EXPECT_EQ(race_in(*v.program), "");
    }
    for (const Diagnostic& d : v.report.diagnostics()) EXPECT_FALSE(d.message.empty()) << text;
  }
  EXPECT_GT(valid, 50);
  EXPECT_GT(invalid, 500);
  EXPECT_GT(unreadable, 50);
}

TEST(DescribeLaws, TheListingOfAWiredGraphDoesNotMatter) {
  // With one writer a buffer, and all else by edges, the nodes can be listed in any order.
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Builder b;
    b.kernels().add("mix", mix);
    const std::int64_t nodes = 2 + below(random, 20);
    b.external("out", Dtype::u64, {4}).external("x", Dtype::u64, {4});
    for (std::int64_t n = 0; n < nodes; ++n) {
      std::vector<Parameter> parameters = {integer("seed", n), read("x", {.buffer = "x"})};
      for (std::int64_t p = 0; p < 2 && n > 0; ++p) parameters.push_back(read(cat("p", p)));
      parameters.push_back(write("own", {.dtype = Dtype::u64, .shape = "[4]"}));
      if (n == nodes - 1) parameters.push_back(write("out", {.buffer = "out"}));
      b.kernel(cat("n", n), "mix", std::move(parameters));
      for (std::int64_t p = 0; p < 2 && n > 0; ++p)
        b.edge({cat("n", below(random, n)), "own"}, {cat("n", n), cat("p", p)});
    }
    const auto in_order = validate(b.finish(), &b.kernels());
    ASSERT_NE(in_order.program, nullptr) << in_order.report.to_text();
    std::shuffle(b.description().nodes.begin(), b.description().nodes.end(), random);
    std::shuffle(b.description().edges.begin(), b.description().edges.end(), random);
    const auto other = validate(b.finish(), &b.kernels());
    ASSERT_NE(other.program, nullptr) << other.report.to_text();
    EXPECT_EQ(results(other.program, b.kernels()), results(in_order.program, b.kernels())) << "seed " << seed;
  }
}
