#include "tessera/ir/print.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/names.h"
#include "tessera/ir/syntax.h"
#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr std::size_t readable_elements = 256;  // a larger dense tensor is written as hexadecimal bytes

/// Functions that are written once under a name: those that are called, and bodies that stand in several
/// places. In an order in which each comes after those it refers to.
std::vector<const Function*> functions_by_name(const Node& root) {
  struct Seen {
    int count = 0;
    bool called = false;
  };
  NodeTable<Seen> seen;
  std::vector<const Function*> order;
  std::vector<std::pair<const Node*, bool>> stack{{&root, false}};  // the flag: all below is done
  const auto enter = [&](const Node& value, bool called) {
    for_each_child(value, [&](const Node& child) {
      if (child.kind() != NodeKind::function) return;
      stack.emplace_back(&child, false);
      seen[child].called = seen[child].called || called;
    });
  };
  while (!stack.empty()) {
    const auto [node, done] = stack.back();
    stack.pop_back();
    const auto* function = as<Function>(*node);
    if (done) {
      order.push_back(function);
      continue;
    }
    if (function != nullptr) {
      if (seen[*function].count++ > 0) continue;
      stack.emplace_back(function, true);
      for (const auto& statement : function->body)
        if (statement->value->kind() >= NodeKind::invoke && statement->value->kind() <= NodeKind::for_region)
          enter(*statement->value, statement->value->kind() == NodeKind::invoke);
    } else {
      const auto* statement = as<Assign>(*node);
      const Node& value = statement != nullptr ? *statement->value : *node;
      enter(value, value.kind() == NodeKind::invoke);
    }
  }
  std::erase_if(order,
                [&](const Function* f) { return f == &root || (seen[*f].count < 2 && !seen[*f].called); });
  return order;
}

/// Writes without recursion on the structure: what cannot be written at once waits on `tasks_`.
class Printer {
 public:
  std::string print_document(const Node& root) {
    name_functions(root);
    if (is<Module>(root)) out_ += "module\n";
    for (const Function* function : hoisted_) {
      if (members_.contains(function)) continue;
      out_ += "local ";
      print_function_item(*function);
    }
    print_item(root);
    return declarations_ + out_;
  }

  std::string print_alone(const Node& node, std::size_t limit) {
    limit_ = limit;
    print_now(node);
    return std::move(out_);
  }

 private:
  struct Task {
    enum class Kind : std::uint8_t {
      node,
      operand,
      literal,
      newline,
      indent,
      dedent,
      define,
      close_function,
      let_name,
      end_let,
      statements
    };
    Kind kind;
    std::uint8_t precedence = 0;  ///< operand: what binds looser is put in parentheses
    const Node* node = nullptr;
    std::string_view text = {};
    std::span<const Ref<Assign>> body = {};  ///< statements: those that are left
  };

  // ---- documents

  void name_functions(const Node& root) {
    const auto* module = as<Module>(root);
    if (module != nullptr) {
      // What a module's functions refer to may be members too; those stand where the module has them.
      for (const auto& function : module->functions) {
        for (const Function* by_name : functions_by_name(*function)) hoist(by_name);
        hoist(function.get());
        members_.insert(function.get());
      }
    } else {
      if (const auto* function = as<Function>(root)) taken_function_names_.insert(item_name(*function));
      for (const Function* function : functions_by_name(root)) hoist(function);
    }
  }

  void hoist(const Function* function) {
    if (function_names_.contains(function)) return;
    hoisted_.push_back(function);
    const std::string wanted = function->name.empty() ? "body" : function->name;
    std::string name = wanted;
    for (int number = 1; !taken_function_names_.insert(name).second; ++number)
      name = cat(wanted, "_", number);
    function_names_[function] = name;
  }

  void print_item(const Node& root) {
    if (const auto* module = as<Module>(root)) {
      for (const auto& function : module->functions) print_function_item(*function);
    } else if (const auto* function = as<Function>(root)) {
      print_function_item(*function);
    } else {
      out_ += root.kind() == NodeKind::assign       ? "stmt "
              : root.kind() <= NodeKind::tuple_type ? "type "
                                                    : "expr ";
      print_now(root);
      out_ += '\n';
    }
  }

  static std::string item_name(const Function& function) {
    return function.name.empty() ? "main" : function.name;
  }

