// Laws of streams on random programs: permuting independent ops and renaming values never changes component
// signatures, changing any one field of the identity always does; and the detector against a slow exact
// model.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tests/support/repeats.h"
#include "tests/support/stream_text.h"

using namespace tessera;
using namespace tessera::stream;
using namespace tessera::testing;

namespace {

constexpr std::uint64_t programs = fixture::repeats(1000U);

using Instructions = std::vector<OwnedInstruction>;

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_() % bound; }

  /// A program over few ops and types, so that parts of it look alike. Values are written once.
  Instructions program(std::size_t length) {
    Instructions out;
    std::vector<ValueId> values{0, 1, 2};
    ValueId next = 3;
    for (std::size_t i = 0; i < length; ++i) {
      OwnedInstruction op;
      op.op = cat("op", std::to_string(below(3)));
      const std::size_t inputs = 1 + below(3);
      for (std::size_t k = 0; k < inputs; ++k)
        op.inputs.push_back(below(8) == 0 ? Input::parameter() : Input::of(values[below(values.size())]));
      if (below(4) == 0) op.attributes.set("axis", static_cast<std::int64_t>(below(2)));
      if (below(10) == 0) op.effect = below(2) == 0 ? Effect::random : Effect::read;
      const std::size_t outputs = below(8) == 0 ? 2 : 1;
      for (std::size_t k = 0; k < outputs; ++k) {
        op.outputs.push_back({next, ir::tensor_type(ir::Dtype::f32, ir::Shape(1 + below(2), ir::Dim(4)))});
        values.push_back(next++);
      }
      if (below(6) == 0) values.push_back(next++);  // another value from outside
      out.push_back(std::move(op));
    }
    return out;
  }

  /// Another order in which the program can run, effects in their own.
  Instructions reordered(const Instructions& program) {
    std::map<ValueId, std::size_t> producer;
    for (std::size_t i = 0; i < program.size(); ++i)
      for (const Output& output : program[i].outputs) producer[output.value] = i;
    std::vector<bool> done(program.size());
    Instructions out;
    while (out.size() < program.size()) {
      std::vector<std::size_t> ready;
      bool effect_before = false;
      for (std::size_t i = 0; i < program.size(); ++i) {
        if (done[i]) continue;
        bool is_ready = program[i].effect == Effect::none || !effect_before;
        for (const Input& input : program[i].inputs) {
          const auto at = producer.find(input.value);
          is_ready = is_ready && (input.is_parameter || at == producer.end() || done[at->second]);
        }
        effect_before = effect_before || program[i].effect != Effect::none;
        if (is_ready) ready.push_back(i);
      }
      const std::size_t chosen = ready[below(ready.size())];
      done[chosen] = true;
      out.push_back(program[chosen]);
    }
    return out;
  }

  Instructions renamed(Instructions program) {
    std::map<ValueId, ValueId> names;
    const auto rename = [&](ValueId& id) { id = names.try_emplace(id, random_()).first->second; };
    for (OwnedInstruction& op : program) {
      for (Input& input : op.inputs)
        if (!input.is_parameter) rename(input.value);
      for (Output& output : op.outputs) rename(output.value);
    }
    return program;
  }

 private:
  std::mt19937_64 random_;
};

TEST(StreamLaws, OrderAndNamesDoNotMatter) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    const Instructions program = random.program(1 + random.below(24));
    const Instructions other = random.renamed(random.reordered(program));
    const Trace a = trace_of(program), b = trace_of(other);
    ASSERT_EQ(component_signatures(a), component_signatures(b)) << "seed " << seed;
    ASSERT_EQ(signature(a), signature(b)) << "seed " << seed;
    ASSERT_EQ(readable_lines(a), readable_lines(b)) << "seed " << seed;
  }
}

