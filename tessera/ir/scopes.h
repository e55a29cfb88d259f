// What a variable means while a graph is walked in the order of its fields: bound by the function around it,
// or free. Shared by structural equality and hash, so that the two cannot disagree.
//
// A function is closed: inside it, only its own definitions are bound. A variable bound outside is free
// within. The latest definition counts, and definitions are numbered from 0 in each function.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/ir/expr.h"
#include "tessera/ir/node_table.h"

namespace tessera::ir {

/// Which kinds of variables occur below a node: says where a cached answer for it is valid.
struct VariableUse {
  bool bound = false;
  bool free = false;

  void add(VariableUse other) {
    bound = bound || other.bound;
    free = free || other.free;
  }
};

class Scopes {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// The index of a free variable that was used and is not numbered yet.
  static constexpr std::uint32_t open_index = none - 1;

  /// Enters and leaves a function.
  void open();
  void close();

  /// Defines `var` in the innermost function.
  void bind(const Var& var);

  /// The number of the definition of `var` in the innermost function, or `none` if it is free there.
  [[nodiscard]] std::uint32_t bound_index(const Var& var) {
    const Meaning* meaning = meanings_.find(var);
    return meaning != nullptr && meaning->scope == current_ ? meaning->index : none;
  }
  /// The number given to a free variable, or `none`.
  [[nodiscard]] std::uint32_t free_index(const Var& var) {
    const Meaning* meaning = meanings_.find(var);
    return meaning == nullptr || meaning->free_index == open_index ? none : meaning->free_index;
  }
  /// Numbers a free variable. A later definition of it makes cached answers out of date.
  void set_free(const Var& var, std::uint32_t index) { meanings_[var].free_index = index; }

  /// Where and when something was computed; `valid` says whether it still holds here.
  struct Stamp {
    std::uint32_t scope : 30;
    std::uint32_t bound : 1;
    std::uint32_t free : 1;
    std::uint32_t epoch;

    [[nodiscard]] VariableUse use() const { return {bound != 0, free != 0}; }
  };
  [[nodiscard]] Stamp stamp(VariableUse use) const { return {current_, use.bound, use.free, epoch_}; }
  [[nodiscard]] bool valid(const Stamp& stamp) const {
    if (stamp.bound != 0 && stamp.scope != current_) return false;
    return (stamp.bound == 0 && stamp.free == 0) || stamp.epoch == epoch_;
  }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

 private:
  struct Meaning {
    std::uint32_t scope = 0;  ///< the function that binds it, 0 if none does
    std::uint32_t index = 0;
    std::uint32_t free_index = none;
  };
  struct Open {
    std::uint32_t id;
    std::uint32_t next_index;
    std::size_t undo_size;
  };
  struct Undo {
    const Var* var;
    std::uint32_t scope;
    std::uint32_t index;
    bool shadows;
  };

  NodeTable<Meaning> meanings_;
  std::vector<Open> open_{{1, 0, 0}};
  std::vector<Undo> undo_;
  std::uint32_t current_ = 1;
  std::uint32_t next_scope_ = 2;
  /// Grows whenever a variable that was already used changes its meaning.
  std::uint32_t epoch_ = 0;
};

}  // namespace tessera::ir
