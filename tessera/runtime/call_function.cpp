#include "tessera/runtime/call_function.h"

using namespace tessera;

namespace {

ir::TypeRef tensor_type(const op::Array& array) {
  return ir::tensor_type(array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape())));
}

}  // namespace

ir::FunctionRef tessera::runtime::function_of(const op::CallInfo& call, std::span<const op::Array> inputs,
                                              std::span<const op::Array> results) {
  ir::FunctionParts parts{.name = std::string(call.card().name)};
  std::vector<ir::ExprRef> args;
  std::vector<Ref<ir::Var>> targets;
  for (const op::Array& input : inputs) {
    parts.params.push_back(ir::variable("x", tensor_type(input)));
    args.push_back(parts.params.back());
  }
  for (const op::Array& result : results) {
    targets.push_back(ir::variable("y", tensor_type(result)));
    parts.results.push_back(targets.back());
  }
  parts.body.push_back(ir::assign(
      std::move(targets), ir::call(std::string(call.card().name), std::move(args), call.attributes())));
  return ir::function(std::move(parts));
}

std::optional<op::Array> tessera::runtime::copied_in_order(const op::CallInfo& call,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results) {
  if (call.card().view == nullptr || inputs[0].dtype != results[0].dtype) return std::nullopt;
  const op::Layout dense = op::contiguous(inputs[0].shape());
  const auto seen = call.card().view(call, dense);
  if (!seen || !seen->is_contiguous() || seen->offset != 0 || inputs[0].size() != results[0].size())
    return std::nullopt;
  return op::Array{results[0].dtype, dense, results[0].at(results[0].layout.offset)};
}
