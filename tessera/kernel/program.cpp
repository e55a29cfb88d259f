#include "tessera/kernel/program.h"

#include <algorithm>
#include <bit>

#include "tessera/base/check.h"
#include "tessera/base/text.h"
#include "tessera/kernel/gelu.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// As an accumulator holds it.
std::uint64_t neutral(const Instruction& reduction) {
  const Dtype wide = wide_dtype(reduction.dtype);
  const std::uint64_t bits = neutral_bits(reduction.opcode, wide);
  return wide == Dtype::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)))
                            : bits;
}

class Compiler {
 public:
  Compiler(const Kernel& kernel, const Passes& passes, Lanes lanes, Accuracy accuracy)
      : kernel_(kernel),
        body_(kernel.body),
        passes_(passes),
        loops_(block_loops()),
        is_precise_(accuracy == Accuracy::precise) {
    out_.lanes = lanes;
    next_register_ = static_cast<Register>(body_.size());
    find_needed();
  }

  Program compile() {
    for (ValueId value : passes_.uniforms) append(value, out_.uniforms);
    out_.kept = passes_.kept;
    for (ValueId value : out_.kept) out_.kept_sizes.push_back(register_size(body_[value].dtype));
    for (const Pass& pass : passes_.passes) compile_pass(pass);
    for (ValueId value : passes_.last_rows) append(value, out_.last_rows);
    for (std::uint32_t store : passes_.row_stores)
      out_.row_saves.push_back(save(store, out_.last_rows, true));
    for (ValueId i = 0; i < body_.size(); ++i)
      if (passes_.levels[i] == Level::row && !is_scalar(i)) give_block(i);
    out_.register_count = next_register_;
    return std::move(out_);
  }

 private:
  /// What a gelu is written with is not computed for it.
  void find_needed() {
    needed_.assign(body_.size(), false);
    for (const Store& store : kernel_.stores) needed_[store.value] = true;
    for (ValueId value = static_cast<ValueId>(body_.size()); value-- > 0;) {
      const Instruction& instruction = body_[value];
      if (instruction.kind == InstructionKind::reduction) needed_[value] = true;
      if (!needed_[value]) continue;
      if (const auto x = gelu_operand(kernel_, instruction)) {
        needed_[*x] = true;
        continue;
      }
      for (std::size_t k = 0; k < operand_count(instruction); ++k) needed_[instruction.operands[k]] = true;
    }
  }

  /// Whether a value is one number where elements are blocks.
  [[nodiscard]] bool is_scalar(ValueId value) const {
    const Level level = passes_.levels[value];
    return level == Level::uniform || (level == Level::row && out_.lanes == Lanes::reduced);
  }
  [[nodiscard]] bool is_kept(ValueId value) const {
    return std::binary_search(out_.kept.begin(), out_.kept.end(), value);
  }

  // ---- registers

  void give_block(Register number) {
    out_.blocks.push_back({number, out_.block_bytes});
    out_.block_bytes += block_elements * 8;
  }

  /// Blocks for the element values of a pass: each as long as it is needed.
  void allocate(PassCode& code) {
    std::vector<std::uint32_t> last_use(body_.size(), 0);
    std::uint32_t at = 0;
    const auto use = [&](Register r) {
      if (r < body_.size()) last_use[r] = at;
    };
    for (const Step& step : code.elements) {
      ++at;
      if (step.kind != Step::Kind::loop) continue;
      for (Register r : {step.a, step.b, step.c}) use(r);
    }
    ++at;
    for (const auto& reduction : code.reductions) use(reduction.from);
    for (const auto& save : code.saves) use(save.from);
    std::vector<std::size_t> free;
    std::vector<std::vector<ValueId>> ends(at + 1);
    std::size_t used = 0;
    std::vector<std::size_t> offset(body_.size(), 0);
    std::uint32_t position = 0;
    for (const Step& step : code.elements) {
      ++position;
      if (step.out < body_.size() && passes_.levels[step.out] == Level::element && !is_kept(step.out)) {
        if (free.empty()) free.push_back(used++);
        offset[step.out] = free.back();
        free.pop_back();
        ends[std::max(last_use[step.out], position)].push_back(step.out);
        code.blocks.push_back({step.out, shared_block(offset[step.out])});
      }
      for (ValueId value : ends[position]) free.push_back(offset[value]);
    }
  }

