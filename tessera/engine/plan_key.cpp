#include "tessera/engine/plan_key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// What stands in a slot, in the two lowest bits of its word.
enum class Slot : std::uint32_t { step, known_input, new_input, number };

std::uint32_t slot_word(Slot kind, std::size_t index) {
  return static_cast<std::uint32_t>(index) << 2 | static_cast<std::uint32_t>(kind);
}

/// Of an input that is met for the first time.
constexpr std::size_t most_words_of_operand = 2;

/// What is done, and what it is done with.
constexpr std::size_t words_of_head = 3;

std::uint64_t fold(std::uint64_t x, std::uint64_t y) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(x) * y;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Of the words, two lanes at a time: it only has to find.
std::uint64_t hash_of(std::span<const std::uint32_t> words) {
  std::uint64_t a = 0x9e3779b97f4a7c15ULL, b = words.size() ^ 0xc2b2ae3d27d4eb4fULL;
  std::size_t i = 0;
  for (; i + 4 <= words.size(); i += 4) {
    std::uint64_t pair[2];
    std::memcpy(pair, words.data() + i, sizeof pair);
    a = fold(a ^ pair[0], 0x9fb21c651e98df25ULL);
    b = fold(b ^ pair[1], 0xff51afd7ed558ccdULL);
  }
  for (; i < words.size(); ++i) a = fold(a ^ words[i], 0x9fb21c651e98df25ULL);
  return fold(a ^ std::rotl(b, 32), 0xc4ceb9fe1a85ec53ULL);
}

}  // namespace

std::uint32_t FunctionNumbers::number(const ir::FunctionRef& function) {
  if (const auto known = by_address_.find(function.get()); known != by_address_.end())
    return known->second.number;
  if (by_address_.size() >= capacity) by_address_.clear();
  // Numbers are never used again, so that keys with forgotten ones find nothing.
  if (by_structure_.size() >= capacity) by_structure_.clear();
  const Hash128 hash = ir::structural_hash(*function, ir::CompareMode::strict);
  const auto [first, last] = by_structure_.equal_range(hash);
  const auto same = std::find_if(first, last, [&](const auto& entry) {
    return ir::structural_equal(*entry.second.function, *function, ir::CompareMode::strict);
  });
  const std::uint32_t number = same != last ? same->second.number : next_++;
  if (same == last) by_structure_.emplace(hash, Known{function, number});
  by_address_.emplace(function.get(), Known{function, number});
  return number;
}

inline void PlanKey::write_sizes(const Node& node) {
  std::int64_t* const out = sizes.make_room(std::max<std::size_t>(node.rank, Node::inline_dims));
  if (node.rank <= Node::inline_dims)
    std::memcpy(out, node.dims, sizeof node.dims);  // all of them: quicker than to count
  else
    std::copy(node.extra->dims.begin(), node.extra->dims.end(), out);
  sizes.end_at(out + node.rank);
}

/// The place of an input among the inputs is kept in its scratch; whether it is one of these inputs, the list
/// tells.
[[gnu::always_inline]] inline void PlanKey::write_call(const Node& node, Head kind, std::uint64_t what,
                                                       std::span<const std::uint32_t> from,
                                                       std::span<const std::uint32_t> local) {
  std::uint32_t* out = words.make_room(words_of_head + most_words_of_operand * from.size());
  *out++ = static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(node.dtype) << 2 |
           static_cast<std::uint32_t>(node.rank) << 8 | node.input_count << 16;
  *out++ = static_cast<std::uint32_t>(what);
  *out++ = static_cast<std::uint32_t>(what >> 32);
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != Needed::stored) {
      *out++ = slot_word(Slot::step, local.empty() ? from[i] : local[from[i]]);
      continue;
    }
    Node* const input = node.input(i);
    if (input == nullptr) {
      *out++ = slot_word(Slot::number, 0);
      parameters.push(std::bit_cast<std::uint64_t>(node.scalar_at(numbers++)));
    } else if (input->index < inputs.size() && inputs[input->index].node == input) {
      *out++ = slot_word(Slot::known_input, input->index);
    } else {
      out = write_input(input, out);
    }
  }
  words.end_at(out);
}

