#include "tessera/kernel/passes.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// Work out the levels, the pass that each value belongs to, and the lists.
class Scheduler {
 public:
  explicit Scheduler(const Kernel& kernel) : kernel_(kernel), body_(kernel.body) {}

  Passes schedule() {
    find_levels();
    find_stages();
    out_.passes.resize(pass_count());
    computed_in_.assign(body_.size(), none);
    for (std::size_t p = 0; p < out_.passes.size(); ++p) write_pass(p);
    write_rows();
    std::sort(out_.kept.begin(), out_.kept.end());
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  Level level_of_axis(std::uint32_t axis) const {
    return !kernel_.reduces() || axis >= kernel_.outer_axes ? Level::element : Level::row;
  }

  Level own_level(const Instruction& instruction) const {
    Level out = Level::uniform;
    if (instruction.kind == InstructionKind::place) return level_of_axis(instruction.index);
    if (instruction.kind == InstructionKind::load)
      for (const Term& term : kernel_.operands[instruction.index].terms)
        out = std::max(out, level_of_axis(term.axis));
    return out;
  }

  void find_levels() {
    for (const Instruction& instruction : body_) {
      Level level = own_level(instruction);
      for (std::size_t k = 0; k < operand_count(instruction); ++k)
        level = std::max(level, out_.levels[instruction.operands[k]]);
      // Also the sum of what does not vary is one per outer point.
      if (instruction.kind == InstructionKind::reduction) level = Level::row;
      out_.levels.push_back(level);
    }
    for (ValueId i = 0; i < body_.size(); ++i)
      if (out_.levels[i] == Level::uniform) out_.uniforms.push_back(i);
  }

  /// The pass in which a value is known at the earliest.
  void find_stages() {
    for (const Instruction& instruction : body_) {
      std::uint32_t stage = 0;
      for (std::size_t k = 0; k < operand_count(instruction); ++k)
        stage = std::max(stage, stages_[instruction.operands[k]]);
      stages_.push_back(instruction.kind == InstructionKind::reduction ? stage + 1 : stage);
    }
  }

  [[nodiscard]] bool stores_at_points(const Store& store) const {
    if (!kernel_.reduces()) return true;
    for (const Term& term : kernel_.operands[store.operand].terms)
      if (term.axis >= kernel_.outer_axes) return true;
    return false;
  }

  [[nodiscard]] std::size_t pass_count() const {
    std::size_t out = 1;
    for (ValueId i = 0; i < body_.size(); ++i)
      if (body_[i].kind == InstructionKind::reduction) out = std::max<std::size_t>(out, stages_[i]);
    for (const Store& store : kernel_.stores)
      if (stores_at_points(store)) out = std::max<std::size_t>(out, stages_[store.value] + 1);
    return out;
  }

  void write_pass(std::size_t p) {
    Pass& pass = out_.passes[p];
    std::vector<ValueId> wanted;
    for (ValueId i = 0; i < body_.size(); ++i)
      if (body_[i].kind == InstructionKind::reduction && stages_[i] == p + 1) {
        pass.reductions.push_back(i);
        wanted.push_back(body_[i].operands[0]);
      }
    for (std::uint32_t i = 0; i < kernel_.stores.size(); ++i)
      if (stores_at_points(kernel_.stores[i]) && stages_[kernel_.stores[i].value] == p) {
        pass.stores.push_back(i);
        wanted.push_back(kernel_.stores[i].value);
      }
    collect_elements(static_cast<std::uint32_t>(p), std::move(wanted));
  }

  /// What the pass computes at every point: back from what it wants to loads and kept values.
  void collect_elements(std::uint32_t p, std::vector<ValueId> wanted) {
    Pass& pass = out_.passes[p];
    std::vector<bool> seen(body_.size(), false);
    while (!wanted.empty()) {
      const ValueId value = wanted.back();
      wanted.pop_back();
      if (seen[value] || out_.levels[value] != Level::element) continue;
      seen[value] = true;
      if (computed_in_[value] < p && is_worth_keeping(value)) {
        if (std::find(out_.kept.begin(), out_.kept.end(), value) == out_.kept.end())
          out_.kept.push_back(value);
        continue;
      }
      pass.elements.push_back(value);
      computed_in_[value] = std::min(computed_in_[value], p);
      for (std::size_t k = 0; k < operand_count(body_[value]); ++k)
        wanted.push_back(body_[value].operands[k]);
    }
    std::sort(pass.elements.begin(), pass.elements.end());
  }

  /// Whether computing it again from loads would repeat something costly.
  bool is_worth_keeping(ValueId root) {
    std::vector<ValueId> stack{root};
    std::vector<bool> seen(body_.size(), false);
    std::size_t operations = 0;
    while (!stack.empty()) {
      const ValueId value = stack.back();
      stack.pop_back();
      if (seen[value] || out_.levels[value] != Level::element) continue;
      seen[value] = true;
      if (is_costly(body_[value]) || ++operations > 8) return true;
      for (std::size_t k = 0; k < operand_count(body_[value]); ++k) stack.push_back(body_[value].operands[k]);
    }
    return false;
  }

  void write_rows() {
    for (ValueId i = 0; i < body_.size(); ++i) {
      if (out_.levels[i] != Level::row || body_[i].kind == InstructionKind::reduction) continue;
      (stages_[i] < out_.passes.size() ? out_.passes[stages_[i]].rows : out_.last_rows).push_back(i);
    }
    for (std::uint32_t i = 0; i < kernel_.stores.size(); ++i)
      if (!stores_at_points(kernel_.stores[i])) out_.row_stores.push_back(i);
  }

  const Kernel& kernel_;
  const std::vector<Instruction>& body_;
  Passes out_;
  std::vector<std::uint32_t> stages_;
  std::vector<std::uint32_t> computed_in_;
};

}  // namespace

bool tessera::kernel::is_costly(const Instruction& instruction) {
  return instruction.kind == InstructionKind::operation && ir::info(instruction.opcode).work > 1;
}

bool tessera::kernel::has_jumps(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instruction& instruction) {
    const bool truncates = instruction.opcode == ScalarOpcode::cast && ir::is_integer(instruction.dtype);
    return instruction.kind == InstructionKind::operation &&
           (truncates || ir::info(instruction.opcode).has(ir::opcode_trait::jumps));
  });
}

Passes tessera::kernel::find_passes(const Kernel& kernel) { return Scheduler(kernel).schedule(); }