  /// The blocks that passes share.
  std::size_t shared_block(std::size_t index) {
    while (shared_.size() <= index) {
      shared_.push_back(out_.block_bytes);
      out_.block_bytes += block_elements * 8;
    }
    return shared_[index];
  }

  /// A block that is filled with the one number of a scalar value.
  Register filled(ValueId value, std::vector<Step>& steps) {
    // A uniform one is filled once, a row's own one for each row and pass.
    const bool is_uniform = passes_.levels[value] == Level::uniform;
    auto& known = is_uniform ? filled_uniforms_ : filled_rows_;
    for (const auto& [of, number] : known)
      if (of == value) return number;
    const Register number = next_register_++;
    known.emplace_back(value, number);
    give_block(number);
    const std::size_t wide = wide_index(wide_dtype(body_[value].dtype));
    (is_uniform ? out_.uniforms : steps)
        .push_back({Step::Kind::fill, false, loops_.fill[wide], value, 0, 0, number});
    return number;
  }

  // ---- steps

  void append(ValueId value, std::vector<Step>& to) { append(value, to, to); }

  /// `fills` is where a block is filled that the step needs: ahead of the pass.
  void append(ValueId value, std::vector<Step>& to, std::vector<Step>& fills) {
    if (!needed_[value]) return;
    const Instruction& instruction = body_[value];
    Step step;
    step.out = value;
    switch (instruction.kind) {
      case InstructionKind::load:
        step.kind = Step::Kind::load;
        step.keeps = is_kept(value);
        step.a = instruction.index;
        break;
      case InstructionKind::place:
        step.kind = Step::Kind::place;
        step.a = instruction.index;
        break;
      case InstructionKind::operation:
        step = operation(value, fills);
        break;
      default:
        return;  // constants, parameters and extents are there when the run begins
    }
    TESSERA_CHECK(
        step.kind != Step::Kind::loop || step.loop != nullptr,
        cat("no loop for '", ir::to_string(instruction.opcode), "' of ", ir::to_string(instruction.dtype)));
    to.push_back(step);
  }

  Step operation(ValueId value, std::vector<Step>& fills) {
    const Instruction& instruction = body_[value];
    const auto& operands = instruction.operands;
    const std::size_t count = operand_count(instruction);
    Step step;
    step.out = value;
    if (const auto x = gelu_operand(kernel_, instruction)) {
      step.a = *x;
      step.loop = is_precise_ ? loops_.precise_gelu : loops_.gelu;
      return step;
    }
    step.a = operands[0];
    step.b = count > 1 ? operands[1] : 0;
    step.c = count > 2 ? operands[2] : 0;
    const std::size_t first = instruction.opcode == ScalarOpcode::select ? 1 : 0;
    const std::size_t wide = wide_index(wide_dtype(body_[operands[first]].dtype));
    if (instruction.opcode == ScalarOpcode::cast) {
      step.loop = loops_.cast[wide][static_cast<std::size_t>(instruction.dtype)];
      return step;
    }
    if (instruction.opcode == ScalarOpcode::bitcast) {
      step.loop = bitcast(body_[operands[0]].dtype, instruction.dtype);
      return step;
    }
    LoopForm form = LoopForm::vectors;
    if (!is_scalar(value)) {
      if (count == 2 && is_scalar(operands[0])) form = LoopForm::scalar_first;
      if (count == 2 && is_scalar(operands[1])) form = LoopForm::scalar_second;
      for (std::size_t k = 0; count == 3 && k < 3; ++k)
        if (is_scalar(operands[k])) (k == 0 ? step.a : k == 1 ? step.b : step.c) = filled(operands[k], fills);
    }
    step.loop =
        loops_.operation[static_cast<std::size_t>(instruction.opcode)][wide][static_cast<std::size_t>(form)];
    if (const auto precise = precise_loop(instruction.opcode); precise != nullptr && wide == 0)
      step.loop = precise;
    return step;
  }