inline bool PlanKey::write_step(const Needed& needed, std::uint32_t step,
                                std::span<const std::uint32_t> local, FunctionNumbers& functions) {
  const Node& node = needed.node(step);
  const std::uint16_t flags = node.flags.load(std::memory_order_relaxed);
  plan_at_once |= (flags & Node::plan_at_once) != 0;
  if (node.extra != nullptr || node.card == nullptr || (flags & (Node::placeholder | Node::is_result)) != 0)
      [[unlikely]]
    return write_uncommon(needed, step, local, functions);
  write_call(node, Head::call, reinterpret_cast<std::uint64_t>(node.card), needed.from(step), local);
  write_sizes(node);
  return true;
}

bool PlanKey::write(const Needed& needed, std::span<const std::uint32_t> steps,
                    std::span<const std::uint32_t> local, FunctionNumbers& functions) {
  words.clear();
  sizes.clear();
  positions_.clear();
  inputs.clear();
  parameters.clear();
  plan_at_once = false;
  if (steps.empty()) {
    for (std::uint32_t s = 0; s < needed.size(); ++s)
      if (!write_step(needed, s, local, functions)) return false;
  } else {
    for (const std::uint32_t s : steps)
      if (!write_step(needed, s, local, functions)) return false;
  }
  write_kept(needed, steps, local);
  position_count = positions_.size();
  sizes.end_at(std::copy(positions_.begin(), positions_.end(), sizes.make_room(position_count)));
  hash = hash_of(words);
  return true;
}

/// A step that is no call of a card, or has more to it than operands and a type.
bool PlanKey::write_uncommon(const Needed& needed, std::uint32_t step, std::span<const std::uint32_t> local,
                             FunctionNumbers& functions) {
  const Node& node = needed.node(step);
  if (node.is(Node::placeholder)) return false;
  const bool is_result = node.is(Node::is_result);
  if (node.card == nullptr && !is_result) return false;
  const bool is_function = node.extra != nullptr && node.extra->function != nullptr;
  const Head kind = is_result ? Head::result : is_function ? Head::function : Head::call;
  const auto what = is_result     ? std::uint64_t{node.extra->result}
                    : is_function ? functions.number(node.extra->function)
                                  : reinterpret_cast<std::uint64_t>(node.card);
  write_call(node, kind, what, needed.from(step), local);
  if (node.extra != nullptr) {
    write_attributes(node);
    words.push(static_cast<std::uint32_t>(node.extra->results.size()));
    for (std::size_t i = 1; i < node.extra->results.size(); ++i) write_type(node.extra->results[i]);
  }
  write_sizes(node);
  return true;
}

std::uint32_t* PlanKey::write_input(Node* input, std::uint32_t* out) {
  input->index = static_cast<std::uint32_t>(inputs.size());
  const Storage* storage = input->storage.load(std::memory_order_acquire);
  inputs.push_back({input, storage});
  const bool contiguous = storage->layout.is_contiguous();
  *out++ = slot_word(Slot::new_input, contiguous ? 1 : 0);
  *out++ = static_cast<std::uint32_t>(input->dtype) | static_cast<std::uint32_t>(input->rank) << 8;
  write_sizes(*input);
  if (!contiguous)
    for (const std::int64_t stride : storage->layout.strides) sizes.push(stride);
  return out;
}

void PlanKey::write_words(const void* data, std::size_t bytes) {
  words.push(static_cast<std::uint32_t>(bytes));
  const std::size_t count = (bytes + 3) / 4;
  std::uint32_t* out = words.make_room(count);
  if (count > 0) {
    out[count - 1] = 0;
    std::memcpy(out, data, bytes);
  }
  words.end_at(out + count);
}

