#include "tessera/stream/symbolic_size.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::ir;
using namespace tessera::stream;

SymbolicSize::SymbolicSize(ExprRef expression) : expr(std::move(expression)), form(SizeForm::of(*expr)) {}

Hash128 SymbolicSize::hash(std::span<const Hash128> colours) const {
  return form ? form->hash(colours) : structural_hash(*expr, CompareMode::strict);
}

std::vector<std::uint64_t> SymbolicSize::words(std::span<const std::uint64_t> labels) const {
  if (form) return form->words(labels);
  const Hash128 hash = structural_hash(*expr, CompareMode::strict);
  return {hash.high, hash.low};
}

std::string SymbolicSize::text(std::span<const std::uint64_t> labels) const {
  if (!form) return structural_hash(*expr, CompareMode::strict).to_hex();
  const auto numbered = [&](const Var& var) -> std::optional<Dim> {
    const auto at = std::find(symbols().begin(), symbols().end(), &var);
    if (at == symbols().end()) return std::nullopt;
    const auto* type = as<ScalarType>(var.type);
    const std::uint64_t label = labels[static_cast<std::size_t>(at - symbols().begin())];
    return Dim(ExprRef(size_symbol(cat("d", label), type == nullptr ? Range() : type->range)));
  };
  std::string out = to_text(substitute(Dim(expr), numbered));
  std::erase(out, ' ');
  return out;
}

std::vector<std::uint64_t> tessera::stream::words_by_id(const SymbolicSize& size) {
  std::vector<std::uint64_t> ids;
  for (const Var* var : size.symbols()) ids.push_back(var->id);
  return size.words(ids);
}
