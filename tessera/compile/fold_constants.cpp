#include "tessera/compile/fold_constants.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/compile/constants.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/compile/narrow_factors.h"
#include "tessera/compile/purity.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/op/reference.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// The bytes of a type whose sizes are numbers.
std::optional<std::int64_t> bytes_of_type(const ir::Type& type) {
  const auto* tensor = ir::as<ir::TensorType>(type);
  const auto count = tensor == nullptr ? std::nullopt : ir::element_count(tensor->shape);
  constexpr std::int64_t most = std::int64_t{1} << 48;
  if (!count || *count > most) return std::nullopt;
  return *count * static_cast<std::int64_t>(ir::size_of(tensor->dtype));
}

/// The bytes of an operand: a constant, or a variable that is known by a table.
std::int64_t bytes_of(const ir::Expr& operand) {
  if (const auto* dense = ir::as<ir::Dense>(operand)) return static_cast<std::int64_t>(dense->data.size());
  const auto* var = ir::as<ir::Var>(operand);
  return var == nullptr ? 8 : bytes_of_type(*var->type).value_or(8);
}

bool has_shape(const ir::Var& value, const ir::Shape& shape) {
  const auto* tensor = ir::as<ir::TensorType>(*value.type);
  return tensor != nullptr && tensor->shape == shape;
}

bool has_constant_sizes(const ir::Attributes& attributes) {
  return std::all_of(attributes.entries().begin(), attributes.entries().end(), [](const auto& entry) {
    const auto* shape = std::get_if<ir::Shape>(&entry.second);
    return shape == nullptr || ir::constant_shape(*shape).has_value();
  });
}

/// What was made of a large constant of bytes element by element, and by moving elements: what each of the
/// 256 bytes became says all of it. So a chain of such calls goes over all elements once, when one that is
/// none of them reads what came out.
struct ByTable {
  Ref<ir::Dense> bytes;  ///< where the elements are now
  op::HostTensor table;  ///< by byte
};

/// Below this a table is no gain.
constexpr std::size_t least_bytes_for_table = 1024;

op::HostTensor all_bytes(ir::Dtype dtype) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, {256}));
  for (int i = 0; i < 256; ++i) out.array().data[i] = static_cast<std::byte>(i);
  return out;
}

template <class T>
void look_up(const ByTable& of, const op::HostTensor& out) {
  const auto table = of.table.values<T>();
  const auto to = out.values<T>();
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = table[std::to_integer<std::size_t>(of.bytes->data.data()[i])];
}

/// All elements.
op::HostTensor spread(const ByTable& of) {
  const auto shape = *ir::constant_shape(of.bytes->type->shape);
  const op::HostTensor out =
      value_or_throw(op::HostTensor::allocate(of.table.dtype(), {shape.begin(), shape.end()}));
  switch (ir::size_of(out.dtype())) {
    case 1:
      look_up<std::uint8_t>(of, out);
      break;
    case 2:
      look_up<std::uint16_t>(of, out);
      break;
    case 4:
      look_up<std::uint32_t>(of, out);
      break;
    default:
      look_up<std::uint64_t>(of, out);
  }
  return out;
}

class FoldConstants {
 public:
  explicit FoldConstants(PassContext& context) : context_(context), work_(context.options().fold_work) {}

  ir::FunctionRef run(const ir::FunctionRef& function) {
    FunctionDraft draft(function);
    std::optional<UseCounts> uses;
    std::optional<NarrowFactors> narrow;
    if (context_.options().keeps_narrow_factors) narrow.emplace(*function);
    for (const auto& statement : function->body) {
      const bool stays = narrow && narrow->has(*statement);
      if (!fold(statement, draft, stays)) continue;
      context_.note(cat(static_cast<const ir::Call&>(*statement->value).op, " of constants"),
                    statement->span());
      if (!uses) uses.emplace(*function);
      forget_operands(*statement, *uses, draft);
    }
    for (const ir::ExprRef& result : function->results) spread_out(*result, draft);
    tables_.clear();
    return draft.finish();
  }

 private:
  /// Whether the statement was folded; else it is kept.
  bool fold(const Ref<ir::Assign>& statement, FunctionDraft& draft, bool stays) {
    if (!stays && fold_by_table(*statement, draft)) return true;
    spread_operands(*statement, draft);
    const auto current = with_folded_scalars(draft.current(statement));
    const auto results = stays ? std::nullopt : folded(*current);
    if (!results) {
      draft.keep(current);
      return false;
    }
    for (std::size_t i = 0; i < results->size(); ++i)
      draft.replace(*current->targets[i], dense_constant((*results)[i]));
    return true;
  }

