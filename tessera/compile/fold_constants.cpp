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
std::optional<std::int64_t> bytes_of(const ir::Type& type) {
  const auto* tensor = ir::as<ir::TensorType>(type);
  const auto count = tensor == nullptr ? std::nullopt : ir::element_count(tensor->shape);
  constexpr std::int64_t most = std::int64_t{1} << 48;
  if (!count || *count > most) return std::nullopt;
  return *count * static_cast<std::int64_t>(ir::size_of(tensor->dtype));
}

bool has_constant_sizes(const ir::Attributes& attributes) {
  return std::all_of(attributes.entries().begin(), attributes.entries().end(), [](const auto& entry) {
    const auto* shape = std::get_if<ir::Shape>(&entry.second);
    return shape == nullptr || ir::constant_shape(*shape).has_value();
  });
}

/// A large constant of bytes, or what was made of one element by element: what each of the 256 bytes became
/// says all of it.
struct ByTable {
  Ref<ir::Dense> bytes;
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
      auto current = with_folded_scalars(draft.current(statement));
      const bool stays = narrow && narrow->has(*statement);
      const auto results = stays ? std::nullopt : folded(*current, *statement);
      if (!results) {
        draft.keep(current);
        continue;
      }
      for (std::size_t i = 0; i < results->size(); ++i)
        draft.replace(*current->targets[i], dense_constant((*results)[i]));
      context_.note(cat(static_cast<const ir::Call&>(*current->value).op, " of constants"), current->span());
      if (!uses) uses.emplace(*function);
      forget_operands(*statement, *uses, draft);
    }
    return draft.finish();
  }

 private:
  /// Of a chain of large constants no more than two are there at a time.
  static void forget_operands(const ir::Assign& statement, UseCounts& uses, FunctionDraft& draft) {
    ir::for_each_use(*statement.value, [&](const ir::Var& var) {
      if (uses.take(var) == 0) draft.forget(var);
    });
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

  /// `before` is the statement with the operands that the old function has.
  std::optional<std::vector<op::HostTensor>> folded(const ir::Assign& statement, const ir::Assign& before) {
    const auto* call = ir::as<ir::Call>(statement.value);
    if (call == nullptr ||
        !std::all_of(call->args.begin(), call->args.end(), [](const auto& arg) { return is_constant(*arg); }))
      return std::nullopt;
    const op::Card* card = op::find_card(call->op);
    if (card == nullptr || !is_pure(*call) || !has_constant_sizes(call->attrs)) return std::nullopt;
    if (!within_budget(statement, *call, *card)) return std::nullopt;
    const auto attributes = op::complete_attributes(*card, call->attrs);
    if (!attributes) return std::nullopt;
    if (card->traits.elementwise && statement.targets.size() == 1)
      if (auto result = by_table(*call, *card, *attributes, before)) return std::vector{*std::move(result)};
    std::vector<op::HostTensor> inputs;
    for (const auto& arg : call->args) inputs.push_back(*constant_tensor(*arg));
    return run(*card, inputs, *attributes, statement.targets.size());
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

  /// A large constant as a table, if it is one of bytes or was made of one.
  std::optional<ByTable> table_of(const ir::ExprRef& operand, const ir::ExprRef& before) const {
    if (const auto* var = ir::as<ir::Var>(before))
      if (const auto known = tables_.find(var); known != tables_.end()) return known->second;
    const auto* dense = ir::as<ir::Dense>(operand);
    if (dense == nullptr || ir::size_of(dense->type->dtype) != 1 ||
        dense->data.size() < least_bytes_for_table)
      return std::nullopt;
    return ByTable{Ref<ir::Dense>(dense), all_bytes(dense->type->dtype)};
  }

  /// Of one large constant and numbers: computed once for each byte.
  std::optional<op::HostTensor> by_table(const ir::Call& call, const op::Card& card,
                                         const op::Attributes& attributes, const ir::Assign& before) {
    const auto& old = static_cast<const ir::Call&>(*before.value);
    std::optional<ByTable> found;
    std::vector<op::HostTensor> inputs;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      auto table = table_of(call.args[i], old.args[i]);
      if (!table) {
        inputs.push_back(*constant_tensor(*call.args[i]));
        if (!inputs.back().shape().empty()) return std::nullopt;
        continue;
      }
      if (found) return std::nullopt;
      inputs.push_back(table->table);
      found = std::move(table);
    }
    auto results = found ? run(card, inputs, attributes, 1) : std::nullopt;
    if (!results || (*results)[0].shape() != op::Extents{256}) return std::nullopt;
    found->table = std::move((*results)[0]);
    op::HostTensor out = spread(*found);
    tables_.emplace(before.targets[0].get(), *std::move(found));
    return out;
  }

  bool within_budget(const ir::Assign& statement, const ir::Call& call, const op::Card& card) {
    std::int64_t in = 0, out = 0, largest = 0;
    for (const auto& arg : call.args) {
      const auto* dense = ir::as<ir::Dense>(arg);
      const auto bytes = dense == nullptr ? std::int64_t{8} : static_cast<std::int64_t>(dense->data.size());
      in += bytes;
      largest = std::max(largest, bytes);
    }
    for (const auto& target : statement.targets) {
      const auto bytes = bytes_of(*target->type);
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
  std::unordered_map<const ir::Var*, ByTable> tables_;  ///< of constants that were folded so
};

}  // namespace

Result<ir::FunctionRef> tessera::compiler::fold_constants(const ir::FunctionRef& function,
                                                          PassContext& context) {
  FoldConstants fold(context);
  return rewrite_functions(
      function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> { return fold.run(one); });
}
