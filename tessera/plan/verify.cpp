#include "tessera/plan/verify.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/kernel/build.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/validate.h"
#include "tessera/plan/in_place.h"
#include "tessera/plan/size_conditions.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

Error wrong(std::string message) {
  return Error(ErrorCode::parse, "the plan is wrong: " + std::move(message));
}

class Verifier {
 public:
  explicit Verifier(Plan& plan) : plan_(plan) {}

  Result<void> run() {
    for (const auto& dim : plan_.dims) {
      const auto* type = dim == nullptr ? nullptr : ir::as<ir::ScalarType>(dim->type);
      if (type == nullptr || type->dtype != op::Dtype::i64) return wrong("a size symbol is no i64");
      if (std::count(plan_.dims.begin(), plan_.dims.end(), dim) != 1)
        return wrong(cat("the size '", printable(dim->name), "' is there twice"));
    }
    for (ValueId v = 0; v < plan_.values.size(); ++v) {
      auto fine = value(v);
      if (!fine) return std::move(fine).error().note(cat("value ", v));
    }
    for (StepId s = 0; s < plan_.steps.size(); ++s) {
      auto fine = step(s);
      if (!fine) return std::move(fine).error().note(cat("step ", s));
    }
    TESSERA_TRY(results());
    TESSERA_TRY(in_place());
    return add_size_conditions(plan_);
  }

 private:
  Result<void> size(const op::Dim& dim) const {
    if (dim.is_constant()) return {};
    for (const ir::Node* node : ir::post_order(*dim.expr())) {
      const auto* var = ir::as<ir::Var>(*node);
      const bool is_symbol = std::any_of(plan_.dims.begin(), plan_.dims.end(),
                                         [&](const auto& symbol) { return symbol.get() == var; });
      if ((var != nullptr && !is_symbol) || ir::is<ir::Param>(*node))
        return wrong(cat("the size ", dim, " does not follow from the sizes of the plan"));
    }
    return {};
  }

  Result<void> value(ValueId v) const {
    const Value& value = plan_.values[v];
    if (value.type.rank() > op::max_rank) return wrong("a value has too many axes");
    for (const op::Dim& dim : value.type.shape) TESSERA_TRY(size(dim));
    TESSERA_TRY(size(value.size));
    switch (value.kind) {
      case ValueKind::input:
        if (value.index < plan_.inputs.size() && plan_.inputs[value.index] == v) return {};
        return wrong("an input is not in the list of inputs");
      case ValueKind::parameter:
        if (value.index >= plan_.parameters.size() || !is_number(value, plan_.parameters[value.index]))
          return wrong("a parameter has no slot of its type");
        return {};
      case ValueKind::constant:
        return constant(value);
      case ValueKind::size:
        return is_number(value, op::Dtype::i64) ? Result<void>() : wrong("a size is no i64");
      case ValueKind::computed:
        if (value.index >= plan_.steps.size()) return wrong("no step computes a value");
        const auto& results = plan_.steps[value.index].results;
        if (std::count(results.begin(), results.end(), v) != 1) return wrong("no step computes a value");
        return {};
    }
    return wrong("a value of no kind");
  }

  [[nodiscard]] static bool is_number(const Value& value, op::Dtype dtype) {
    return value.type.dtype == dtype && value.type.rank() == 0;
  }

  Result<void> constant(const Value& value) const {
    if (value.index >= plan_.constants.size()) return wrong("a constant is missing");
    const op::HostTensor& tensor = plan_.constants[value.index];
    const auto shape = ir::constant_shape(value.type.shape);
    if (!shape || *shape != tensor.shape() || value.type.dtype != tensor.dtype())
      return wrong(
          cat("a constant is ", tensor.dtype(), "[", join(tensor.shape(), ", "), "], not ", value.type));
    return {};
  }

  Result<void> step(StepId s) {
    Step& step = plan_.steps[s];
    for (const ValueId input : step.inputs) {
      if (input >= plan_.values.size()) return wrong("a step reads a value that is not there");
      const Value& value = plan_.values[input];
      if (value.kind == ValueKind::computed && value.index >= s)
        return wrong("a step reads a value that is computed later");
    }
    for (const ValueId result : step.results)
      if (result >= plan_.values.size() || plan_.values[result].kind != ValueKind::computed ||
          plan_.values[result].index != s)
        return wrong("the result of a step is not its own");
    const bool runs_function = step.kind != StepKind::call && step.kind != StepKind::copy;
    if ((step.card != nullptr) != (step.kind == StepKind::call) ||
        (step.function != nullptr) != runs_function ||
        (step.kernel != nullptr) != (step.kind == StepKind::kernel))
      return wrong("a step has not what it runs, or more");
    if (step.kind == StepKind::call) return call(step);
    if (step.kind == StepKind::copy) return copy(step);
    TESSERA_TRY(function(step));
    return step.kind == StepKind::kernel ? kernel(step) : Result<void>();
  }

  Result<void> call(Step& step) const {
    step.attributes = TESSERA_TRY(op::complete_attributes(*step.card, std::move(step.attributes)));
    for (const auto& [name, attribute] : step.attributes.entries())
      if (const auto* shape = std::get_if<op::Shape>(&attribute))
        for (const op::Dim& dim : *shape) TESSERA_TRY(size(dim));
    return {};
  }

  Result<void> copy(const Step& step) const {
    if (step.inputs.size() != 1 || step.results.size() != 1 || type(step.inputs[0]) != type(step.results[0]))
      return wrong("a copy is not of one value");
    return {};
  }