  void print_function_item(const Function& function) {
    const auto named = function_names_.find(&function);
    out_ += "func ";
    append_identifier(out_, named != function_names_.end() ? named->second : item_name(function));
    expand(function);
    run();
    kept_.clear();
    out_ += '\n';
  }

  // ---- the machine

  void print_now(const Node& node) {
    print_node(node);
    run();
  }

  void run(std::size_t floor = 0) {
    while (tasks_.size() > floor) {
      if (out_.size() > limit_) return tasks_.resize(floor);
      const Task task = tasks_.back();
      tasks_.pop_back();
      step(task);
    }
  }

  void step(const Task& task) {
    switch (task.kind) {
      case Task::Kind::node:
        return print_node(*task.node);
      case Task::Kind::operand:
        return print_operand(*task.node, task.precedence);
      case Task::Kind::literal:
        out_ += task.text;
        return;
      case Task::Kind::newline:
        return new_line();
      case Task::Kind::indent:
        ++indent_;
        return;
      case Task::Kind::dedent:
        --indent_;
        return;
      case Task::Kind::define:
        return print_definition(static_cast<const Var&>(*task.node));
      case Task::Kind::close_function:
        return names_.close();
      case Task::Kind::let_name:
        out_ += cat("!", lets_[*task.node] - 1, " = ");
        return;
      case Task::Kind::end_let:
        return end_let();
      case Task::Kind::statements:
        return print_statements(task.body);
    }
  }

  void print_statements(std::span<const Ref<Assign>> body) {
    for (; !body.empty(); body = body.subspan(1)) {
      new_line();
      const std::size_t first = tasks_.size();
      print_node(*body[0]);
      if (!waiting(first)) continue;
      tasks_.insert(tasks_.begin() + static_cast<std::ptrdiff_t>(first),
                    {.kind = Task::Kind::statements, .body = body.subspan(1)});
      return;
    }
  }

  void new_line() {
    out_ += '\n';
    out_.append(2 * static_cast<std::size_t>(indent_), ' ');
  }

  /// What is pushed between begin() and end() is written in that order.
  std::size_t begin() const { return tasks_.size(); }
  void end(std::size_t first) {
    std::reverse(tasks_.begin() + static_cast<std::ptrdiff_t>(first), tasks_.end());
  }
  [[nodiscard]] bool waiting(std::size_t first) const { return tasks_.size() > first; }

  /// Writes at once if nothing before it waits.
  void literal(std::size_t first, std::string_view text) {
    if (waiting(first)) {
      tasks_.push_back({.kind = Task::Kind::literal, .text = text});
    } else {
      out_ += text;
    }
  }
  void node(std::size_t first, const Node& child) {
    if (waiting(first) || !print_atom(child)) tasks_.push_back({.kind = Task::Kind::node, .node = &child});
  }

  // ---- nodes

  void print_node(const Node& node) {
    if (print_atom(node)) return;
    if (node.kind() == NodeKind::scalar_op) return print_expression(static_cast<const ScalarOp&>(node));
    if (node.kind() == NodeKind::function) {
      if (const auto named = function_names_.find(static_cast<const Function*>(&node));
          named != function_names_.end()) {
        out_ += '@';
        append_identifier(out_, named->second);
        return;
      }
    }
    visit_node(node, [&]<class N>(const N& concrete) {
      if constexpr (HasSyntax<N>) expand(concrete);
    });
  }

  /// Follows the syntax of a node: writes what it can, queues the rest.
  template <HasSyntax N>
  void expand(const N& concrete) {
    if constexpr (std::is_same_v<N, Function>) names_.open();
    const std::size_t first = begin();
    bool skip = false;
    for (const SyntaxPiece& piece : syntax_of<N>) {
      if (piece.kind == SyntaxPiece::Kind::group_begin) skip = is_empty(concrete, piece.field);
      if (piece.kind == SyntaxPiece::Kind::group_end) skip = false;
      if (!skip) print_piece(concrete, piece, first);
    }
    if constexpr (std::is_same_v<N, Function>) tasks_.push_back({.kind = Task::Kind::close_function});
    end(first);
  }

