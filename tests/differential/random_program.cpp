#include <algorithm>
#include <numeric>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"
#include "tests/differential/custom_ops.h"
#include "tests/differential/program_writer.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::differential;
using fixture::Sample;
using ir::Dtype;
using op::Value;
using op::ValueType;

namespace {

constexpr std::size_t least_statements = 5;

class ProgramGenerator : private ProgramWriter {
 public:
  ProgramGenerator(std::uint64_t seed, const ProgramOptions& options) : ProgramWriter(seed, options) {}

  Program make() {
    Scope scope;
    scope.is_outer = true;
    scope.depth = options_.regions ? 2 : 0;
    if (options_.symbolic)
      for (const auto& [name, size] : fixture::op_samples().front().sizes) add_size(scope, name, size);
    write_steps(scope, least_statements + random_.below(10), least_statements);
    if (scope.pool.empty()) keep(scope, {leaf(scope, {Dtype::f32, {2, 3}})});
    out_.function = value_or_throw(scope.builder.function("main", results_of(scope)));
    if (options_.gradients && scope.sizes.empty() && random_.one_in(4)) take_gradient();
    set_second_parameters();
    return std::move(out_);
  }

 private:
  void write_steps(Scope& scope, std::size_t steps, std::size_t least) {
    for (std::size_t attempt = 0; attempt < 20 * steps; ++attempt) {
      if (scope.builder.statements().size() >= std::max(steps, least)) break;
      write_step(scope);
    }
  }

  void write_step(Scope& scope) {
    if (scope.depth > 0 && random_.one_in(8)) return write_region(scope);
    if (options_.learned && scope.is_outer && random_.one_in(30)) return write_learned(scope);
    if (!scope.pool.empty() && options_.customs && random_.one_in(10)) return write_custom(scope);
    if (!scope.pool.empty() && random_.one_in(3)) return write_peephole(scope);
    if (random_.one_in(12)) return repeat_step(scope);
    write_sample(scope, random_.any(fixture::op_samples()));
  }

  /// The same call once more.
  void repeat_step(Scope& scope) {
    const auto& statements = scope.builder.statements();
    if (statements.empty()) return;
    const auto* old = ir::as<ir::Call>(random_.any(statements)->value);
    if (old == nullptr) return;
    std::vector<Value> inputs;
    for (const auto& arg : old->args) inputs.push_back(scope.builder.import(arg, *op::operand_type(*arg)));
    keep(scope, call_all(scope, old->op, inputs, old->attrs));
  }

  /// A tensor of a size that depends on data: mostly on an input, where nobody knows what is exact.
  void write_learned(Scope& scope) {
    const ValueType type{any_dtype(op::all_dtypes), {2, 3}};
    Value of = follows() ? value(scope, type, -1, 1, Operands::exact) : leaf(scope, type, -1, 1);
    for (const Value v : scope.pool)
      if (v.rank() > 0 && is_exact(scope, v) && is_tensor(scope, v) && random_.one_in(follows() ? 4 : 32))
        of = v;
    if (of && is_tensor(scope, of)) keep(scope, write_nonzero(scope, of));
  }

  void write_custom(Scope& scope) {
    const CustomOp& op = random_.any(custom_ops());
    std::vector<Value> inputs{random_.any(scope.pool)};
    while (inputs.size() < op.arguments) inputs.push_back(value(scope, inputs[0].type()));
    keep(scope, call_all(scope, op.name, inputs, {}));
  }

  // ---- the samples of the catalogue

