#include "tessera/op/op_facts.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/check.h"
#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::op;
using ir::OpSpelling;

namespace {

/// What PyTorch has and the catalogue has not, or has otherwise.
struct OtherOp {
  std::string_view name, spellings = {};
  bool gives_views = false;
};
constexpr OtherOp other_ops[] = {
    {"F.batch_norm"},  // its inputs stand in another order than those of batch_norm
    {"adaptive_avg_pool",
     "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d adaptive_avg_pool1d adaptive_avg_pool2d "
     "adaptive_avg_pool3d"},
    {"adaptive_max_pool",
     "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d adaptive_max_pool1d adaptive_max_pool2d "
     "adaptive_max_pool3d"},
    {"chunk", "", true},
    {"dropout", "Dropout"},
    {"embedding", "Embedding"},
    {"flatten", "Flatten", true},
    {"getitem", "", true},
    {"linear", "Linear"},
    {"select", "", true},
    {"split", "", true},
    {"stack"},
    {"unbind", "", true},
};

/// A way to write a namespace, and the short form in which cards write it. The longest of several that fit
/// stands first.
struct Namespace {
  std::string_view prefix;
  std::string_view written;
};
constexpr Namespace namespaces[] = {
    {"torch.nn.functional.", "F."},
    {"torch._C._nn.", "F."},
    {"torch.nn.modules.", "nn."},  // followed by a file: torch.nn.modules.activation.ReLU
    {"torch.nn.", "nn."},
    {"torch.Tensor.", "Tensor."},
    {"torch.ops.aten.", "aten::"},
    {"torch.special.", "torch."},
    {"torch._C._special.", "torch."},
    {"torch.", "torch."},
    {"Tensor.", "Tensor."},
    {"aten::", "aten::"},
    {"aten.", "aten::"},
    {"onnx::", "onnx::"},
    {"ai.onnx.", "onnx::"},
    {"_operator.", "operator."},
    {"operator.", "operator."},
    {"F.", "F."},
    {"nn.", "nn."},
};

/// The name without what distinguishes it inside its namespace: a module's file, an overload.
std::string_view base_name(const Namespace& space, std::string_view rest) {
  const bool is_aten = space.written == "aten::";
  if (space.prefix == "torch.nn.modules.") return rest.substr(rest.rfind('.') + 1);
  return is_aten ? rest.substr(0, rest.find('.')) : rest;
}

class Spellings {
 public:
  Spellings() {
    for (const Card* card : all_cards()) add(card->name, {card->name, card->onnx.type, card->spellings});
    for (const OtherOp& other : other_ops) add(other.name, {other.name, other.spellings});
  }

  [[nodiscard]] std::optional<OpSpelling> find(std::string_view name) const {
    if (const auto found = find_form(name)) return found;
    for (const Namespace& space : namespaces) {
      if (!name.starts_with(space.prefix)) continue;
      const std::string_view base = base_name(space, name.substr(space.prefix.size()));
      if (const auto found = find_form(cat(space.written, base))) return found;
      if (const auto found = find_form(base)) return found;
      return space.written == "operator." ? find_overwriting(base) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  void add(std::string_view op, std::initializer_list<std::string_view> texts) {
    for (std::string_view text : texts)
      while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const auto [at, is_new] = means_.try_emplace(text.substr(0, end), op);
        TESSERA_CHECK(is_new || at->second == op,
                      cat("'", at->first, "' is a spelling of ", op, " and of ", at->second));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
  }

  [[nodiscard]] std::optional<OpSpelling> find_listed(std::string_view name) const {
    const auto at = means_.find(name);
    return at == means_.end() ? std::nullopt : std::optional(OpSpelling{at->second});
  }

  /// As it is listed, or a form of what is: `add_`, `__add__`, `__iadd__`, `__radd__`.
  [[nodiscard]] std::optional<OpSpelling> find_form(std::string_view name) const {
    if (const auto found = find_listed(name)) return found;
    if (name.size() > 4 && name.starts_with("__") && name.ends_with("__"))
      return find_method(name.substr(2, name.size() - 4));
    if (!name.ends_with("_") || name.ends_with("__")) return std::nullopt;
    return overwriting(find_listed(name.substr(0, name.size() - 1)));
  }

  [[nodiscard]] std::optional<OpSpelling> find_method(std::string_view name) const {
    if (const auto found = find_operator(name)) return found;
    if (const auto found = find_overwriting(name)) return found;
    const auto reflected = name.starts_with('r') ? find_operator(name.substr(1)) : std::nullopt;
    const Card* card = reflected ? find_card(reflected->canonical) : nullptr;
    return card != nullptr && card->traits.commutative ? reflected : std::nullopt;
  }

  /// What is a word of Python has an underscore behind it where it is a function: `and_`.
  [[nodiscard]] std::optional<OpSpelling> find_operator(std::string_view name) const {
    const auto found = find_listed(name);
    return found ? found : find_listed(cat(name, "_"));
  }
  [[nodiscard]] std::optional<OpSpelling> find_overwriting(std::string_view name) const {
    return name.starts_with('i') ? overwriting(find_operator(name.substr(1))) : std::nullopt;
  }
  static std::optional<OpSpelling> overwriting(std::optional<OpSpelling> of) {
    if (of) of->in_place = true;
    return of;
  }

  std::unordered_map<std::string_view, std::string_view> means_;
};

const OtherOp* find_other(std::string_view name) {
  const auto* at = std::find_if(std::begin(other_ops), std::end(other_ops),
                                [name](const OtherOp& other) { return other.name == name; });
  return at == std::end(other_ops) ? nullptr : at;
}

class CardFacts final : public ir::OpFacts {
 public:
  [[nodiscard]] bool has(std::string_view op, std::string_view trait) const override {
    const Card* card = find_card(op);
    if (card != nullptr)
      for (const NamedTrait& named : named_traits)
        if (named.name == trait && card->traits.*named.flag) return true;
    const OtherOp* other = trait == "view" ? find_other(op) : nullptr;
    return other != nullptr && other->gives_views;
  }
  [[nodiscard]] std::vector<std::string> traits() const override {
    std::vector<std::string> out;
    for (const NamedTrait& named : named_traits) out.emplace_back(named.name);
    std::sort(out.begin(), out.end());
    return out;
  }
  [[nodiscard]] OpSpelling find(std::string_view spelling) const override {
    return find_spelling(spelling).value_or(OpSpelling{spelling});
  }
};

}  // namespace

const ir::OpFactsRef& tessera::op::op_facts() {
  // Never destroyed: a plan may be in the making beside the program when the process ends.
  static const auto& facts = *new ir::OpFactsRef(std::make_shared<const CardFacts>());
  return facts;
}

std::optional<OpSpelling> tessera::op::find_spelling(std::string_view name) {
  static const auto& spellings = *new Spellings;
  return spellings.find(name);
}