  template <class N>
  void print_piece(const N& concrete, const SyntaxPiece& piece, std::size_t first) {
    switch (piece.kind) {
      case SyntaxPiece::Kind::literal:
        return literal(first, piece.text);
      case SyntaxPiece::Kind::field:
        return with_field(concrete, piece.field, [&](const auto& field, const auto& value) {
          print_value(first, value, field.kind);
        });
      case SyntaxPiece::Kind::newline:
        return tasks_.push_back({.kind = Task::Kind::newline});
      case SyntaxPiece::Kind::indent:
        return tasks_.push_back({.kind = Task::Kind::indent});
      case SyntaxPiece::Kind::dedent:
        return tasks_.push_back({.kind = Task::Kind::dedent});
      default:
        return;
    }
  }

  template <class N, class F>
  static void with_field(const N& concrete, std::uint8_t wanted, F&& f) {
    std::uint8_t index = 0;
    for_each_field(concrete, [&](const auto& field, const auto& value) {
      if (index++ == wanted) f(field, value);
    });
  }

  template <class N>
  static bool is_empty(const N& concrete, std::uint8_t wanted) {
    bool empty = false;
    with_field(concrete, wanted, [&](const auto&, const auto& value) {
      if constexpr (requires { value.empty(); }) empty = value.empty();
      if constexpr (requires { value.has_value(); }) empty = !value.has_value();
    });
    return empty;
  }

  template <class T>
  void print_value(std::size_t first, const T& value, FieldKind kind) {
    if constexpr (detail::is_ref<T>) {
      node(first, *value);
    } else if constexpr (std::is_same_v<T, std::vector<Ref<Assign>>>) {
      tasks_.push_back({.kind = Task::Kind::statements, .body = value});
    } else if constexpr (std::is_same_v<T, std::vector<Ref<Var>>>) {
      list(first, value, [&](const Ref<Var>& var) {
        if (kind != FieldKind::def || waiting(first)) {
          tasks_.push_back({.kind = Task::Kind::define, .node = var.get()});
        } else {
          print_definition(*var);
        }
      });
    } else if constexpr (requires { value.begin(); } && !std::is_same_v<T, std::string>) {
      list(first, value, [&](const auto& item) { print_value(first, item, kind); });
    } else if constexpr (std::is_same_v<T, Dim>) {
      if (value.is_constant()) {
        plain(first, [&] { append_text(out_, value.value()); });
      } else {
        node(first, *value.expr());
      }
    } else {
      plain(first, [&] { append_plain(value); });
    }
  }

  template <class List, class F>
  void list(std::size_t first, const List& items, F&& print_one) {
    bool comma = false;
    for (const auto& item : items) {
      if (std::exchange(comma, true)) literal(first, ", ");
      print_one(item);
    }
  }

  /// A value without nodes in it. If something before it waits, its text is kept until its turn.
  template <class F>
  void plain(std::size_t first, F&& write) {
    if (!waiting(first)) return write();
    std::string saved = std::move(out_);
    out_.clear();
    write();
    kept_.push_back(std::exchange(out_, std::move(saved)));
    tasks_.push_back({.kind = Task::Kind::literal, .text = kept_.back()});
  }

  void append_plain(const std::string& name) { append_identifier(out_, name); }
  void append_plain(Dtype dtype) { out_ += to_string(dtype); }
  void append_plain(const Range& range) {
    if (range.is_open()) return;
    out_ += " in ";
    if (range.lower) append_text(out_, *range.lower);
    out_ += "..";
    if (range.upper) append_text(out_, *range.upper);
  }
  template <std::integral T>
  void append_plain(T value) {
    append_text(out_, value);
  }
  template <class T>
  void append_plain(const std::optional<T>& value) {
    if (value) append_plain(*value);
  }

  void append_plain(const Attributes& attrs) {
    if (attrs.empty()) return;
    out_ += " {";
    bool comma = false;
    for (const auto& [name, value] : attrs.entries()) {
      if (std::exchange(comma, true)) out_ += ", ";
      append_identifier(out_, name);
      out_ += " = ";
      std::visit([&](const auto& held) { append_attribute(held); }, value);
    }
    out_ += '}';
  }
  void append_attribute(bool value) { append_text(out_, value); }
  void append_attribute(std::int64_t value) { append_text(out_, value); }
  void append_attribute(double value) { append_float(out_, value, Dtype::f64); }
  void append_attribute(const std::string& value) { append_escaped(out_, value, '"'); }
  void append_attribute(Dtype value) { out_ += to_string(value); }
  void append_attribute(const std::vector<std::int64_t>& values) { append_list("[", values); }
  void append_attribute(const std::vector<double>& values) {
    append_list(values.empty() ? "[:float" : "[", values);
  }
  void append_attribute(const std::vector<std::string>& values) {
    append_list(values.empty() ? "[:string" : "[", values);
  }
  void append_attribute(const Shape& shape) {
    out_ += "shape";
    append_list("[", shape);
  }
  void append_attribute(const Dim& dim) {
    if (dim.is_constant()) {
      append_text(out_, dim.value());
      return;
    }
    const std::size_t floor = tasks_.size();
    print_node(*dim.expr());
    run(floor);
  }
  template <class List>
  void append_list(std::string_view open, const List& items) {
    out_ += open;
    bool comma = false;
    for (const auto& item : items) {
      if (std::exchange(comma, true)) out_ += ", ";
      append_attribute(item);
    }
    out_ += ']';
  }

