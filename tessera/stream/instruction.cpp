#include "tessera/stream/instruction.h"

#include <algorithm>
#include <array>

#include "tessera/ir/canonical_name.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::array<std::string_view, 4> effect_names{"none", "write", "random", "read"};

}  // namespace

std::string_view tessera::stream::to_string(Effect effect) {
  return effect_names[static_cast<std::size_t>(effect)];
}

std::optional<Effect> tessera::stream::parse_effect(std::string_view name) {
  const auto at = std::find(effect_names.begin(), effect_names.end(), name);
  if (at == effect_names.end()) return std::nullopt;
  return static_cast<Effect>(at - effect_names.begin());
}

Effect tessera::stream::effect_of(const Instruction& instruction) {
  const bool is_declared = instruction.effect != Effect::none;
  return is_declared || !ir::is_in_place_spelling(instruction.op) ? instruction.effect : Effect::write;
}

const Input* tessera::stream::overwritten_input(const Instruction& instruction) {
  if (effect_of(instruction) != Effect::write) return nullptr;
  const Input* first = nullptr;
  for (const Input& input : instruction.inputs) {
    if (input.is_parameter) continue;
    if (first == nullptr) first = &input;
    for (const Output& output : instruction.outputs)
      if (output.value == input.value) return nullptr;
  }
  return first;
}
