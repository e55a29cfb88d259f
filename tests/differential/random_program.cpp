#include <algorithm>
#include <numeric>
#include <set>

#include "tessera/autodiff/gradient.h"
#include "tessera/compile/constants.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tests/differential/custom_ops.h"
#include "tests/differential/program.h"
#include "tests/differential/random_values.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::differential;
using fixture::Sample;
using ir::Dtype;
using op::Value;
using op::ValueType;

namespace {

constexpr std::int64_t most_elements = 600;

/// Ops whose results jump, or whose results are no floats.
bool has_jumps(const op::Card& card) {
  static const std::set<std::string_view> jumping{
      "ceil",     "floor", "floor_div", "fmod",    "mod", "round", "sign",  "trunc", "sort", "topk",
      "max_pool", "cast",  "prod",      "cumprod", "pow", "tan",   "acosh", "atan2", "div",  "reciprocal"};
  return !card.no_gradient.empty() || jumping.count(card.name) != 0;
}

bool is_small(const ir::Shape& shape) {
  const auto count = ir::element_count(shape);
  return !count || *count <= most_elements;
}

/// One function while it is written.
struct Scope {
  op::IrBuilder builder;
  std::vector<Value> pool;
  bool is_outer = false;
  int depth = 0;  ///< of regions that may still be opened
};

class Generator {
 public:
  Generator(std::uint64_t seed, const ProgramOptions& options) : random_(seed), options_(options) {}

  Program make() {
    Scope scope;
    scope.is_outer = true;
    scope.depth = options_.regions && !options_.symbolic ? 2 : 0;
    if (options_.symbolic) add_sizes(scope);
    write_steps(scope, 5 + random_.below(10), 5);
    if (scope.pool.empty()) keep(scope, {leaf(scope, {Dtype::f32, {2, 3}})});
    out_.function = value_or_throw(scope.builder.function("main", results_of(scope)));
    if (options_.gradients && !options_.symbolic && random_.one_in(4)) take_gradient();
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      out_.first_parameters.push_back(slot_number(slot));
      out_.second_parameters.push_back(slot_number(slot));
    }
    return std::move(out_);
  }

 private:
  bool is_continuous() const { return options_.numbers == Numbers::continuous; }

  Dtype any_dtype(op::DtypeSet set) {
    std::vector<Dtype> list;
    for (Dtype dtype : ir::all_dtypes())
      if (set.contains(dtype) && (!is_continuous() || dtype == Dtype::f32 || dtype == Dtype::f64))
        list.push_back(dtype);
    // Half of all values have one dtype, so that they meet.
    if (random_.one_in(2) && set.contains(Dtype::f32)) return Dtype::f32;
    return list.empty() ? Dtype::f32 : random_.any(list);
  }

  void add_sizes(Scope& scope) {
    for (const auto& [name, size] : fixture::op_samples().front().sizes) {
      sizes_.emplace(name, scope.builder.size(name));
      numbers_.emplace(name, size);
      out_.sizes.push_back(size);
    }
  }

  // ---- leaves

  ValueType with_numbers(ValueType type) const {
    for (ir::Dim& dim : type.shape)
      dim = ir::substitute(dim, [&](const ir::Var& var) -> std::optional<ir::Dim> {
        const auto known = numbers_.find(var.name);
        return known == numbers_.end() ? std::nullopt : std::optional(ir::Dim(known->second));
      });
    return type;
  }

  Value leaf(Scope& scope, const ValueType& type, double low = -2, double high = 2) {
    if (type.rank() == 0 && random_.one_in(2)) return scalar_leaf(scope, type.dtype, low, high);
    const bool is_symbolic = !ir::constant_shape(type.shape);
    const auto tensor = random_.tensor(with_numbers(type), low, high, !is_continuous());
    if (scope.is_outer && (is_symbolic || !random_.one_in(3))) {
      out_.inputs.push_back(tensor);
      return scope.builder.parameter(cat("x", out_.inputs.size()), type);
    }
    return scope.builder.import(compiler::dense_constant(tensor), type);
  }

  Value scalar_leaf(Scope& scope, Dtype dtype, double low, double high) {
    const bool may_change = ir::is_float(dtype) || dtype == Dtype::i64 || dtype == Dtype::i32;
    if (may_change && random_.one_in(2)) {
      slot_ranges_.push_back({ir::is_float(dtype), low, high});
      const auto slot = static_cast<std::uint32_t>(slots_++);
      return scope.builder.import(ir::param(slot, dtype, slot_number(slot)), {dtype, {}});
    }
    const auto tensor = random_.tensor({dtype, {}}, low, high, false);
    const auto dense = compiler::dense_constant(tensor);
    return scope.builder.import(compiler::constant_operand(compiler::constant_element(*dense, 0)),
                                {dtype, {}});
  }

