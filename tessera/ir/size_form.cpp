#include "tessera/ir/size_form.h"

#include <algorithm>
#include <bit>
#include <map>

#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/size_algebra.h"
#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

// A product that would be larger stays a product.
constexpr std::size_t most_terms = 4096;
constexpr std::size_t most_factors = 256;

enum : std::uint64_t { mark_constant = 0x512e0001, mark_operation, mark_sum, mark_term, mark_root };

using PartId = std::uint32_t;

struct Product {
  std::uint64_t coefficient = 1;   // wraps
  SmallVector<PartId, 2> factors;  // ascending
};

bool factors_less(const Product& a, const Product& b) {
  return std::lexicographical_compare(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end());
}
bool same_factors(const Product& a, const Product& b) {
  return std::equal(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end());
}

/// A sum that is put in order only now and then, so that a long chain of additions is not quadratic.
struct Polynomial {
  std::vector<Product> products;
  std::size_t settled = 0;  ///< how many there were when it was last put in order

  void settle() {
    std::sort(products.begin(), products.end(), factors_less);
    std::vector<Product> joined;
    for (Product& product : products) {
      if (!joined.empty() && same_factors(joined.back(), product))
        joined.back().coefficient += product.coefficient;
      else
        joined.push_back(std::move(product));
    }
    std::erase_if(joined, [](const Product& product) { return product.coefficient == 0; });
    products = std::move(joined);
    settled = products.size();
  }
  void add(const Polynomial& other, std::uint64_t factor) {
    for (const Product& product : other.products)
      products.push_back({product.coefficient * factor, product.factors});
    if (products.size() > 2 * settled + 64) settle();
  }
};

std::optional<Polynomial> multiply(Polynomial a, Polynomial b) {
  a.settle();
  b.settle();
  if (a.products.size() * b.products.size() > most_terms) return std::nullopt;
  Polynomial out;
  for (const Product& x : a.products)
    for (const Product& y : b.products) {
      if (x.factors.size() + y.factors.size() > most_factors) return std::nullopt;
      Product product{x.coefficient * y.coefficient, x.factors};
      for (const PartId factor : y.factors) product.factors.push_back(factor);
      std::sort(product.factors.begin(), product.factors.end());
      out.products.push_back(std::move(product));
    }
  return out;
}

bool is_constant_node(const Expr& expr) {
  return is<IntConst>(expr) || is<FloatConst>(expr) || is<BoolConst>(expr) || is<Param>(expr);
}

Hash128 sum_of(const Hash128& a, const Hash128& b) { return {a.high + b.high, a.low + b.low}; }

}  // namespace

namespace tessera::ir {

class SizeFormBuilder {
 public:
  std::optional<SizeForm> build(const Expr& root) {
    std::vector<const Expr*> stack{&root};
    while (!stack.empty()) {
      const Expr& expr = *stack.back();
      if (done_.find(expr) != nullptr) {
        stack.pop_back();
        continue;
      }
      const auto* op = as<ScalarOp>(expr);
      if (op == nullptr && !is<Var>(expr) && !is_constant_node(expr)) return std::nullopt;
      const std::size_t before = stack.size();
      if (op != nullptr)
        for (const ExprRef& operand : op->operands)
          if (done_.find(*operand) == nullptr) stack.push_back(operand.get());
      if (stack.size() > before) continue;
      stack.pop_back();
      Polynomial value = value_of(expr);
      done_[expr] = std::move(value);
    }
    const PartId whole = sum_part(take(root));
    if (whole + 1 == form_.parts_.size() && everything_counts()) return std::move(form_);
    return reachable_from(whole);
  }

 private:
  using Part = SizeForm::Part;
  using PartKind = SizeForm::PartKind;

  Polynomial value_of(const Expr& expr) {
    if (const auto* op = as<ScalarOp>(expr)) return operation(*op);
    if (const auto* constant = as<IntConst>(expr); constant != nullptr && constant->dtype == Dtype::i64) {
      Polynomial out;
      if (constant->value != 0) out.products.push_back({static_cast<std::uint64_t>(constant->value), {}});
      return out;
    }
    return atom(leaf_part(expr));
  }

  static Polynomial atom(PartId part) {
    Polynomial out;
    out.products.push_back({1, {part}});
    return out;
  }

