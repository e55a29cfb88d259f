#include <algorithm>

#include "tessera/compile/constants.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/compile/pipeline.h"
#include "tessera/ir/dead_code.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/ir/walk.h"
#include "tests/differential/check.h"
#include "tests/differential/runs.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// What may take the place of a function; null if there is nothing.
using Change = std::function<ir::FunctionRef(const ir::FunctionRef&)>;

/// The program with a change of its n-th function, in the order of rewrite_functions.
ir::FunctionRef changed(const ir::FunctionRef& root, std::size_t number, const Change& change) {
  std::size_t at = 0;
  auto out = compiler::rewrite_functions(root, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    const ir::FunctionRef other = at++ == number ? change(one) : nullptr;
    return other == nullptr ? one : other;
  });
  return out && *out != root ? *out : nullptr;
}

/// What could stand for a value: one of the same type that the statement takes, a parameter, or zeros.
std::vector<ir::ExprRef> stand_ins(const ir::Function& function, const ir::Expr& value,
                                   const ir::Var& target) {
  std::vector<ir::ExprRef> out;
  const auto type = op::value_type(*target.type);
  if (!type || !ir::is<ir::TensorType>(target.type)) return out;
  if (const auto* call = ir::as<ir::Call>(value))
    for (const ir::ExprRef& arg : call->args)
      if (ir::is<ir::Var>(arg) && op::operand_type(*arg) == type) out.push_back(arg);
  for (const auto& param : function.params)
    if (op::value_type(*param->type) == type) out.emplace_back(param);
  if (!ir::constant_shape(type->shape)) return out;
  const auto zeros = op::HostTensor::allocate(type->dtype, op::extents_of(type->shape));
  if (zeros) out.push_back(compiler::dense_constant(*zeros));
  return out;
}

/// The function without a statement, whose values are the n-th that could stand for each.
ir::FunctionRef without_statement(const ir::FunctionRef& function, std::size_t statement,
                                  std::size_t choice) {
  if (statement >= function->body.size()) return nullptr;
  compiler::FunctionDraft draft(function);
  for (std::size_t i = 0; i < function->body.size(); ++i) {
    const auto current = draft.current(function->body[i]);
    if (i != statement) {
      draft.keep(current);
      continue;
    }
    for (const auto& target : current->targets) {
      const auto choices = stand_ins(*function, *current->value, *target);
      if (choices.empty() || choice >= choices.size()) return nullptr;
      draft.replace(*target, choices[choice]);
    }
  }
  return draft.finish();
}

/// Without one statement that nothing uses.
ir::FunctionRef without_unused(const ir::FunctionRef& function, std::size_t statement) {
  if (statement >= function->body.size()) return nullptr;
  compiler::UseCounts uses(*function);
  for (const auto& target : function->body[statement]->targets)
    if (uses.of(*target) != 0 || !ir::is<ir::TensorType>(target->type)) return nullptr;
  auto draft = std::make_unique<ir::Function>(*function);
  draft->body.erase(draft->body.begin() + static_cast<std::ptrdiff_t>(statement));
  return ir::seal(std::move(draft));
}

/// The calls that could stand for a region: each of its branches, or one iteration.
std::vector<ir::ExprRef> calls_of_bodies(const ir::Expr& value) {
  std::vector<ir::ExprRef> out;
  const auto add = [&](const ir::FunctionRef& body, const auto& dims, std::vector<ir::ExprRef> args,
                       const std::vector<ir::ExprRef>& captures) {
    auto draft = std::make_unique<ir::Invoke>();
    draft->callee = body;
    draft->dims = dims;
    draft->args = std::move(args);
    draft->args.insert(draft->args.end(), captures.begin(), captures.end());
    out.push_back(ir::seal(std::move(draft)));
  };
  if (const auto* branch = ir::as<ir::IfRegion>(value))
    for (const auto& body : {branch->then_body, branch->else_body})
      add(body, branch->dims, {}, branch->captures);
  if (const auto* choice = ir::as<ir::SwitchRegion>(value))
    for (const auto& body : choice->bodies) add(body, choice->dims, {}, choice->captures);
  if (const auto* loop = ir::as<ir::WhileRegion>(value))
    add(loop->body, loop->dims, loop->inits, loop->captures);
  if (const auto* loop = ir::as<ir::ForRegion>(value)) {
    std::vector<ir::ExprRef> args{
        compiler::dense_constant(value_or_throw(op::HostTensor::allocate(ir::Dtype::i64, {})))};
    args.insert(args.end(), loop->inits.begin(), loop->inits.end());
    add(loop->body, loop->dims, std::move(args), loop->captures);
  }
  return out;
}

