#include "tessera/tensor/device_op.h"

#include <algorithm>
#include <array>

#include "tessera/base/text.h"
#include "tessera/describe/size_symbols.h"
#include "tessera/op/catalogue.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/op_name.h"

using namespace tessera;
using namespace tessera::detail;
using description::Access;
using description::Parameter;
using description::ShapeRule;
using op::DeviceArgument;

namespace {

/// Of a block, on every GPU there is.
constexpr std::int64_t most_threads = 1024;

bool is_size(const Parameter& parameter) { return parameter.scalar && !parameter.shape.empty(); }
bool is_number(const Parameter& parameter) { return parameter.scalar && parameter.shape.empty(); }

Dtype number_dtype(const Parameter& parameter) {
  if (parameter.dtype) return *parameter.dtype;
  return std::holds_alternative<double>(*parameter.scalar) ? Dtype::f32 : Dtype::i64;
}

double number_value(const Parameter& parameter) {
  return std::visit([](auto value) { return static_cast<double>(value); }, *parameter.scalar);
}

}  // namespace

description::Parameter tessera::parameter::size(std::string name, std::string rule, Dtype dtype) {
  Parameter out = description::integer(std::move(name), 0, dtype);
  out.shape = cat("[", rule, "]");
  return out;
}

/// The card and what it stands on: rules of cards are plain functions, which find the rest here.
struct DeviceOp::Card : op::DeviceCard {
  Card(op::DeviceCall given, Form of, Here here) : call(std::move(given)), form(std::move(of)) {
    name = call.name;
    summary = "an op of the program's own, for devices";
    traits.costly = true;
    // What is captured must not run when a plan is made.
    traits.random = static_cast<bool>(call.capture);
    infer = [](const op::CallInfo& info) { return of_call(info).types_of(info); };
    for (const Parameter& parameter : form.parameters) add(parameter, here);
    if (results_of_card.empty()) refuse("it has no parameter that is written", here);
    if (call.code != nullptr) set_launch(here);
    inputs = inputs_of_card;
    if (results_of_card.size() > 1) results = names_of_results;
    device = &call;
  }
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  static const Card& of_call(const op::CallInfo& info) { return static_cast<const Card&>(info.card()); }

  [[noreturn]] void refuse(std::string_view why, Here here) const {
    fail(here, cat(form.kind, " '", call.name, "': ", why));
  }

  ShapeRule rule(const std::string& text, std::string_view of, Here here) const {
    auto parsed = description::parse_shape_rule(text);
    if (!parsed)
      refuse(cat("the rule '", printable(shortened(text, 200)), "' of '", of, "': column ",
                 parsed.error().span().column, ": ", parsed.error().message()),
             here);
    return *std::move(parsed);
  }

  void add(const Parameter& parameter, Here here) {
    const bool is_known = std::any_of(call.arguments.begin(), call.arguments.end(),
                                      [&](const DeviceArgument& a) { return a.name == parameter.name; });
    if (parameter.name.empty() || is_known)
      refuse(cat("parameter '", printable(shortened(parameter.name, 60)), "' has no name of its own"), here);
    if (is_size(parameter)) return add_size(parameter, here);
    if (is_number(parameter)) return add_number(parameter, here);
    if (description::reads(parameter.access)) {
      const bool has_rule = !parameter.shape.empty();
      reading.push_back(
          {static_cast<std::uint32_t>(inputs_of_card.size()),
           has_rule ? std::optional(rule(parameter.shape, parameter.name, here)) : std::nullopt});
      const std::string_view type = parameter.dtype ? ir::to_string(*parameter.dtype) : "any";
      inputs_of_card.push_back({parameter.name, type, op::InputKind::tensor});
    }
    if (parameter.access == Access::read)
      call.arguments.push_back({.kind = DeviceArgument::Kind::input,
                                .index = static_cast<std::uint32_t>(inputs_of_card.size() - 1),
                                .name = parameter.name});
    else
      add_result(parameter, here);
  }

