#include "tessera/autodiff/loop_gradient.h"

#include <algorithm>

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/fold_sums.h"
#include "tessera/autodiff/inline.h"
#include "tessera/autodiff/reverse.h"
#include "tessera/autodiff/simplify.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::autodiff;
using op::IrBuilder;
using op::Value;
using op::Values;
using op::ValueType;

namespace {

const ValueType& index_type() {
  static const auto& type = *new ValueType{ir::Dtype::i64, {}};  // never destroyed
  return type;
}

/// `rows` with row `index` replaced.
Value write_row(Value rows, Value index, Value row) {
  ir::Shape shape{1};
  for (const ir::Dim& dim : row.shape()) shape.push_back(dim);
  return rows.builder->call("scatter_nd", {rows, op::reshape(index, {1, 1}), op::reshape(row, shape)});
}

Value read_row(Value rows, Value index, const ir::Shape& shape) {
  return op::reshape(rows.builder->call("gather", {rows, index}), shape);
}

/// Whether a dimension may be this expression: variables and numbers of i64, no slots that change.
bool is_size(const ir::Expr& expr) {
  if (const auto* op = ir::as<ir::ScalarOp>(expr))
    return std::all_of(op->operands.begin(), op->operands.end(), [](const auto& o) { return is_size(*o); });
  return (ir::is<ir::Var>(expr) || ir::is<ir::IntConst>(expr)) && ir::scalar_dtype(expr) == ir::Dtype::i64;
}

}  // namespace

LoopGradient::LoopGradient(IrBuilder& builder, const ir::Assign& statement, const Rules& rules)
    : builder_(builder), statement_(statement), rules_(rules) {
  const auto take = [&](const auto& region) {
    body_ = region.body.get();
    inits_ = &region.inits;
    captures_ = &region.captures;
    dims_ = &region.dims;
  };
  for_ = ir::as<ir::ForRegion>(*statement.value);
  while_ = ir::as<ir::WhileRegion>(*statement.value);
  lead_ = for_ != nullptr ? 1 : 0;
  for_ != nullptr ? take(*for_) : take(*while_);
}

// ---- types and sizes

ValueType LoopGradient::param_type(std::size_t param) const {
  return op::value_type(*body_->params[param]->type).value_or(ValueType{});
}

ValueType LoopGradient::kept_type(const ValueType& type, const ir::Dim& rows) const {
  ValueType out{type.dtype, {rows}};
  for (const ir::Dim& dim : type.shape) out.shape.push_back(dim);
  return out;
}

ir::Dim LoopGradient::inner_rows() const { return rows_symbol_ == nullptr ? rows_ : ir::Dim(rows_symbol_); }

void LoopGradient::adopt_sizes(IrBuilder& b) const {
  if (rows_symbol_ != nullptr) b.adopt_size(rows_symbol_);
  for (const auto& dim : body_->dims) b.adopt_size(dim);
}

std::vector<ir::ExprRef> LoopGradient::region_dims() const {
  std::vector<ir::ExprRef> out;
  if (rows_symbol_ != nullptr) out.push_back(rows_.expr());
  out.insert(out.end(), dims_->begin(), dims_->end());
  return out;
}

Result<void> LoopGradient::set_rows() {
  if (for_ != nullptr) {
    count_for(*for_->count);
  } else if (while_->limit) {
    rows_ = std::max<std::int64_t>(0, *while_->limit);
  } else {
    return Error(ErrorCode::unsupported,
                 cat("the gradient of the while loop that gives '", ir::describe(*statement_.targets[0]),
                     "' needs a limit: give it the largest number of iterations (limit, max_iterations)"),
                 statement_.span().resolve());
  }
  if (!rows_.is_constant()) rows_symbol_ = ir::size_symbol("rows");
  return {};
}

