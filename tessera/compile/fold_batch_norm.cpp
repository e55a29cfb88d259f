#include "tessera/compile/fold_batch_norm.h"

#include <algorithm>
#include <cmath>

#include "tessera/compile/constants.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/ir/seal.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::compile;

namespace {

using Numbers = std::vector<double>;

std::optional<Numbers> numbers_of(const ir::Expr& operand) {
  const auto tensor = ir::is<ir::Dense>(operand) ? constant_tensor(operand) : std::nullopt;
  if (!tensor) return std::nullopt;
  Numbers out(static_cast<std::size_t>(tensor->size()));
  op::loader<double>(tensor->dtype())(tensor->array().data, 0, 1, out.size(), out.data());
  return out;
}

Result<ir::ExprRef> constant_of(const Numbers& numbers, ir::Dtype dtype, op::Extents shape) {
  const op::HostTensor tensor = TESSERA_TRY(op::HostTensor::allocate(dtype, std::move(shape)));
  op::storer<double>(dtype)(tensor.array().data, 0, 1, numbers.size(), numbers.data());
  return dense_constant(tensor);
}

/// y * scale + shift, a number per channel each.
struct Affine {
  Numbers scale;
  Numbers shift;

  [[nodiscard]] bool is_finite() const {
    const auto finite = [](double v) { return std::isfinite(v); };
    return std::all_of(scale.begin(), scale.end(), finite) && std::all_of(shift.begin(), shift.end(), finite);
  }
};

/// What a batch norm by constants does; nothing if an operand is none.
std::optional<Affine> affine_of(const ir::Call& norm) {
  const auto weight = numbers_of(*norm.args[1]), bias = numbers_of(*norm.args[2]);
  const auto mean = numbers_of(*norm.args[3]), variance = numbers_of(*norm.args[4]);
  if (!weight || !bias || !mean || !variance) return std::nullopt;
  const double* given = norm.attrs.get<double>("epsilon");
  const double epsilon = given == nullptr ? op::find_card("batch_norm")->attributes[0].number : *given;
  Affine out;
  for (std::size_t i = 0; i < weight->size(); ++i) {
    out.scale.push_back((*weight)[i] / std::sqrt((*variance)[i] + epsilon));
    out.shift.push_back((*bias)[i] - (*mean)[i] * out.scale[i]);
  }
  return out.is_finite() ? std::optional(std::move(out)) : std::nullopt;
}

class FoldBatchNorm {
 public:
  FoldBatchNorm(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), uses_(*function), draft_(function) {}

  Result<ir::FunctionRef> run() {
    for (const auto& statement : function_->body) {
      const auto current = draft_.current(statement);
      const ir::Call* norm = ir::as<ir::Call>(current->value);
      const ir::Call* conv = norm == nullptr || norm->op != "batch_norm" ? nullptr : conv_before(*norm);
      const ir::ExprRef folded = conv == nullptr ? nullptr : TESSERA_TRY(joined(*conv, *norm));
      if (folded == nullptr) {
        draft_.keep(current);
        continue;
      }
      draft_.keep(ir::assign(current->targets, folded, current->span()));
      context_.note("batch_norm goes into the weights of conv", current->span());
    }
    return draft_.finish();
  }

 private:
  /// The convolution that gives the operand of a norm and nothing else.
  const ir::Call* conv_before(const ir::Call& norm) {
    return uses_.of(*norm.args[0]) == 1 ? draft_.call_of(*norm.args[0], "conv") : nullptr;
  }

  static Result<ir::ExprRef> joined(const ir::Call& conv, const ir::Call& norm) {
    const auto type = op::operand_type(*conv.args[1]);
    const auto shape = type ? ir::constant_shape(type->shape) : std::nullopt;
    if (!shape || (type->dtype != ir::Dtype::f32 && type->dtype != ir::Dtype::f64)) return ir::ExprRef();
    auto weights = numbers_of(*conv.args[1]);
    auto bias =
        conv.args.size() > 2 ? numbers_of(*conv.args[2]) : Numbers(static_cast<std::size_t>((*shape)[0]));
    const auto affine = affine_of(norm);
    if (!weights || !bias || !affine || bias->size() != affine->scale.size()) return ir::ExprRef();
    const std::size_t per_channel = bias->empty() ? 0 : weights->size() / bias->size();
    for (std::size_t i = 0; i < weights->size(); ++i) (*weights)[i] *= affine->scale[i / per_channel];
    for (std::size_t c = 0; c < bias->size(); ++c)
      (*bias)[c] = (*bias)[c] * affine->scale[c] + affine->shift[c];
    auto draft = std::make_unique<ir::Call>(conv);
    draft->args.resize(3);
    draft->args[1] = TESSERA_TRY(constant_of(*weights, type->dtype, *shape));
    draft->args[2] = TESSERA_TRY(constant_of(*bias, type->dtype, {(*shape)[0]}));
    return ir::ExprRef(ir::seal(std::move(draft)));
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  UseCounts uses_;
  FunctionDraft draft_;
};

bool has_batch_norm(const ir::Function& function) {
  return std::any_of(function.body.begin(), function.body.end(), [](const auto& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    return call != nullptr && call->op == "batch_norm";
  });
}

}  // namespace

Result<ir::FunctionRef> tessera::compile::fold_batch_norm(const ir::FunctionRef& function,
                                                          PassContext& context) {
  if (context.options().floats < FloatRules::rounding) return function;
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    if (!has_batch_norm(*one)) return one;
    return FoldBatchNorm(one, context).run();
  });
}
