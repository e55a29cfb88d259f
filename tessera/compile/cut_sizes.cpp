#include "tessera/compile/cut_sizes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::compiler;
using plan::Source;

namespace {

using Variables = std::vector<const ir::Var*>;

/// The variables in an expression or a type, also those in the types of variables; bodies of regions are
/// closed.
void add_variables(const ir::Node& root, Variables& out) {
  std::vector<const ir::Node*> stack{&root};
  while (!stack.empty()) {
    const ir::Node& node = *stack.back();
    stack.pop_back();
    if (const auto* var = ir::as<ir::Var>(node)) {
      out.push_back(var);
      continue;
    }
    if (ir::is<ir::Function>(node)) continue;
    ir::for_each_child(node, [&](const ir::Node& child) { stack.push_back(&child); });
  }
}

/// What one statement or result reads.
struct Uses {
  Variables values;  ///< as operands
  Variables sizes;   ///< in types, attributes and the sizes that bodies take
};

void add_operands(std::span<const ir::ExprRef> operands, Variables& out) {
  for (const ir::ExprRef& operand : operands) add_variables(*operand, out);
}

void add_region_uses(const ir::Expr& value, Uses& out) {
  if (const auto* invoke = ir::as<ir::Invoke>(value)) {
    add_operands(invoke->dims, out.sizes);
    add_operands(invoke->args, out.values);
  } else if (const auto* branch = ir::as<ir::IfRegion>(value)) {
    add_variables(*branch->condition, out.values);
    add_operands(branch->dims, out.sizes);
    add_operands(branch->captures, out.values);
  } else if (const auto* choice = ir::as<ir::SwitchRegion>(value)) {
    add_variables(*choice->index, out.values);
    add_operands(choice->dims, out.sizes);
    add_operands(choice->captures, out.values);
  } else if (const auto* loop = ir::as<ir::WhileRegion>(value)) {
    add_operands(loop->inits, out.values);
    add_operands(loop->dims, out.sizes);
    add_operands(loop->captures, out.values);
  } else if (const auto* counted = ir::as<ir::ForRegion>(value)) {
    add_variables(*counted->count, out.values);
    add_operands(counted->inits, out.values);
    add_operands(counted->dims, out.sizes);
    add_operands(counted->captures, out.values);
  } else {
    add_variables(value, out.values);
  }
}

Uses uses_of(const ir::Assign& statement) {
  Uses out;
  if (const auto* call = ir::as<ir::Call>(*statement.value)) {
    add_operands(call->args, out.values);
    for (const auto& [name, attribute] : call->attrs.entries())
      if (const auto* shape = std::get_if<ir::Shape>(&attribute))
        for (const ir::Dim& dim : *shape)
          if (!dim.is_constant()) add_variables(*dim.expr(), out.sizes);
  } else {
    add_region_uses(*statement.value, out);
  }
  for (const Ref<ir::Var>& target : statement.targets) add_variables(*target->type, out.sizes);
  const std::size_t operands = out.values.size();
  for (std::size_t i = 0; i < operands; ++i) add_variables(*out.values[i]->type, out.sizes);
  return out;
}

/// Where a variable is made, and how others get it.
struct Made {
  std::uint32_t part = Source::caller;
  std::size_t order = 0;  ///< among all that are made
  Ref<ir::Var> var;
  ir::Span at;
  bool is_size = false;      ///< of the whole function
  std::uint32_t output = 0;  ///< among the results of its part; only if it is needed elsewhere
  bool is_output = false;
};

class Cutter {
 public:
  explicit Cutter(const ir::FunctionRef& function) : function_(function) {}

  Result<CutFunction> run() {
    if (!has_integers()) return whole();
    place_statements();
    if (!learns_) return whole();
    parts_.resize(part_count_);
    for (std::size_t s = 0; s < uses_.size(); ++s) parts_[part_of_[s]].body.push_back(function_->body[s]);
    for (std::size_t s = 0; s < uses_.size(); ++s) take(part_of_[s], uses_[s]);
    CutFunction out;
    for (const ir::ExprRef& result : function_->results) out.outputs.push_back(output(result));
    for (const auto& [part, var] : waiting_) take(part, *var, parts_[part].values);
    for (Draft& part : parts_) out.parts.push_back(finish(part));
    return out;
  }

 private:
  struct Draft {
    std::vector<Ref<ir::Assign>> body;
    std::vector<Made*> values, sizes;  ///< that it takes from outside
    std::unordered_set<const ir::Var*> taken;
    std::vector<ir::ExprRef> results;
  };

  /// Only scalars can be sizes.
  [[nodiscard]] bool has_integers() const {
    const auto is_scalar = [](const Ref<ir::Var>& var) { return ir::is<ir::ScalarType>(*var->type); };
    return std::any_of(function_->params.begin(), function_->params.end(), is_scalar) ||
           std::any_of(function_->body.begin(), function_->body.end(), [&](const Ref<ir::Assign>& statement) {
             return std::any_of(statement->targets.begin(), statement->targets.end(), is_scalar);
           });
  }