  void add_result(const Parameter& parameter, Here here) {
    const auto index = static_cast<std::uint32_t>(results_of_card.size());
    ResultRule out{.dtype = parameter.dtype};
    if (parameter.access == Access::read_write) {
      out.like = inputs_of_card.size() - 1;
      call.updated.push_back({index, static_cast<std::uint32_t>(inputs_of_card.size() - 1)});
    } else {
      out.shape = rule(parameter.shape.empty() ? "same" : parameter.shape, parameter.name, here);
    }
    results_of_card.push_back(std::move(out));
    names_of_results.push_back(parameter.name);
    call.arguments.push_back({.kind = DeviceArgument::Kind::result, .index = index, .name = parameter.name});
    if (parameter.access != Access::append) return;
    results_of_card.push_back({.dtype = Dtype::i64, .is_count = true});
    count_names.push_back(std::make_unique<std::string>(cat(parameter.name, "_count")));
    names_of_results.push_back(*count_names.back());
    call.cleared.push_back(index + 1);
    call.arguments.push_back(
        {.kind = DeviceArgument::Kind::result, .index = index + 1, .name = *count_names.back()});
    if (call.capture) return;  // its function knows the shapes
    call.arguments.push_back({.kind = DeviceArgument::Kind::size,
                              .index = static_cast<std::uint32_t>(size_rules.size()),
                              .dtype = Dtype::i64,
                              .name = cat(parameter.name, "_capacity")});
    size_rules.push_back({.rows_of = index});
  }

  void add_size(const Parameter& parameter, Here here) {
    const Dtype dtype = number_dtype(parameter);
    if (ir::is_float(dtype)) refuse(cat("size '", parameter.name, "' is no integer but ", dtype), here);
    if (call.capture)
      refuse(
          cat("size '", parameter.name, "': captured calls take no sizes, their function knows the shapes"),
          here);
    call.arguments.push_back({.kind = DeviceArgument::Kind::size,
                              .index = static_cast<std::uint32_t>(size_rules.size()),
                              .dtype = dtype,
                              .name = parameter.name});
    size_rules.push_back({.rule = rule(parameter.shape, parameter.name, here)});
  }

  void add_number(const Parameter& parameter, Here here) {
    const Dtype dtype = number_dtype(parameter);
    if (dtype == Dtype::f16 || dtype == Dtype::bf16)
      refuse(cat("number '", parameter.name, "' is ", dtype, ": numbers are f32, f64 or integers"), here);
    const auto kind = parameter.in_device_memory ? DeviceArgument::Kind::input : DeviceArgument::Kind::number;
    call.arguments.push_back({.kind = kind,
                              .index = static_cast<std::uint32_t>(inputs_of_card.size()),
                              .dtype = dtype,
                              .name = parameter.name});
    inputs_of_card.push_back(
        {parameter.name, ir::to_string(dtype), op::InputKind::scalar, number_value(parameter)});
  }

  void set_launch(Here here) {
    if (form.block.empty() || form.block.size() > 3) refuse("a block has 1 to 3 sizes", here);
    std::int64_t threads = 1;
    for (const std::int64_t size : form.block) {
      if (size < 1 || size > most_threads)
        refuse(cat("a block of size ", size, ": sizes are 1 to ", most_threads), here);
      threads *= size;
    }
    if (threads > most_threads)
      refuse(cat("a block of ", threads, " threads: there are at most ", most_threads), here);
    if (form.shared_bytes < 0) refuse(cat("shared memory of ", form.shared_bytes, " bytes"), here);
    if (!form.grid.empty()) grid = rule(form.grid, "grid", here);
    if (grid && (grid->kind != ShapeRule::Kind::sizes || grid->sizes.empty() || grid->sizes.size() > 3))
      refuse("the rule of the grid is a list of 1 to 3 sizes", here);
    call.launch = [this](std::span<const op::Extents> from, std::span<const op::Extents> to) {
      return launch_shape(from, to);
    };
  }

