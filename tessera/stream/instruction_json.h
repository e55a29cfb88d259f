// Reads instructions from JSON:
//
//   {"op": "matmul", "inputs": ["x", "w"], "output": "a", "attrs": {"axis": 0}}
//
// Also: `outputs` (several), `types` ({"x": "f32[2,N]"}: a name among the dimensions is a size symbol, the
// same one wherever it stands; a value has one type), numbers among `inputs`
// (parameters, whose values do not count), `effect`
// ("write", "random", "read") and `free` (values that die with the instruction).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/ir/op_facts.h"
#include "tessera/ir/parse.h"
#include "tessera/stream/instruction.h"
#include "tessera/stream/recent_map.h"

namespace tessera::stream {

/// An instruction that owns what it names.
struct OwnedInstruction {
  std::string op;
  ir::Attributes attributes;
  Effect effect = Effect::none;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<ValueId> frees;

  /// The op by its canonical name. A spelling that says so (`add_`) writes even where nothing was declared.
  void set_op(const ir::OpSpelling& spelling) {
    op = spelling.canonical;
    if (spelling.in_place && effect == Effect::none) effect = Effect::write;
  }
  /// Valid as long as this object is and does not change.
  [[nodiscard]] Instruction view() const {
    return {.op = op,
            .attributes = attributes.empty() ? nullptr : &attributes,
            .effect = effect,
            .inputs = inputs,
            .outputs = outputs,
            .frees = frees};
  }
};

/// A whole stream: what `tessera signature` reads.
struct StreamFile {
  std::vector<OwnedInstruction> instructions;
  bool has_live = false;
  std::vector<ValueId> live;
};

/// Gives names ids and types their symbols; all instructions of one stream go through one reader. Of a stream
/// without an end, names that were not mentioned for a long time are forgotten: then they name another value.
class InstructionReader {
 public:
  /// `facts` say what spellings of ops mean, and live as long as the reader.
  explicit InstructionReader(const ir::OpFacts& facts) : facts_(facts) {}

  /// One instruction of a stream that may go round and round: where a slot that read a value from outside
  /// first reads that id again with another type, the id is another value from then on. Errors have line,
  /// column and what was expected.
  [[nodiscard]] Result<OwnedInstruction> instruction(const JsonCursor& json);
  /// {"stream": [instruction, …], "live": [name, …]}
  [[nodiscard]] Result<StreamFile> stream(const JsonCursor& json);

 private:
  using Types = std::unordered_map<std::string, ir::TypeRef>;

  [[nodiscard]] Result<ValueId> value(const JsonCursor& json);
  [[nodiscard]] Result<std::vector<ValueId>> values(const JsonCursor& json);
  [[nodiscard]] Result<std::vector<ValueId>> freed_values(const JsonCursor& json);
  [[nodiscard]] Result<ir::TypeRef> type(const JsonCursor& json);
  [[nodiscard]] Result<Types> types(const JsonCursor& instruction);
  [[nodiscard]] Result<void> read_inputs(const JsonCursor& json, Types& types, OwnedInstruction& out);
  [[nodiscard]] Result<void> read_outputs(const JsonCursor& json, Types& types, OwnedInstruction& out);
  [[nodiscard]] Result<void> agree_with_known(const JsonCursor& json, OwnedInstruction& out);
  [[nodiscard]] Result<void> agree_with_known(const JsonCursor& json, OwnedInstruction& out,
                                              std::size_t slot);
  [[nodiscard]] Result<void> check_types_used(const JsonCursor& json, const Types& types,
                                              const OwnedInstruction& out);

  const ir::OpFacts& facts_;
  /// Names that a stream may have, and mentions again: more than any unit is long.
  static constexpr std::size_t most_recent = std::size_t{1} << 16;
  RecentMap<std::string, ValueId> ids_{most_recent};
  RecentMap<std::string, ir::TypeRef> types_{most_recent};  // by text
  /// What was said of a value: its type and, if it came from outside, which slot of which op said so first.
  struct Known {
    ir::TypeRef type;
    std::string op;  ///< empty if the value was made in the stream
    std::size_t slot = 0;
  };
  RecentMap<ValueId, Known> known_{most_recent};
  ValueId next_id_ = 0;
  bool is_one_piece_ = false;  ///< what comes from outside is there once, not anew in each round
  ir::FreeVariables symbols_;
};

/// The value of an attribute: a boolean, a number, a text, or a list of numbers or of texts.
[[nodiscard]] Result<ir::AttributeValue> attribute_from_json(const JsonCursor& json);

}  // namespace tessera::stream
