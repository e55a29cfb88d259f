#include "tessera/op/interpreter.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_set>

#include "tessera/base/run_meter.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/number_bits.h"
#include "tessera/ir/visit.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/wide.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

using Tensors = std::vector<HostTensor>;

HostTensor rank0(const ScalarValue& value) {
  HostTensor out = value_or_throw(HostTensor::allocate(value.dtype, {}));
  if (ir::is_float(value.dtype)) {
    storer<double>(value.dtype)(out.array().data, 0, 1, 1, &value.number);
  } else {
    const SignedWide integer = value.integer;
    storer<SignedWide>(value.dtype)(out.array().data, 0, 1, 1, &integer);
  }
  return out;
}

ScalarValue scalar_of(const HostTensor& tensor) {
  ScalarValue out{tensor.dtype(), 0, 0};
  if (ir::is_float(tensor.dtype())) {
    loader<double>(tensor.dtype())(tensor.array().data, 0, 1, 1, &out.number);
  } else {
    SignedWide integer;
    loader<SignedWide>(tensor.dtype())(tensor.array().data, 0, 1, 1, &integer);
    out.integer = integer.v;
  }
  return out;
}

/// "while", with the name of its body where that is not just "body".
std::string loop_title(std::string_view kind, const ir::FunctionRef& body) {
  const std::string& name = body->name;
  return name.empty() || name == "body" ? std::string(kind)
                                        : cat(kind, " '", printable(shortened(name, 60)), "'");
}

/// The in-place calls of a function whose first argument nothing reads afterwards.
class LastReads {
 public:
  explicit LastReads(const ir::Function& function) {
    const bool any = std::any_of(function.body.begin(), function.body.end(),
                                 [](const auto& statement) { return is_in_place(*statement->value); });
    if (!any) return;
    for (const ir::ExprRef& result : function.results) read(*result);
    for (std::size_t i = function.body.size(); i-- > 0;) {
      const ir::Expr& value = *function.body[i]->value;
      if (is_in_place(value) && is_last(static_cast<const ir::Call&>(value))) calls_.insert(&value);
      read(value);
    }
  }

  [[nodiscard]] bool contains(const ir::Call& call) const { return calls_.count(&call) != 0; }

 private:
  static bool is_in_place(const ir::Expr& value) {
    const auto* call = ir::as<ir::Call>(value);
    const Card* card = call == nullptr || call->args.empty() ? nullptr : find_card(call->op);
    return card != nullptr && card->traits.in_place;
  }

  bool is_last(const ir::Call& call) {
    const auto* first = ir::as<ir::Var>(call.args[0]);
    return first != nullptr && read_.find(*first) == nullptr &&
           std::find(call.args.begin() + 1, call.args.end(), call.args[0]) == call.args.end();
  }

  /// Marks the variables in an expression. Bodies of regions are closed.
  void read(const ir::Expr& expr) {
    SmallVector<const ir::Node*, 16> stack{&expr};
    while (!stack.empty()) {
      const ir::Node& next = *stack.back();
      stack.pop_back();
      if (ir::is<ir::Var>(next)) read_[next] = true;
      if (next.has_variables() && !ir::is<ir::Var>(next) && !ir::is<ir::Function>(next))
        ir::for_each_child(next, [&](const ir::Node& child) { stack.push_back(&child); });
    }
  }

  ir::NodeTable<bool> read_;
  std::unordered_set<const ir::Expr*> calls_;
};

/// One run of one function. Regions recurse into other runs; a program nests as deep as its text.
class Run {
 public:
  Run(const ir::Function& function, const LastReads& last_reads, const InterpreterOptions& options, int depth)
      : function_(function), last_reads_(last_reads), options_(options), depth_(depth) {}

  Result<Tensors> operator()(Tensors inputs, std::span<const std::int64_t> sizes) {
    if (depth_ > 400) return Error(ErrorCode::limit, "regions nested deeper than 400 levels");
    if (inputs.size() != function_.params.size())
      return Error(ErrorCode::invalid_argument,
                   cat("the function takes ", function_.params.size(), " inputs, got ", inputs.size()));
    for (std::size_t i = 0; i < sizes.size() && i < function_.dims.size(); ++i)
      sizes_[*function_.dims[i]] = sizes[i];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      TESSERA_TRY(bind_parameter(*function_.params[i], std::move(inputs[i])));
    for (const auto& statement : function_.body) {
      auto done = execute(*statement);
      if (!done) return std::move(done).error().at(statement->span().resolve());
    }
    Tensors out;
    for (const ir::ExprRef& result : function_.results) out.push_back(TESSERA_TRY(operand(*result)));
    return out;
  }

 private:
  // ---- sizes

