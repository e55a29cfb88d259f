#include "tessera/ir/canonical_name.h"

#include <algorithm>
#include <string>

using namespace tessera::ir;

namespace {

constexpr OpSpelling known_spellings[] = {
#include "tessera/ir/canonical_names.inc"
};

constexpr bool is_sorted_without_repeats() {
  for (std::size_t i = 1; i < std::size(known_spellings); ++i)
    if (!(known_spellings[i - 1].spelling < known_spellings[i].spelling)) return false;
  return true;
}
static_assert(is_sorted_without_repeats());

/// A way to write a namespace, and the short form in which the table writes it. The longest of several that
/// fit stands first.
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

const OpSpelling* find_row(std::string_view spelling) {
  const auto* at = std::ranges::lower_bound(known_spellings, spelling, {}, &OpSpelling::spelling);
  return at != std::end(known_spellings) && at->spelling == spelling ? at : nullptr;
}

/// The name without what distinguishes it inside its namespace: a module's file, an overload.
std::string_view base_name(const Namespace& space, std::string_view rest) {
  const bool is_aten = space.written == "aten::";
  if (space.prefix == "torch.nn.modules.") return rest.substr(rest.rfind('.') + 1);
  return is_aten ? rest.substr(0, rest.find('.')) : rest;
}

}  // namespace

std::span<const OpSpelling> tessera::ir::op_spellings() { return known_spellings; }

const OpSpelling* tessera::ir::find_op_spelling(std::string_view spelling) {
  if (const OpSpelling* row = find_row(spelling)) return row;
  for (const Namespace& space : namespaces) {
    if (!spelling.starts_with(space.prefix)) continue;
    const std::string_view base = base_name(space, spelling.substr(space.prefix.size()));
    const OpSpelling* row = find_row(std::string(space.written).append(base));
    return row != nullptr ? row : find_row(base);
  }
  return nullptr;
}

std::string_view tessera::ir::canonical_name(std::string_view spelling) {
  const OpSpelling* row = find_op_spelling(spelling);
  return row == nullptr ? spelling : row->canonical;
}

bool tessera::ir::is_in_place_spelling(std::string_view spelling) {
  const OpSpelling* row = find_op_spelling(spelling);
  return row != nullptr && row->in_place;
}
