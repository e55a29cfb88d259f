// Names for the text form: unique where they are used, unchanged where they can be.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/ir/expr.h"
#include "tessera/ir/node_table.h"

namespace tessera::ir {

/// A set of names, each with where it was used last. Open addressing over a table of hashes, which is small:
/// printing is mostly asking it.
class NameSet {
 public:
  struct Use {
    std::string_view name;
    std::uint32_t scope = 0;  ///< the function that uses it; 0 once that is closed
    bool free = false;        ///< the name of a free variable
  };
  /// The use of `name`, or null. Valid until the next insertion.
  [[nodiscard]] Use* find(std::string_view name);
  /// The use of `name`, made if there is none, and whether it was made. Valid until the next insertion.
  std::pair<Use&, bool> obtain(std::string_view name);

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t use = 0;  ///< one past the place in uses_, 0 if there is none
  };
  [[nodiscard]] std::size_t position(std::string_view name, std::uint32_t hash) const;

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::vector<Use> uses_;
};

/// For each name without its number, the numbers that were found taken, as runs: who looks for a free one
/// passes them in one step. Nothing that is taken may become free again.
class TakenNumbers {
 public:
  /// The first number from `first` on for which `is_taken(number)` does not hold.
  template <class IsTaken>
  [[nodiscard]] std::uint64_t first_free(std::string_view base, std::uint64_t first,
                                         const IsTaken& is_taken) {
    Runs& runs = by_base_.try_emplace(std::string(base)).first->second;
    std::uint64_t begin = first;
    if (auto after = runs.upper_bound(first); after != runs.begin())
      if (const auto run = std::prev(after); run->second >= first) begin = run->first, first = run->second;
    for (auto next = runs.lower_bound(first);;) {
      if (next != runs.end() && next->first == first) {
        first = next->second;
        next = runs.erase(next);
      } else if (is_taken(first)) {
        ++first;
      } else {
        break;
      }
    }
    if (first != begin) runs[begin] = first;
    return first;
  }

 private:
  using Runs = std::map<std::uint64_t, std::uint64_t>;  ///< begin to end; they neither overlap nor touch

  std::unordered_map<std::string, Runs> by_base_;  ///< only looked up
};

/// The name as it is written: as it stands, or in backquotes if it is no plain word.
void append_identifier(std::string& out, std::string_view name);

/// Gives each variable a name of its own within the function that defines it. A free variable's name is used
/// for nothing else anywhere.
class VariableNames {
 public:
  /// Enters and leaves a function.
  void open();
  void close();

  // All names are returned as they are written.

  /// Names a variable that is defined here.
  std::string_view define(const Var& var);
  /// The name of a variable that is used here; empty if it is a free variable met for the first time.
  [[nodiscard]] std::string_view use(const Var& var);
  /// Names a free variable.
  std::string_view declare_free(const Var& var);

 private:
  struct Entry {
    std::string_view written;  ///< as append_identifier writes it
    std::uint32_t scope = 0;
  };
  /// A function that is being written, and what it covers of the functions around it.
  struct Scope {
    std::uint32_t id;
    std::vector<std::pair<const Var*, Entry>> covered_variables;
    std::vector<NameSet::Use> covered_names;
    TakenNumbers numbers;
  };

  [[nodiscard]] bool taken(const NameSet::Use* use, bool everywhere) const;
  std::string_view unique(std::string_view wanted, bool everywhere);
  std::string_view assign(const Var& var, std::string_view name, NameSet::Use& use, bool is_new);
  std::string_view written(std::string_view name);

  NodeTable<Entry> entries_;
  NodeTable<std::string_view> free_;  ///< the names of free variables, as they are written
  NameSet names_;
  std::vector<Scope> scopes_ = std::vector<Scope>(1, Scope{1, {}, {}, {}});
  TakenNumbers numbers_everywhere_;
  std::uint32_t next_scope_ = 2;
  std::deque<std::string> made_;  ///< names that no variable owns; a deque, so that views stay valid
};

}  // namespace tessera::ir
