#include "tessera/runtime/cuda/function_program.h"

#include <array>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/program_draft.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

using ProgramArrays = std::vector<ProgramArray>;

/// The kernel that stores one number. A parameter comes as an f64, f32 or i64 and is cast to what is stored.
SourceRef number_source(std::string_view stored, std::string_view given) {
  std::string text = cat("extern \"C\" __global__ void set_number(", stored, "* to, ", given,
                         " value) {\n  *to = (", stored, ")value;\n}\n");
  return std::make_shared<const Source>(Source{std::move(text), "set_number"});
}

std::string_view word_type(std::size_t bytes) {
  constexpr std::string_view types[] = {"unsigned char", "unsigned short", "", "unsigned int"};
  return bytes == 8 ? "unsigned long long" : types[bytes - 1];
}

std::uint64_t element_bits(const op::ScalarValue& value) {
  std::uint64_t out = 0;
  auto* at = reinterpret_cast<std::byte*>(&out);
  if (ir::is_float(value.dtype)) {
    op::storer<double>(value.dtype)(at, 0, 1, 1, &value.number);
  } else {
    const op::SignedWide integer = value.integer;
    op::storer<op::SignedWide>(value.dtype)(at, 0, 1, 1, &integer);
  }
  return out;
}

class FunctionWriter {
 public:
  FunctionWriter(const ir::Function& function, std::span<const op::Array> inputs,
                 std::span<const op::Array> results, const Means& means)
      : function_(function), means_(means), draft_(inputs, results) {}

