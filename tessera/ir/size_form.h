// A size without the order in which its symbols happen to stand: nested sums of products.
//
// An expression is written in some order, and people name symbols as they like; `A * B + A` and `Z * B + Z`
// are one size when A is Z. Comparing, hashing and encoding sizes goes through this form, so that the answer
// is the same for every naming. Sums and products of i64, min and max take their operands in no order;
// everything else keeps the order it is written in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/ir/expr.h"

namespace tessera::ir {

/// Immutable. Holds pointers to the variables, not the variables.
class SizeForm {
 public:
  /// Linear in the distinct nodes below, but for products of sums. Nothing where a part is no scalar
  /// expression, a call for example: such an expression means what is written.
  static std::optional<SizeForm> of(const Expr& root);

  /// The symbols, each once, in an order that says nothing.
  [[nodiscard]] std::span<const Var* const> symbols() const { return symbols_; }

  /// A hash that depends on the colours of the symbols (in the order of symbols()) and on nothing else about
  /// them.
  [[nodiscard]] Hash128 hash(std::span<const Hash128> colours) const;
  /// For each symbol, where it stands in the form, given the colours of all: symbols that may be exchanged
  /// get the same hash.
  [[nodiscard]] std::vector<Hash128> contexts(std::span<const Hash128> colours) const;
  /// The form written out with a label for each symbol. Two forms are equal under their labels exactly when
  /// their words are. REQUIRES different labels for different symbols.
  [[nodiscard]] std::vector<std::uint64_t> words(std::span<const std::uint64_t> labels) const;

  /// What hash() takes for a symbol that is known by a label.
  static Hash128 colour_of(std::uint64_t label) { return Hasher(0x1abe1).add(label).finish(); }
  /// How many words there are, whatever the labels.
  [[nodiscard]] std::size_t word_count() const {
    return 3 * parts_.size() + 2 * terms_.size() + links_.size();
  }
  /// How much work hash() and contexts() are.
  [[nodiscard]] std::size_t weight() const { return parts_.size() + links_.size(); }

 private:
  friend class SizeFormBuilder;

  enum class PartKind : std::uint8_t { symbol, constant, operation, sum };
  /// A sum has terms, each with factors; an operation has one term, its operands.
  struct Term {
    std::uint64_t coefficient = 1;
    std::uint32_t first_link = 0;
    std::uint32_t link_count = 0;
  };
  struct Part {
    PartKind kind = PartKind::symbol;
    bool in_order = false;   ///< of an operation: its operands have an order
    std::uint64_t head = 0;  ///< the number of the symbol; kind and dtype of the constant; the opcode
    std::uint64_t bits = 0;  ///< of a constant
    std::uint32_t first_term = 0;
    std::uint32_t term_count = 0;
  };
  struct Hashes {
    std::vector<Hash128> parts;
    std::vector<Hash128> terms;
  };

  [[nodiscard]] std::span<const std::uint32_t> links(const Term& term) const {
    return {links_.data() + term.first_link, term.link_count};
  }
  [[nodiscard]] std::span<const Term> terms(const Part& part) const {
    return {terms_.data() + part.first_term, part.term_count};
  }
  [[nodiscard]] Hashes hashes(std::span<const Hash128> colours) const;

  std::vector<const Var*> symbols_;
  std::vector<Part> parts_;  ///< what a part consists of comes before it; the last is the whole
  std::vector<Term> terms_;
  std::vector<std::uint32_t> links_;
};

/// Whether two sizes over the same variables are equal, in whatever order they are written.
[[nodiscard]] bool same_size(const Expr& a, const Expr& b);

}  // namespace tessera::ir
