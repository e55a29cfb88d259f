// A graph description run in the order of its listing, one node after another, by docs/describe.md alone:
// what schedules, groups, plans and patches must agree with. All elements are i64.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tessera/describe/description.h"

namespace tessera::differential {

using Words = std::vector<std::int64_t>;
using Contents = std::map<std::string, Words>;

/// A pin as the kernels of random descriptions see it.
struct MixedPin {
  description::Access access = description::Access::read;
  std::span<std::int64_t> words;
  std::function<void(std::int64_t)> append = {};
};

/// What a kernel with this salt computes: all that it writes depends on all that it reads, and on their
/// order.
void mix(std::int64_t salt, std::int64_t number, std::span<const MixedPin> pins);
/// One less, and not less than 0.
void count_down(std::span<std::int64_t> words);

/// The buffer of a pin: by its name, by an edge, or one of its own.
[[nodiscard]] std::string buffer_behind(const description::Description& description,
                                        const description::Node& node,
                                        const description::Parameter& parameter);

/// REQUIRES that the listing has an order that the rules of descriptions allow.
class ListedRun {
 public:
  /// `salts` are by the name of the kernel or capture.
  ListedRun(const description::Description& description, const std::map<std::string, std::int64_t>& salts,
            Contents& contents);

  void launch();
  /// Rows that an append buffer was asked for in the last launch.
  [[nodiscard]] std::uint64_t asked(const std::string& buffer) const { return asked_.at(buffer); }

 private:
  /// A node, or a region, of a scope.
  struct Item {
    const description::Node* node = nullptr;
    const description::Region* region = nullptr;
  };
  /// What something does with a buffer, seen from outside.
  struct Effect {
    bool takes_old = false;  ///< reads, updates or appends to what was there before
    bool writes = false;
  };
  using Effects = std::map<std::string, Effect>;

  [[nodiscard]] std::vector<Item> items_of(const description::Within& scope) const;
  [[nodiscard]] std::size_t first_node(const description::Region& region) const;
  [[nodiscard]] bool is_appended(const std::string& buffer) const;
  [[nodiscard]] Effects effects_of(const description::Node& node) const;
  [[nodiscard]] Effects effects_of(const description::Region& region) const;
  void run_scope(const description::Within& scope);
  void run_region(const description::Region& region);
  void run_node(const description::Node& node);
  void run_op(const description::Node& node);

  const description::Description& description_;
  const std::map<std::string, std::int64_t>& salts_;
  Contents& contents_;
  std::map<std::string, std::uint64_t> asked_;
};

}  // namespace tessera::differential