  [[nodiscard]] Result<op::ValueTypes> types_of(const op::CallInfo& info) const {
    std::vector<op::Shape> shapes;
    for (const Reading& pin : reading) shapes.push_back(info.input(pin.input).shape);
    description::SizeSymbols sizes(info, std::move(shapes));
    for (std::size_t i = 0; i < reading.size(); ++i)
      if (reading[i].rule)
        TESSERA_TRY(sizes.bind(*reading[i].rule, i, inputs_of_card[reading[i].input].name));
    op::ValueTypes out;
    for (const ResultRule& rule_of : results_of_card) {
      if (rule_of.is_count || rule_of.like) {
        out.push_back(rule_of.like ? info.input(*rule_of.like) : op::ValueType{Dtype::i64, {}});
        continue;
      }
      op::Shape shape = TESSERA_TRY(sizes.evaluate(*rule_of.shape));
      if (!rule_of.dtype && reading.empty())
        return info.error("a result needs a dtype: there is no argument");
      const bool is_row = out.size() + 1 < results_of_card.size() && results_of_card[out.size() + 1].is_count;
      if (is_row && shape.empty()) return info.error("rows that are appended have at least one axis");
      out.push_back({rule_of.dtype ? *rule_of.dtype : info.input(reading[0].input).dtype, std::move(shape)});
    }
    return out;
  }

  [[nodiscard]] Result<op::LaunchShape> launch_shape(std::span<const op::Extents> from,
                                                     std::span<const op::Extents> to) const {
    const auto named = [this](const Error& error) {
      return Error(error.code(), cat(call.name, ": ", error.message()));
    };
    std::vector<op::Extents> shapes;
    description::SizeNames names;
    for (const Reading& pin : reading) {
      shapes.push_back(from[pin.input]);
      if (!pin.rule) continue;
      if (auto bound = description::bind_names(*pin.rule, shapes.back(), names); !bound)
        return named(bound.error());
    }
    op::LaunchShape out{.shared_bytes = form.shared_bytes};
    std::copy(form.block.begin(), form.block.end(), out.block.begin());
    const std::int64_t threads = out.block[0] * out.block[1] * out.block[2];
    if (!grid) out.grid[0] = (op::element_count(to[0]) + threads - 1) / threads;
    if (grid) {
      const auto sizes = description::evaluate(*grid, shapes, names);
      if (!sizes) return named(sizes.error());
      std::copy(sizes->begin(), sizes->end(), out.grid.begin());
    }
    for (const SizeOf& size : size_rules) {
      if (size.rows_of) {
        out.sizes.push_back(to[*size.rows_of][0]);
        continue;
      }
      const auto value = description::evaluate(*size.rule, shapes, names);
      if (!value) return named(value.error());
      out.sizes.push_back((*value)[0]);
    }
    return out;
  }

  /// An argument that is read, and the rule of its shape.
  struct Reading {
    std::uint32_t input = 0;
    std::optional<ShapeRule> rule;
  };
  struct ResultRule {
    std::optional<Dtype> dtype;
    std::optional<ShapeRule> shape = {};
    std::optional<std::size_t> like = {};  ///< the input that it is a new version of
    bool is_count = false;
  };
  struct SizeOf {
    std::optional<ShapeRule> rule = {};
    std::optional<std::uint32_t> rows_of = {};
  };

  op::DeviceCall call;
  const Form form;
  std::vector<op::Input> inputs_of_card;
  std::vector<std::string_view> names_of_results;
  std::vector<std::unique_ptr<std::string>> count_names;
  std::vector<ResultRule> results_of_card;
  std::vector<Reading> reading;
  std::vector<SizeOf> size_rules;
  std::optional<ShapeRule> grid;
};

DeviceOp::DeviceOp(op::DeviceCall call, Form form, Here here) {
  check_op_name(form.kind, call.name, here);
  auto card = std::make_shared<const Card>(std::move(call), std::move(form), here);
  card_ = card.get();
  value_at(here, op::add_card(std::move(card)));
}

const std::string& DeviceOp::name() const { return card_->call.name; }
const op::DeviceCall& DeviceOp::call() const { return card_->call; }

