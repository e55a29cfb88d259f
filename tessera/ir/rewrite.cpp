#include "tessera/ir/rewrite.h"

#include "tessera/base/check.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

template <class T>
bool may_stand_for(const Node& node) {
  if constexpr (std::is_same_v<T, Expr>) {
    return node.kind() >= NodeKind::var && node.kind() <= NodeKind::for_region;
  } else if constexpr (std::is_same_v<T, Type>) {
    return node.kind() <= NodeKind::tuple_type;
  } else {
    return is<T>(node);
  }
}

class Rewriter {
 public:
  explicit Rewriter(const RewriteRule& rule) : rule_(rule) {}

  NodeRef run(const NodeRef& root) {
    for (const Node* node : post_order(*root)) {
      NodeRef same_or_rebuilt = rebuilt(*node);
      NodeRef out = rule_(same_or_rebuilt);
      TESSERA_CHECK(out != nullptr, "a rewrite rule returned nothing");
      done_[*node] = std::move(out);
    }
    return *done_.find(*root);
  }

 private:
  NodeRef rebuilt(const Node& node) {
    bool changed = false;
    for_each_child(node, [&](const Node& child) { changed = changed || done_.find(child)->get() != &child; });
    if (!changed) return NodeRef(&node);
    return visit_node(node, [&]<class N>(const N& concrete) -> NodeRef {
      auto draft = std::make_unique<N>(concrete);
      transform_children(*draft, [&]<class T>(const Ref<T>& child) { return replacement(child); });
      return seal(std::move(draft));
    });
  }

  template <class T>
  Ref<T> replacement(const Ref<T>& child) {
    const NodeRef& node = *done_.find(*child);
    TESSERA_CHECK(may_stand_for<T>(*node),
                  "a rewrite rule returned a node that cannot stand where the old one did");
    return Ref<T>(static_cast<const T*>(node.get()));
  }

  const RewriteRule& rule_;
  NodeTable<NodeRef> done_;
};

}  // namespace

NodeRef tessera::ir::rewrite(const NodeRef& root, const RewriteRule& rule) {
  return Rewriter(rule).run(root);
}

FunctionRef tessera::ir::rewrite(const FunctionRef& root, const RewriteRule& rule) {
  const NodeRef out = rewrite(NodeRef(root), rule);
  const auto* function = as<Function>(out);
  TESSERA_CHECK(function != nullptr, "a function was rewritten into something else");
  return FunctionRef(function);
}

NodeRef tessera::ir::replace_variables(const NodeRef& root,
                                       const std::function<ExprRef(const Var&)>& value_of) {
  // A definition is a field of type Ref<Var> and can only be replaced by a variable, so definitions are
  // protected: they are the variables that some node below defines.
  NodeTable<bool> defined;
  for (const Node* node : post_order(*root)) {
    if (const auto* statement = as<Assign>(*node))
      for (const auto& target : statement->targets) defined[*target] = true;
    if (const auto* function = as<Function>(*node)) {
      for (const auto& dim : function->dims) defined[*dim] = true;
      for (const auto& param : function->params) defined[*param] = true;
    }
  }
  return rewrite(root, [&](const NodeRef& node) -> NodeRef {
    const auto* var = as<Var>(node);
    if (var == nullptr || defined.find(*var) != nullptr) return node;
    ExprRef value = value_of(*var);
    return value == nullptr ? node : NodeRef(value);
  });
}

TypeRef tessera::ir::substitute(const TypeRef& type,
                                const std::function<std::optional<Dim>(const Var&)>& value_of) {
  if (!type->has_variables()) return type;
  const NodeRef out = rewrite(NodeRef(type), [&](const NodeRef& node) -> NodeRef {
    const auto* tensor = as<TensorType>(node);
    if (tensor == nullptr) return node;
    Shape shape;
    for (const Dim& dim : tensor->shape) shape.push_back(substitute(dim, value_of));
    return tensor_type(tensor->dtype, std::move(shape));
  });
  return TypeRef(static_cast<const Type*>(out.get()));
}