/// Attributes of a call are those of its card, by name, less those that may be absent: if none is, the card
/// says their names.
void PlanKey::write_attributes(const Node& call) {
  const op::Attributes& attributes = call.attributes();
  const auto part = call.card == nullptr ? op::PartForm::Kind::none : op::part_form(*call.card).kind;
  const bool is_part = part != op::PartForm::Kind::none;
  const bool needs_names = call.card == nullptr || attributes.size() != call.card->attributes.size();
  words.push(static_cast<std::uint32_t>(attributes.size()));
  for (const auto& [name, value] : attributes.entries()) {
    if (needs_names) write_words(name.data(), name.size());
    words.push(static_cast<std::uint32_t>(value.index()));
    if (const auto* list = std::get_if<op::Shape>(&value); is_part && list != nullptr)
      words.push(static_cast<std::uint32_t>(list->size()));
    else
      write_value(value);
  }
  if (is_part) write_positions(call, part);
}

/// Numbers have no axes.
std::size_t PlanKey::positions_of(const Node& node) {
  if (node.card == nullptr || node.is(Node::is_result)) return 0;
  const auto kind = op::part_form(*node.card).kind;
  const bool is_of_numbers = kind == op::PartForm::Kind::none || node.input(0) == nullptr ||
                             (kind == op::PartForm::Kind::update && node.input(1) == nullptr);
  return is_of_numbers ? 0 : node.attributes().get<op::Shape>("starts")->size();
}

/// The stops follow from the shape of the part.
void PlanKey::write_positions(const Node& part, op::PartForm::Kind kind) {
  const std::size_t count = positions_of(part);
  if (count == 0) return;
  const Node* const x = part.input(0);
  const Node* const taken = kind == op::PartForm::Kind::slice ? &part : part.input(1);
  std::int64_t* const out = positions_.make_room(count);
  op::find_starts(part.attributes(), x->shape(), taken->shape(), out);
  positions_.end_at(out + count);
}

void PlanKey::write_value(const ir::AttributeValue& value) {
  std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::string>) {
          write_words(v.data(), v.size());
        } else if constexpr (std::is_same_v<V, op::Shape>) {
          words.push(static_cast<std::uint32_t>(v.size()));
          for (const op::Dim& dim : v) sizes.push(dim.value());  // what was recorded has numbers
        } else if constexpr (std::is_same_v<V, std::vector<std::string>>) {
          words.push(static_cast<std::uint32_t>(v.size()));
          for (const std::string& text : v) write_words(text.data(), text.size());
        } else if constexpr (std::is_same_v<V, std::vector<std::int64_t>> ||
                             std::is_same_v<V, std::vector<double>>) {
          write_words(v.data(), v.size() * sizeof v[0]);
        } else {
          write_words(&v, sizeof v);
        }
      },
      value);
}

void PlanKey::write_type(const op::ValueType& type) {
  words.push(static_cast<std::uint32_t>(type.dtype) | static_cast<std::uint32_t>(type.rank()) << 8);
  for (const op::Dim& dim : type.shape) sizes.push(dim.value());
}

/// What is kept, a bit per step, and what was asked for in which order.
void PlanKey::write_kept(const Needed& needed, std::span<const std::uint32_t> steps,
                         std::span<const std::uint32_t> local) {
  const std::size_t count = steps.empty() ? needed.size() : steps.size();
  for (std::size_t i = 0; i < count; i += 32) {
    std::uint32_t bits = 0;
    for (std::size_t k = i; k < std::min(i + 32, count); ++k)
      if (needed.must_keep(steps.empty() ? static_cast<std::uint32_t>(k) : steps[k])) bits |= 1U << (k - i);
    words.push(bits);
  }
  for (const std::uint32_t asked : needed.asked_steps()) {
    if (steps.empty())
      words.push(asked);
    else if (std::binary_search(steps.begin(), steps.end(), asked))
      words.push(local[asked]);
  }
}