std::vector<Tensor> DeviceOp::record(std::span<const Operand> arguments, Here here) const {
  CallOperands operands;
  std::vector<Tensor> tensors;
  for (const Operand& argument : arguments) {
    const std::size_t i = &argument - arguments.data();
    if (i >= card_->inputs.size()) break;
    const bool wants_number = card_->inputs[i].kind == op::InputKind::scalar;
    const bool is_tensor = argument.kind() == Operand::Kind::tensor;
    if (argument.kind() == Operand::Kind::none || (is_tensor && argument.tensor().is_empty()))
      fail(here, cat(name(), ": argument ", i, " is empty"));
    if (wants_number == is_tensor)
      fail(here, cat(name(), ": '", card_->inputs[i].name, "' is ", wants_number ? "a number" : "a tensor",
                     ", got ", is_tensor ? "a tensor" : "a number"));
  }
  const std::size_t needed = static_cast<std::size_t>(
      std::count_if(card_->inputs.begin(), card_->inputs.end(),
                    [](const op::Input& input) { return input.kind == op::InputKind::tensor; }));
  if (arguments.size() > card_->inputs.size() || arguments.size() < needed)
    fail(here, cat(name(), ": takes ", card_->inputs.size(), " arguments, got ", arguments.size()));
  for (const Operand& argument : arguments) operands.add(argument);
  return call_all(*card_, operands, {});
}

std::vector<Tensor> DeviceOp::all(std::initializer_list<Operand> arguments, Here here) const {
  const std::span<const Operand> given(arguments.begin(), arguments.size());
  const GradientRule& gradient = card_->form.gradient;
  if (!gradient) return record(given, here);
  std::vector<Tensor> tensors;
  for (const Operand& argument : given)
    if (argument.kind() == Operand::Kind::tensor) tensors.push_back(argument.tensor());
  const std::vector<Operand> form(given.begin(), given.end());
  const auto value = [this, form, here](const std::vector<Tensor>& xs) {
    std::vector<Operand> operands;
    std::size_t next = 0;
    for (const Operand& argument : form)
      operands.push_back(argument.kind() == Operand::Kind::tensor ? Operand(xs[next++], argument.here())
                                                                  : argument);
    return record(operands, here)[0];
  };
  return {custom_gradient(value, gradient, here)(tensors)};
}

Tensor DeviceOp::operator()(const Operand& a, const Operand& b, const Operand& c, const Operand& d,
                            const Operand& e, const Operand& f) const {
  const std::array<const Operand*, 6> given = {&a, &b, &c, &d, &e, &f};
  std::size_t count = given.size();
  while (count > 0 && given[count - 1]->kind() == Operand::Kind::none) --count;
  const auto results = [&]() -> std::vector<Tensor> {
    switch (count) {
      case 0:
        return all({}, a.here());
      case 1:
        return all({a}, a.here());
      case 2:
        return all({a, b}, a.here());
      case 3:
        return all({a, b, c}, a.here());
      case 4:
        return all({a, b, c, d}, a.here());
      case 5:
        return all({a, b, c, d, e}, a.here());
      default:
        return all({a, b, c, d, e, f}, a.here());
    }
  }();
  if (results.size() != 1)
    fail(a.here(), cat(name(), ": has ", results.size(), " results; all() gives them"));
  return results[0];
}

Appended DeviceOp::appended(std::initializer_list<Operand> arguments, Here here) const {
  const std::vector<Tensor> results = all(arguments, here);
  if (results.size() < 2 || !card_->results_of_card[1].is_count)
    fail(here, cat(name(), ": its first result are no rows that are appended"));
  return {results[0], results[1]};
}

std::uint64_t Appended::asked(Here here) const {
  return static_cast<std::uint64_t>(asked_.item<std::int64_t>({}, here));
}
std::uint64_t Appended::capacity() const { return static_cast<std::uint64_t>(rows_.shape()[0]); }
std::uint64_t Appended::count(Here here) const { return std::min(asked(here), capacity()); }

Tensor Appended::rows(Here here) const {
  const auto count = static_cast<std::int64_t>(this->count(here));
  return rows_.slice({{.stop = count}}, here);
}