  /// Of a function of f32 whose usual loop is not exact enough; null if it is.
  [[nodiscard]] LoopTable::Operation precise_loop(ScalarOpcode opcode) const {
    if (!is_precise_) return nullptr;
    switch (opcode) {
      case ScalarOpcode::tanh:
        return loops_.precise_tanh;
      case ScalarOpcode::erf:
        return loops_.precise_erf;
      case ScalarOpcode::erfc:
        return loops_.precise_erfc;
      default:
        return nullptr;
    }
  }

  [[nodiscard]] LoopTable::Operation bitcast(Dtype from, Dtype to) const {
    if (ir::size_of(from) == 8) return loops_.copy_bits;
    if (from == Dtype::f32) return to == Dtype::i32 ? loops_.f32_to_i32 : loops_.f32_to_u32;
    if (to == Dtype::f32) return loops_.bits_to_f32;
    return loops_.cast[wide_index(Dtype::i64)][static_cast<std::size_t>(to)];
  }

  // ---- passes

  void compile_pass(const Pass& pass) {
    PassCode code;
    filled_rows_.clear();
    for (ValueId value : pass.rows) append(value, code.rows);
    for (ValueId value : pass.elements) append(value, code.elements, code.rows);
    for (ValueId value : pass.reductions) code.reductions.push_back(reduction(value, code.rows));
    for (std::uint32_t store : pass.stores) code.saves.push_back(save(store, code.rows, false));
    for (PassCode::Save& save : code.saves) save.can_write_in_place = can_write_in_place(save, pass, code);
    allocate(code);
    out_.passes.push_back(std::move(code));
  }

  PassCode::Reduction reduction(ValueId value, std::vector<Step>& fills) {
    const Instruction& instruction = body_[value];
    const ValueId of = instruction.operands[0];
    const auto opcode = static_cast<std::size_t>(instruction.opcode);
    const std::size_t wide = wide_index(wide_dtype(body_[of].dtype));
    const bool repeated = is_scalar(of);
    return {value, repeated ? filled(of, fills) : of, loops_.reduce[opcode][wide],
            loops_.accumulate[opcode][wide], neutral(instruction)};
  }

  PassCode::Save save(std::uint32_t number, std::vector<Step>& fills, bool per_row) {
    const Store& store = kernel_.stores[number];
    const bool is_one = per_row && out_.lanes == Lanes::reduced;
    return {store.operand, is_scalar(store.value) && !is_one ? filled(store.value, fills) : store.value,
            false};
  }

  /// The value is computed in this pass, is stored once, and the array has its wide type.
  [[nodiscard]] bool can_write_in_place(const PassCode::Save& save, const Pass& pass,
                                        const PassCode& code) const {
    if (save.from >= body_.size() || is_kept(save.from)) return false;
    const Instruction& instruction = body_[save.from];
    const Dtype dtype = kernel_.operands[save.operand].dtype;
    if (instruction.kind != InstructionKind::operation || dtype != wide_dtype(dtype)) return false;
    if (std::count_if(code.saves.begin(), code.saves.end(),
                      [&](const PassCode::Save& other) { return other.from == save.from; }) != 1)
      return false;
    return std::binary_search(pass.elements.begin(), pass.elements.end(), save.from);
  }

  const Kernel& kernel_;
  const std::vector<Instruction>& body_;
  const Passes& passes_;
  const LoopTable& loops_;
  const bool is_precise_;
  std::vector<bool> needed_;  ///< by value
  Program out_;
  Register next_register_ = 0;
  std::vector<std::size_t> shared_;
  std::vector<std::pair<ValueId, Register>> filled_uniforms_, filled_rows_;
};

}  // namespace

std::size_t tessera::kernel::register_size(Dtype dtype) { return ir::size_of(wide_dtype(dtype)); }

Program tessera::kernel::make_program(const Kernel& kernel, const Passes& passes, Lanes lanes,
                                      Accuracy accuracy) {
  return Compiler(kernel, passes, lanes, accuracy).compile();
}