ir::FunctionRef without_region(const ir::FunctionRef& function, std::size_t statement, std::size_t choice) {
  if (statement >= function->body.size()) return nullptr;
  const auto& old = function->body[statement];
  const auto calls = calls_of_bodies(*old->value);
  if (choice >= calls.size()) return nullptr;
  auto draft = std::make_unique<ir::Function>(*function);
  draft->body[statement] = ir::assign(old->targets, calls[choice], old->span());
  return ir::seal(std::move(draft));
}

std::size_t statements_below(const ir::Function& function) {
  std::size_t out = 0;
  for (const ir::Function* one : ir::functions_below(function)) out += one->body.size();
  return out;
}

std::size_t regions_below(const ir::Function& function) {
  std::size_t out = 0;
  for (const ir::Function* one : ir::functions_below(function))
    for (const auto& statement : one->body)
      out += !calls_of_bodies(*statement->value).empty() ? 2 : ir::is<ir::Invoke>(statement->value) ? 1 : 0;
  return out;
}

/// Whether a type mentions no size that is computed.
bool has_known_sizes(const ir::Function& function, const ir::Type& type) {
  bool out = true;
  ir::for_each_use(type, [&](const ir::Var& var) {
    out = out && std::any_of(function.dims.begin(), function.dims.end(),
                             [&](const auto& dim) { return dim.get() == &var; });
  });
  return out;
}

/// Makes a failing program smaller: fewer results, what is computed becomes an input or goes, regions become
/// one of their bodies; in the bodies of regions too.
class Reducer {
 public:
  Reducer(Program program, const Failure& failure)
      : best_(std::move(program)), failure_(failure), kind_(kind_of(failure(best_))) {}

  Program run() {
    if (kind_.empty()) return std::move(best_);
    reduce();
    keeps_unused_ = true;
    reduce();
    return std::move(best_);
  }

 private:
  void reduce() {
    for (bool smaller = true; smaller;) {
      smaller = false;
      while (drop_a_result()) smaller = true;
      while (return_earlier()) smaller = true;
      for (std::size_t i = 0; i < best_.function->body.size(); ++i) smaller = cut(i) || smaller;
      smaller = replace_regions() || smaller;
      smaller = drop_statements() || smaller;
    }
  }

  /// Takes a program over if it is smaller and still fails: without what nothing uses, or, at last, with it.
  bool take(const Program& candidate) {
    Program clean = candidate;
    clean.function = ir::without_dead_code(clean.function);
    return take_as_it_is(std::move(clean)) || (keeps_unused_ && take_as_it_is(candidate));
  }

