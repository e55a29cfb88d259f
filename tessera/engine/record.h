// Recording: a call becomes a node. Its shape and dtype are inferred at once, and what is wrong is said at
// once, with the caller's line; nothing is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/engine/call_form.h"
#include "tessera/engine/engine.h"
#include "tessera/engine/operand.h"

namespace tessera::engine {

/// The dtype of two tensors together:
///   equal dtypes stay; a boolean gives way; of two floats the wider, f16 with bf16 gives f32; a float and an
///   integer give the float; of two integers the wider, signed if one is; an unsigned that fits no wider
///   signed one gives f64.
[[nodiscard]] Dtype promoted(Dtype a, Dtype b);

/// Whether a tensor of this dtype stores a number as it is written; floats round and take all.
[[nodiscard]] bool fits(const Operand& number, Dtype dtype);
/// "the number 300 does not fit i8".
[[nodiscard]] std::string misfit(const Operand& number, Dtype dtype);

/// Records a call; one new node per result, each with one reference, the caller's. `engine` is used if no
/// operand has one. Scalars left out at the end take their defaults; operands of type T are converted to one
/// dtype (`promoted`; a number with a point makes integers f32; integers given to an op on floats become f32,
/// those of 32 and 64 bits f64 if it is a reduction); where no operand is a tensor of type T, `dtype` says it.
/// A number that does not fit the dtype is an error.
[[nodiscard]] Result<SmallVector<Node*, 2>> record(const op::Card& card, std::span<const Operand> operands,
                                                   op::Attributes attributes, Caller caller,
                                                   const std::shared_ptr<Engine>& engine = nullptr,
                                                   std::optional<Dtype> dtype = {});

/// The same if such a call was recorded before; else null.
[[nodiscard]] Node* record_known(const op::Card& card, std::span<const Operand> operands,
                                 std::span<const op::Attributes::Entry> attributes, Caller caller);
/// The same without attributes, of the numbers of operands that most calls have.
[[nodiscard]] Node* record_known(const op::Card& card, std::span<const Operand, 1> operands, Caller caller);
[[nodiscard]] Node* record_known(const op::Card& card, std::span<const Operand, 2> operands, Caller caller);

/// Records a call of this form on operands of the types it was found for; null if they are of two engines.
/// One of numbers alone is recorded into the graph of `beside`.
[[nodiscard]] Node* record_again(const CallForm& form, std::span<const Operand> operands, const Node& beside,
                                 Caller caller);
/// The form of a call that was recorded; none if it is not that simple.
[[nodiscard]] std::optional<CallForm> form_of(const Node& call);

/// The dtype of the scalar at operand `i` of a call.
[[nodiscard]] Dtype scalar_dtype_of(const Node& call, std::size_t i);

/// A stored tensor: the elements of `storage`.
[[nodiscard]] Node* make_leaf(const std::shared_ptr<Engine>& engine, Dtype dtype,
                              std::span<const std::int64_t> shape, Storage storage, Caller caller);

/// Records a call as it is, unchecked: for what no card of the catalogue describes. One node per result type.
/// Throws if the inputs are of two engines.
[[nodiscard]] SmallVector<Node*, 2> record_plain(const op::Card& card, std::span<Node* const> inputs,
                                                 const op::ValueTypes& results, Caller caller);
/// A call of a traced function; its inputs are the parameters. `rules`, which may be null, say what is known
/// of gradients inside it.
[[nodiscard]] SmallVector<Node*, 2> record_function(ir::FunctionRef function, std::span<Node* const> inputs,
                                                    const op::ValueTypes& results,
                                                    std::shared_ptr<const CustomGradient> rules,
                                                    Caller caller);
/// The value of `y`, whose gradient is `rule`'s affair; it depends on `inputs`.
[[nodiscard]] Node* record_custom(Node* y, std::span<Node* const> inputs,
                                  std::shared_ptr<const CustomGradient> rule, Caller caller);
/// Result `k`, not the first, of a call with several.
[[nodiscard]] Node* record_result(Node* call, std::size_t k, Caller caller);
/// A parameter of a region that is being traced.
[[nodiscard]] Node* make_placeholder(const std::shared_ptr<Engine>& engine, const op::ValueType& type,
                                     Caller caller);

/// How this thread records.
struct ThreadState {
  std::uint16_t block = 0;                   ///< the named scope; what is recorded belongs to it
  std::uint16_t trace_depth = 0;             ///< regions that are being traced
  std::uint16_t custom_depth = 0;            ///< functions of custom ops that are running
  std::uint16_t plan_at_once = 0;            ///< scopes in which plans are made without waiting for heat
  bool gradient_enabled = true;              ///< whether calls track gradients
  Engine::RandomState* replay = nullptr;     ///< where random numbers are taken from, if not from the engine
  std::vector<NodeRef>* tracked = nullptr;   ///< takes every node that begins to track gradients
  std::vector<NodeRef>* captured = nullptr;  ///< takes what is tracked and used
};
inline constinit thread_local ThreadState thread_state;

}  // namespace tessera::engine
