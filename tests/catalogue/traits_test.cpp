// The tiler has a table of traits for those who use it without the catalogue. It must say what the cards say.
#include <gtest/gtest.h>

#include "tessera/op/catalogue.h"
#include "tessera/pattern/traits.h"

using namespace tessera;

TEST(Traits, the_table_of_the_tiler_says_what_the_cards_say) {
  const auto table = pattern::default_traits();
  for (const op::Card* card : op::all_cards()) {
    SCOPED_TRACE(card->name);
    EXPECT_EQ(table->has(card->name, pattern::trait::commutative), card->traits.commutative);
    EXPECT_EQ(table->has(card->name, pattern::trait::elementwise), card->traits.elementwise);
    EXPECT_EQ(table->has(card->name, pattern::trait::reduction), card->traits.reduction);
    // Elsewhere more ops give views than here: `split` of PyTorch does.
    if (card->traits.view) {
      EXPECT_TRUE(table->has(card->name, pattern::trait::view));
    }
  }
}
