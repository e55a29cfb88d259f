// A piece of an op stream with its values resolved: which op made each, or that it came from outside. Flat
// arrays, so that walking it touches little memory, and clear() keeps them: refilling a trace does not
// allocate.
//
//   Trace trace;
//   const Operand x = trace.add_input(trace.tensor(Dtype::f32, dims));
//   const OpIndex op = trace.add_op({.pattern = relu}, Effect::none, {{x}}, {{type}});
//   trace.ask_for(trace.result(op, 0));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/stream/instruction.h"
#include "tessera/stream/pattern.h"
#include "tessera/stream/pattern_table.h"

namespace tessera::stream {

using OpIndex = std::uint32_t;
inline constexpr OpIndex no_op = 0xffffffff;

/// What stands in a slot: the result of an op of the trace, a value from outside, or a parameter. Four bytes.
class Operand {
 public:
  enum class Kind : std::uint8_t { result, input, parameter };

  Operand() = default;
  /// `index` counts the results of all ops, or the inputs, in the order they were added.
  Operand(Kind kind, std::uint32_t index) : bits_(index << 2 | static_cast<std::uint32_t>(kind)) {}
  static Operand parameter(std::optional<ir::Dtype> dtype) {
    return {Kind::parameter, dtype ? static_cast<std::uint32_t>(*dtype) + 1 : 0};
  }

  bool operator==(const Operand&) const = default;
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(bits_ & 3); }
  [[nodiscard]] bool is_result() const { return kind() == Kind::result; }
  [[nodiscard]] bool is_input() const { return kind() == Kind::input; }
  /// Of a parameter: its dtype as a number from 1, 0 if it is not known.
  [[nodiscard]] std::uint32_t index() const { return bits_ >> 2; }

 private:
  std::uint32_t bits_ = 0;
};

/// A pattern with the sizes that were taken out of it. Borrows.
struct Label {
  PatternId pattern = PatternTable::unknown_type;
  std::span<const std::int64_t> sizes = {};
  std::span<const SymbolicSizeRef> symbolic = {};
};

/// A label whose sizes lie in the arrays of a trace.
struct Described {
  PatternId pattern = PatternTable::unknown_type;
  std::uint32_t first_size = 0;
  std::uint32_t first_symbolic = 0;
  std::uint32_t size_count = 0;
  std::uint32_t symbolic_count = 0;
};

/// At most 2^30 results, inputs and operands. Not thread-safe; const members may be called from several
/// threads.
class Trace {
 public:
  Trace() { clear(); }

  /// Forgets ops and values. Keeps the memory, the patterns and their ids.
  void clear();

  [[nodiscard]] PatternTable& patterns() { return patterns_; }
  [[nodiscard]] const PatternTable& patterns() const { return patterns_; }
  /// The type of a tensor with these dimensions, which must live as long as the label is used.
  [[nodiscard]] Label tensor(ir::Dtype dtype, std::span<const std::int64_t> dims) {
    return {patterns_.tensor(dtype, dims.size()), dims, {}};
  }

  Operand add_input(const Label& type);
  /// Gives an input or a result a type that was not known when it was added.
  void set_type(Operand value, const Label& type);
  /// Ops with an effect are ordered after those with an effect that were added before.
  OpIndex add_op(const Label& op, Effect effect, std::span<const Operand> operands,
                 std::span<const Label> results);
  [[nodiscard]] Operand result(OpIndex op, std::uint32_t number) const {
    return {Operand::Kind::result, ops_[op].first_result + number};
  }

  /// Someone outside holds this result. REQUIRES it is one. Inputs are held outside anyway.
  void set_live(Operand result) { results_[result.index()].live = 1; }
  /// Nobody holds this result when the trace is over: it was freed within. REQUIRES it is one.
  void set_freed(Operand result);
  /// Every result that no op of the trace reads and that was not freed is live.
  void set_unread_live();
  /// The next value in the order of the call that asks for them; a result that is asked for is live.
  void ask_for(Operand value);