void LoopGradient::count_for(const ir::Expr& count) {
  if (const auto* constant = ir::as<ir::IntConst>(count)) {
    rows_ = std::max<std::int64_t>(0, constant->value);
    count_ = builder_.constant(static_cast<double>(rows_.value()), ir::Dtype::i64);
    return;
  }
  const Value given = op::cast(builder_.import(ir::ExprRef(&count), type_of(count)), ir::Dtype::i64);
  count_ = builder_.call("maximum", {op::reshape(given, {}), builder_.constant(0, ir::Dtype::i64)});
  if (is_size(count)) {
    rows_ = ir::max(0, ir::simplified(ir::ExprRef(&count)));
    return;
  }
  // A size must be a scalar: the tensor's one number is bound to one.
  const Ref<ir::Var> rows = ir::size_symbol("rows");
  builder_.adopt(ir::assign(rows, ir::call("identity", {builder_.expr(count_)})));
  rows_ = ir::Dim(rows);
}

// ---- forwards

Result<void> LoopGradient::differentiate_body(Activity& activity) {
  const auto captures = activity.of(*captures_);
  carried_ = where_true(active_carried(*body_, lead_, activity.of(*inits_), captures));
  captured_ = where_true(captures);
  std::vector<std::size_t> wrt;
  for (std::size_t i : carried_) wrt.push_back(lead_ + i);
  for (std::size_t i : captured_) wrt.push_back(lead_ + inits_->size() + i);
  gradient_ = TESSERA_TRY(reverse(ir::FunctionRef(body_), wrt, carried_, rules_));
  read_ = used_parameters(*gradient_);
  for (std::size_t i = 0; i < inits_->size(); ++i)
    if (reads(lead_ + i)) kept_.push_back(i);
  return {};
}

Result<void> LoopGradient::forward(Activity& activity) {
  TESSERA_TRY(differentiate_body(activity));
  TESSERA_TRY(set_rows());
  std::vector<ir::ExprRef> inits = *inits_;
  std::vector<Ref<ir::Var>> targets = statement_.targets;
  const auto carry = [&](Value init) {
    inits.push_back(builder_.expr(init));
    targets.push_back(ir::variable(cat("kept", targets.size()), op::ir_type(init.type())));
    return builder_.import(targets.back(), init.type());
  };
  for (std::size_t i : kept_)
    rows_of_.push_back(carry(op::full(builder_, 0, kept_type(type_of(*(*inits_)[i]), rows_))));
  if (while_ != nullptr) count_ = carry(op::full(builder_, 0, index_type()));
  TESSERA_TRY(builder_.status());
  const ir::FunctionRef body = TESSERA_TRY(keeping_body());
  builder_.adopt(ir::assign(std::move(targets), keeping_loop(body, std::move(inits)), statement_.span()));
  return {};
}

ir::ExprRef LoopGradient::keeping_loop(const ir::FunctionRef& body, std::vector<ir::ExprRef> inits) const {
  if (for_ != nullptr) {
    auto draft = std::make_unique<ir::ForRegion>(*for_);
    draft->inits = std::move(inits);
    draft->dims = region_dims();
    draft->body = body;
    return ir::seal(std::move(draft));
  }
  auto draft = std::make_unique<ir::WhileRegion>(*while_);
  draft->inits = std::move(inits);
  draft->dims = region_dims();
  draft->body = body;
  draft->condition = keeping_condition(*while_->condition);
  return ir::seal(std::move(draft));
}

/// The body, which also writes each kept value, as it was before the iteration, to its row.
Result<ir::FunctionRef> LoopGradient::keeping_body() const {
  IrBuilder b;
  adopt_sizes(b);
  const auto adopt = [&](std::size_t i) { return b.adopt_parameter(body_->params[i], param_type(i)); };
  Value index = for_ != nullptr ? adopt(0) : Value();
  Values carried, rows, results;
  for (std::size_t i = 0; i < inits_->size(); ++i) carried.push_back(adopt(lead_ + i));
  for (std::size_t i : kept_)
    rows.push_back(b.parameter(cat("kept", i), kept_type(carried[i].type(), inner_rows())));
  if (while_ != nullptr) index = b.parameter("iteration", index_type());
  for (std::size_t i = lead_ + inits_->size(); i < body_->params.size(); ++i) adopt(i);
  for (const auto& statement : body_->body) b.adopt(statement);
  for (const auto& result : body_->results) results.push_back(b.import(result, type_of(*result)));
  for (std::size_t k = 0; k < kept_.size(); ++k)
    results.push_back(write_row(rows[k], index, carried[kept_[k]]));
  if (while_ != nullptr) results.push_back(index + 1.0);
  return b.function("", results);
}

