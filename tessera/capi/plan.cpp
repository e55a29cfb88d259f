// Plans from files.
#include <algorithm>
#include <bit>

#include "tessera/capi/arguments.h"
#include "tessera/tensor/saved_plan.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

// Never destroyed: static objects of the program may hold handles.
HandleTable<SavedPlan>& plans() {
  static auto* table = new HandleTable<SavedPlan>(5);
  return *table;
}

SavedPlan plan_of(tsr_plan handle) {
  require(handle, "plan");
  auto out = plans().find(std::bit_cast<std::uint64_t>(handle));
  if (!out) fail(TSR_ERROR_HANDLE, "'plan' is no handle of this type, or was freed");
  return *std::move(out);
}

tsr_model_value value_from(const PlanValue& value) {
  tsr_model_value out{};
  std::copy_n(value.name.begin(), std::min(value.name.size(), sizeof out.name - 1), out.name);
  out.dtype = static_cast<int>(dtype_to(value.dtype));
  out.ndim = static_cast<int>(value.shape.size());
  std::copy(value.shape.begin(), value.shape.end(), out.shape);
  return out;
}

void copy_values(const std::vector<PlanValue>& values, tsr_model_value* out, int max, int* out_count) {
  require_array(out, max, "out");
  std::vector<tsr_model_value> all;
  for (const PlanValue& value : values) all.push_back(value_from(value));
  copy_out<tsr_model_value>(all, out, max, out_count);
}

}  // namespace

int tsr_plan_load(const char* path, tsr_engine engine, tsr_plan* out) noexcept {
  return guard("tsr_plan_load", [&] {
    require(path, "path");
    require(out, "out");
    *out = std::bit_cast<tsr_plan>(plans().add(load_plan(path, {.engine = engine_of(engine)}, here())));
  });
}

int tsr_plan_free(tsr_plan plan) noexcept {
  return guard("tsr_plan_free", [&] {
    (void)plan_of(plan);
    (void)plans().remove(std::bit_cast<std::uint64_t>(plan));
  });
}

int tsr_plan_get_inputs(tsr_plan plan, tsr_model_value* out, int max, int* out_count) noexcept {
  return guard("tsr_plan_get_inputs", [&] { copy_values(plan_of(plan).inputs(), out, max, out_count); });
}

int tsr_plan_get_outputs(tsr_plan plan, tsr_model_value* out, int max, int* out_count) noexcept {
  return guard("tsr_plan_get_outputs", [&] { copy_values(plan_of(plan).outputs(), out, max, out_count); });
}

int tsr_plan_call(tsr_plan plan, const tsr_tensor* inputs, int input_count, tsr_tensor* outputs,
                  int output_count) noexcept {
  return guard("tsr_plan_call", [&] {
    const SavedPlan called = plan_of(plan);
    require_array(inputs, input_count, "inputs");
    require_array(outputs, output_count, "outputs");
    if (static_cast<std::size_t>(output_count) != called.outputs().size())
      fail(TSR_ERROR_INVALID_OPERATION, "the plan has ", called.outputs().size(), " outputs, not ",
           output_count);
    std::vector<Tensor> given;
    for (int i = 0; i < input_count; ++i) given.push_back(tensor_of(inputs[i], "inputs"));
    make_handles(called(given, {}, here()), outputs);
  });
}