TEST(StreamLaws, SymmetricProgramsInAnyOrder) {
  // Copies of one program that share some inputs, and rings of ops on them: all ties.
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    const Instructions part = random.program(1 + random.below(5));
    Instructions program;
    const std::size_t copies = 2 + random.below(4);
    const bool is_shared = random.below(2) == 0;
    for (std::size_t copy = 0; copy < copies; ++copy)
      for (OwnedInstruction op : part) {
        op.effect = Effect::none;
        const auto moved = [&](ValueId id) { return id < 2 && is_shared ? id : id + 1000 * (copy + 1); };
        for (Input& input : op.inputs) input.value = moved(input.value);
        for (Output& output : op.outputs) output.value = moved(output.value);
        program.push_back(std::move(op));
      }
    const ValueId last = part.back().outputs[0].value;
    if (random.below(2) == 0)
      for (std::size_t copy = 0; copy < copies; ++copy)
        program.push_back({.op = "ring",
                           .attributes = {},
                           .inputs = {Input::of(last + 1000 * (copy + 1)),
                                      Input::of(last + 1000 * ((copy + 1) % copies + 1))},
                           .outputs = {{500 + copy, {}}},
                           .frees = {}});
    const Instructions other = random.renamed(random.reordered(program));
    ASSERT_EQ(signature(trace_of(program)), signature(trace_of(other))) << "seed " << seed;
    ASSERT_EQ(component_signatures(trace_of(program)), component_signatures(trace_of(other)))
        << "seed " << seed;
  }
}

/// One of some shapes over four symbols, in which symbols stand alone, together, and in ways that tie them.
ir::Shape symbolic_shape(std::size_t which, const std::vector<Ref<ir::Var>>& symbols) {
  const auto s = [&](std::size_t i) { return ir::Dim(ir::ExprRef(symbols[i])); };
  switch (which) {
    case 0:
      return {s(0)};
    case 1:
      return {s(2), 3};
    case 2:
      return {s(0) + s(1)};
    case 3:
      return {s(0) * s(1) + s(0)};
    case 4:
      return {s(0) * s(1) + s(2) * s(3)};
    case 5:
      return {s(3) - s(1), s(0) + s(1) + s(2)};
    case 6:
      return {ir::max(s(1), s(2)), ir::floor_div(s(3) + s(0), 2)};
    default:
      return {4};
  }
}

TEST(StreamLaws, NamesOfSymbolsDoNotMatter) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    const Instructions program = random.program(1 + random.below(10));
    std::map<ValueId, std::size_t> shape_of;
    for (const OwnedInstruction& op : program)
      for (const Output& output : op.outputs) shape_of[output.value] = random.below(9);
    const auto over = [&](Instructions ops, std::initializer_list<const char*> names, bool youngest_first) {
      std::vector<Ref<ir::Var>> symbols;
      for (const char* name : names) symbols.push_back(ir::size_symbol(name));
      if (youngest_first) std::reverse(symbols.begin(), symbols.end());
      for (OwnedInstruction& op : ops)
        for (Output& output : op.outputs)
          output.type = ir::tensor_type(ir::Dtype::f32, symbolic_shape(shape_of[output.value], symbols));
      return ops;
    };
    const Instructions a = over(program, {"A", "B", "C", "D"}, false);
    const Instructions b = random.renamed(over(random.reordered(program), {"Q", "Z", "B", "A"}, true));
    const Trace x = trace_of(a), y = trace_of(b);
    ASSERT_EQ(signature(x), signature(y)) << "seed " << seed;
    ASSERT_EQ(component_signatures(x), component_signatures(y)) << "seed " << seed;
    ASSERT_EQ(readable_lines(x), readable_lines(y)) << "seed " << seed;
  }
}

/// The program with one field of its identity changed, or nothing if the field is not there.
std::optional<Instructions> changed(Instructions program, std::size_t at, int field, ValueId fresh) {
  OwnedInstruction& op = program[at];
  switch (field) {
    case 0:
      op.op += "_other";
      return program;
    case 1:
      op.attributes.set("axis", std::int64_t{7});
      return program;
    case 2:
      op.outputs[0].type = ir::tensor_type(ir::Dtype::bf16, ir::Shape(1, ir::Dim(4)));
      return program;
    case 3:
      op.outputs[0].type = ir::tensor_type(ir::Dtype::f32, ir::Shape(1, ir::Dim(5)));
      return program;
    case 4:
      op.outputs[0].type = {};
      return program;
    case 5:
      op.inputs.push_back(Input::of(fresh));
      return program;
    case 6:
      op.inputs.push_back(Input::parameter());
      return program;
    case 7:
      op.outputs.push_back({fresh, {}});
      return program;
    case 8:
      op.effect = op.effect == Effect::random ? Effect::read : Effect::random;
      return program;
    case 9:
      op.inputs[0] = op.inputs[0].is_parameter ? Input::of(fresh) : Input::parameter();
      return program;
    default:
      break;
  }
  // Two slots that name different values change places.
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    const bool differ = op.inputs[0].is_parameter != op.inputs[i].is_parameter;
    if (!differ) continue;
    std::swap(op.inputs[0], op.inputs[i]);
    return program;
  }
  return std::nullopt;
}

