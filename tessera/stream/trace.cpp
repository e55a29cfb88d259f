#include "tessera/stream/trace.h"

using namespace tessera;
using namespace tessera::stream;

void Trace::clear() {
  ops_.assign(1, {});
  operands_.clear();
  results_.clear();
  producers_.clear();
  needed_.clear();
  inputs_.clear();
  sizes_.clear();
  symbolic_.clear();
  asked_.clear();
  last_effect_ = no_op;
  has_freed_ = false;
}

Described Trace::keep(const Label& label) {
  const Described out{.pattern = label.pattern,
                      .first_size = static_cast<std::uint32_t>(sizes_.size()),
                      .first_symbolic = static_cast<std::uint32_t>(symbolic_.size()),
                      .size_count = static_cast<std::uint32_t>(label.sizes.size()),
                      .symbolic_count = static_cast<std::uint32_t>(label.symbolic.size())};
  for (const std::int64_t size : label.sizes) sizes_.push_back(size);
  for (const SymbolicSizeRef& size : label.symbolic) symbolic_.push_back(size);
  return out;
}

Operand Trace::add_input(const Label& type) {
  inputs_.push_back(keep(type));
  return {Operand::Kind::input, input_count() - 1};
}

void Trace::set_type(Operand value, const Label& type) {
  (value.is_input() ? inputs_[value.index()] : results_[value.index()].described) = keep(type);
}

OpIndex Trace::add_op(const Label& op, Effect effect, std::span<const Operand> operands,
                      std::span<const Label> results) {
  const OpIndex index = op_count();
  ops_[index].described = keep(op);
  if (effect != Effect::none) {
    ops_[index].has_effect = 1;
    ops_[index].previous_effect = last_effect_;
    if (last_effect_ != no_op) needed_[last_effect_] = 1;
    last_effect_ = index;
  }
  for (const Operand operand : operands) {
    operands_.push_back(operand);
    if (!operand.is_result()) continue;
    results_[operand.index()].read = 1;
    needed_[producers_[operand.index()]] = 1;
  }
  for (const Label& result : results) {
    results_.push_back({.described = keep(result)});
    producers_.push_back(index);
  }
  needed_.push_back(0);
  ops_.push_back({.first_operand = static_cast<std::uint32_t>(operands_.size()),
                  .first_result = static_cast<std::uint32_t>(results_.size())});
  return index;
}

void Trace::set_freed(Operand result) {
  results_[result.index()].live = 0;
  results_[result.index()].freed = 1;
  has_freed_ = true;
}

void Trace::set_unread_live() {
  for (Value& result : results_)
    if (result.read == 0 && result.freed == 0) result.live = 1;
}

void Trace::ask_for(Operand value) {
  asked_.push_back(value);
  if (value.is_result()) set_live(value);
}
