// The calls a builder has written, found by op, inputs and attributes: what is asked for twice is written
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/op/builder.h"

namespace tessera::op {

/// One builder's values only. Random ops are never found.
class WrittenCalls {
 public:
  /// The result of an equal call, or an empty Value. Attributes are complete; floats compare by bits.
  [[nodiscard]] Value find(const Card& card, std::span<const Value> inputs,
                           const Attributes& attributes) const;
  /// A call with one result. `attributes` must live as long as this.
  void add(const Card& card, std::span<const Value> inputs, const Attributes& attributes, Value result);
  [[nodiscard]] std::size_t size() const { return calls_.size(); }

 private:
  struct Call {
    const Card* card;
    SmallVector<std::uint32_t, 4> inputs;
    const Attributes* attributes;
    Value result;
    std::uint64_t hash;
  };

  void grow();

  std::vector<Call> calls_;
  std::vector<std::uint32_t> places_;  ///< by hash, then the next free one: 0, or a call's number plus one
};

}  // namespace tessera::op
