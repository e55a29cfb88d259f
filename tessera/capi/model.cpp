// Models from files.
#include "tessera/model/onnx_model.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "tessera/capi/arguments.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

// Never destroyed: static objects of the program may hold handles.
HandleTable<OnnxModel>& models() {
  static auto* table = new HandleTable<OnnxModel>(4);
  return *table;
}

OnnxModel model_of(tsr_model handle) {
  require(handle, "model");
  auto out = models().find(std::bit_cast<std::uint64_t>(handle));
  if (!out) fail(TSR_ERROR_HANDLE, "'model' is no handle of this type, or was freed");
  return *std::move(out);
}

/// A size, or -1 for a name.
std::int64_t size_from(const std::string& text) {
  std::int64_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? out : -1;
}

tsr_model_value value_from(const OnnxValue& value) {
  tsr_model_value out{};
  std::copy_n(value.name.begin(), std::min(value.name.size(), sizeof out.name - 1), out.name);
  out.dtype = value.dtype ? static_cast<int>(dtype_to(*value.dtype)) : -1;
  out.ndim = value.shape ? static_cast<int>(value.shape->size()) : -1;
  if (value.shape) std::transform(value.shape->begin(), value.shape->end(), out.shape, size_from);
  return out;
}

void copy_values(const std::vector<OnnxValue>& values, tsr_model_value* out, int max, int* out_count) {
  require_array(out, max, "out");
  std::vector<tsr_model_value> all;
  for (const OnnxValue& value : values) all.push_back(value_from(value));
  copy_out<tsr_model_value>(all, out, max, out_count);
}

void require_count(int given, std::size_t expected, const char* what) {
  if (static_cast<std::size_t>(given) != expected)
    fail(TSR_ERROR_INVALID_OPERATION, "the model has ", expected, " ", what, ", not ", given);
}

}  // namespace

int tsr_model_load_onnx(const char* path, tsr_engine engine, tsr_model* out) noexcept {
  return guard("tsr_model_load_onnx", [&] {
    require(path, "path");
    require(out, "out");
    OnnxModel model = load_onnx(path, {.engine = engine_of(engine)}, here());
    *out = std::bit_cast<tsr_model>(models().add(std::move(model)));
  });
}

int tsr_model_free(tsr_model model) noexcept {
  return guard("tsr_model_free", [&] {
    (void)model_of(model);
    (void)models().remove(std::bit_cast<std::uint64_t>(model));
  });
}

int tsr_model_get_inputs(tsr_model model, tsr_model_value* out, int max, int* out_count) noexcept {
  return guard("tsr_model_get_inputs", [&] { copy_values(model_of(model).inputs(), out, max, out_count); });
}

int tsr_model_get_outputs(tsr_model model, tsr_model_value* out, int max, int* out_count) noexcept {
  return guard("tsr_model_get_outputs", [&] { copy_values(model_of(model).outputs(), out, max, out_count); });
}

int tsr_model_call(tsr_model model, const tsr_tensor* inputs, int input_count, tsr_tensor* outputs,
                   int output_count) noexcept {
  return guard("tsr_model_call", [&] {
    const OnnxModel called = model_of(model);
    require_array(inputs, input_count, "inputs");
    require_array(outputs, output_count, "outputs");
    require_count(input_count, called.inputs().size(), "inputs");
    require_count(output_count, called.outputs().size(), "outputs");
    std::vector<Tensor> given;
    for (int i = 0; i < input_count; ++i) given.push_back(tensor_of(inputs[i], "inputs"));
    require_one_engine(given);
    make_handles(called(given, here()), outputs);
  });
}