  [[nodiscard]] std::uint32_t op_count() const { return static_cast<std::uint32_t>(ops_.size() - 1); }
  [[nodiscard]] std::uint32_t input_count() const { return static_cast<std::uint32_t>(inputs_.size()); }
  [[nodiscard]] std::uint32_t result_count() const { return static_cast<std::uint32_t>(results_.size()); }
  [[nodiscard]] std::uint32_t operand_count() const { return static_cast<std::uint32_t>(operands_.size()); }
  /// The sizes in all labels together: numbers, and expressions over symbols.
  [[nodiscard]] std::size_t size_count() const { return sizes_.size(); }
  [[nodiscard]] std::span<const SymbolicSizeRef> symbolic_sizes() const { return symbolic_; }
  [[nodiscard]] std::span<const Operand> asked() const { return asked_; }

  [[nodiscard]] const Described& described_op(OpIndex op) const { return ops_[op].described; }
  [[nodiscard]] Label op_label(OpIndex op) const { return label(ops_[op].described); }
  [[nodiscard]] std::span<const Operand> operands(OpIndex op) const {
    return {operands_.data() + ops_[op].first_operand, operands_.data() + ops_[op + 1].first_operand};
  }
  /// Where the operands of `op` begin when those of all ops are counted. REQUIRES op <= op_count().
  [[nodiscard]] std::uint32_t first_operand(OpIndex op) const { return ops_[op].first_operand; }
  [[nodiscard]] Operand operand(std::uint32_t place) const { return operands_[place]; }
  [[nodiscard]] std::uint32_t first_result(OpIndex op) const { return ops_[op].first_result; }
  [[nodiscard]] std::uint32_t result_count(OpIndex op) const {
    return ops_[op + 1].first_result - ops_[op].first_result;
  }
  /// The op with an effect before this one, if this one has an effect; else no_op.
  [[nodiscard]] OpIndex previous_effect(OpIndex op) const { return ops_[op].previous_effect; }
  [[nodiscard]] bool has_effect(OpIndex op) const { return ops_[op].has_effect != 0; }
  /// Whether another op reads a result of this one or comes after it because of effects.
  [[nodiscard]] bool is_needed(OpIndex op) const { return needed_[op] != 0; }

  [[nodiscard]] OpIndex producer(std::uint32_t result) const { return producers_[result]; }
  [[nodiscard]] const Described& described_result(std::uint32_t result) const {
    return results_[result].described;
  }
  [[nodiscard]] Label result_type(std::uint32_t result) const { return label(results_[result].described); }
  [[nodiscard]] bool is_live(std::uint32_t result) const { return results_[result].live != 0; }
  [[nodiscard]] bool is_freed(std::uint32_t result) const { return results_[result].freed != 0; }
  [[nodiscard]] bool has_freed() const { return has_freed_; }
  [[nodiscard]] bool is_read(std::uint32_t result) const { return results_[result].read != 0; }
  [[nodiscard]] const Described& described_input(std::uint32_t input) const { return inputs_[input]; }
  [[nodiscard]] Label input_type(std::uint32_t input) const { return label(inputs_[input]); }
  /// Of an input or a result.
  [[nodiscard]] Label type(Operand value) const {
    return value.is_input() ? input_type(value.index()) : result_type(value.index());
  }

  [[nodiscard]] Label label(const Described& d) const { return {d.pattern, sizes(d), symbolic(d)}; }
  [[nodiscard]] std::span<const std::int64_t> sizes(const Described& d) const {
    return {sizes_.data() + d.first_size, d.size_count};
  }
  [[nodiscard]] std::span<const SymbolicSizeRef> symbolic(const Described& d) const {
    return {symbolic_.data() + d.first_symbolic, d.symbolic_count};
  }

 private:
  struct Op {
    Described described = {};
    std::uint32_t first_operand = 0;
    std::uint32_t first_result = 0;
    OpIndex previous_effect = no_op;
    std::uint32_t has_effect = 0;
  };
  struct Value {
    Described described = {};
    std::uint8_t live = 0;
    std::uint8_t read = 0;
    std::uint8_t freed = 0;
  };

  Described keep(const Label& label);

  PatternTable patterns_;
  std::vector<Op> ops_;  // one more than there are: the end of the last
  std::vector<Operand> operands_;
  std::vector<Value> results_;
  std::vector<OpIndex> producers_;
  std::vector<std::uint8_t> needed_;
  std::vector<Described> inputs_;
  std::vector<std::int64_t> sizes_;
  std::vector<SymbolicSizeRef> symbolic_;
  std::vector<Operand> asked_;
  OpIndex last_effect_ = no_op;
  bool has_freed_ = false;
};

}  // namespace tessera::stream
