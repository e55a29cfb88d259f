#include "tessera/autodiff/gradient.h"

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/forward.h"
#include "tessera/autodiff/reverse.h"
#include "tessera/autodiff/simplify.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/seal.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::autodiff;

namespace {

Result<void> check_parameters(const ir::Function& function, std::span<const std::size_t> wrt) {
  for (std::size_t i : wrt) {
    if (i >= function.params.size())
      return Error(ErrorCode::invalid_argument,
                   cat("there is no parameter ", i, ": the function has ", function.params.size()));
    const ir::Var& param = *function.params[i];
    if (!is_float_value(*param.type))
      return Error(ErrorCode::invalid_argument,
                   cat("the gradient of parameter '", ir::describe(param), "' of type ",
                       ir::describe(*param.type), " was asked for: it is no float tensor"));
  }
  return {};
}

std::vector<std::size_t> float_results(const ir::Function& function) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.results.size(); ++i)
    if (const auto type = op::operand_type(*function.results[i]); type && ir::is_float(type->dtype))
      out.push_back(i);
  return out;
}

}  // namespace

Result<ir::FunctionRef> tessera::autodiff::vjp(const ir::FunctionRef& function,
                                               std::span<const std::size_t> wrt, const Rules& rules) {
  TESSERA_TRY(check_parameters(*function, wrt));
  return reverse(function, wrt, float_results(*function), rules);
}

Result<ir::FunctionRef> tessera::autodiff::jvp(const ir::FunctionRef& function,
                                               std::span<const std::size_t> wrt, const Rules& rules) {
  TESSERA_TRY(check_parameters(*function, wrt));
  const ir::FunctionRef both = TESSERA_TRY(forward(function, wrt, float_results(*function), rules));
  auto tangents = std::make_unique<ir::Function>(*both);
  const auto begin = tangents->results.begin();
  tangents->results.erase(begin, begin + static_cast<std::ptrdiff_t>(function->results.size()));
  return simplified(ir::seal(std::move(tangents)));
}

std::vector<std::size_t> tessera::autodiff::float_parameters(const ir::Function& function) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i)
    if (is_float_value(*function.params[i]->type)) out.push_back(i);
  return out;
}