  void define(const Ref<ir::Var>& var, std::uint32_t part, const ir::Span& at, bool is_size) {
    made_[var.get()] = {.part = part, .order = made_.size(), .var = var, .at = at, .is_size = is_size};
  }

  /// Null for a variable that is free.
  [[nodiscard]] Made* find(const ir::Var& var) {
    const auto at = made_.find(&var);
    return at == made_.end() ? nullptr : &at->second;
  }

  /// Each in the first part that has its operands, and knows its sizes.
  void place_statements() {
    for (const auto& dim : function_->dims) define(dim, Source::caller, {}, true);
    for (const auto& param : function_->params) define(param, Source::caller, {}, false);
    for (const auto& statement : function_->body) {
      uses_.push_back(uses_of(*statement));
      std::uint32_t part = 0;
      for (const ir::Var* var : uses_.back().values)
        if (const Made* made = find(*var); made != nullptr && made->part != Source::caller)
          part = std::max(part, made->part);
      for (const ir::Var* var : uses_.back().sizes) {
        const Made* made = find(*var);
        if (made == nullptr || made->is_size) continue;
        learns_ = true;
        if (made->part != Source::caller) part = std::max(part, made->part + 1);
      }
      part_of_.push_back(part);
      part_count_ = std::max(part_count_, part + 1);
      for (const auto& target : statement->targets) define(target, part, statement->span(), false);
    }
  }

  [[nodiscard]] CutFunction whole() const {
    CutFunction out;
    CutPart part{.function = function_, .inputs = {}, .learned = {}};
    for (std::uint32_t i = 0; i < function_->params.size(); ++i)
      part.inputs.push_back({.part = Source::caller, .index = i});
    for (std::uint32_t i = 0; i < function_->results.size(); ++i)
      out.outputs.push_back({.part = 0, .index = i});
    out.parts.push_back(std::move(part));
    return out;
  }

  /// Sizes first: a number that a part has as a size is no input of it.
  void take(std::uint32_t p, const Uses& uses) {
    Draft& draft = parts_[p];
    for (const ir::Var* var : uses.sizes) take(p, *var, draft.sizes);
    for (const ir::Var* var : uses.values) waiting_.push_back({p, var});
  }

  void take(std::uint32_t p, const ir::Var& var, std::vector<Made*>& to) {
    Made* made = find(var);
    if (made == nullptr || made->is_size || made->part == p) return;
    if (!parts_[p].taken.insert(&var).second) return;
    if (made->part != Source::caller) give(*made);
    to.push_back(made);
  }

  /// Makes a variable a result of its part.
  void give(Made& made) {
    if (std::exchange(made.is_output, true)) return;
    made.output = static_cast<std::uint32_t>(parts_[made.part].results.size());
    parts_[made.part].results.push_back(made.var);
  }

  /// A result that is no variable is given by the last part.
  Source output(const ir::ExprRef& result) {
    const auto* var = ir::as<ir::Var>(*result);
    if (Made* made = var == nullptr ? nullptr : find(*var); made != nullptr && !made->is_size) {
      if (made->part != Source::caller) give(*made);
      return source(*made);
    }
    const std::uint32_t last = part_count_ - 1;
    Variables variables;
    add_variables(*result, variables);
    for (const ir::Var* one : variables) waiting_.push_back({last, one});
    parts_[last].results.push_back(result);
    return {.part = last, .index = static_cast<std::uint32_t>(parts_[last].results.size() - 1)};
  }

  [[nodiscard]] Source source(const Made& made) const {
    if (made.part != Source::caller) return {.part = made.part, .index = made.output};
    const auto& params = function_->params;
    const auto at = std::find(params.begin(), params.end(), made.var);
    return {.part = Source::caller, .index = static_cast<std::uint32_t>(at - params.begin())};
  }

  CutPart finish(Draft& draft) const {
    const auto by_order = [](const Made* a, const Made* b) { return a->order < b->order; };
    std::sort(draft.sizes.begin(), draft.sizes.end(), by_order);
    std::sort(draft.values.begin(), draft.values.end(), by_order);
    CutPart out;
    ir::FunctionParts parts{.name = function_->name, .dims = function_->dims};
    for (const Made* made : draft.sizes) {
      parts.dims.push_back(made->var);
      out.learned.push_back({.from = source(*made), .at = made->at});
    }
    for (const Made* made : draft.values) {
      parts.params.push_back(made->var);
      out.inputs.push_back(source(*made));
    }
    parts.body = std::move(draft.body);
    parts.results = std::move(draft.results);
    out.function = ir::function(std::move(parts), function_->span());
    return out;
  }

  const ir::FunctionRef& function_;
  std::unordered_map<const ir::Var*, Made> made_;
  std::vector<Uses> uses_;              ///< by statement
  std::vector<std::uint32_t> part_of_;  ///< by statement
  std::uint32_t part_count_ = 1;
  bool learns_ = false;  ///< whether something that is computed or given is a size
  std::vector<Draft> parts_;
  std::vector<std::pair<std::uint32_t, const ir::Var*>> waiting_;  ///< operands that are not taken yet
};

}  // namespace

Result<CutFunction> compiler::cut_at_learned_sizes(const ir::FunctionRef& function) {
  return Cutter(function).run();
}