  /// Of a chain of large constants no more than two are there at a time.
  void forget_operands(const ir::Assign& statement, UseCounts& uses, FunctionDraft& draft) {
    ir::for_each_use(*statement.value, [&](const ir::Var& var) {
      if (uses.take(var) != 0) return;
      draft.forget(var);
      tables_.erase(&var);
    });
  }

  /// All elements of a value that is known by its table stand for it from here on.
  void spread_out(const ir::Expr& value, FunctionDraft& draft) {
    const auto* var = ir::as<ir::Var>(value);
    const auto known = var == nullptr ? tables_.end() : tables_.find(var);
    if (known == tables_.end()) return;
    draft.replace(*var, dense_constant(spread(known->second)));
    tables_.erase(known);
  }
  void spread_operands(const ir::Assign& statement, FunctionDraft& draft) {
    if (tables_.empty()) return;
    ir::for_each_use(*statement.value, [&](const ir::Var& var) { spread_out(var, draft); });
  }

  /// Scalar expressions of numbers and constants of rank 0 become numbers.
  Ref<ir::Assign> with_folded_scalars(const Ref<ir::Assign>& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    if (call == nullptr) return statement;
    std::unique_ptr<ir::Call> draft;
    for (std::size_t i = 0; i < call->args.size(); ++i) {
      const auto value = number_in(*call->args[i]);
      if (!value) continue;
      if (draft == nullptr) draft = std::make_unique<ir::Call>(*call);
      draft->args[i] = constant_operand(*value);
      context_.note("a constant that is a number", statement->span());
    }
    return draft == nullptr ? statement
                            : ir::assign(statement->targets, ir::seal(std::move(draft)), statement->span());
  }

  static std::optional<op::ScalarValue> number_in(const ir::Expr& operand) {
    if (const auto* dense = ir::as<ir::Dense>(operand))
      return dense->type->shape.empty() ? std::optional(constant_element(*dense, 0)) : std::nullopt;
    return ir::is<ir::ScalarOp>(operand) ? constant_scalar(operand) : std::nullopt;
  }

  std::optional<std::vector<op::HostTensor>> folded(const ir::Assign& statement) {
    const op::Card* card = foldable_card(statement);
    if (card == nullptr) return std::nullopt;
    const auto& call = static_cast<const ir::Call&>(*statement.value);
    if (!std::all_of(call.args.begin(), call.args.end(), [](const auto& arg) { return is_constant(*arg); }) ||
        !within_budget(statement, call.args, *card))
      return std::nullopt;
    const auto attributes = op::complete_attributes(*card, call.attrs);
    if (!attributes) return std::nullopt;
    std::vector<op::HostTensor> inputs;
    for (const auto& arg : call.args) inputs.push_back(*constant_tensor(*arg));
    return run(*card, inputs, *attributes, statement.targets.size());
  }

  /// Of a call that could be folded; else null.
  static const op::Card* foldable_card(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    if (call == nullptr || !is_pure(*call) || !has_constant_sizes(call->attrs)) return nullptr;
    return op::find_card(call->op);
  }

  static std::optional<std::vector<op::HostTensor>> run(const op::Card& card,
                                                        std::span<const op::HostTensor> inputs,
                                                        const op::Attributes& attributes,
                                                        std::size_t expected) {
    std::vector<op::Array> arrays;
    for (const op::HostTensor& input : inputs) arrays.push_back(input.array());
    auto results = op::run_reference(card, arrays, attributes);
    if (!results || results->size() != expected) return std::nullopt;
    return *std::move(results);
  }

  /// What the 256 bytes of a large constant become is computed, or where its elements go: the call is one of
  /// a table and of numbers, element by element, or it moves the elements of a table.
  bool fold_by_table(const ir::Assign& statement, FunctionDraft& draft) {
    const op::Card* card = foldable_card(statement);
    if (card == nullptr || statement.targets.size() != 1) return false;
    const auto& call = static_cast<const ir::Call&>(*statement.value);
    const auto attributes = op::complete_attributes(*card, call.attrs);
    std::vector<ir::ExprRef> operands;
    for (const ir::ExprRef& arg : call.args) operands.push_back(draft.operand(arg));
    if (!attributes) return false;
    std::optional<ByTable> result;
    if (card->traits.elementwise)
      result = computed(operands, *card, *attributes, statement);
    else if (card->traits.view && operands.size() == 1)
      result = moved(operands, *card, *attributes, statement);
    if (!result) return false;
    tables_.insert_or_assign(statement.targets[0].get(), *std::move(result));
    return true;
  }

