// Which sizes of a plan are numbers and which may change: learned from instances.
//
// Every position of a key's sizes gets a rule: a number, a symbol, or a multiple of a symbol and a number
// more
// (`d5 = 128*d1`). Positions that always were the same number stay numbers. Of those that differ, the first
// ones are symbols; one that was always equal to another, or in the same proportion, follows it. A wrong
// guess costs a miss, never a result: a plan is used only if every rule holds.
//
// Behind the sizes stand positions: where slices begin. One that differs moves: any number will do, and a
// plan takes it with each launch; it is a symbol only if it always is a multiple of one that a size needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::engine {

/// The size is `factor * symbol + number`; without a symbol it is `number`.
struct SizeRule {
  static constexpr std::uint32_t no_symbol = 0xffffffff, moves = 0xfffffffe;
  std::uint32_t symbol = no_symbol;
  std::int64_t factor = 0;
  std::int64_t number = 0;

  bool operator==(const SizeRule&) const = default;
  [[nodiscard]] bool is_constant() const { return symbol == no_symbol; }
  /// A position that is any number.
  [[nodiscard]] bool is_moving() const { return symbol == moves; }
};

class SizeRules {
 public:
  /// A symbol is at least this: 0 and 1 mean other things to broadcasting.
  static constexpr std::int64_t least = 2;

  /// The rules that all instances follow; the last `positions` numbers of each are positions. Nothing if
  /// there are none, since one has a size below `least` where others differ. REQUIRES at least one instance,
  /// all of one length.
  static std::optional<SizeRules> learn(std::span<const std::vector<std::int64_t>> instances,
                                        std::size_t positions = 0);

  /// Says of a number, by its place among all, that it may be any.
  void let_move(std::size_t i) { rules_[i] = {SizeRule::moves, 0, 0}; }

  [[nodiscard]] std::span<const SizeRule> rules() const { return rules_; }
  [[nodiscard]] std::size_t symbol_count() const { return defined_at_.size(); }

  /// What each number would be by the rules, for the symbols that `sizes` gives; a symbol that is too small,
  /// and what moves, are as they are. REQUIRES as many sizes as there are rules.
  [[nodiscard]] std::vector<std::int64_t> expected(std::span<const std::int64_t> sizes) const;

  /// The values of the symbols, if `sizes` follow the rules. `symbols` keeps its memory.
  [[nodiscard]] bool match(std::span<const std::int64_t> sizes, std::vector<std::int64_t>& symbols) const;

 private:
  std::vector<SizeRule> rules_;
  std::vector<std::uint32_t> defined_at_;  ///< by symbol: the position that is it
};

/// "64", "d0", "128*d0", "2*d1+1", "moves"
[[nodiscard]] std::string to_text(const SizeRule& rule);

}  // namespace tessera::engine