  /// Nodes that are written at once. False for all others.
  bool print_atom(const Node& node) {
    switch (node.kind()) {
      case NodeKind::var:
        out_ += name_of(static_cast<const Var&>(node));
        return true;
      case NodeKind::int_const:
        print_int(static_cast<const IntConst&>(node));
        return true;
      case NodeKind::float_const: {
        const auto& constant = static_cast<const FloatConst&>(node);
        append_float(out_, constant.value, constant.dtype);
        if (constant.dtype != Dtype::f32 && std::isfinite(constant.value))
          out_ += cat(":", to_string(constant.dtype));
        return true;
      }
      case NodeKind::bool_const:
        append_text(out_, static_cast<const BoolConst&>(node).value);
        return true;
      case NodeKind::param: {
        const auto& param = static_cast<const Param&>(node);
        out_ += cat("$", param.slot, ":", to_string(param.dtype));
        return true;
      }
      case NodeKind::dense:
        print_dense(static_cast<const Dense&>(node));
        return true;
      case NodeKind::tensor_type: {
        const auto& type = static_cast<const TensorType&>(node);
        if (!std::all_of(type.shape.begin(), type.shape.end(), is_simple_dim)) return false;
        append_plain(type.dtype);
        append_list("[", type.shape);
        return true;
      }
      default:
        return false;
    }
  }

  static bool is_simple_dim(const Dim& dim) {
    return dim.is_constant() || dim.expr()->kind() == NodeKind::var;
  }

  void print_int(const IntConst& constant) {
    if (is_unsigned(constant.dtype))
      append_text(out_, static_cast<std::uint64_t>(constant.value));
    else
      append_text(out_, constant.value);
    if (constant.dtype != Dtype::i64) out_ += cat(":", to_string(constant.dtype));
  }

  void print_dense(const Dense& constant) {
    out_ += "dense ";
    const std::size_t floor = tasks_.size();
    print_node(*constant.type);
    run(floor);
    out_ += ' ';
    const std::size_t count = constant.data.size() / size_of(constant.type->dtype);
    if (count <= readable_elements && append_elements(out_, constant.type->dtype, constant.data.span()))
      return;
    append_hex(out_, constant.data.span());
  }

  // ---- variables

  std::string_view name_of(const Var& var) {
    std::string_view name = names_.use(var);
    if (!name.empty()) return name;
    name = names_.declare_free(var);
    std::string saved = std::exchange(out_, std::string());
    append_type_of(var);
    declarations_ += cat("free ", name, out_, "\n");
    out_ = std::move(saved);
    return name;
  }

  void print_definition(const Var& var) {
    out_ += names_.define(var);
    append_type_of(var);
  }

  /// ": type"; a definition without a type is an i64 scalar.
  void append_type_of(const Var& var) {
    const auto* scalar = as<ScalarType>(var.type);
    if (scalar != nullptr && scalar->dtype == Dtype::i64 && scalar->range.is_open()) return;
    out_ += ": ";
    const std::size_t floor = tasks_.size();
    print_node(*var.type);
    run(floor);
  }

  // ---- scalar expressions

  /// In place of a precedence: this is where a shared subexpression is defined, elsewhere it is a number.
  static constexpr std::uint8_t let_definition = 255;

