#include "tessera/engine/node_to_ir.h"

#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::engine;

ir::Span tessera::engine::span_of(const Node& node) {
  if (node.file == nullptr) return {};
  return {ir::SourceFile::create(node.file), node.line, 0};
}

op::Values tessera::engine::append_invoke(op::IrBuilder& builder, const Node& node,
                                          const ir::FunctionRef& callee, const op::Values& inputs) {
  auto draft = std::make_unique<ir::Invoke>();
  draft->callee = callee;
  for (const op::Value input : inputs) draft->args.push_back(builder.expr(input));
  const auto& results = node.extra->results;
  const op::ValueTypes types =
      results.empty() ? op::ValueTypes{node.type()} : op::ValueTypes(results.begin(), results.end());
  return builder.append(ir::seal(std::move(draft)), types);
}
