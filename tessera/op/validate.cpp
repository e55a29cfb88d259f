#include "tessera/op/validate.h"

#include "tessera/ir/verify.h"
#include "tessera/ir/walk.h"
#include "tessera/op/call_info.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::op;

namespace {

Error wrong_type(const Card& card, const ir::Var& target, const ValueType& found) {
  const auto type = value_type(*target.type);
  return Error(ErrorCode::shape, cat(card.name, ": its result is ", found, ", but '", printable(target.name),
                                     "' is ", type ? to_text(*type) : "a tuple"));
}

Result<void> check(const ir::Call& call, const ir::Assign& statement) {
  const Card* card = find_card(call.op);
  if (card == nullptr) return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
  ValueTypes types;
  for (const ir::ExprRef& argument : call.args) {
    auto type = operand_type(*argument);
    if (!type) return Error(ErrorCode::invalid_argument, cat(card->name, ": an operand is a tuple"));
    types.push_back(*std::move(type));
  }
  const auto attributes = TESSERA_TRY(complete_attributes(*card, call.attrs));
  Assumptions assumed;
  const auto results = TESSERA_TRY(infer(*card, types, attributes, &assumed));
  if (results.size() != statement.targets.size())
    return Error(ErrorCode::invalid_argument, cat(card->name, ": gives ", results.size(), " results, but ",
                                                  statement.targets.size(), " are assigned"));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto type = value_type(*statement.targets[i]->type);
    if (!type || type->dtype != results[i].dtype || type->rank() != results[i].rank())
      return wrong_type(*card, *statement.targets[i], results[i]);
    // Two symbolic sizes may be equal for reasons that only the run shows.
    for (std::size_t axis = 0; axis < type->rank(); ++axis)
      if (ir::provably_different(type->shape[axis], results[i].shape[axis]))
        return wrong_type(*card, *statement.targets[i], results[i]);
  }
  return {};
}

void check_statement(const ir::Assign& statement, std::vector<Error>& out) {
  const auto* call = ir::as<ir::Call>(statement.value);
  if (call == nullptr) return;
  auto fine = check(*call, statement);
  if (!fine) out.push_back(std::move(fine).error().at(statement.span().resolve()));
}

}  // namespace

std::vector<Error> tessera::op::check_calls(const ir::Function& function) {
  std::vector<Error> out;
  for (const ir::Function* one : ir::functions_below(function))
    for (const auto& statement : one->body) check_statement(*statement, out);
  return out;
}

std::vector<Error> tessera::op::validate(const ir::Node& root) {
  std::vector<Error> out = ir::verify_all(root);
  if (!out.empty()) return out;  // types mean something only in code that is well formed
  if (const auto* function = ir::as<ir::Function>(root)) return check_calls(*function);
  for (const ir::Node* node : ir::post_order(root))
    if (const auto* statement = ir::as<ir::Assign>(*node)) check_statement(*statement, out);
  return out;
}
