// Writes instructions into a trace: ids become values, and an id that is written again becomes another value.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/stream/instruction.h"
#include "tessera/stream/trace.h"

namespace tessera::stream {

/// Not thread-safe. The trace must outlive it and is not cleared by others meanwhile.
class Recorder {
 public:
  explicit Recorder(Trace& trace) : trace_(trace) {}

  /// Adds an instruction. An id that was never written is an input. A type that is given only where a value
  /// is read becomes the type of the value.
  OpIndex record(const Instruction& instruction);
  /// The same for an instruction whose results are listed in full: nothing is added for what it overwrites.
  OpIndex record(const Instruction& instruction, Effect effect, std::span<const Output> results);

  /// The value an id stands for now, or nothing if it was not mentioned.
  [[nodiscard]] std::optional<Operand> find(ValueId id) const;

 private:
  Operand read(const Input& input);

  Trace& trace_;
  std::unordered_map<ValueId, Operand> current_;
  Pattern pattern_;
  std::vector<Operand> operands_;
  std::vector<Output> outputs_;
  std::vector<Label> results_;
  std::vector<Pattern> result_patterns_;
};

}  // namespace tessera::stream
