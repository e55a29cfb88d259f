#include "tessera/stream/instruction.h"

#include <algorithm>
#include <array>

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

const Input* tessera::stream::overwritten_input(const Instruction& instruction) {
  if (instruction.effect != Effect::write) return nullptr;
  const Input* first = nullptr;
  for (const Input& input : instruction.inputs) {
    if (input.is_parameter) continue;
    if (first == nullptr) first = &input;
    for (const Output& output : instruction.outputs)
      if (output.value == input.value) return nullptr;
  }
  return first;
}