  void write_sample(Scope& scope, const Sample& sample) {
    const op::Card& card = *sample.card;
    const Dtype dtype = any_dtype(card.T);
    if (!card.T.contains(dtype)) return;
    Sample::Sizes sizes = sample.sizes;
    const bool indexes = std::any_of(sample.inputs.begin(), sample.inputs.end(), [](const auto& input) {
      return input.type != "T" && input.type != "U" && input.type != "bool";
    });
    if (!indexes && random_.one_in(3))
      for (auto& [name, size] : sizes)
        if (random_.one_in(4)) size = static_cast<std::int64_t>(random_.below(4));
    op::ValueTypes types = sample.types(dtype, options_.symbolic ? nullptr : &sizes);
    op::Attributes attributes = sample.attributes_with(options_.symbolic ? nullptr : &sizes);
    for (ValueType& type : types) type = in_scope(type, scope);
    attributes = in_scope(attributes, scope);
    const auto complete = op::complete_attributes(card, attributes);
    if (!complete || !op::infer(card, types, *complete)) return;
    // Half of the operands are exact: those of ops with jumps must be.
    const Operands operands = random_.one_in(2) ? Operands::exact : Operands::any;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto& input = sample.inputs[i];
      const bool free = input.type == "T" || input.type == "bool";
      inputs.push_back(free ? value(scope, types[i], input.low, input.high, operands)
                            : leaf(scope, types[i], input.low, input.high));
    }
    keep(scope, call_all(scope, card.name, inputs, *complete));
  }

  // ---- what passes look for

  void write_peephole(Scope& scope) {
    const Value v = random_.any(scope.pool);
    Value out;
    switch (random_.below(9)) {
      case 0:
        out = with_number(scope, v);
        break;
      case 1:
        out = call(scope, any_of(binary()), {v, v});
        break;
      case 2:
      case 3:
        out = call(scope, any_of(unary()), {v});
        break;
      case 4:
        out = reshaped(scope, v);
        break;
      case 5:
        out = call(scope, "transpose", {v}, {{"permutation", any_order(v.rank())}});
        break;
      case 6:
        out = call(scope, "cast", {v}, {{"dtype", any_dtype(op::all_dtypes)}});
        break;
      case 7:
        out = call(scope, any_of(binary()), {v, value(scope, v.type())});
        break;
      default:
        out = viewed(scope, v);
    }
    if (out) keep(scope, {out});
  }

  /// By value: the list is a temporary one.
  std::string_view any_of(const std::vector<std::string_view>& list) { return random_.any(list); }

  static std::vector<std::string_view> unary() {
    return {"neg",   "abs",         "square",  "relu", "identity", "stop_gradient", "tanh",
            "floor", "logical_not", "bit_not", "ceil", "sqrt",     "round"};
  }
  static std::vector<std::string_view> binary() {
    return {"add",         "sub",         "mul",         "div",      "maximum", "minimum", "eq",
            "ne",          "lt",          "le",          "gt",       "ge",      "bit_and", "bit_or",
            "bit_xor",     "logical_and", "pow",         "mod",      "atan2",   "fmod",    "logical_or",
            "logical_xor", "shift_left",  "shift_right", "floor_div"};
  }

  Value with_number(Scope& scope, Value v) {
    static constexpr double numbers[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5};
    if (v.dtype() == Dtype::boolean || is_symbol(v)) return {};
    Value number = this->number(scope, random_.any(numbers), v.dtype());
    if (v.rank() > 0 && random_.one_in(3))
      if (const Value wide = call(scope, "broadcast_to", {number}, {{"shape", v.shape()}})) number = wide;
    std::vector<Value> operands{v, number};
    if (random_.one_in(2)) std::swap(operands[0], operands[1]);
    return call(scope, any_of(binary()), operands);
  }

  static bool is_symbol(Value v) { return !ir::constant_shape(v.shape()); }