TEST(StreamLaws, AnyOneFieldMatters) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    const Instructions program = random.program(1 + random.below(12));
    const Trace trace = trace_of(program);
    const std::size_t at = random.below(program.size());
    for (int field = 0; field < 11; ++field) {
      const auto other = changed(program, at, field, 1'000'000);
      if (!other) continue;
      ASSERT_NE(signature(trace), signature(trace_of(*other))) << "seed " << seed << " field " << field;
      ASSERT_NE(component_signatures(trace), component_signatures(trace_of(*other)))
          << "seed " << seed << " field " << field;
    }
    Trace live = trace_of(program);  // a result that is read is held as well
    for (std::uint32_t result = 0; result < live.result_count(); ++result) {
      if (live.is_live(result)) continue;
      live.set_live(Operand(Operand::Kind::result, result));
      ASSERT_NE(signature(trace), signature(live)) << "seed " << seed;
      break;
    }
  }
}

TEST(StreamLaws, TheGroupedOrderIsLegal) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    const Trace trace = trace_of(random.program(1 + random.below(40)));
    Components components;
    components.partition(trace);
    const auto order = components.grouped_order(trace);
    ASSERT_EQ(order.size(), trace.op_count());
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::set<std::uint32_t> left;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const OpIndex op = order[i];
      for (const Operand operand : trace.operands(op))
        if (operand.is_result()) {
          ASSERT_LT(place[trace.producer(operand.index())], i);
        }
      if (trace.previous_effect(op) != no_op) {
        ASSERT_LT(place[trace.previous_effect(op)], i);
      }
      ASSERT_FALSE(left.contains(components.component_of(op))) << "a component is in one piece";
      if (i + 1 < order.size() && components.component_of(order[i + 1]) != components.component_of(op))
        left.insert(components.component_of(op));
    }
  }
}

// ---- the detector

/// What HotPathDetector does with one chain, by brute force: windows are compared by writing them out,
/// squares are looked for at every place and with every period.
class SlowModel {
 public:
  explicit SlowModel(std::size_t longest) : longest_(longest) {}

  void record(const OwnedInstruction& op) {
    steps_.push_back(op);
    complete();
    learn_squares();
  }

  /// Occurrences by the letters of the unit.
  [[nodiscard]] std::multiset<std::pair<std::size_t, std::size_t>> counts() const {
    std::map<std::string, std::size_t> by_unit;
    for (const Credit& credit : credits_) ++by_unit[credit.unit];
    std::multiset<std::pair<std::size_t, std::size_t>> out;
    for (const auto& [unit, count] : by_unit) out.insert({lengths_.at(unit), count});
    return out;
  }

 private:
  struct Credit {
    std::string unit;
    std::size_t start = 0;
    std::size_t end = 0;
  };

  /// The window with values numbered in the order they are met.
  [[nodiscard]] std::string letters(std::size_t start, std::size_t length) const {
    std::map<ValueId, std::size_t> numbers;
    std::size_t next_input = 0;
    std::string out;
    for (std::size_t i = start; i < start + length; ++i) {
      out += steps_[i].op;
      for (const Input& input : steps_[i].inputs) {
        const auto [at, is_new] = numbers.try_emplace(input.value, next_input);
        if (is_new) ++next_input;
        out += cat(" ", std::to_string(at->second));
      }
      out += cat(" makes ", steps_[i].outputs.size(), ";");
      std::size_t made = 1000 * (i - start + 1);
      for (const Output& output : steps_[i].outputs) numbers[output.value] = made++;
    }
    return out;
  }