  Result<void> bind_parameter(const ir::Var& var, HostTensor tensor) {
    const auto type = value_type(*var.type);
    if (!type) return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(var), "' is a tuple"));
    const bool same_rank = type->rank() == tensor.shape().size();
    if (type->dtype != tensor.dtype() || !same_rank) return wrong_input(var, tensor);
    for (std::size_t i = 0; i < type->rank(); ++i) {
      const Dim& dim = type->shape[i];
      const auto* symbol = dim.is_constant() ? nullptr : ir::as<ir::Var>(dim.expr());
      if (symbol != nullptr && sizes_.find(*symbol) == nullptr) sizes_[*symbol] = tensor.shape()[i];
      const auto size = number(dim);
      if (size && *size != tensor.shape()[i]) return wrong_input(var, tensor);
    }
    Tensors& value = values_[var];
    value.clear();
    value.push_back(std::move(tensor));
    return {};
  }

  static Error wrong_input(const ir::Var& var, const HostTensor& tensor) {
    return Error(ErrorCode::shape, cat("input '", ir::describe(var), "' must be ", ir::describe(*var.type),
                                       ", got ", tensor.dtype(), "[", join(tensor.shape(), ", "), "]"));
  }

  std::optional<std::int64_t> number(const Dim& dim) {
    if (dim.is_constant()) return dim.value();
    return ir::evaluate(dim, [&](const ir::Var& var) { return size_of_symbol(var); });
  }

  std::optional<std::int64_t> size_of_symbol(const ir::Var& var) {
    if (const std::int64_t* size = sizes_.find(var)) return *size;
    const Tensors* tensors = values_.find(var);
    if (tensors == nullptr || tensors->size() != 1 || (*tensors)[0].size() != 1) return std::nullopt;
    return scalar_of((*tensors)[0]).integer;
  }

  Result<Attributes> with_numbers(const Attributes& attributes) {
    Attributes out = attributes;
    for (auto& [name, value] : out.mutable_entries())
      if (auto* shape = std::get_if<Shape>(&value))
        for (Dim& dim : *shape) {
          const auto size = number(dim);
          if (!size)
            return Error(ErrorCode::invalid_argument,
                         cat("the size ", dim, " of attribute '", name, "' is not known"));
          dim = *size;
        }
    return out;
  }

  // ---- operands

  Result<HostTensor> operand(const ir::Expr& expr) {
    if (const auto* var = ir::as<ir::Var>(expr)) {
      if (const Tensors* tensors = values_.find(*var); tensors != nullptr && tensors->size() == 1)
        return (*tensors)[0];
    }
    if (const auto* dense = ir::as<ir::Dense>(expr)) return constant(*dense);
    const auto value = evaluate_scalar(expr, [&](const ir::Expr& leaf) { return scalar(leaf); });
    if (!value)
      return Error(ErrorCode::invalid_argument, cat("'", ir::describe(expr), "' has no value here"));
    return rank0(*value);
  }

  Result<HostTensor> constant(const ir::Dense& dense) {
    Extents shape;
    for (const Dim& dim : dense.type->shape) shape.push_back(dim.is_constant() ? dim.value() : 0);
    HostTensor out = TESSERA_TRY(HostTensor::allocate(dense.type->dtype, shape));
    if (out.byte_size() != dense.data.size())
      return Error(ErrorCode::invalid_argument, "a dense constant has the wrong number of bytes");
    std::copy(dense.data.span().begin(), dense.data.span().end(), out.array().data);
    return out;
  }

  std::optional<ScalarValue> scalar(const ir::Expr& leaf) {
    if (const auto* param = ir::as<ir::Param>(leaf)) {
      const std::uint64_t bits = param->slot < options_.parameters.size()
                                     ? options_.parameters[param->slot]
                                     : ir::number_bits(param->value, param->dtype);
      return ir::is_float(param->dtype) ? ScalarValue{param->dtype, std::bit_cast<double>(bits), 0}
                                        : ScalarValue{param->dtype, 0, static_cast<std::int64_t>(bits)};
    }
    const auto* var = ir::as<ir::Var>(leaf);
    if (var == nullptr) return std::nullopt;
    if (const std::int64_t* size = sizes_.find(*var)) return ScalarValue{Dtype::i64, 0, *size};
    const Tensors* tensors = values_.find(*var);
    if (tensors == nullptr || tensors->size() != 1 || (*tensors)[0].size() != 1) return std::nullopt;
    return scalar_of((*tensors)[0]);
  }

  Result<Tensors> operands(std::span<const ir::ExprRef> list) {
    Tensors out;
    for (const ir::ExprRef& one : list) out.push_back(TESSERA_TRY(operand(*one)));
    return out;
  }

  // ---- statements

  Result<void> execute(const ir::Assign& statement) {
    statement_ = &statement;
    Tensors results = TESSERA_TRY(value(*statement.value));
    const bool is_tuple = ir::is<ir::Tuple>(*statement.value);
    if (is_tuple) {
      values_[*statement.targets[0]] = std::move(results);
      return {};
    }
    if (results.size() != statement.targets.size())
      return Error(ErrorCode::invalid_argument,
                   cat("expected ", results.size(), " targets, got ", statement.targets.size()));
    for (std::size_t i = 0; i < results.size(); ++i) values_[*statement.targets[i]] = {std::move(results[i])};
    return {};
  }

  Result<Tensors> value(const ir::Expr& expr) {
    switch (expr.kind()) {
      case ir::NodeKind::call:
        return call(static_cast<const ir::Call&>(expr));
      case ir::NodeKind::tuple:
        return operands(static_cast<const ir::Tuple&>(expr).elements);
      case ir::NodeKind::item:
        return item(static_cast<const ir::Item&>(expr));
      case ir::NodeKind::invoke: {
        const auto& invoke = static_cast<const ir::Invoke&>(expr);
        return enter(invoke.callee, invoke.dims, TESSERA_TRY(operands(invoke.args)));
      }
      case ir::NodeKind::if_region:
        return if_region(static_cast<const ir::IfRegion&>(expr));
      case ir::NodeKind::switch_region:
        return switch_region(static_cast<const ir::SwitchRegion&>(expr));
      case ir::NodeKind::while_region:
        return while_region(static_cast<const ir::WhileRegion&>(expr));
      case ir::NodeKind::for_region:
        return for_region(static_cast<const ir::ForRegion&>(expr));
      default:
        return Tensors{TESSERA_TRY(operand(expr))};
    }
  }

  Result<Tensors> call(const ir::Call& call) {
    const Card* card = find_card(call.op);
    if (card == nullptr) return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
    const Attributes attributes =
        TESSERA_TRY(complete_attributes(*card, TESSERA_TRY(with_numbers(call.attrs))));
    const Tensors inputs = TESSERA_TRY(operands(call.args));
    std::vector<Array> arrays;
    for (const HostTensor& input : inputs) arrays.push_back(input.array());
    TESSERA_TRY(take_work(*card, arrays, attributes));
    if (options_.run_call) return options_.run_call(*card, arrays, attributes);
    if (last_reads_.contains(call)) {
      values_[*call.args[0]].clear();
      if (inputs[0].is_unshared()) return update(*card, inputs[0], arrays, attributes);
    }
    return run_reference(*card, arrays, attributes);
  }

  /// What a call in a region takes of the work of the run; a whole plan's is known before.
  [[nodiscard]] Result<void> take_work(const Card& card, std::span<const Array> inputs,
                                       const Attributes& attributes) const {
    RunMeter* meter = RunMeter::current();
    if (meter == nullptr || depth_ == 0) return {};
    ValueTypes types;
    for (const Array& input : inputs) types.push_back({input.dtype, ir::shape_of(input.shape())});
    return meter->take_work(work_of({card, types, attributes}, TESSERA_TRY(infer(card, types, attributes))));
  }

  /// A call in the memory of its first input: a loop that writes one row in each iteration copies none.
  static Result<Tensors> update(const Card& card, const HostTensor& first, std::span<const Array> inputs,
                                const Attributes& attributes) {
    ValueTypes types;
    for (const Array& input : inputs) types.push_back({input.dtype, ir::shape_of(input.shape())});
    TESSERA_TRY(infer(card, types, attributes));
    TESSERA_TRY(run_reference(CallInfo(card, types, attributes), inputs, {&first.array(), 1}));
    return Tensors{first};
  }

  Result<Tensors> item(const ir::Item& item) {
    const auto* var = ir::as<ir::Var>(item.tuple);
    const Tensors* tuple = var == nullptr ? nullptr : values_.find(*var);
    if (tuple == nullptr || item.index >= tuple->size())
      return Error(ErrorCode::invalid_argument, "no such element of a tuple");
    return Tensors{(*tuple)[item.index]};
  }

  // ---- regions

  Result<std::vector<std::int64_t>> sizes_of(std::span<const ir::ExprRef> dims) {
    std::vector<std::int64_t> sizes;
    for (const ir::ExprRef& dim : dims) sizes.push_back(scalar_of(TESSERA_TRY(operand(*dim))).integer);
    return sizes;
  }

  Result<Tensors> enter(const ir::FunctionRef& body, std::span<const ir::ExprRef> dims, Tensors inputs) {
    const auto sizes = TESSERA_TRY(sizes_of(dims));
    return run_body(body, LastReads(*body), std::move(inputs), sizes);
  }

  Result<Tensors> run_body(const ir::FunctionRef& body, const LastReads& reads, Tensors inputs,
                           std::span<const std::int64_t> sizes) {
    if (options_.run_body)
      if (auto done = TESSERA_TRY(options_.run_body(body, inputs, sizes))) return *std::move(done);
    return Run(*body, reads, options_, depth_ + 1)(std::move(inputs), sizes);
  }

  /// An error of an iteration. If the limits of the run ended it, the message says in which loop: by the name
  /// of its body, or of what it gives.
  [[nodiscard]] Error in_loop(Error error, std::string_view kind, const ir::FunctionRef& body,
                              std::int64_t iteration) const {
    const RunMeter* meter = RunMeter::current();
    if (meter == nullptr || !meter->has_ended(error)) return error;
    std::string title = loop_title(kind, body);
    if (title == kind && !statement_->targets.empty())
      title += cat(" '", printable(shortened(statement_->targets[0]->name, 60)), "'");
    return {error.code(), cat(title, ", iteration ", iteration, ": ", error.message()), error.span()};
  }

  /// A body of a loop, if there is time left.
  Result<Tensors> run_iteration(const ir::FunctionRef& body, const LastReads& reads, Tensors inputs,
                                std::span<const std::int64_t> sizes) {
    TESSERA_TRY(RunMeter::check());
    return run_body(body, reads, std::move(inputs), sizes);
  }

  Result<std::int64_t> integer(const ir::Expr& expr) { return scalar_of(TESSERA_TRY(operand(expr))).integer; }

  Result<Tensors> if_region(const ir::IfRegion& region) {
    const bool condition = TESSERA_TRY(integer(*region.condition)) != 0;
    return enter(condition ? region.then_body : region.else_body, region.dims,
                 TESSERA_TRY(operands(region.captures)));
  }

  Result<Tensors> switch_region(const ir::SwitchRegion& region) {
    const auto index = static_cast<std::uint64_t>(TESSERA_TRY(integer(*region.index)));
    const auto& body = region.bodies[std::min<std::uint64_t>(index, region.bodies.size() - 1)];
    return enter(body, region.dims, TESSERA_TRY(operands(region.captures)));
  }

  Result<Tensors> while_region(const ir::WhileRegion& region) {
    Tensors state = TESSERA_TRY(operands(region.inits));
    const Tensors captures = TESSERA_TRY(operands(region.captures));
    const auto sizes = TESSERA_TRY(sizes_of(region.dims));
    const LastReads in_condition(*region.condition), in_body(*region.body);
    const std::int64_t limit = region.limit.value_or(options_.loop_limit);
    for (std::int64_t iteration = 0;; ++iteration) {
      Tensors arguments = state;
      arguments.insert(arguments.end(), captures.begin(), captures.end());
      const auto more = run_iteration(region.condition, in_condition, arguments, sizes);
      if (!more) return in_loop(more.error(), "while", region.body, iteration);
      if (scalar_of(more->at(0)).integer == 0) return state;
      if (iteration == limit)
        return Error(ErrorCode::limit, cat(loop_title("while", region.body), ": goes on after its limit of ",
                                           limit, " iterations"));
      state.clear();  // so that the body may write where it was
      auto next = run_iteration(region.body, in_body, std::move(arguments), sizes);
      if (!next) return in_loop(std::move(next).error(), "while", region.body, iteration);
      state = *std::move(next);
    }
  }

  Result<Tensors> for_region(const ir::ForRegion& region) {
    Tensors state = TESSERA_TRY(operands(region.inits));
    const Tensors captures = TESSERA_TRY(operands(region.captures));
    const auto sizes = TESSERA_TRY(sizes_of(region.dims));
    const LastReads in_body(*region.body);
    const std::int64_t count = TESSERA_TRY(integer(*region.count));
    for (std::int64_t i = 0; i < count; ++i) {
      Tensors arguments{rank0({Dtype::i64, 0, i})};
      std::move(state.begin(), state.end(), std::back_inserter(arguments));
      arguments.insert(arguments.end(), captures.begin(), captures.end());
      auto next = run_iteration(region.body, in_body, std::move(arguments), sizes);
      if (!next) return in_loop(std::move(next).error(), "for", region.body, i);
      state = *std::move(next);
    }
    return state;
  }

  const ir::Function& function_;
  const LastReads& last_reads_;
  const InterpreterOptions& options_;
  int depth_;
  const ir::Assign* statement_ = nullptr;  ///< that is being executed
  ir::NodeTable<std::int64_t> sizes_;
  ir::NodeTable<Tensors> values_;
};

}  // namespace

Result<std::vector<HostTensor>> tessera::op::interpret(const ir::Function& function,
                                                       std::span<const HostTensor> inputs,
                                                       const InterpreterOptions& options,
                                                       std::span<const std::int64_t> sizes) {
  return Run(function, LastReads(function), options, 0)({inputs.begin(), inputs.end()}, sizes);
}