  /// The value of an operand. Moved if nobody else can ask for it.
  Polynomial take(const Expr& expr) {
    Polynomial& value = *done_.find(expr);
    if (expr.maybe_shared()) return value;
    return std::move(value);
  }

  Polynomial operation(const ScalarOp& op) {
    if (!is_size_operation(op)) return atom(operation_part(op, true));
    // The order of evaluation is left to right, and one node may be both operands: then it is shared.
    if (op.opcode == ScalarOpcode::add || op.opcode == ScalarOpcode::sub) {
      Polynomial out = take(*op.operands[0]);
      const std::uint64_t sign = op.opcode == ScalarOpcode::add ? 1 : ~std::uint64_t{0};
      out.add(take(*op.operands[1]), sign);
      return out;
    }
    if (op.opcode == ScalarOpcode::mul)
      if (auto product = multiply(*done_.find(*op.operands[0]), *done_.find(*op.operands[1])))
        return *std::move(product);
    return atom(operation_part(op, !info(op.opcode).commutative));
  }

  PartId leaf_part(const Expr& expr) {
    if (const auto* var = as<Var>(expr)) {
      const auto symbol = static_cast<std::uint64_t>(form_.symbols_.size());
      form_.symbols_.push_back(var);  // each expression is seen once
      return add_part({.kind = PartKind::symbol, .head = symbol}, {});
    }
    const std::uint64_t kind = static_cast<std::uint64_t>(expr.kind()) << 8;
    const std::uint64_t head = kind | static_cast<std::uint64_t>(*scalar_dtype(expr));
    return add_part({.kind = PartKind::constant, .head = head, .bits = bits_of(expr)}, {});
  }

  static std::uint64_t bits_of(const Expr& expr) {
    if (const auto* constant = as<IntConst>(expr)) return static_cast<std::uint64_t>(constant->value);
    if (const auto* constant = as<FloatConst>(expr)) return std::bit_cast<std::uint64_t>(constant->value);
    if (const auto* constant = as<BoolConst>(expr)) return constant->value ? 1 : 0;
    return static_cast<const Param&>(expr).slot;
  }

  PartId operation_part(const ScalarOp& op, bool in_order) {
    Product operands;
    for (const ExprRef& operand : op.operands) operands.factors.push_back(sum_part(*done_.find(*operand)));
    if (!in_order) std::sort(operands.factors.begin(), operands.factors.end());
    const std::uint64_t head =
        static_cast<std::uint64_t>(op.opcode) << 8 | static_cast<std::uint64_t>(op.dtype);
    return add_part({.kind = PartKind::operation, .in_order = in_order, .head = head}, {&operands, 1});
  }

  PartId sum_part(Polynomial value) {
    value.settle();
    return add_part({.kind = PartKind::sum}, value.products);
  }

  /// A part, the same number for the same content.
  PartId add_part(Part part, std::span<const Product> terms) {
    std::vector<std::uint64_t> key{static_cast<std::uint64_t>(part.kind) << 1 | (part.in_order ? 1U : 0U),
                                   part.head, part.bits};
    for (const Product& term : terms) {
      key.push_back(term.coefficient);
      key.push_back(term.factors.size());
      key.insert(key.end(), term.factors.begin(), term.factors.end());
    }
    const auto [at, is_new] = part_of_.try_emplace(std::move(key), static_cast<PartId>(form_.parts_.size()));
    if (is_new) append_part(part, terms);
    return at->second;
  }

  void append_part(Part part, std::span<const Product> terms) {
    part.first_term = static_cast<std::uint32_t>(form_.terms_.size());
    part.term_count = static_cast<std::uint32_t>(terms.size());
    for (const Product& term : terms) {
      form_.terms_.push_back({term.coefficient, static_cast<std::uint32_t>(form_.links_.size()),
                              static_cast<std::uint32_t>(term.factors.size())});
      form_.links_.insert(form_.links_.end(), term.factors.begin(), term.factors.end());
    }
    form_.parts_.push_back(part);
  }

