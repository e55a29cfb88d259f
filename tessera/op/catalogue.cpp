#include "tessera/op/catalogue.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "tessera/base/check.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::op;

std::span<const Card* const> tessera::op::all_cards() {
  // Never destroyed: a plan may be in the making beside the program when the process ends.
  static const auto& cards = *[] {
    auto* made = new std::vector<const Card*>;
    auto& all = *made;
    for (const auto& family :
         {activation_cards(), arithmetic_cards(), attention_cards(), conv_cards(),  create_cards(),
          einsum_cards(),     function_cards(),   indexing_cards(),  logic_cards(), matmul_cards(),
          norm_cards(),       pad_cards(),        part_cards(),      pool_cards(),  random_cards(),
          reduction_cards(),  scan_cards(),       scatter_cards(),   shape_cards(), softmax_cards(),
          sort_cards()})
      for (const Card& card : family) all.push_back(&card);
    std::sort(all.begin(), all.end(), [](const Card* a, const Card* b) { return a->name < b->name; });
    const auto twice = std::adjacent_find(all.begin(), all.end(),
                                          [](const Card* a, const Card* b) { return a->name == b->name; });
    TESSERA_CHECK(twice == all.end(), cat("there are two cards '", (*twice)->name, "'"));
    return made;
  }();
  return cards;
}

const Card* tessera::op::find_card(std::string_view name) {
  static const auto& by_name = *[] {
    auto* out = new std::unordered_map<std::string_view, const Card*>;
    for (const Card* card : all_cards()) out->emplace(card->name, card);
    return out;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}
