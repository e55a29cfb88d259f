#include "tessera/onnx/variants.h"

#include <algorithm>
#include <limits>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

bool is_flag(const ValueInfo& input) {
  if (input.type.kind != DeclaredType::Kind::tensor || input.type.dtype != Dtype::boolean ||
      !input.type.shape)
    return false;
  return std::all_of(input.type.shape->begin(), input.type.shape->end(),
                     [](const DeclaredDim& dim) { return dim == DeclaredDim(std::int64_t{1}); });
}

/// The model for one value of a flag.
Result<void> set_flag(Model& model, const ValueInfo& flag, bool value) {
  const HostTensor tensor = TESSERA_TRY(
      HostTensor::allocate(Dtype::boolean, op::Extents(flag.type.shape->size(), std::int64_t{1})));
  *tensor.array().data = std::byte{value};
  model.graph.initializers.push_back({flag.name, tensor, {}});
  return {};
}

}  // namespace

std::vector<std::size_t> tessera::onnx::find_flags(const Model& model, std::size_t most) {
  const auto inputs = required_inputs(model);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_flag(*inputs[i])) out.push_back(i);
  if (out.size() > most) out.clear();
  return out;
}

Result<Variants> tessera::onnx::import_by_flags(const Model& model, std::vector<std::size_t> flags,
                                                const Limits& limits) {
  const auto inputs = required_inputs(model);
  Variants out;
  for (std::size_t bits = 0; bits < std::size_t{1} << flags.size(); ++bits) {
    Model one = model;  // shares the weights
    for (std::size_t f = 0; f < flags.size(); ++f)
      TESSERA_TRY(set_flag(one, *inputs[flags[f]], (bits >> f & 1) != 0));
    out.functions.push_back(TESSERA_TRY(import_function(one, limits)));
  }
  out.flags = std::move(flags);
  return out;
}

Result<Variants> tessera::onnx::import_variants(const Model& model, std::size_t most_flags,
                                                const Limits& limits) {
  auto whole = import_function(model, limits);
  if (whole) return Variants{{*std::move(whole)}, {}};
  auto flags = find_flags(model, std::numeric_limits<std::size_t>::max());
  if (whole.error().code() != ErrorCode::unsupported || flags.empty()) return std::move(whole).error();
  if (flags.size() > most_flags)
    return most_flags == 0 ? std::move(whole).error()
                           : std::move(whole).error().note(
                                 cat("it has ", flags.size(), " inputs of one boolean, for at most ",
                                     most_flags, " there is a function for each value"));
  return import_by_flags(model, std::move(flags), limits);
}
