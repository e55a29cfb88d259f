// Numbers for what an instruction is apart from the values it names: canonical op, attributes, effect, types,
// which slots are parameters. Equal number means equal in all of that; bounded, so that a stream of ever new
// ops does not fill the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/stream/instruction.h"
#include "tessera/stream/pattern.h"

namespace tessera::stream {

using OpId = std::uint32_t;

/// What an OpId stands for, enough to write the instruction down again.
struct OpKind {
  OpId id = 0;
  std::string op;
  ir::Attributes attributes;
  Effect effect = Effect::none;
  std::vector<Input> inputs;         ///< their ids mean nothing
  std::vector<ir::TypeRef> results;  ///< one more than the outputs if an input is overwritten
};
using OpKindRef = std::shared_ptr<const OpKind>;

/// An instruction as OpTable knows it.
struct InternedOp {
  OpId id = 0;
  Effect effect = Effect::none;
  bool overwrites_input = false;  ///< overwritten_input() of the instruction is not null
};

/// Not thread-safe.
class OpTable {
 public:
  explicit OpTable(std::size_t capacity) : capacity_(capacity) {}

  InternedOp intern(const Instruction& instruction);
  /// Null if the table has forgotten it.
  [[nodiscard]] OpKindRef find(OpId id) const;

  /// When there are more than `capacity`, all but those for which `is_used` holds are forgotten. A forgotten
  /// op that comes again gets a new number.
  void shrink(const std::function<bool(OpId)>& is_used);
  [[nodiscard]] bool is_full() const { return by_spelling_.size() > capacity_ || kinds_.size() > capacity_; }
  [[nodiscard]] std::size_t size() const { return kinds_.size(); }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
  };
  /// Types are known by address here, so they are held.
  struct Spelling {
    InternedOp op;
    std::vector<ir::TypeRef> held;
  };

  void spell(const Instruction& instruction);
  InternedOp intern_spelled(const Instruction& instruction);
  void write_canonical(const OpKind& kind);

  std::size_t capacity_;
  OpId next_ = 1;
  std::string spelled_;
  Pattern canonical_;
  Pattern attributes_;
  std::unordered_map<std::string, Spelling, TextHash, std::equal_to<>> by_spelling_;
  std::unordered_map<std::string, OpId, TextHash, std::equal_to<>> by_content_;
  std::unordered_map<OpId, OpKindRef> kinds_;
};

}  // namespace tessera::stream
