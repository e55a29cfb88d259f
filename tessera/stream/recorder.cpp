#include "tessera/stream/recorder.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

Label describe_type(PatternTable& patterns, Pattern& pattern, const ir::TypeRef& type) {
  pattern.clear();
  append_type(pattern, type.get());
  return {patterns.intern(pattern.bytes), pattern.sizes, pattern.symbols};
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
  operands_.clear();
  for (const Input& input : instruction.inputs) operands_.push_back(read(input));

  const Input* overwritten = overwritten_input(instruction);
  result_patterns_.resize(instruction.outputs.size() + (overwritten != nullptr ? 1 : 0));
  results_.clear();
  for (std::size_t i = 0; i < result_patterns_.size(); ++i) {
    const ir::TypeRef& type =
        i < instruction.outputs.size() ? instruction.outputs[i].type : overwritten->type;
    results_.push_back(describe_type(trace_.patterns(), result_patterns_[i], type));
  }

  pattern_.clear();
  const Effect effect = effect_of(instruction);
  append_op(pattern_, instruction.op, instruction.attributes, effect);
  const Label label{trace_.patterns().intern(pattern_.bytes), pattern_.sizes, pattern_.symbols};
  const OpIndex op = trace_.add_op(label, effect, operands_, results_);

  std::uint32_t number = 0;
  for (const Output& output : instruction.outputs) current_[output.value] = trace_.result(op, number++);
  if (overwritten != nullptr) current_[overwritten->value] = trace_.result(op, number);
  return op;
}
