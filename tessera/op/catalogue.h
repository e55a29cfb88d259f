// The catalogue: all cards, sorted by name. A program may add ops of its own beside it: programs of the IR
// name ops in every room, so what a name means is the same for the whole process.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tessera/op/card.h"

namespace tessera::op {

/// All cards, sorted by name. They live as long as the program.
[[nodiscard]] std::span<const Card* const> all_cards();

/// The card of an op, of the catalogue or of the program's own, or null.
[[nodiscard]] const Card* find_card(std::string_view name);

/// Whether other processes know the op too; its programs can be saved.
[[nodiscard]] bool is_in_catalogue(const Card& card);

/// Adds an op of the program's own. Its card is kept as long as the process lives: plans and programs refer
/// to it. Fails if the name is taken, or is another spelling of an op (op_facts.h). Thread-safe.
[[nodiscard]] Result<const Card*> add_card(std::shared_ptr<const Card> card);

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
[[nodiscard]] std::span<const Card> moving_part_cards();
[[nodiscard]] std::span<const Card> pool_cards();
[[nodiscard]] std::span<const Card> random_cards();
[[nodiscard]] std::span<const Card> reduction_cards();
[[nodiscard]] std::span<const Card> scan_cards();
[[nodiscard]] std::span<const Card> scatter_cards();
[[nodiscard]] std::span<const Card> shape_cards();
[[nodiscard]] std::span<const Card> softmax_cards();
[[nodiscard]] std::span<const Card> sort_cards();

}  // namespace tessera::op