  /// The root of a scalar expression: subexpressions that occur several times in it are written once, before
  /// it.
  void print_expression(const ScalarOp& root) {
    std::vector<const ScalarOp*> shared = shared_subexpressions(root);
    if (shared.empty()) return print_operand(root, 0);
    const std::size_t first = begin();
    literal(first, "let ");
    std::uint32_t number = 0;
    for (const ScalarOp* sub : shared) {
      lets_[*sub] = ++number;
      tasks_.push_back({.kind = Task::Kind::let_name, .node = sub});
      tasks_.push_back({.kind = Task::Kind::operand, .precedence = let_definition, .node = sub});
      literal(first, sub == shared.back() ? " in " : "; ");
    }
    tasks_.push_back({.kind = Task::Kind::operand, .node = &root});
    tasks_.push_back({.kind = Task::Kind::end_let});
    open_lets_.push_back(std::move(shared));
    end(first);
  }

  void end_let() {
    for (const ScalarOp* sub : open_lets_.back()) lets_[*sub] = 0;
    open_lets_.pop_back();
  }

  /// Operations that occur more than once below `root`, each after those it uses.
  static std::vector<const ScalarOp*> shared_subexpressions(const ScalarOp& root) {
    std::vector<const ScalarOp*> out;
    bool any_shared = false;
    for (const auto& operand : root.operands)
      any_shared = any_shared || (operand->kind() == NodeKind::scalar_op);
    if (!any_shared) return out;
    NodeTable<std::uint32_t> seen;
    std::vector<std::pair<const ScalarOp*, bool>> stack{{&root, false}};
    std::vector<const ScalarOp*> order;
    while (!stack.empty()) {
      const auto [op, done] = stack.back();
      stack.pop_back();
      if (done) {
        order.push_back(op);
        continue;
      }
      if (op->maybe_shared() && seen[*op]++ > 0) continue;
      stack.emplace_back(op, true);
      for (std::size_t i = op->operands.size(); i-- > 0;)
        if (const auto* below = as<ScalarOp>(op->operands[i])) stack.emplace_back(below, false);
    }
    for (const ScalarOp* op : order)
      if (const std::uint32_t* count = seen.find(*op); count != nullptr && *count > 1 && op != &root)
        out.push_back(op);
    return out;
  }

  void print_operand(const Node& operand, std::uint8_t precedence) {
    const auto* op = as<ScalarOp>(operand);
    if (op == nullptr) {
      print_node(operand);
      return;
    }
    if (const std::uint32_t* let = lets_.find(*op);
        let != nullptr && *let != 0 && precedence != let_definition) {
      out_ += cat("!", *let - 1);
      return;
    }
    const ScalarOpcodeInfo& opcode = info(op->opcode);
    const std::size_t first = begin();
    if (opcode.symbol.empty()) {
      literal(first, to_string(op->dtype));
      literal(first, ".");
      literal(first, opcode.name);
      literal(first, "(");
      list(first, op->operands, [&](const ExprRef& child) { push_operand(first, *child, 0); });
      literal(first, ")");
    } else {
      const bool parentheses = precedence != let_definition && opcode.precedence < precedence;
      if (parentheses) literal(first, "(");
      push_operand(first, *op->operands[0], opcode.precedence);
      literal(first, " ");
      literal(first, opcode.symbol);
      literal(first, " ");
      push_operand(first, *op->operands[1], static_cast<std::uint8_t>(opcode.precedence + 1));
      if (parentheses) literal(first, ")");
    }
    end(first);
  }

  void push_operand(std::size_t first, const Node& child, std::uint8_t precedence) {
    if (!waiting(first) && child.kind() != NodeKind::scalar_op && print_atom(child)) return;
    tasks_.push_back({.kind = Task::Kind::operand, .precedence = precedence, .node = &child});
  }

  std::string out_;
  std::string declarations_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  int indent_ = 0;
  std::vector<Task> tasks_;
  std::deque<std::string> kept_;
  VariableNames names_;
  NodeTable<std::uint32_t> lets_;  ///< number of a shared subexpression, plus one
  std::vector<std::vector<const ScalarOp*>> open_lets_;
  std::vector<const Function*> hoisted_;
  std::unordered_set<const Function*> members_;
  std::unordered_map<const Function*, std::string> function_names_;
  std::unordered_set<std::string> taken_function_names_;
};

}  // namespace

std::string tessera::ir::print(const Node& node) { return Printer().print_document(node); }

std::string tessera::ir::print_line(const Node& node, std::size_t limit) {
  std::string text = Printer().print_alone(node, limit);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return shortened(text, limit);
}
