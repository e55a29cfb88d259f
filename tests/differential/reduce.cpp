#include <algorithm>

#include "tessera/compile/purity.h"
#include "tessera/ir/dead_code.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/op/interpreter.h"
#include "tests/differential/check.h"
#include "tests/differential/runs.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// Makes a failing program smaller: fewer results, then what is computed becomes an input, one by one.
class Reducer {
 public:
  Reducer(Program program, const Variant& variant)
      : best_(std::move(program)), variant_(variant), kind_(kind_of(check(best_, variant).failure)) {}

  Program run() {
    for (bool smaller = !kind_.empty(); smaller;) {
      smaller = false;
      while (drop_a_result()) smaller = true;
      while (return_earlier()) smaller = true;
      for (std::size_t i = 0; i < best_.function->body.size(); ++i) smaller = cut(i) || smaller;
    }
    return std::move(best_);
  }

 private:
  /// Takes a program over if it is smaller and still fails.
  bool take(Program candidate) {
    candidate.function = ir::without_dead_code(candidate.function);
    const auto used = ir::used_parameters(*candidate.function);
    if (candidate.sizes.empty()) {
      candidate.function = ir::with_parameters(candidate.function, used);
      std::size_t at = 0;
      std::erase_if(candidate.inputs, [&](const auto&) { return !used[at++]; });
    }
    if (weight(candidate) >= weight(best_) || kind_of(check(candidate, variant_).failure) != kind_)
      return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Who failed: the first word of a failure.
  static std::string kind_of(const std::optional<std::string>& failure) {
    return failure ? failure->substr(0, failure->find_first_of(" ,:")) : "";
  }

  static std::size_t weight(const Program& program) {
    return 10 * program.function->body.size() + 3 * program.function->results.size() + program.inputs.size();
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
      if (!ir::is<ir::TensorType>(statement->targets[0]->type)) continue;
      auto draft = std::make_unique<ir::Function>(*best_.function);
      draft->results.assign(statement->targets.begin(), statement->targets.end());
      if (take(with(ir::seal(std::move(draft))))) return true;
    }
    return false;
  }

  /// What a statement computes becomes an input.
  bool cut(std::size_t i) {
    const auto& statement = best_.function->body[i];
    const ir::Type& type = *statement->targets[0]->type;
    if (!ir::is<ir::TensorType>(type) || (type.has_variables() && best_.sizes.empty())) return false;
    auto probe = std::make_unique<ir::Function>(*best_.function);
    probe->results.assign(statement->targets.begin(), statement->targets.end());
    const auto values = run_reference(*ir::seal(std::move(probe)), best_, best_.first_parameters);
    if (!values) return false;
    auto draft = std::make_unique<ir::Function>(*best_.function);
    draft->body.erase(draft->body.begin() + static_cast<std::ptrdiff_t>(i));
    draft->params.insert(draft->params.end(), statement->targets.begin(), statement->targets.end());
    Program candidate = with(ir::seal(std::move(draft)));
    candidate.inputs.insert(candidate.inputs.end(), values->begin(), values->end());
    return take(std::move(candidate));
  }

  [[nodiscard]] Program with(ir::FunctionRef function) const {
    Program out = best_;
    out.function = std::move(function);
    return out;
  }

  Program best_;
  const Variant& variant_;
  std::string kind_;
};

}  // namespace

Program tessera::differential::reduced(Program program, const Variant& variant) {
  return Reducer(std::move(program), variant).run();
}