  [[nodiscard]] std::vector<bool> parts_below(PartId whole) const {
    std::vector<bool> counts(form_.parts_.size(), false);
    counts[whole] = true;
    for (std::size_t i = whole + 1; i-- > 0;)
      for (const SizeForm::Term& term : form_.terms(form_.parts_[i]))
        for (const PartId link : form_.links(term)) counts[link] = counts[link] || counts[i];
    return counts;
  }

  [[nodiscard]] bool everything_counts() const {
    const std::vector<bool> counts = parts_below(static_cast<PartId>(form_.parts_.size() - 1));
    return std::find(counts.begin(), counts.end(), false) == counts.end();
  }

  /// The form without what has cancelled: the `A` of `A - A + B` does not count.
  [[nodiscard]] SizeForm reachable_from(PartId whole) const {
    const std::vector<bool> counts = parts_below(whole);
    SizeForm out;
    std::vector<PartId> moved_to(form_.parts_.size());
    for (PartId id = 0; id <= whole; ++id) {
      if (!counts[id]) continue;
      moved_to[id] = static_cast<PartId>(out.parts_.size());
      Part part = form_.parts_[id];
      const auto terms = form_.terms(part);
      part.first_term = static_cast<std::uint32_t>(out.terms_.size());
      for (SizeForm::Term term : terms) {
        const auto links = form_.links(term);
        term.first_link = static_cast<std::uint32_t>(out.links_.size());
        for (const PartId link : links) out.links_.push_back(moved_to[link]);
        out.terms_.push_back(term);
      }
      if (part.kind == PartKind::symbol) {
        out.symbols_.push_back(form_.symbols_[part.head]);
        part.head = out.symbols_.size() - 1;
      }
      out.parts_.push_back(part);
    }
    return out;
  }

  SizeForm form_;
  NodeTable<Polynomial> done_;
  std::map<std::vector<std::uint64_t>, PartId> part_of_;
};

}  // namespace tessera::ir

std::optional<SizeForm> SizeForm::of(const Expr& root) { return SizeFormBuilder().build(root); }

SizeForm::Hashes SizeForm::hashes(std::span<const Hash128> colours) const {
  Hashes out;
  out.terms.resize(terms_.size());
  std::vector<Hash128> sorted;
  for (const Part& part : parts_) {
    for (std::uint32_t i = part.first_term; i < part.first_term + part.term_count; ++i) {
      sorted.clear();
      for (const std::uint32_t link : links(terms_[i])) sorted.push_back(out.parts[link]);
      if (!part.in_order) std::sort(sorted.begin(), sorted.end());
      Hasher hasher(mark_term);
      hasher.add(terms_[i].coefficient).add(sorted.size());
      for (const Hash128& hash : sorted) hasher.add(hash);
      out.terms[i] = hasher.finish();
    }
    if (part.kind == PartKind::symbol) {
      out.parts.push_back(colours[part.head]);
    } else if (part.kind == PartKind::constant) {
      out.parts.push_back(Hasher(mark_constant).add(part.head).add(part.bits).finish());
    } else {
      const auto first = out.terms.begin() + part.first_term;
      sorted.assign(first, first + part.term_count);
      std::sort(sorted.begin(), sorted.end());
      Hasher hasher(part.kind == PartKind::sum ? mark_sum : mark_operation);
      hasher.add(part.head).add(sorted.size());
      for (const Hash128& hash : sorted) hasher.add(hash);
      out.parts.push_back(hasher.finish());
    }
  }
  return out;
}

Hash128 SizeForm::hash(std::span<const Hash128> colours) const { return hashes(colours).parts.back(); }

std::vector<Hash128> SizeForm::contexts(std::span<const Hash128> colours) const {
  const Hashes known = hashes(colours);
  std::vector<Hash128> around(parts_.size());
  around.back() = Hasher(mark_root).finish();
  std::vector<Hash128> out(symbols_.size());
  for (std::size_t i = parts_.size(); i-- > 0;) {
    const Part& part = parts_[i];
    if (part.kind == PartKind::symbol) out[part.head] = around[i];
    for (const Term& term : terms(part)) {
      const Hash128& whole = known.terms[static_cast<std::size_t>(&term - terms_.data())];
      std::uint64_t place = 0;
      for (const std::uint32_t link : links(term)) {
        place += part.in_order ? 1 : 0;
        Hasher hasher(mark_term);
        hasher.add(around[i]).add(known.parts[i]).add(whole).add(place);
        around[link] = sum_of(around[link], hasher.finish());
      }
    }
  }
  return out;
}

