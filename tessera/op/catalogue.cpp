#include "tessera/op/catalogue.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "tessera/base/check.h"
#include "tessera/base/text.h"
#include "tessera/op/op_facts.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// What programs added. A card stays where it is.
struct OwnCards {
  std::shared_mutex mutex;
  std::unordered_map<std::string_view, std::shared_ptr<const Card>> by_name;
};

OwnCards& own_cards() {
  static OwnCards& cards = *new OwnCards;  // as the catalogue: never destroyed
  return cards;
}

const Card* find_in_catalogue(std::string_view name) {
  static const auto& by_name = *[] {
    auto* out = new std::unordered_map<std::string_view, const Card*>;
    for (const Card* card : all_cards()) out->emplace(card->name, card);
    return out;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

}  // namespace

std::span<const Card* const> tessera::op::all_cards() {
  // Never destroyed: a plan may be in the making beside the program when the process ends.
  static const auto& cards = *[] {
    auto* made = new std::vector<const Card*>;
    auto& all = *made;
    for (const auto& family :
         {activation_cards(),  arithmetic_cards(), attention_cards(), conv_cards(),    create_cards(),
          einsum_cards(),      function_cards(),   indexing_cards(),  logic_cards(),   matmul_cards(),
          moving_part_cards(), norm_cards(),       pad_cards(),       part_cards(),    pool_cards(),
          random_cards(),      reduction_cards(),  scan_cards(),      scatter_cards(), shape_cards(),
          softmax_cards(),     sort_cards()})
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
  if (const Card* card = find_in_catalogue(name)) return card;
  OwnCards& own = own_cards();
  const std::shared_lock lock(own.mutex);
  const auto at = own.by_name.find(name);
  return at == own.by_name.end() ? nullptr : at->second.get();
}

bool tessera::op::is_in_catalogue(const Card& card) { return find_in_catalogue(card.name) == &card; }

Result<const Card*> tessera::op::add_card(std::shared_ptr<const Card> card) {
  const std::string_view name = card->name;
  const auto taken = [&](std::string_view why) {
    return Error(ErrorCode::invalid_argument, cat("an op cannot be called '", printable(name), "': ", why));
  };
  if (find_in_catalogue(name) != nullptr) return taken("the catalogue has one of this name");
  if (const auto spelling = find_spelling(name))
    return taken(cat("that is how '", spelling->canonical, "' is spelled elsewhere"));
  OwnCards& own = own_cards();
  const std::unique_lock lock(own.mutex);
  const auto [at, is_new] = own.by_name.try_emplace(name, std::move(card));
  if (!is_new) return taken("one of this name was added before");
  return at->second.get();
}