  [[nodiscard]] const op::ValueType& type(ValueId v) const { return plan_.values[v].type; }

  /// Parameters and results are those of the step, sizes those of the plan.
  Result<void> function(const Step& step) const {
    const ir::Function& function = *step.function;
    const bool same_sizes = std::equal(function.dims.begin(), function.dims.end(), plan_.dims.begin(),
                                       plan_.dims.end(), [](const auto& a, const auto& b) { return a == b; });
    if (!same_sizes || function.params.size() != step.inputs.size() ||
        function.results.size() != step.results.size())
      return wrong("the function of a step has other inputs, results or sizes");
    std::vector<Error> errors = op::validate(function);
    if (!errors.empty()) return std::move(errors.front());
    TESSERA_TRY(slots(function));
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      if (op::value_type(*function.params[i]->type) != type(step.inputs[i]))
        return wrong(cat("input ", i, " of a function has another type"));
    for (std::size_t i = 0; i < step.results.size(); ++i)
      if (op::operand_type(*function.results[i]) != type(step.results[i]))
        return wrong(cat("result ", i, " of a function has another type"));
    return {};
  }

  /// Numbers of a launch are found by slot, in bodies of regions too.
  Result<void> slots(const ir::Function& function) const {
    for (const ir::Node* node : ir::post_order(function))
      if (const auto* parameter = ir::as<ir::Param>(*node);
          parameter != nullptr && (parameter->slot >= plan_.parameters.size() ||
                                   plan_.parameters[parameter->slot] != parameter->dtype))
        return wrong(cat("the parameter $", parameter->slot, " of a function has no slot of its type"));
    return {};
  }

  Result<void> kernel(const Step& step) const {
    const auto built = kernel::build(*step.function);
    if (!built || !kernel::equal(*built, *step.kernel) || built->slots != step.kernel->slots ||
        built->placed_axes != step.kernel->placed_axes)
      return wrong("a kernel is not what its ops say");
    return {};
  }

  Result<void> results() const {
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
      if (plan_.inputs[i] >= plan_.values.size() || plan_.values[plan_.inputs[i]].kind != ValueKind::input ||
          plan_.values[plan_.inputs[i]].index != i)
        return wrong("an input is none");
    for (const ValueId output : plan_.outputs)
      if (output >= plan_.values.size() ||
          (plan_.values[output].kind != ValueKind::computed && plan_.values[output].kind != ValueKind::input))
        return wrong("an output is neither computed nor an input");
    for (const auto& [a, b] : plan_.equal_sizes) {
      TESSERA_TRY(size(a));
      TESSERA_TRY(size(b));
    }
    return {};
  }

  Result<void> in_place() const {
    const auto allowed = find_in_place(plan_);
    for (StepId s = 0; s < plan_.steps.size(); ++s)
      for (const InPlace& pair : plan_.steps[s].in_place)
        if (std::find(allowed[s].begin(), allowed[s].end(), pair) == allowed[s].end())
          return wrong("a result takes memory that is still read").note(cat("step ", s));
    return {};
  }

  Plan& plan_;
};

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program) : program_(program) {}

  Result<void> run() const {
    if (program_.parts.empty()) return wrong("the program has no parts");
    for (std::uint32_t p = 0; p < program_.parts.size(); ++p) {
      auto fine = part(p);
      if (!fine) return std::move(fine).error().note(cat("part ", p + 1));
    }
    const auto count = static_cast<std::uint32_t>(program_.parts.size());
    for (const Source& output : program_.outputs) TESSERA_TRY(source(output, count));
    return {};
  }

 private:
  Result<void> source(const Source& source, std::uint32_t before) const {
    const bool is_input = source.part == Source::caller;
    if (!is_input && source.part >= before) return wrong("a value comes from a part that runs later");
    const std::size_t count =
        is_input ? program_.inputs.size() : program_.parts[source.part].plan->outputs.size();
    return source.index < count ? Result<void>() : wrong("a value comes from nowhere");
  }

  Result<void> part(std::uint32_t p) const {
    const Part& part = program_.parts[p];
    const Plan& plan = *part.plan;
    const std::size_t own = program_.dims.size();
    if (plan.dims.size() != own + part.learned.size() ||
        !std::equal(program_.dims.begin(), program_.dims.end(), plan.dims.begin()))
      return wrong("a part has other sizes than its program");
    if (plan.inputs.size() != part.inputs.size()) return wrong("a part has other inputs than its plan");
    if (plan.parameters.size() > program_.parameters.size()) return wrong("a part has more parameters");
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      TESSERA_TRY(source(part.inputs[i], p));
      const op::ValueType &given = program_.type_of(part.inputs[i]),
                          &taken = plan.values[plan.inputs[i]].type;
      if (given.dtype != taken.dtype || given.rank() != taken.rank())
        return wrong(cat("input ", i, " of a part is ", given, ", not ", taken));
    }
    for (const LearnedSize& size : part.learned) {
      TESSERA_TRY(source(size.from, p));
      if (program_.type_of(size.from) != op::ValueType{op::Dtype::i64, {}})
        return wrong("a size is learned from something else than one i64");
    }
    return {};
  }

  const Program& program_;
};

}  // namespace

Result<void> plan::verify(Plan& plan) { return Verifier(plan).run(); }

Result<void> plan::verify(const Program& program) { return ProgramVerifier(program).run(); }