ir::FunctionRef LoopGradient::keeping_condition(const ir::Function& condition) const {
  auto draft = std::make_unique<ir::Function>(condition);
  std::vector<Ref<ir::Var>> more;
  for (std::size_t i : kept_)
    more.push_back(ir::variable(cat("kept", i), op::ir_type(kept_type(param_type(lead_ + i), rows_))));
  more.push_back(ir::variable("iteration", op::ir_type(index_type())));
  const auto at = draft->params.begin() + static_cast<std::ptrdiff_t>(inits_->size());
  draft->params.insert(at, more.begin(), more.end());
  return ir::seal(std::move(draft));
}

// ---- backwards

Result<Values> LoopGradient::backward(std::span<const Value> target_gradients) {
  auto draft = std::make_unique<ir::ForRegion>(statement_.span());
  draft->count = builder_.expr(count_);
  draft->dims = region_dims();
  if (!has_known_count()) draft->captures.push_back(builder_.expr(count_));
  for (Value rows : rows_of_) draft->captures.push_back(builder_.expr(rows));
  for (std::size_t i = 0; i < captures_->size(); ++i)
    if (reads(lead_ + inits_->size() + i)) draft->captures.push_back((*captures_)[i]);
  op::ValueTypes types;
  const auto carry = [&](const ir::Expr& of, Value gradient) {
    types.push_back(type_of(of));
    draft->inits.push_back(builder_.expr(gradient ? gradient : op::full(builder_, 0, types.back())));
  };
  for (std::size_t i : carried_) carry(*(*inits_)[i], target_gradients[i]);
  for (std::size_t i : captured_) carry(*(*captures_)[i], Value());
  draft->body = TESSERA_TRY(backward_body());
  TESSERA_TRY(builder_.status());
  const Values gradients = builder_.append(ir::seal(std::move(draft)), types);
  Values out(inits_->size() + captures_->size());
  for (std::size_t k = 0; k < carried_.size(); ++k) out[carried_[k]] = gradients[k];
  for (std::size_t k = 0; k < captured_.size(); ++k)
    out[inits_->size() + captured_[k]] = gradients[carried_.size() + k];
  return out;
}

/// One step back: (step, gradients…, count unless known, rows…, captures…) to the gradients one iteration
/// earlier.
Result<ir::FunctionRef> LoopGradient::backward_body() const {
  IrBuilder b;
  adopt_sizes(b);
  const Value step = b.parameter("step", index_type());
  Values carried, captured, rows;
  for (std::size_t i : carried_) carried.push_back(b.parameter("d", param_type(lead_ + i)));
  const std::size_t first_capture = lead_ + inits_->size();
  for (std::size_t i : captured_) captured.push_back(b.parameter("d", param_type(first_capture + i)));
  const Value count = has_known_count() ? b.extent(rows_) : b.parameter("count", index_type());
  for (std::size_t i : kept_)
    rows.push_back(b.parameter(cat("kept", i), kept_type(param_type(lead_ + i), inner_rows())));
  const Value index = count - 1.0 - step;
  Values args;
  for (std::size_t i = 0; i < body_->params.size(); ++i) args.push_back(row_argument(b, i, index, rows));
  args.insert(args.end(), carried.begin(), carried.end());
  const std::vector<ir::ExprRef> dims(body_->dims.begin(), body_->dims.end());
  Values results = inline_call(b, *gradient_, dims, args);
  for (std::size_t k = 0; k < captured.size(); ++k) {
    Value& total = results[carried.size() + k];
    total = captured[k] + total;
  }
  return simplified(fold_sums(TESSERA_TRY(b.function("", results))));
}

/// What stands for a parameter of the body at iteration `index`; nothing if its gradient does not read it.
Value LoopGradient::row_argument(IrBuilder& b, std::size_t param, Value index, const Values& rows) const {
  if (!reads(param)) return {};
  if (param < lead_) return index;
  if (param >= lead_ + inits_->size()) return b.adopt_parameter(body_->params[param], param_type(param));
  const auto kept = std::find(kept_.begin(), kept_.end(), param - lead_);
  const auto k = static_cast<std::size_t>(kept - kept_.begin());
  return read_row(rows[k], index, param_type(param).shape);
}