  /// The longest unit that ends here, unless it began inside another occurrence.
  void complete() {
    const std::size_t end = steps_.size();
    may_begin_.insert(end - 1);
    std::size_t best = end;
    for (const auto& [unit, length] : lengths_) {
      if (length > end) continue;
      const std::size_t start = end - length;
      const bool is_open = start >= known_at_.at(unit) && may_begin_.contains(start) && start < best;
      if (is_open && letters(start, length) == unit) best = start;
    }
    if (best == end) return;
    std::erase_if(may_begin_, [&](std::size_t start) { return start > best; });
    std::erase_if(credits_, [&](const Credit& credit) { return credit.end > best; });
    credits_.push_back({letters(best, end - best), best, end});
  }

  [[nodiscard]] bool is_square(std::size_t end, std::size_t length) const {
    return 2 * length <= end && letters(end - length, length) == letters(end - 2 * length, length);
  }

  [[nodiscard]] bool is_power(std::size_t start, std::size_t length) const {
    for (std::size_t part = 1; part < length; ++part) {
      if (length % part != 0) continue;
      bool is_same = true;
      for (std::size_t at = part; at < length; at += part)
        is_same = is_same && letters(start, part) == letters(start + at, part);
      if (is_same) return true;
    }
    return false;
  }

  void learn_squares() {
    const std::size_t end = steps_.size();
    for (std::size_t length = 2; length <= longest_ && 2 * length <= end; ++length) {
      if (!is_square(end, length) || is_square(end - 1, length) || is_power(end - length, length)) continue;
      bool is_rotation = false;
      for (std::size_t at = end - 2 * length; at <= end - length; ++at)
        is_rotation = is_rotation || lengths_.contains(letters(at, length));
      if (!is_rotation) learn(end - 2 * length, length);
    }
  }

  void learn(std::size_t start, std::size_t length) {
    const std::string unit = letters(start, length);
    lengths_[unit] = length;
    known_at_.try_emplace(unit, start + 2 * length);
    for (std::size_t at = 0; at + length <= start; ++at) {
      const bool is_free = std::none_of(credits_.begin(), credits_.end(), [&](const Credit& credit) {
        return credit.start < at + length && at < credit.end;
      });
      if (is_free && letters(at, length) == unit) credits_.push_back({unit, at, at + length});
    }
    std::erase_if(may_begin_, [&](std::size_t at) { return at > start && at != start + length; });
    std::erase_if(credits_, [&](const Credit& credit) { return credit.end > start; });
    credits_.push_back({unit, start, start + length});
    credits_.push_back({unit, start + length, start + 2 * length});
  }

  std::size_t longest_;
  Instructions steps_;
  std::vector<Credit> credits_;
  std::map<std::string, std::size_t> lengths_;   // of the units that are known
  std::set<std::size_t> may_begin_;              // steps that are not inside an occurrence
  std::map<std::string, std::size_t> known_at_;  // steps recorded when a unit was found
};

std::multiset<std::pair<std::size_t, std::size_t>> counts(const HotPathDetector& detector) {
  std::multiset<std::pair<std::size_t, std::size_t>> out;
  for (const HotUnit& unit : detector.top_units(1000))
    if (unit.count > 0) out.insert({unit.length, unit.count});
  return out;
}

/// A chain through one value, made of pieces that are repeated now and then. Second operands come from
/// outside or from a few steps before.
Instructions random_chain(RandomStream& random, ValueId base) {
  std::vector<Instructions> pieces;
  for (int i = 0; i < 3; ++i) {
    Instructions piece;
    const std::size_t length = 1 + random.below(4);
    for (std::size_t k = 0; k < length; ++k) {
      OwnedInstruction op;
      op.op = cat(std::to_string(base), "op", std::to_string(random.below(3)));
      op.inputs = {Input::of(base), Input::of(base + 1 + random.below(3))};
      op.outputs = {{base, {}}};
      if (random.below(5) == 0) op.outputs.push_back({base + 1 + random.below(3), {}});
      piece.push_back(std::move(op));
    }
    pieces.push_back(std::move(piece));
  }
  Instructions out;
  while (out.size() < 60) {
    const Instructions& piece = pieces[random.below(pieces.size())];
    for (std::size_t times = 1 + random.below(4); times > 0; --times)
      out.insert(out.end(), piece.begin(), piece.end());
  }
  return out;
}