  bool take_as_it_is(Program candidate) {
    const auto used = ir::used_parameters(*candidate.function);
    if (candidate.sizes.empty()) {
      candidate.function = ir::with_parameters(candidate.function, used);
      std::size_t at = 0;
      std::erase_if(candidate.inputs, [&](const auto&) { return !used[at++]; });
    }
    if (weight(candidate) >= weight(best_) || kind_of(failure_(candidate)) != kind_) return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Who failed: the first word of a failure.
  static std::string kind_of(const std::optional<std::string>& failure) {
    return failure ? failure->substr(0, failure->find_first_of(" ,:")) : "";
  }

  static std::size_t weight(const Program& program) {
    return 10 * statements_below(*program.function) + 15 * regions_below(*program.function) +
           3 * program.function->results.size() + program.inputs.size();
  }

  bool drop_a_result() {
    for (std::size_t i = 0; best_.function->results.size() > 1 && i < best_.function->results.size(); ++i) {
      auto draft = std::make_unique<ir::Function>(*best_.function);
      draft->results.erase(draft->results.begin() + static_cast<std::ptrdiff_t>(i));
      if (take(with(ir::seal(std::move(draft))))) return true;
    }
    return false;
  }

  /// The results of an earlier statement instead.
  bool return_earlier() {
    for (const auto& statement : best_.function->body) {
      if (!ir::is<ir::TensorType>(statement->targets.back()->type)) continue;
      auto draft = std::make_unique<ir::Function>(*best_.function);
      draft->results.assign(statement->targets.begin(), statement->targets.end());
      if (take(with(ir::seal(std::move(draft))))) return true;
    }
    return false;
  }

  /// What a statement computes becomes an input.
  bool cut(std::size_t i) {
    const auto& statement = best_.function->body[i];
    for (const auto& target : statement->targets)
      if (!ir::is<ir::TensorType>(target->type) || !has_known_sizes(*best_.function, *target->type))
        return false;
    auto probe = std::make_unique<ir::Function>(*best_.function);
    probe->results.assign(statement->targets.begin(), statement->targets.end());
    const auto values = run_reference(*ir::seal(std::move(probe)), best_, best_.first_parameters);
    if (!values) return false;
    auto draft = std::make_unique<ir::Function>(*best_.function);
    draft->body.erase(draft->body.begin() + static_cast<std::ptrdiff_t>(i));
    draft->params.insert(draft->params.end(), statement->targets.begin(), statement->targets.end());
    Program candidate = with(ir::seal(std::move(draft)));
    candidate.inputs.insert(candidate.inputs.end(), values->begin(), values->end());
    return take(candidate);
  }

  /// The first of some changes of a statement, of any function, that is taken.
  bool change_somewhere(const std::function<ir::FunctionRef(const ir::FunctionRef&, std::size_t)>& change) {
    for (std::size_t n = 0; n < ir::functions_below(*best_.function).size(); ++n)
      for (std::size_t i = 0; i < ir::functions_below(*best_.function)[n]->body.size(); ++i) {
        const auto function = changed(best_.function, n, [&](const auto& one) { return change(one, i); });
        if (function != nullptr && take(with(function))) return true;
      }
    return false;
  }

  /// Bodies in the place of regions, and what they compute in the place of calls.
  bool replace_regions() {
    bool any = false;
    for (std::size_t choice = 0; choice < 3; ++choice)
      while (change_somewhere([&](const auto& one, std::size_t i) { return without_region(one, i, choice); }))
        any = true;
    for (const compiler::Pass& pass : compiler::function_passes()) {
      if (pass.name != "inline_calls") continue;
      const compiler::PassOptions options;
      compiler::PassContext context(options);
      const auto inlined = std::get<compiler::PassFunction>(pass.run)(best_.function, context);
      return (inlined && *inlined != best_.function && take(with(*inlined))) || any;
    }
    return any;
  }

  bool drop_statements() {
    bool any = false;
    while (change_somewhere([](const auto& one, std::size_t i) { return without_unused(one, i); }))
      any = true;
    for (std::size_t choice = 0; choice < 3; ++choice)
      while (
          change_somewhere([&](const auto& one, std::size_t i) { return without_statement(one, i, choice); }))
        any = true;
    return any;
  }

  [[nodiscard]] Program with(ir::FunctionRef function) const {
    Program out = best_;
    out.function = std::move(function);
    return out;
  }

  Program best_;
  const Failure& failure_;
  bool keeps_unused_ = false;
  std::string kind_;
};

}  // namespace

Program tessera::differential::reduced(Program program, const Failure& failure) {
  return Reducer(std::move(program), failure).run();
}

Program tessera::differential::reduced(Program program, const Variant& variant) {
  return reduced(std::move(program), [&](const Program& one) { return check(one, variant).failure; });
}
