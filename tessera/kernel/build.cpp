#include "tessera/kernel/build.h"

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/node_table.h"
#include "tessera/kernel/region_builder.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

class Reader {
 public:
  Reader(const ir::Function& function, Accuracy accuracy) : function_(function), builder_(accuracy) {}

  Result<Kernel> read() {
    for (const auto& param : function_.params) {
      const auto type = op::value_type(*param->type);
      if (!type)
        return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(*param), "' is a tuple"));
      values_[*param] = builder_.input(*type);
    }
    for (const auto& statement : function_.body) {
      auto done = execute(*statement);
      if (!done) return std::move(done).error().at(statement->span().resolve());
    }
    op::Values results;
    for (const ir::ExprRef& result : function_.results) results.push_back(TESSERA_TRY(operand(*result)));
    TESSERA_TRY(builder_.status());
    return builder_.finish(results);
  }

 private:
  Result<void> execute(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    if (call == nullptr) {
      if (statement.targets.size() != 1)
        return Error(ErrorCode::unsupported, "a kernel has no tuples and no regions");
      values_[*statement.targets[0]] = TESSERA_TRY(operand(*statement.value));
      return {};
    }
    op::Values inputs;
    for (const ir::ExprRef& arg : call->args) inputs.push_back(TESSERA_TRY(operand(*arg)));
    const op::Values results = builder_.call_all(call->op, inputs, call->attrs);
    TESSERA_TRY(builder_.status());
    if (results.size() != statement.targets.size())
      return Error(ErrorCode::unsupported, cat(call->op, ": its results are not bound one by one"));
    for (std::size_t i = 0; i < results.size(); ++i) values_[*statement.targets[i]] = results[i];
    return {};
  }

  Result<op::Value> operand(const ir::Expr& expr) {
    if (const op::Value* known = values_.find(expr)) return *known;
    if (const auto dtype = ir::scalar_dtype(expr)) {
      const op::Value value = builder_.scalar(expr, *dtype);
      TESSERA_TRY(builder_.status());
      return value;
    }
    return Error(ErrorCode::unsupported,
                 cat("a kernel takes '", ir::describe(expr), "' as an input, not as an operand"));
  }

  const ir::Function& function_;
  RegionBuilder builder_;
  ir::NodeTable<op::Value> values_;
};

}  // namespace

Result<Kernel> tessera::kernel::build(const ir::Function& function, Accuracy accuracy) {
  return Reader(function, accuracy).read();
}

bool tessera::kernel::can_fuse(const op::Card& card, std::span<const op::ValueType> inputs,
                               const op::Attributes& attributes) {
  RegionBuilder builder;
  op::Values values;
  for (const op::ValueType& type : inputs) values.push_back(builder.input(type));
  const op::Values results = builder.call_all(card.name, values, attributes);
  return builder.status().ok() && builder.finish(results).ok();
}
