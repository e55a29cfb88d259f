#include "tessera/runtime/cuda/parts_program.h"

#include <algorithm>

#include "tessera/op/builder.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/program_draft.h"
#include "tessera/runtime/cuda/program_writer.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using op::Value;
using op::Values;

namespace {

/// Writes one number to the first result.
StepProgram constant_program(double value, op::Dtype dtype) {
  std::int64_t bits = 0;
  op::storer<double>(dtype)(reinterpret_cast<std::byte*>(&bits), 0, 1, 1, &value);
  KernelWriter kernel("tessera_constant", IndexWidth::wide,
                      unit_text(static_cast<std::int64_t>(ir::size_of(dtype))));
  kernel.pointer("T", "y", {Memory::Kind::result, 0, 0}).integer("bits", bits);
  StepProgram out;
  out.launches.push_back(std::move(kernel).launch("  y[0] = (T)bits;\n", 1, 1));
  return out;
}

/// Turns every call into launches as it is written.
class PartsBuilder : public op::Builder {
 public:
  PartsBuilder(ProgramDraft& draft, const ProgramOfCall& program_of_call)
      : draft_(draft), program_of_call_(program_of_call) {}

  Value add(const ProgramArray& array) {
    arrays_.push_back(array);
    return add_value({array.array.dtype, ir::shape_of(std::span<const std::int64_t>(array.array.shape()))});
  }
  [[nodiscard]] const ProgramArray& array(Value value) const { return arrays_[value.id]; }

 protected:
  Result<Values> emit(const op::Card& card, std::span<const Value> inputs, op::Attributes attributes,
                      op::ValueTypes types) override {
    op::ValueTypes input_types;
    std::vector<ProgramArray> in, out;
    for (const Value input : inputs) {
      input_types.push_back(input.type());
      in.push_back(array(input));
    }
    const op::CallInfo call(card, input_types, attributes);
    if (const auto layout = card.view != nullptr ? card.view(call, in[0].array.layout) : std::nullopt) {
      in[0].array.layout = *layout;
      return Values{add(in[0])};
    }
    for (const op::ValueType& type : types)
      out.push_back(draft_.scratch(type.dtype, op::extents_of(type.shape)));
    draft_.add(TESSERA_TRY(program_of_call_(call, arrays_of(in), arrays_of(out))), in, out);
    Values results;
    for (const ProgramArray& result : out) results.push_back(add(result));
    return results;
  }

  Value emit_constant(double value, op::Dtype dtype) override {
    const ProgramArray out = draft_.scratch(dtype, {});
    draft_.add(constant_program(value, dtype), {}, {&out, 1});
    return add(out);
  }
  Value emit_extent(const op::Dim& size) override {
    return emit_constant(static_cast<double>(size.value()), op::Dtype::i64);
  }

 private:
  ProgramDraft& draft_;
  const ProgramOfCall& program_of_call_;
  std::vector<ProgramArray> arrays_;  ///< by value
};

/// Memory that is needed for one result alone becomes that result; the others are copied, before that.
void put_results(ProgramDraft& draft, const PartsBuilder& builder, std::span<const Value> values) {
  std::vector<std::size_t> becoming;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const ProgramArray from = builder.array(values[k]), to = draft.result(k);
    const bool is_taken = std::any_of(becoming.begin(), becoming.end(), [&](std::size_t other) {
      return builder.array(values[other]).memory == from.memory;
    });
    if (!is_taken && draft.can_become_result(from, k))
      becoming.push_back(k);
    else
      draft.add(copy_program(from.array, to.array), {&from, 1}, {&to, 1});
  }
  for (const std::size_t k : becoming) draft.become_result(builder.array(values[k]), k);
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::parts_program(const op::CallInfo& call,
                                                          std::span<const op::Array> inputs,
                                                          std::span<const op::Array> results,
                                                          const ProgramOfCall& program_of_call) {
  ProgramDraft draft(inputs, results);
  PartsBuilder builder(draft, program_of_call);
  op::ValueTypes types;
  Values values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value input = builder.add(draft.input(i));
    values.push_back(is_half(input.dtype()) ? op::cast(input, op::Dtype::f32) : input);
    TESSERA_TRY(builder.status());
    types.push_back(values.back().type());
  }
  const op::CallInfo wide(call.card(), types, call.attributes());
  const Values computed = call.card().decompose(builder, wide, values);
  TESSERA_TRY(builder.status());
  for (std::size_t k = 0; k < results.size(); ++k) values.push_back(op::cast(computed[k], results[k].dtype));
  TESSERA_TRY(builder.status());
  put_results(draft, builder, std::span(values).last(results.size()));
  return std::move(draft).finish();
}