  /// A large constant as a table, if it is one of bytes or was made of one.
  std::optional<ByTable> table_of(const ir::ExprRef& operand) const {
    if (const auto* var = ir::as<ir::Var>(operand)) {
      const auto known = tables_.find(var);
      return known == tables_.end() ? std::nullopt : std::optional(known->second);
    }
    const auto* dense = ir::as<ir::Dense>(operand);
    if (dense == nullptr || ir::size_of(dense->type->dtype) != 1 ||
        dense->data.size() < least_bytes_for_table)
      return std::nullopt;
    return ByTable{Ref<ir::Dense>(dense), all_bytes(dense->type->dtype)};
  }

  std::optional<ByTable> computed(std::span<const ir::ExprRef> operands, const op::Card& card,
                                  const op::Attributes& attributes, const ir::Assign& statement) {
    std::optional<ByTable> found;
    std::vector<op::HostTensor> inputs;
    for (const ir::ExprRef& operand : operands) {
      if (auto table = table_of(operand)) {
        if (found) return std::nullopt;
        inputs.push_back(table->table);
        found = std::move(table);
        continue;
      }
      auto number = number_of(*operand);
      if (!number) return std::nullopt;
      inputs.push_back(*std::move(number));
    }
    if (!found || !has_shape(*statement.targets[0], found->bytes->type->shape) ||
        !within_budget(statement, operands, card))
      return std::nullopt;
    auto results = run(card, inputs, attributes, 1);
    if (!results || (*results)[0].shape() != op::Extents{256}) return std::nullopt;
    found->table = std::move((*results)[0]);
    return found;
  }

  /// A constant of one element, without axes.
  static std::optional<op::HostTensor> number_of(const ir::Expr& operand) {
    if (!is_constant(operand)) return std::nullopt;
    if (const auto* dense = ir::as<ir::Dense>(operand);
        dense != nullptr && ir::element_count(dense->type->shape) != 1)
      return std::nullopt;
    const auto element = constant_tensor(operand);
    if (!element) return std::nullopt;
    return op::HostTensor::wrap(element->dtype(), {}, element->array().data,
                                std::make_shared<const op::HostTensor>(*element));
  }

  std::optional<ByTable> moved(std::span<const ir::ExprRef> operands, const op::Card& card,
                               const op::Attributes& attributes, const ir::Assign& statement) {
    const auto* var = ir::as<ir::Var>(operands[0]);
    const auto known = var == nullptr ? tables_.end() : tables_.find(var);
    const auto* type = ir::as<ir::TensorType>(*statement.targets[0]->type);
    if (known == tables_.end() || type == nullptr || type->dtype != known->second.table.dtype() ||
        !within_budget(statement, operands, card))
      return std::nullopt;
    const auto results = run(card, std::vector{*constant_tensor(*known->second.bytes)}, attributes, 1);
    if (!results) return std::nullopt;
    return ByTable{dense_constant((*results)[0]), known->second.table};
  }

  bool within_budget(const ir::Assign& statement, std::span<const ir::ExprRef> operands,
                     const op::Card& card) {
    std::int64_t in = 0, out = 0, largest = 0;
    for (const ir::ExprRef& operand : operands) {
      const auto bytes = bytes_of(*operand);
      in += bytes;
      largest = std::max(largest, bytes);
    }
    for (const auto& target : statement.targets) {
      const auto bytes = bytes_of_type(*target->type);
      if (!bytes) return false;
      out += *bytes;
    }
    if (out > std::max(in, context_.options().fold_bytes)) return false;
    // A costly op may look at all of an operand for each element of its result.
    const std::int64_t work = card.traits.costly && out > 0 && largest > work_ / out ? work_ + 1
                              : card.traits.costly                                   ? out * largest
                                                                                     : in + out;
    if (work > work_) return false;
    work_ -= work;
    return true;
  }

  PassContext& context_;
  std::int64_t work_;                                   ///< what is left
  std::unordered_map<const ir::Var*, ByTable> tables_;  ///< of what is folded but not spread out
};

}  // namespace

Result<ir::FunctionRef> tessera::compiler::fold_constants(const ir::FunctionRef& function,
                                                          PassContext& context) {
  FoldConstants fold(context);
  return rewrite_functions(
      function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> { return fold.run(one); });
}
