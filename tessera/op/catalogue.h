// The catalogue: all cards, sorted by name.
#pragma once

#include <span>
#include <string_view>

#include "tessera/op/card.h"

namespace tessera::op {

/// All cards, sorted by name. They live as long as the program.
[[nodiscard]] std::span<const Card* const> all_cards();

/// The card of an op, or null.
[[nodiscard]] const Card* find_card(std::string_view name);

// The families. A new op is added to one of these lists and nowhere else.
[[nodiscard]] std::span<const Card> activation_cards();
[[nodiscard]] std::span<const Card> arithmetic_cards();
[[nodiscard]] std::span<const Card> attention_cards();
[[nodiscard]] std::span<const Card> conv_cards();
[[nodiscard]] std::span<const Card> create_cards();
[[nodiscard]] std::span<const Card> einsum_cards();
[[nodiscard]] std::span<const Card> function_cards();
[[nodiscard]] std::span<const Card> indexing_cards();
[[nodiscard]] std::span<const Card> logic_cards();
[[nodiscard]] std::span<const Card> matmul_cards();
[[nodiscard]] std::span<const Card> norm_cards();
[[nodiscard]] std::span<const Card> pad_cards();
[[nodiscard]] std::span<const Card> part_cards();
[[nodiscard]] std::span<const Card> pool_cards();
[[nodiscard]] std::span<const Card> random_cards();
[[nodiscard]] std::span<const Card> reduction_cards();
[[nodiscard]] std::span<const Card> scan_cards();
[[nodiscard]] std::span<const Card> scatter_cards();
[[nodiscard]] std::span<const Card> shape_cards();
[[nodiscard]] std::span<const Card> softmax_cards();
[[nodiscard]] std::span<const Card> sort_cards();

}  // namespace tessera::op
