// Ops that make tensors from nothing but numbers.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

Result<ValueTypes> infer_full(const CallInfo& call) {
  return ValueTypes{{call.input(0).dtype, call.shape("shape")}};
}

Result<void> run_full(const CallInfo&, std::span<const Array> inputs, std::span<const Array> results) {
  copy_elements({inputs[0].dtype, broadcast_layout(inputs[0].layout, results[0].shape()), inputs[0].data},
                results[0]);
  return {};
}

constexpr Input full_inputs[] = {{"value", "T", InputKind::scalar, 0}};
constexpr AttributeSpec full_attributes[] = {{"shape", AttributeKind::shape, true}};

constexpr Card cards[] = {
    {.name = "full",
     .summary = "every element is `value`",
     .inputs = full_inputs,
     .attributes = full_attributes,
     .T = all_dtypes,
     .oracle = "numpy:full",
     .infer = infer_full,
     .reference = run_full,
     .no_gradient = "`value` is a setting"},
};

}  // namespace

std::span<const Card> tessera::op::create_cards() { return cards; }