  double slot_number(std::size_t slot) {
    const auto& range = slot_ranges_[slot];
    const double number = random_.number(range.low, range.high);
    return range.is_float ? number : std::floor(number);
  }

  /// A value of this type: one that is there, one made of one that is there, or a new one.
  Value value(Scope& scope, const ValueType& type, double low = -2, double high = 2) {
    std::vector<Value> same, near;
    for (Value v : scope.pool) {
      if (v.type() == type) same.push_back(v);
      if (v.dtype() == type.dtype && v.shape() != type.shape) near.push_back(v);
    }
    if (!same.empty() && !random_.one_in(4)) return random_.any(same);
    if (!near.empty() && random_.one_in(2)) {
      const Value v = random_.any(near);
      for (const char* op : {"reshape", "broadcast_to"})
        if (Value out = call(scope, op, {v}, {{"shape", type.shape}})) return out;
    }
    return leaf(scope, type, low, high);
  }

  // ---- calls

  /// Empty if the call would be wrong or large.
  Value call(Scope& scope, std::string_view op, std::vector<Value> inputs, op::Attributes attributes = {}) {
    const auto results = call_all(scope, op, std::move(inputs), std::move(attributes));
    return results.empty() ? Value() : results[0];
  }

  op::Values call_all(Scope& scope, std::string_view op, std::vector<Value> inputs,
                      op::Attributes attributes) {
    const op::Card& card = *op::find_card(op);
    op::ValueTypes types;
    for (Value input : inputs) types.push_back(input.type());
    const auto complete = op::complete_attributes(card, attributes);
    if (!complete) return {};
    const auto results = op::infer(card, types, *complete);
    if (!results) return {};
    for (const ValueType& type : *results)
      if (!is_small(type.shape)) return {};
    return scope.builder.call_all(op, inputs, std::move(attributes));
  }

  void keep(Scope& scope, const op::Values& values) {
    for (Value v : values)
      if (v && (!is_continuous() || ir::is_float(v.dtype()))) scope.pool.push_back(v);
  }

  void write_steps(Scope& scope, std::size_t steps, std::size_t least) {
    for (std::size_t attempt = 0; attempt < 20 * steps; ++attempt) {
      if (scope.builder.statements().size() >= std::max(steps, least)) break;
      write_step(scope);
    }
  }