  Value reshaped(Scope& scope, Value v) {
    ir::Shape shape = v.shape();
    std::shuffle(shape.begin(), shape.end(), random_.engine());
    if (random_.one_in(3)) shape = {ir::product(v.shape())};
    if (random_.one_in(3))
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(random_.below(shape.size() + 1)), ir::Dim(1));
    return call(scope, "reshape", {v}, {{"shape", shape}});
  }

  std::vector<std::int64_t> any_order(std::size_t rank) {
    std::vector<std::int64_t> out(rank);
    std::iota(out.begin(), out.end(), 0);
    std::shuffle(out.begin(), out.end(), random_.engine());
    return out;
  }

  Value viewed(Scope& scope, Value v) {
    ir::Shape wider = v.shape();
    wider.insert(wider.begin(), ir::Dim(1 + static_cast<std::int64_t>(random_.below(2))));
    const auto axis = static_cast<std::int64_t>(random_.below(v.rank() + 1));
    switch (random_.below(6)) {
      case 0:
        return call(scope, "broadcast_to", {v}, {{"shape", wider}});
      case 1:
        return call(scope, "unsqueeze", {v}, {{"axes", std::vector<std::int64_t>{axis}}});
      case 2:
        return call(scope, "squeeze", {v});
      case 3:
        return call(scope, "flip", {v});
      case 4:
        return call(scope, "slice", {v},
                    {{"starts", ir::Shape{static_cast<std::int64_t>(random_.below(2))}},
                     {"stops", ir::Shape{INT64_MAX}}});
      default:
        return call(scope, "where", {value(scope, {Dtype::boolean, v.shape()}), v, value(scope, v.type())});
    }
  }

  // ---- regions

  struct Handed {
    std::vector<Value> values;
    std::vector<ir::ExprRef> operands;
    op::ValueTypes types;
  };

  /// Some tensors of the scope; at least one.
  Handed some(Scope& scope, std::size_t most) {
    Handed out;
    for (std::size_t n = 1 + random_.below(most); n-- > 0;) {
      const Value v = tensor_in(scope);
      out.values.push_back(v);
      out.operands.push_back(scope.builder.expr(v));
      out.types.push_back(v.type());
    }
    return out;
  }

  static bool is_tensor(const Scope& scope, Value v) {
    const auto& expr = *scope.builder.expr(v);
    return ir::is<ir::Var>(expr) || ir::is<ir::Dense>(expr);
  }

  /// A value that is no bare number: those have no tensor type.
  Value tensor_in(Scope& scope) {
    for (int attempt = 0; attempt < 5 && !scope.pool.empty(); ++attempt) {
      const Value v = random_.any(scope.pool);
      if (is_tensor(scope, v)) return v;
    }
    return leaf(scope, {any_dtype(op::all_dtypes), {2, 3}});
  }

  Value rank0_tensor(Scope& scope, Dtype dtype, double low, double high) {
    const auto tensor = random_.tensor({dtype, {}}, low, high, false);
    return scope.is_outer ? input(scope, tensor, {dtype, {}}) : constant(scope, tensor);
  }

  /// What a body gets of these operands, with the sizes of the scope around it: as they are, or as what a
  /// loop carries.
  enum class Given : std::uint8_t { once, again };
  std::vector<Value> add_parameters(const Scope& outer, Scope& scope, const std::vector<Value>& operands,
                                    Given given) {
    std::vector<Value> out;
    for (const Value v : operands) {
      out.push_back(scope.builder.parameter(cat("p", ++parameters_), in_scope(v.type(), scope)));
      const auto* tensor = tensor_of(outer, v);
      if (tensor != nullptr)
        set_tensor(scope, out.back(), given == Given::again ? as_carried(*tensor) : *tensor);
    }
    keep(scope, op::Values(out.begin(), out.end()));
    return out;
  }

  /// A function of these operands that gives results of these types.
  ir::FunctionRef body(const Scope& outer, const Handed& given, const op::ValueTypes& results) {
    Scope scope;
    scope.depth = outer.depth - 1;
    hand_sizes(outer, scope);
    (void)add_parameters(outer, scope, given.values, Given::once);
    write_steps(scope, 1 + random_.below(5), 1);
    std::vector<Value> out;
    for (const ValueType& type : results) out.push_back(newest(scope, in_scope(type, scope)));
    return value_or_throw(scope.builder.function("", out));
  }

  Value newest(Scope& scope, const ValueType& type) {
    for (auto at = scope.pool.rbegin(); at != scope.pool.rend(); ++at)
      if (at->type() == type && ir::is<ir::Var>(scope.builder.expr(*at))) return *at;
    if (ir::constant_shape(type.shape)) return constant(scope, random_.tensor(type, -2, 2, false));
    return scope.builder.call("broadcast_to", {number(scope, 1, type.dtype)}, {{"shape", type.shape}});
  }

  void write_region(Scope& scope) {
    switch (random_.below(6)) {
      case 0:
        return write_if(scope);
      case 1:
        return write_switch(scope);
      case 2:
        return write_while(scope);
      case 3:
        return write_call(scope);
      case 4:
        return write_tuple(scope);
      default:
        return write_for(scope);
    }
  }

  op::ValueTypes result_types(const Handed& handed) {
    op::ValueTypes out{handed.types[0]};
    if (random_.one_in(2)) out.push_back(random_.any(handed.types));
    return out;
  }

  /// A region that took these operands: its results go on if something is known of them.
  void finish_region(Scope& scope, ir::ExprRef region, std::vector<Value> operands,
                     const op::ValueTypes& types) {
    const op::Values results = scope.builder.append(std::move(region), types);
    if (follow_last(scope, operands, results)) keep(scope, results);
  }

  static std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void write_if(Scope& scope) {
    const Handed captures = some(scope, 3);
    const auto results = result_types(captures);
    const Value condition = rank0_tensor(scope, Dtype::boolean, 0, 1);
    auto draft = std::make_unique<ir::IfRegion>();
    draft->condition = scope.builder.expr(condition);
    draft->dims = handed_sizes(scope);
    draft->captures = captures.operands;
    draft->then_body = body(scope, captures, results);
    draft->else_body = body(scope, captures, results);
    finish_region(scope, ir::seal(std::move(draft)), joined({condition}, captures.values), results);
  }

  void write_switch(Scope& scope) {
    const Handed captures = some(scope, 3);
    const auto results = result_types(captures);
    const Value index = rank0_tensor(scope, Dtype::i64, -1, 3);
    auto draft = std::make_unique<ir::SwitchRegion>();
    draft->index = scope.builder.expr(index);
    draft->dims = handed_sizes(scope);
    draft->captures = captures.operands;
    for (std::size_t n = 1 + random_.below(3); n-- > 0;)
      draft->bodies.push_back(body(scope, captures, results));
    finish_region(scope, ir::seal(std::move(draft)), joined({index}, captures.values), results);
  }

  void write_for(Scope& scope) {
    const Handed carried = some(scope, 2), captures = some(scope, 2);
    std::vector<Value> operands = joined(carried.values, captures.values);
    auto draft = std::make_unique<ir::ForRegion>();
    draft->count = ir::int_const(static_cast<std::int64_t>(random_.below(4)));
    if (random_.one_in(2)) {
      operands.push_back(rank0_tensor(scope, Dtype::i64, -1, 3));
      draft->count = scope.builder.expr(operands.back());
    }
    draft->inits = carried.operands;
    draft->dims = handed_sizes(scope);
    draft->captures = captures.operands;
    draft->body = loop_body(scope, nullptr, carried, captures);
    finish_region(scope, ir::seal(std::move(draft)), operands, carried.types);
  }

  void write_while(Scope& scope) {
    const Handed carried = some(scope, 2), captures = some(scope, 2);
    const Value counter = rank0_tensor(scope, Dtype::i64, 0, 3);
    const std::vector<Value> state = joined({counter}, carried.values);
    auto draft = std::make_unique<ir::WhileRegion>();
    op::ValueTypes types;
    for (const Value v : state) {
      draft->inits.push_back(scope.builder.expr(v));
      types.push_back(v.type());
    }
    draft->dims = handed_sizes(scope);
    draft->captures = captures.operands;
    draft->limit = 5;
    draft->condition = is_first_below(scope, joined(state, captures.values), 3);
    draft->body = loop_body(scope, &counter, carried, captures);
    finish_region(scope, ir::seal(std::move(draft)), joined(state, captures.values), types);
  }

  /// Whether the first of these is below a number.
  static ir::FunctionRef is_first_below(const Scope& outer, const std::vector<Value>& operands,
                                        double number) {
    Scope scope;
    hand_sizes(outer, scope);
    std::vector<Value> values;
    for (const Value v : operands) values.push_back(scope.builder.parameter("p", in_scope(v.type(), scope)));
    op::IrBuilder& b = scope.builder;
    return value_or_throw(
        b.function("", std::vector{b.call("lt", {values[0], b.constant(number, Dtype::i64)})}));
  }

  /// Of a `for`, which counts by itself, or of a `while` with a counter.
  ir::FunctionRef loop_body(const Scope& outer, const Value* counter, const Handed& carried,
                            const Handed& captures) {
    Scope scope;
    scope.depth = outer.depth - 1;
    hand_sizes(outer, scope);
    const Value count = scope.builder.parameter("i", {Dtype::i64, {}});
    set_tensor(scope, count, value_or_throw(op::HostTensor::allocate(Dtype::i64, {})));
    keep(scope, {count});
    (void)add_parameters(outer, scope, carried.values, Given::again);
    (void)add_parameters(outer, scope, captures.values, Given::once);
    write_steps(scope, 1 + random_.below(4), 1);
    std::vector<Value> out;
    if (counter != nullptr)
      out.push_back(scope.builder.call("add", {count, scope.builder.constant(1, Dtype::i64)}));
    for (const ValueType& type : carried.types) out.push_back(newest(scope, in_scope(type, scope)));
    return value_or_throw(scope.builder.function("", out));
  }

  void write_call(Scope& scope) {
    const Handed args = some(scope, 3);
    const auto results = result_types(args);
    auto draft = std::make_unique<ir::Invoke>();
    draft->callee = body(scope, args, results);
    draft->dims = handed_sizes(scope);
    draft->args = args.operands;
    finish_region(scope, ir::seal(std::move(draft)), args.values, results);
  }

  void write_tuple(Scope& scope) {
    const Handed elements = some(scope, 3);
    std::vector<ir::TypeRef> types;
    for (const ValueType& type : elements.types) types.push_back(op::ir_type(type));
    const auto tuple = ir::variable("t", ir::tuple_type(types));
    scope.builder.adopt(ir::assign(tuple, ir::tuple(elements.operands)));
    const auto index = static_cast<std::uint32_t>(random_.below(elements.types.size()));
    const op::Values item = scope.builder.append(ir::item(tuple, index), {elements.types[index]});
    if (const auto* tensor = tensor_of(scope, elements.values[index])) set_tensor(scope, item[0], *tensor);
    keep(scope, item);
  }

  // ---- results

  std::vector<Value> results_of(Scope& scope) {
    std::vector<Value> out;
    const std::size_t count = 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from_end = random_.one_in(2) ? i : random_.below(scope.pool.size());
      out.push_back(scope.pool[scope.pool.size() - 1 - std::min(from_end, scope.pool.size() - 1)]);
    }
    return out;
  }

  void take_gradient() {
    auto wrt = autodiff::float_parameters(*out_.function);
    if (wrt.empty()) return;
    std::shuffle(wrt.begin(), wrt.end(), random_.engine());
    wrt.resize(std::min<std::size_t>(wrt.size(), 2));
    std::sort(wrt.begin(), wrt.end());
    const auto gradient = autodiff::vjp(out_.function, wrt);
    if (!gradient || (*gradient)->body.size() < least_statements) return;
    for (std::size_t i = out_.inputs.size(); i < (*gradient)->params.size(); ++i)
      out_.inputs.push_back(random_.tensor(*op::value_type(*(*gradient)->params[i]->type), -2, 2, false));
    out_.function = *gradient;
  }

  std::size_t parameters_ = 0;  ///< of bodies
};

}  // namespace

Program tessera::differential::random_program(std::uint64_t seed, const ProgramOptions& options) {
  return ProgramGenerator(seed, options).make();
}
