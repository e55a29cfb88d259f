// In which order the items of a scope use one buffer, and what waits follow from it.
//
// Items use a buffer in program order (program_order.h), except that
//   - what reads a buffer comes after the first item that defines it, and after all that append to it (a loop
//     that writes it without looking is no reader),
//   - what an edge brings to a reader is read before another item updates it in place,
// unless edges and dependencies say otherwise. A listing can then have its nodes in any order.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/describe/reach.h"
#include "tessera/describe/schedule.h"
#include "tessera/describe/uses.h"

namespace tessera::description {

/// An item, by its number in the scope, and its use of the buffer at hand.
struct ItemUse {
  std::uint32_t item = 0;
  Use use;
};

/// Sorts the uses of one buffer, given in program order, as said above. Calls `twice` with items that update
/// in place a value that another has updated already.
void sort_uses(std::vector<ItemUse>& uses, Reach& reach,
               const std::function<void(std::uint32_t item)>& twice);

/// What all uses of one buffer are together, in the order they use it.
[[nodiscard]] Use whole_use(const Graph& graph, std::span<const ItemUse> uses);

/// A use that looks at a buffer before anything has defined it.
struct EarlyLook {
  std::uint32_t item = 0;
  bool may_be_written = false;  ///< by something that need not have run
};
/// The first one, of uses in the order they use the buffer.
[[nodiscard]] std::optional<EarlyLook> find_early_look(std::span<const ItemUse> uses);

/// Adds the waits between the items that use a buffer, in the order they use it.
class WaitMaker {
 public:
  using Add = std::function<void(std::uint32_t before, std::uint32_t after, Cause cause)>;
  explicit WaitMaker(Add add) : add_(std::move(add)) {}

  void use(std::uint32_t item, const Use& use);

 private:
  void wait_for_readers(std::uint32_t item);

  Add add_;
  std::uint32_t writer_ = no_index;
  std::vector<std::uint32_t> readers_;  // since the last write
};

}  // namespace tessera::description
