#include "tessera/stream/recorder.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

Label describe_type(PatternTable& patterns, Pattern& pattern, const ir::TypeRef& type) {
  pattern.clear();
  append_type(pattern, type.get());
  return {patterns.intern(pattern.bytes), pattern.sizes, pattern.symbolic};
}

}  // namespace

std::optional<Operand> Recorder::find(ValueId id) const {
  const auto at = current_.find(id);
  return at == current_.end() ? std::nullopt : std::optional(at->second);
}

Operand Recorder::read(const Input& input) {
  if (input.is_parameter) return Operand::parameter(input.dtype);
  const auto at = current_.find(input.value);
  if (at == current_.end()) {
    const Operand value = trace_.add_input(describe_type(trace_.patterns(), pattern_, input.type));
    current_.emplace(input.value, value);
    return value;
  }
  const Operand value = at->second;
  if (input.type != nullptr && trace_.type(value).pattern == PatternTable::unknown_type)
    trace_.set_type(value, describe_type(trace_.patterns(), pattern_, input.type));
  return value;
}

OpIndex Recorder::record(const Instruction& instruction) {
  outputs_.assign(instruction.outputs.begin(), instruction.outputs.end());
  if (const Input* overwritten = overwritten_input(instruction))
    outputs_.push_back({.value = overwritten->value, .type = overwritten->type});
  return record(instruction, instruction.effect, outputs_);
}

OpIndex Recorder::record(const Instruction& instruction, Effect effect, std::span<const Output> results) {
  operands_.clear();
  for (const Input& input : instruction.inputs) operands_.push_back(read(input));
  if (result_patterns_.size() < results.size()) result_patterns_.resize(results.size());
  results_.clear();
  for (std::size_t i = 0; i < results.size(); ++i)
    results_.push_back(describe_type(trace_.patterns(), result_patterns_[i], results[i].type));
  pattern_.clear();
  append_op(pattern_, instruction.op, instruction.attributes, effect);
  const Label label{trace_.patterns().intern(pattern_.bytes), pattern_.sizes, pattern_.symbolic};
  const OpIndex op = trace_.add_op(label, effect, operands_, results_);
  std::uint32_t number = 0;
  for (const Output& result : results) current_[result.value] = trace_.result(op, number++);
  return op;
}
