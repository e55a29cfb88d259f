// One instruction of an op stream, as a program records it: an op by its canonical name, whether the catalogue
// knows it or not, its attributes, the values it reads and makes, and what else it does.
//
// A value is an id that the caller chose. Writing an id again makes a new version of it; whoever read it
// before read the old one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tessera/ir/attribute.h"

namespace tessera::stream {

using ValueId = std::uint64_t;

/// What an instruction does besides computing its outputs. Instructions with an effect keep their order
/// relative to each other.
enum class Effect : std::uint8_t {
  none,
  write,  ///< overwrites a value in place: the ids among its outputs that it also reads, else its first input
  random,  ///< advances a random state
  read,    ///< the host looks at its inputs
};

/// "none", "write", "random", "read".
[[nodiscard]] std::string_view to_string(Effect effect);
/// The inverse of to_string.
[[nodiscard]] std::optional<Effect> parse_effect(std::string_view name);

/// What an instruction reads in one slot: a value, or a number that is a parameter. The value of a parameter
/// does not count, but each is a slot of its own.
struct Input {
  ValueId value = 0;
  ir::TypeRef type = {};  ///< of the value; null if it is not known
  bool is_parameter = false;
  std::optional<ir::Dtype> dtype = {};  ///< of the parameter, if it is known

  static Input of(ValueId value, ir::TypeRef type = {}) { return {.value = value, .type = std::move(type)}; }
  static Input parameter(std::optional<ir::Dtype> dtype = {}) {
    return {.is_parameter = true, .dtype = dtype};
  }
};

struct Output {
  ValueId value = 0;
  ir::TypeRef type = {};  ///< null if it is not known
};

/// Borrows everything; the caller keeps it alive for the call it is passed to.
struct Instruction {
  std::string_view op;
  const ir::Attributes* attributes = nullptr;  ///< null for none
  Effect effect = Effect::none;
  std::span<const Input> inputs = {};
  std::span<const Output> outputs = {};
  std::span<const ValueId> frees = {};  ///< values nobody holds any more once the instruction is done
};

/// The input that `instruction` overwrites without naming it among its outputs: the first value a `write`
/// reads, unless one of its outputs has the id of one of its inputs. Null if there is none. Whoever records
/// the instruction gives it one more output, a new version of this value.
[[nodiscard]] const Input* overwritten_input(const Instruction& instruction);

}  // namespace tessera::stream