  Result<StepProgram> run(std::span<const op::Array> inputs, std::span<const op::Array> results,
                          std::span<const std::int64_t> sizes) {
    if (inputs.size() != function_.params.size() || results.size() != function_.results.size())
      return Error(ErrorCode::internal,
                   cat("'", function_.name, "' has other inputs and results than its step"));
    for (std::size_t i = 0; i < sizes.size() && i < function_.dims.size(); ++i)
      sizes_[*function_.dims[i]] = sizes[i];
    for (std::size_t i = 0; i < inputs.size(); ++i) TESSERA_TRY(bind(*function_.params[i], i, inputs[i]));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const auto* var = ir::as<ir::Var>(*function_.results[i]); var != nullptr && !target_of_.find(*var))
        target_of_[*var] = i;
    for (const auto& statement : function_.body) {
      auto done = write(*statement);
      if (!done) return std::move(done).error().at(statement->span().resolve());
    }
    for (std::size_t i = 0; i < results.size(); ++i) TESSERA_TRY(store(*function_.results[i], i));
    return std::move(draft_).finish();
  }

 private:
  // ---- sizes

  Result<void> bind(const ir::Var& var, std::size_t input, const op::Array& array) {
    const auto type = op::value_type(*var.type);
    if (!type) return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(var), "' is a tuple"));
    for (std::size_t i = 0; i < type->rank() && i < array.rank(); ++i) {
      const op::Dim& dim = type->shape[i];
      const auto* symbol = dim.is_constant() ? nullptr : ir::as<ir::Var>(dim.expr());
      if (symbol != nullptr && sizes_.find(*symbol) == nullptr) sizes_[*symbol] = array.shape()[i];
    }
    values_[var] = {draft_.input(input)};
    return {};
  }

  Result<op::Attributes> with_numbers(const op::Attributes& attributes) {
    op::Attributes out = attributes;
    for (auto& [name, value] : out.mutable_entries())
      if (auto* shape = std::get_if<op::Shape>(&value))
        for (op::Dim& dim : *shape) {
          if (dim.is_constant()) continue;
          const auto size = ir::evaluate(dim, [&](const ir::Var& var) -> std::optional<std::int64_t> {
            const std::int64_t* known = sizes_.find(var);
            return known == nullptr ? std::nullopt : std::optional(*known);
          });
          if (!size)
            return Error(ErrorCode::unsupported, cat("the size ", dim, " of attribute '", name,
                                                     "' is not known before the program runs"));
          dim = *size;
        }
    return out;
  }

  // ---- operands

  Result<ProgramArray> operand(const ir::Expr& expr) {
    if (const auto* var = ir::as<ir::Var>(expr))
      if (const ProgramArrays* arrays = values_.find(*var); arrays != nullptr && arrays->size() == 1)
        return (*arrays)[0];
    if (const auto* parameter = ir::as<ir::Param>(expr)) return number(*parameter);
    const auto value = op::evaluate_scalar(expr, [&](const ir::Expr& leaf) { return scalar(leaf); });
    if (!value)
      return Error(ErrorCode::unsupported,
                   cat("'", ir::describe(expr), "' is not known before the program runs"));
    const std::size_t width = ir::size_of(value->dtype);
    const ProgramArray out = draft_.scratch(value->dtype, {});
    add_store(out, number_source(word_type(width), word_type(width)),
              {.kind = Argument::Kind::plain,
               .bits = element_bits(*value),
               .bytes = static_cast<std::uint8_t>(width)});
    return out;
  }

  std::optional<op::ScalarValue> scalar(const ir::Expr& leaf) {
    const auto* var = ir::as<ir::Var>(leaf);
    const std::int64_t* size = var == nullptr ? nullptr : sizes_.find(*var);
    if (size == nullptr) return std::nullopt;
    return op::ScalarValue{op::Dtype::i64, 0, *size};
  }

  Result<ProgramArray> number(const ir::Param& parameter) {
    const ProgramArray out = draft_.scratch(parameter.dtype, {});
    const op::Dtype dtype = parameter.dtype;
    if (dtype == op::Dtype::f16 || dtype == op::Dtype::bf16)
      return Error(ErrorCode::unsupported, cat("a parameter of dtype ", dtype, " outside a kernel"));
    const op::Dtype given = ir::is_float(dtype) ? dtype : op::Dtype::i64;
    const std::string_view stored = dtype == op::Dtype::f32   ? "float"
                                    : dtype == op::Dtype::f64 ? "double"
                                                              : word_type(ir::size_of(dtype));
    const std::string_view type = given == op::Dtype::i64 ? "long long" : stored;
    add_store(out, number_source(stored, type),
              {.kind = Argument::Kind::number, .slot = parameter.slot, .dtype = given});
    return out;
  }

  void add_store(const ProgramArray& to, SourceRef source, Argument value) {
    Launch launch{.kind = Launch::Kind::kernel, .source = std::move(source)};
    launch.arguments.push_back({.kind = Argument::Kind::memory, .memory = to.memory});
    launch.arguments.push_back(value);
    draft_.append(std::move(launch));
  }

  // ---- statements

  Result<void> write(const ir::Assign& statement) {
    const ir::Expr& value = *statement.value;
    if (const auto* call = ir::as<ir::Call>(value)) return write_call(*call, statement);
    ProgramArrays arrays;
    if (const auto* tuple = ir::as<ir::Tuple>(value)) {
      for (const ir::ExprRef& element : tuple->elements) arrays.push_back(TESSERA_TRY(operand(*element)));
    } else if (const auto* item = ir::as<ir::Item>(value)) {
      const auto* var = ir::as<ir::Var>(*item->tuple);
      const ProgramArrays* tuple_arrays = var == nullptr ? nullptr : values_.find(*var);
      if (tuple_arrays == nullptr || item->index >= tuple_arrays->size())
        return Error(ErrorCode::internal, "no such element of a tuple");
      arrays.push_back((*tuple_arrays)[item->index]);
    } else if (ir::is<ir::Invoke>(value) || ir::is<ir::IfRegion>(value) || ir::is<ir::SwitchRegion>(value) ||
               ir::is<ir::WhileRegion>(value) || ir::is<ir::ForRegion>(value)) {
      return Error(ErrorCode::unsupported,
                   cat("'", ir::to_string(value.kind()), "' is no step of this device yet"));
    } else {
      arrays.push_back(TESSERA_TRY(operand(value)));
    }
    values_[*statement.targets[0]] = std::move(arrays);
    return {};
  }

  Result<void> write_call(const ir::Call& call, const ir::Assign& statement) {
    const op::Card* card = op::find_card(call.op);
    if (card == nullptr) return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
    const op::Attributes attributes =
        TESSERA_TRY(op::complete_attributes(*card, TESSERA_TRY(with_numbers(call.attrs))));
    ProgramArrays inputs, results;
    op::ValueTypes types;
    for (const ir::ExprRef& arg : call.args) {
      inputs.push_back(TESSERA_TRY(operand(*arg)));
      const op::Array& array = inputs.back().array;
      types.push_back({array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape()))});
    }
    const op::CallInfo info(*card, types, attributes);
    if (write_view(info, inputs, statement)) return {};
    const auto made = TESSERA_TRY(op::infer(*card, types, attributes));
    if (made.size() != statement.targets.size())
      return Error(ErrorCode::internal, cat("'", card->name, "' has ", made.size(), " results"));
    for (std::size_t i = 0; i < made.size(); ++i) results.push_back(place(*statement.targets[i], made[i]));
    draft_.add(TESSERA_TRY(call_program(info, arrays_of(inputs), arrays_of(results), means_)), inputs,
               results);
    for (std::size_t i = 0; i < results.size(); ++i) values_[*statement.targets[i]] = {results[i]};
    return {};
  }

  bool write_view(const op::CallInfo& info, const ProgramArrays& inputs, const ir::Assign& statement) {
    if (info.card().view == nullptr || inputs.empty()) return false;
    const auto layout = info.card().view(info, inputs[0].array.layout);
    if (!layout) return false;
    ProgramArray seen = inputs[0];
    seen.array.layout = *layout;
    values_[*statement.targets[0]] = {seen};
    return true;
  }

  /// A value that is a result of the function is computed where it belongs.
  ProgramArray place(const ir::Var& var, const op::ValueType& type) {
    const op::Extents shape = op::extents_of(type.shape);
    const std::size_t* result = target_of_.find(var);
    if (result == nullptr) return draft_.scratch(type.dtype, shape);
    const ProgramArray out = draft_.result(*result);
    const bool fits =
        out.array.dtype == type.dtype && out.array.shape() == shape && out.array.layout.is_contiguous();
    return fits ? out : draft_.scratch(type.dtype, shape);
  }

  Result<void> store(const ir::Expr& expr, std::size_t result) {
    const ProgramArray from = TESSERA_TRY(operand(expr)), to = draft_.result(result);
    if (from.memory == to.memory && from.array.layout == to.array.layout) return {};
    if (from.array.shape() != to.array.shape() || from.array.dtype != to.array.dtype)
      return Error(ErrorCode::shape,
                   cat("result ", result, " of '", function_.name, "' has shape [",
                       join(from.array.shape(), ", "), "], expected [", join(to.array.shape(), ", "), "]"));
    draft_.add(copy_program(from.array, to.array), {&from, 1}, {&to, 1});
    return {};
  }

  const ir::Function& function_;
  Means means_;
  ProgramDraft draft_;
  ir::NodeTable<std::int64_t> sizes_;
  ir::NodeTable<ProgramArrays> values_;
  ir::NodeTable<std::size_t> target_of_;  ///< by variable: the first result that it is
};

}  // namespace

Result<StepProgram> tessera::runtime::cuda::function_program(const ir::Function& function,
                                                             std::span<const op::Array> inputs,
                                                             std::span<const op::Array> results,
                                                             std::span<const std::int64_t> sizes,
                                                             const Means& means) {
  return FunctionWriter(function, inputs, results, means).run(inputs, results, sizes);
}