std::string shown(const Instructions& chain, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    for (const Output& output : chain[i].outputs) out += cat(std::to_string(output.value), " ");
    out += cat("= ", chain[i].op, "(");
    for (const Input& input : chain[i].inputs) out += cat(" ", std::to_string(input.value));
    out += ");\n";
  }
  return out;
}

TEST(DetectorModel, AgreesOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 5 * programs; ++seed) {
    RandomStream random(seed);
    Instructions chain = random_chain(random, 0);
    chain.resize(32);  // as much as a detector remembers whose longest period is 8
    HotPathDetector detector({.threshold = 1'000'000, .max_period = 8});
    SlowModel model(8);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      detector.record(chain[i].view());
      model.record(chain[i]);
      ASSERT_EQ(counts(detector), model.counts()) << "seed " << seed << " after " << i + 1 << "\n"
                                                  << shown(chain, i + 1);
    }
  }
}

TEST(DetectorModel, NoInstructionIsHotTwice) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    RandomStream random(seed);
    HotPathDetector detector({.threshold = 1 + random.below(4), .max_period = 64});
    for (const OwnedInstruction& op : random_chain(random, 0)) {
      detector.record(op.view());
      const HotPathStatistics statistics = detector.statistics();
      ASSERT_LE(statistics.hot_instructions, statistics.instructions) << "seed " << seed;
    }
    for (const HotUnit& unit : detector.top_units(1000)) ASSERT_LE(unit.count * unit.length, 100u);
  }
}

TEST(DetectorModel, InterleavingChangesNothing) {
  for (std::uint64_t seed = 0; seed < programs / 4; ++seed) {
    RandomStream random(seed);
    std::vector<Instructions> chains;
    std::multiset<std::pair<std::size_t, std::size_t>> expected;
    for (ValueId i = 0; i < 3; ++i) {
      chains.push_back(random_chain(random, 100 * (i + 1)));
      HotPathDetector alone({.max_period = 64});
      record_all(alone, chains.back());
      expected.merge(counts(alone));
    }
    HotPathDetector together({.max_period = 64});
    std::vector<std::size_t> next(chains.size());
    for (std::size_t left = chains[0].size() + chains[1].size() + chains[2].size(); left > 0; --left) {
      std::size_t lane = random.below(3);
      while (next[lane] == chains[lane].size()) lane = (lane + 1) % 3;
      together.record(chains[lane][next[lane]++].view());
    }
    ASSERT_EQ(counts(together), expected) << "seed " << seed;
  }
}

TEST(DetectorModel, ComponentsAreCountedByTheirForm) {
  for (std::uint64_t seed = 0; seed < programs / 4; ++seed) {
    RandomStream random(seed);
    const std::size_t forms = 2 + random.below(4);
    std::vector<std::size_t> lengths(forms), expected(forms);
    for (std::size_t& length : lengths) length = 2 + random.below(4);
    struct Open {
      std::size_t form, done;
      ValueId value;
    };
    std::vector<Open> open;
    HotPathDetector detector;
    ValueId next = 1;
    for (int i = 0; i < 300; ++i) {
      if (open.size() < 3) open.push_back({random.below(forms), 0, next++});
      const std::size_t chosen = random.below(open.size());
      Open& part = open[chosen];
      const std::string name = cat("f", part.form, "_", part.done);
      const Input input = Input::of(part.done == 0 ? 0 : part.value);
      const Output output{part.value, {}};
      detector.record({.op = name, .inputs = {&input, 1}, .outputs = {&output, 1}});
      if (++part.done < lengths[part.form]) continue;
      ++expected[part.form];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    std::multiset<std::pair<std::size_t, std::size_t>> all, found;
    for (std::size_t form = 0; form < forms; ++form)
      if (expected[form] > 6) all.insert({lengths[form], expected[form]});  // 6: never over before the next
    for (const auto& entry : counts(detector))
      if (entry.second > 6) found.insert(entry);
    ASSERT_EQ(found, all) << "seed " << seed;
  }
}

}  // namespace
