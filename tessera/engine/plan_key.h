// The key of a plan: what a component of an evaluation computes, as words. Two components have the same words
// exactly if one plan serves both, up to sizes, which stand beside them.
//
// In the words: ops, attributes, slots, which inputs are the same value, dtypes, ranks, which inputs are
// contiguous, what is kept, what was asked for in which order. In the sizes: dimensions, sizes among
// attributes, strides of inputs that are not contiguous; behind them the positions, where slices and updates
// of them begin. Not in it: names, lines, addresses, and the values of numbers, which are parameters. Cards
// stand by their addresses, traced functions by numbers of this process: the words are for finding plans here
// and now; stream/ has the encoding that holds across processes.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/engine/needed.h"
#include "tessera/op/families/parts.h"
#include "tessera/stream/buffer.h"

namespace tessera::engine {

/// Numbers for traced functions: the same structure, the same number. Not thread-safe.
class FunctionNumbers {
 public:
  std::uint32_t number(const ir::FunctionRef& function);

 private:
  static constexpr std::size_t capacity = 4096;
  struct Known {
    ir::FunctionRef function;
    std::uint32_t number = 0;
  };
  std::unordered_map<const ir::Function*, Known> by_address_;  ///< held, so that addresses stay theirs
  std::unordered_multimap<Hash128, Known> by_structure_;
  std::uint32_t next_ = 0;
};

/// What a call reads from outside.
struct KeyInput {
  const Node* node = nullptr;
  const Storage* storage = nullptr;
};

/// Keeps its memory from one component to the next.
struct PlanKey {
  stream::Buffer<std::uint32_t> words;
  stream::Buffer<std::int64_t> sizes;  ///< positions last
  std::size_t position_count = 0;      ///< as many for all with these words
  std::vector<KeyInput> inputs;
  stream::Buffer<std::uint64_t> parameters;
  std::uint64_t hash = 0;     ///< of the words
  bool plan_at_once = false;  ///< somebody wants the plan of one of its steps without waiting for heat

  /// The sizes without the positions: what layouts follow from.
  [[nodiscard]] std::span<const std::int64_t> extents() const {
    return {sizes.begin(), sizes.size() - position_count};
  }
  [[nodiscard]] std::span<const std::int64_t> positions() const {
    return {sizes.end() - position_count, position_count};
  }

  /// How many positions a step has.
  [[nodiscard]] static std::size_t positions_of(const Node& node);

  /// Of some steps, ascending; `steps` empty means all. `local` has, if there are several components, the
  /// place of each step in its own. False if the component is none a plan can serve. REQUIRES the engine's
  /// lock.
  [[nodiscard]] bool write(const Needed& needed, std::span<const std::uint32_t> steps,
                           std::span<const std::uint32_t> local, FunctionNumbers& functions);

 private:
  /// What a step is, in the lowest bits of its head.
  enum class Head : std::uint32_t { call, function, result };

  bool write_step(const Needed& needed, std::uint32_t step, std::span<const std::uint32_t> local,
                  FunctionNumbers& functions);
  bool write_uncommon(const Needed& needed, std::uint32_t step, std::span<const std::uint32_t> local,
                      FunctionNumbers& functions);
  void write_call(const Node& node, Head kind, std::uint64_t what, std::span<const std::uint32_t> from,
                  std::span<const std::uint32_t> local);
  std::uint32_t* write_input(Node* input, std::uint32_t* out);
  void write_sizes(const Node& node);
  void write_attributes(const Node& call);
  void write_positions(const Node& part, op::PartForm::Kind kind);
  void write_value(const ir::AttributeValue& value);
  void write_words(const void* data, std::size_t bytes);
  void write_type(const op::ValueType& type);
  void write_kept(const Needed& needed, std::span<const std::uint32_t> steps,
                  std::span<const std::uint32_t> local);

  stream::Buffer<std::int64_t> positions_;  ///< while it is written
};

}  // namespace tessera::engine