std::vector<std::uint64_t> SizeForm::words(std::span<const std::uint64_t> labels) const {
  std::vector<Hash128> colours;
  for (const std::uint64_t label : labels) colours.push_back(colour_of(label));
  const Hashes known = hashes(colours);
  // Parts are numbered in the order they are met from the whole downwards, terms and factors by their hashes:
  // nothing is left of the order in which the form was built.
  constexpr std::uint32_t unmet = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(parts_.size(), unmet);
  std::vector<PartId> order{static_cast<PartId>(parts_.size() - 1)};
  std::vector<std::uint64_t> out;
  std::vector<std::uint32_t> sorted_terms, sorted_links;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Part& part = parts_[order[i]];
    out.push_back(static_cast<std::uint64_t>(part.kind) << 1 | (part.in_order ? 1U : 0U));
    out.push_back(part.kind == PartKind::symbol ? labels[part.head] : part.head);
    out.push_back(part.kind == PartKind::constant ? part.bits : part.term_count);
    sorted_terms.clear();
    for (std::uint32_t t = 0; t < part.term_count; ++t) sorted_terms.push_back(part.first_term + t);
    std::sort(sorted_terms.begin(), sorted_terms.end(),
              [&](std::uint32_t a, std::uint32_t b) { return known.terms[a] < known.terms[b]; });
    for (const std::uint32_t t : sorted_terms) {
      const auto all = links(terms_[t]);
      sorted_links.assign(all.begin(), all.end());
      if (!part.in_order)
        std::sort(sorted_links.begin(), sorted_links.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return known.parts[a] < known.parts[b]; });
      out.push_back(terms_[t].coefficient);
      out.push_back(sorted_links.size());
      for (const std::uint32_t link : sorted_links) {
        if (number[link] == unmet) {
          number[link] = static_cast<std::uint32_t>(order.size());
          order.push_back(link);
        }
        out.push_back(number[link]);
      }
    }
  }
  return out;
}

namespace {

/// Whether two sizes are written alike, which most equal ones are. No answer below a depth that few have.
bool are_written_alike(const Expr& a, const Expr& b, int depth = 16) {
  if (&a == &b) return true;
  if (const auto* x = as<IntConst>(a), *y = as<IntConst>(b); x != nullptr && y != nullptr)
    return x->dtype == y->dtype && x->value == y->value;
  const auto *x = as<ScalarOp>(a), *y = as<ScalarOp>(b);
  if (x == nullptr || y == nullptr || depth == 0 || x->opcode != y->opcode || x->dtype != y->dtype ||
      x->operands.size() != y->operands.size())
    return false;
  for (std::size_t i = 0; i < x->operands.size(); ++i)
    if (!are_written_alike(*x->operands[i], *y->operands[i], depth - 1)) return false;
  return true;
}

/// Whether two sizes are other numbers for some numbers of their symbols: then their forms are not the same.
/// False also where numbers get too large.
bool differ_for_example(const Expr& a, const Expr& b) {
  const auto example = [](const Var& symbol) -> std::optional<std::int64_t> {
    constexpr std::uintptr_t least = 1000, most_beyond = 100'003;
    return static_cast<std::int64_t>(least + reinterpret_cast<std::uintptr_t>(&symbol) % most_beyond);
  };
  const auto x = evaluate_small(a, example), y = evaluate_small(b, example);
  return x && y && *x != *y;
}

}  // namespace

bool tessera::ir::same_size(const Expr& a, const Expr& b) {
  if (are_written_alike(a, b)) return true;
  if (is<Var>(a) || is<Var>(b)) return false;
  if (differ_for_example(a, b)) return false;
  const auto x = SizeForm::of(a), y = SizeForm::of(b);
  if (!x || !y) return structural_equal(a, b, CompareMode::strict);
  const auto words = [](const SizeForm& form) {
    std::vector<std::uint64_t> labels;
    for (const Var* var : form.symbols()) labels.push_back(reinterpret_cast<std::uintptr_t>(var));
    return form.words(labels);
  };
  return x->symbols().size() == y->symbols().size() && words(*x) == words(*y);
}