  void write_step(Scope& scope) {
    if (scope.depth > 0 && random_.one_in(8)) return write_region(scope);
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

  void write_custom(Scope& scope) {
    const CustomOp& op = random_.any(custom_ops());
    if (is_continuous() && !op.is_continuous) return;
    std::vector<Value> inputs{random_.any(scope.pool)};
    while (inputs.size() < op.arguments) inputs.push_back(value(scope, inputs[0].type()));
    keep(scope, call_all(scope, op.name, inputs, {}));
  }

  // ---- the samples of the catalogue

  void write_sample(Scope& scope, const Sample& sample) {
    const op::Card& card = *sample.card;
    if (is_continuous() && has_jumps(card)) return;
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
    if (options_.symbolic) use_symbols(types, attributes);
    const auto complete = op::complete_attributes(card, attributes);
    if (!complete || !op::infer(card, types, *complete)) return;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!is_small(types[i].shape)) return;
      const auto& input = sample.inputs[i];
      const bool free = input.type == "T" || input.type == "bool";
      const Value given =
          free ? value(scope, types[i], input.low, input.high) : leaf(scope, types[i], input.low, input.high);
      inputs.push_back(given);
    }
    keep(scope, call_all(scope, card.name, inputs, *complete));
  }

  void use_symbols(op::ValueTypes& types, op::Attributes& attributes) const {
    const auto symbol = [&](const ir::Var& var) -> std::optional<ir::Dim> {
      const auto known = sizes_.find(var.name);
      return known == sizes_.end() ? std::nullopt : std::optional(known->second);
    };
    for (ValueType& type : types)
      for (ir::Dim& dim : type.shape) dim = ir::substitute(dim, symbol);
    for (auto& [name, entry] : attributes.mutable_entries())
      if (auto* shape = std::get_if<ir::Shape>(&entry))
        for (ir::Dim& dim : *shape) dim = ir::substitute(dim, symbol);
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

  std::vector<std::string_view> unary() const {
    if (is_continuous()) return {"neg", "abs", "square", "relu", "identity", "stop_gradient", "tanh"};
    return {"neg",   "abs",         "square",  "relu", "identity", "stop_gradient",
            "floor", "logical_not", "bit_not", "ceil", "sqrt",     "round"};
  }
  std::vector<std::string_view> binary() const {
    if (is_continuous()) return {"add", "sub", "mul", "maximum", "minimum"};
    return {"add",         "sub",         "mul",         "div",      "maximum", "minimum", "eq",
            "ne",          "lt",          "le",          "gt",       "ge",      "bit_and", "bit_or",
            "bit_xor",     "logical_and", "pow",         "mod",      "atan2",   "fmod",    "logical_or",
            "logical_xor", "shift_left",  "shift_right", "floor_div"};
  }

  Value with_number(Scope& scope, Value v) {
    static constexpr double numbers[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5};
    if (v.dtype() == Dtype::boolean || is_symbol(v)) return {};
    Value number = scope.builder.constant(random_.any(numbers), v.dtype());
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
        return is_continuous() ? Value()
                               : call(scope, "where",
                                      {value(scope, {Dtype::boolean, v.shape()}), v, value(scope, v.type())});
    }
  }

  // ---- regions

  struct Handed {
    std::vector<ir::ExprRef> operands;
    op::ValueTypes types;
  };

  /// Some tensors of the scope; at least one.
  Handed some(Scope& scope, std::size_t most) {
    Handed out;
    for (std::size_t n = 1 + random_.below(most); n-- > 0;) {
      const Value v = tensor_in(scope);
      out.operands.push_back(scope.builder.expr(v));
      out.types.push_back(v.type());
    }
    return out;
  }

  /// A value that is no bare number: those have no tensor type.
  Value tensor_in(Scope& scope) {
    for (int attempt = 0; attempt < 5 && !scope.pool.empty(); ++attempt) {
      const Value v = random_.any(scope.pool);
      const auto& expr = *scope.builder.expr(v);
      if (ir::is<ir::Var>(expr) || ir::is<ir::Dense>(expr)) return v;
    }
    const ValueType type{is_continuous() ? Dtype::f32 : any_dtype(op::all_dtypes), {2, 3}};
    return leaf(scope, type);
  }

  Value rank0_tensor(Scope& scope, Dtype dtype, double low, double high) {
    const auto tensor = random_.tensor({dtype, {}}, low, high, false);
    if (!scope.is_outer) return scope.builder.import(compiler::dense_constant(tensor), {dtype, {}});
    out_.inputs.push_back(tensor);
    return scope.builder.parameter(cat("x", out_.inputs.size()), {dtype, {}});
  }

  /// A function of these parameters that gives results of these types.
  ir::FunctionRef body(const op::ValueTypes& params, const op::ValueTypes& results, int depth) {
    Scope scope;
    scope.depth = depth;
    for (std::size_t i = 0; i < params.size(); ++i)
      keep(scope, {scope.builder.parameter(cat("p", i), params[i])});
    write_steps(scope, 1 + random_.below(5), 1);
    std::vector<Value> out;
    for (const ValueType& type : results) out.push_back(newest(scope, type));
    return value_or_throw(scope.builder.function("", out));
  }

  Value newest(Scope& scope, const ValueType& type) {
    for (auto at = scope.pool.rbegin(); at != scope.pool.rend(); ++at)
      if (at->type() == type && ir::is<ir::Var>(scope.builder.expr(*at))) return *at;
    const auto tensor = random_.tensor(type, -2, 2, false);
    return scope.builder.import(compiler::dense_constant(tensor), type);
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

  void write_if(Scope& scope) {
    const Handed captures = some(scope, 3);
    const auto results = result_types(captures);
    auto draft = std::make_unique<ir::IfRegion>();
    draft->condition = scope.builder.expr(rank0_tensor(scope, Dtype::boolean, 0, 1));
    draft->captures = captures.operands;
    draft->then_body = body(captures.types, results, scope.depth - 1);
    draft->else_body = body(captures.types, results, scope.depth - 1);
    keep(scope, scope.builder.append(ir::seal(std::move(draft)), results));
  }

  void write_switch(Scope& scope) {
    const Handed captures = some(scope, 3);
    const auto results = result_types(captures);
    auto draft = std::make_unique<ir::SwitchRegion>();
    draft->index = scope.builder.expr(rank0_tensor(scope, Dtype::i64, -1, 3));
    draft->captures = captures.operands;
    for (std::size_t n = 1 + random_.below(3); n-- > 0;)
      draft->bodies.push_back(body(captures.types, results, scope.depth - 1));
    keep(scope, scope.builder.append(ir::seal(std::move(draft)), results));
  }

  static op::ValueTypes joined(op::ValueTypes a, const op::ValueTypes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void write_for(Scope& scope) {
    const Handed carried = some(scope, 2), captures = some(scope, 2);
    auto draft = std::make_unique<ir::ForRegion>();
    draft->count = random_.one_in(2) ? ir::ExprRef(ir::int_const(static_cast<std::int64_t>(random_.below(4))))
                                     : scope.builder.expr(rank0_tensor(scope, Dtype::i64, -1, 3));
    draft->inits = carried.operands;
    draft->captures = captures.operands;
    draft->body = body(joined({{Dtype::i64, {}}}, joined(carried.types, captures.types)), carried.types,
                       scope.depth - 1);
    keep(scope, scope.builder.append(ir::seal(std::move(draft)), carried.types));
  }

  void write_while(Scope& scope) {
    const Handed carried = some(scope, 2), captures = some(scope, 2);
    const op::ValueTypes state = joined({{Dtype::i64, {}}}, carried.types);
    auto draft = std::make_unique<ir::WhileRegion>();
    draft->inits = {scope.builder.expr(rank0_tensor(scope, Dtype::i64, 0, 3))};
    draft->inits.insert(draft->inits.end(), carried.operands.begin(), carried.operands.end());
    draft->captures = captures.operands;
    draft->limit = 5;
    const op::ValueTypes params = joined(state, captures.types);
    draft->condition = is_first_below(params, 3);
    draft->body = counting_body(params, carried.types, scope.depth - 1);
    keep(scope, scope.builder.append(ir::seal(std::move(draft)), state));
  }

  /// Whether the first of these parameters is below a number.
  static ir::FunctionRef is_first_below(const op::ValueTypes& params, double number) {
    op::IrBuilder b;
    std::vector<Value> values;
    for (const ValueType& type : params) values.push_back(b.parameter("p", type));
    return value_or_throw(
        b.function("", std::vector{b.call("lt", {values[0], b.constant(number, Dtype::i64)})}));
  }

  ir::FunctionRef counting_body(const op::ValueTypes& params, const op::ValueTypes& carried, int depth) {
    Scope scope;
    scope.depth = depth;
    std::vector<Value> values;
    for (std::size_t i = 0; i < params.size(); ++i)
      values.push_back(scope.builder.parameter(cat("p", i), params[i]));
    keep(scope, op::Values(values.begin(), values.end()));
    write_steps(scope, 1 + random_.below(4), 1);
    std::vector<Value> out{scope.builder.call("add", {values[0], scope.builder.constant(1, Dtype::i64)})};
    for (const ValueType& type : carried) out.push_back(newest(scope, type));
    return value_or_throw(scope.builder.function("", out));
  }

  void write_call(Scope& scope) {
    const Handed args = some(scope, 3);
    const auto results = result_types(args);
    auto draft = std::make_unique<ir::Invoke>();
    draft->callee = body(args.types, results, scope.depth - 1);
    draft->args = args.operands;
    keep(scope, scope.builder.append(ir::seal(std::move(draft)), results));
  }

  void write_tuple(Scope& scope) {
    const Handed elements = some(scope, 3);
    std::vector<ir::TypeRef> types;
    for (const ValueType& type : elements.types) types.push_back(op::ir_type(type));
    const auto tuple = ir::variable("t", ir::tuple_type(types));
    scope.builder.adopt(ir::assign(tuple, ir::tuple(elements.operands)));
    const auto index = static_cast<std::uint32_t>(random_.below(elements.types.size()));
    keep(scope, scope.builder.append(ir::item(tuple, index), {elements.types[index]}));
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
    if (!gradient) return;
    for (std::size_t i = out_.inputs.size(); i < (*gradient)->params.size(); ++i)
      out_.inputs.push_back(random_.tensor(*op::value_type(*(*gradient)->params[i]->type), -2, 2, false));
    out_.function = *gradient;
  }

  struct SlotRange {
    bool is_float;
    double low, high;
  };

  Random random_;
  const ProgramOptions& options_;
  Program out_;
  std::map<std::string, ir::Dim> sizes_;
  std::map<std::string, std::int64_t> numbers_;
  std::size_t slots_ = 0;
  std::vector<SlotRange> slot_ranges_;
};

}  // namespace

Program tessera::differential::random_program(std::uint64_t seed, const ProgramOptions& options) {
  return Generator(seed, options).make();
}
