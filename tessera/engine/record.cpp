#include "tessera/engine/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/forked_child.h"
#include "tessera/base/text.h"
#include "tessera/engine/known_calls.h"
#include "tessera/op/call_info.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

std::size_t width(Dtype dtype) { return ir::size_of(dtype); }

Dtype signed_of(std::size_t bytes) {
  return bytes == 1 ? Dtype::i8 : bytes == 2 ? Dtype::i16 : bytes == 4 ? Dtype::i32 : Dtype::i64;
}

struct ReleaseComponent {
  void operator()(Component* component) const { component->release(); }
};
using ComponentRef = std::unique_ptr<Component, ReleaseComponent>;

ComponentRef shared(Component* component) {
  component->retain();
  return ComponentRef(component);
}

/// A new node with everything but operands, shape and result types. Its inputs, of which it must get some,
/// keep its component. A part of each way to record: what is set twice is then written once.
[[gnu::always_inline]] inline NodeRef new_node(const op::Card* card, Component* component, Caller caller) {
  check_no_forked_child();
  NodeRef node = NodeRef::adopt(new Node);
  node->card = card;
  node->component = component;
  node->file = caller.file;
  node->line = caller.line;
  node->block = thread_state.block;
  if (thread_state.trace_depth > 0) [[unlikely]] {
    node->set(Node::traced);
    if (!thread_state.gradient_enabled) node->set(Node::no_gradient);
  }
  node->id = node_numbers.next();
  return node;
}

/// One that keeps its component itself.
NodeRef new_node(const op::Card* card, ComponentRef component, Caller caller) {
  NodeRef node = new_node(card, component.get(), caller);
  node->component = component.release();
  node->owns_component = true;
  return node;
}

void track_gradient_of(Node& node, Node* input) {
  if (thread_state.captured != nullptr) thread_state.captured->push_back(NodeRef::share(input));
  if (thread_state.gradient_enabled && !node.is(Node::tracks_gradient)) {
    node.set(Node::tracks_gradient);
    if (thread_state.tracked != nullptr) thread_state.tracked->push_back(NodeRef::share(&node));
  }
}
/// `any_float`: whether a result can have a gradient at all.
inline void track_gradient(Node& node, Node* input, bool any_float) {
  if (any_float && input->is(Node::tracks_gradient)) [[unlikely]]
    track_gradient_of(node, input);
}
void track_gradient(Node& node, Node* input) { track_gradient(node, input, ir::is_float(node.dtype)); }

SourceSpan line_of(Caller caller) { return {caller.file == nullptr ? "" : caller.file, caller.line, 0}; }

Node* node_in(const Operand& operand) { return operand.node; }
Node* node_in(Node* node) { return node; }

/// The component of a call: all graphs of its operands become one. Null if no operand is a node.
struct Joined {
  Component* component = nullptr;
  bool is_of_two_engines = false;  ///< nothing more was joined
};

template <class Operands>
inline Joined joined(const Operands& operands) {
  Joined out;
  for (const auto& operand : operands) {
    Node* const node = node_in(operand);
    if (node == nullptr || node->component == out.component) continue;
    if (out.component == nullptr) {
      out.component = node->component;
      continue;
    }
    out.is_of_two_engines = out.component->engine() != node->component->engine();
    if (out.is_of_two_engines) return out;
    out.component = Component::join(out.component, node->component);
  }
  return out;
}

/// The same to keep: a new one, of `engine`, if no operand is a node.
template <class Operands>
Result<ComponentRef> joined_or_new(const Operands& operands, const std::shared_ptr<Engine>& engine) {
  const Joined found = joined(operands);
  if (found.is_of_two_engines)
    return Error(ErrorCode::invalid_argument, "tensors of two engines cannot be combined");
  if (found.component != nullptr) return shared(found.component);
  return ComponentRef(new Component(engine != nullptr ? engine : Engine::default_engine()));
}

/// What this thread has recorded; null before its first call and when it ends. A plain pointer is found
/// without a look at whether it was made.
constinit thread_local const KnownCalls* known_calls = nullptr;

/// Nothing is remembered by a thread that has ended but for the destructors of its objects.
void remember(const op::Card& card, std::span<const Operand> operands, std::span<const Dtype> number_dtypes,
              op::Attributes given, std::shared_ptr<const op::Attributes> complete,
              const op::ValueType& result) {
  constinit thread_local bool has_ended = false;
  struct Own {
    Own() { known_calls = &calls; }
    ~Own() { known_calls = nullptr, has_ended = true; }
    KnownCalls calls;
  };
  if (has_ended) return;
  thread_local Own own;
  own.calls.add(card, operands, number_dtypes, std::move(given), std::move(complete), result);
}

template <std::size_t count>
inline const CallForm* known_form(const op::Card& card, std::span<const Operand, count> operands,
                                  AttributeEntries attributes = {}) {
  return known_calls == nullptr ? nullptr : known_calls->find(card, operands, attributes);
}

inline void set_type(Node& node, const CallForm::Type& type) {
  node.dtype = type.dtype;
  node.type_number.store(type.number, std::memory_order_relaxed);
  node.rank = type.rank;
  if (type.rank > Node::inline_dims) return node.set_shape({type.dims.data(), type.rank});
  std::memcpy(node.dims, type.dims.data(), sizeof node.dims);
}

/// REQUIRES that all sizes are numbers.
void set_type(Node& node, const op::ValueType& type) {
  node.dtype = type.dtype;
  if (type.rank() > Node::inline_dims) return node.set_shape(*ir::constant_shape(type.shape));
  node.rank = static_cast<std::uint8_t>(type.rank());
  for (std::size_t i = 0; i < node.rank; ++i) node.dims[i] = type.shape[i].value();
}

/// What a form and its operands say of a new node. A part of each way to record, as `new_node` is.
template <std::size_t count>
[[gnu::always_inline]] inline void set_call(Node& node, const CallForm& form,
                                            std::span<const Operand, count> operands) {
  set_type(node, form.result);
  node.input_count = static_cast<std::uint32_t>(operands.size());
  std::size_t scalars = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Node* const input = operands[i].node;
    node.inputs[i] = input;
    if (input != nullptr) {
      retain(input);
      track_gradient(node, input, form.tracks_gradient);
    } else if (scalars++ == 0) {
      node.scalar = operands[i].scalar;
    } else {
      node.more().scalars.push_back(operands[i].scalar);
    }
  }
  if (form.attributes != nullptr) node.more().attributes = form.attributes;
}

/// Whether a dtype that is no float stores this number as it is.
bool fits_integer(std::int64_t number, Dtype dtype) {
  const op::SignedWide value = number;
  std::byte memory[8];
  op::storer<op::SignedWide>(dtype)(memory, 0, 1, 1, &value);
  op::SignedWide back;
  op::loader<op::SignedWide>(dtype)(memory, 0, 1, 1, &back);
  return back.v == number && !(ir::is_unsigned(dtype) && number < 0);
}

/// The same of a real number. The largest numbers of 64 bits are taken for what they are rounded from.
bool fits_integer(double number, Dtype dtype) {
  if (dtype == Dtype::boolean) return number == 0 || number == 1;
  const int bits = static_cast<int>(8 * width(dtype)) - (ir::is_unsigned(dtype) ? 0 : 1);
  const double end = std::ldexp(1.0, bits);
  return number == std::floor(number) && number >= (ir::is_unsigned(dtype) ? 0 : -end) &&
         (number < end || (number == end && bits > 62));
}

/// As `cast` does it.
ScalarBits as_integer(double value, Dtype dtype) {
  std::byte memory[8];
  op::storer<double>(dtype)(memory, 0, 1, 1, &value);
  op::SignedWide stored;
  op::loader<op::SignedWide>(dtype)(memory, 0, 1, 1, &stored);
  return ScalarBits::of_integer(stored.v);
}

/// The number as the dtype it is used in stores it.
inline ScalarBits as_dtype(const Operand& operand, Dtype dtype) {
  if (!ir::is_float(dtype))
    return operand.is_float ? as_integer(operand.scalar.as_float(), dtype) : operand.scalar;
  return operand.is_float ? operand.scalar
                          : ScalarBits::of_float(static_cast<double>(operand.scalar.as_integer()));
}

/// Whether a number is what the op takes where nothing is given, as an infinite bound: it changes no dtype.
inline bool is_default(const Operand& number, const op::Input& input) {
  return input.kind == op::InputKind::scalar && number.is_float &&
         number.scalar.as_float() == input.otherwise;
}

/// Whether a number that an op on integers is given says nothing about dtypes.
inline bool keeps_dtype(const Operand& number, Dtype dtype, const op::Input& input) {
  if (ir::is_float(dtype)) return true;
  return number.is_float ? is_default(number, input) : fits_integer(number.scalar.as_integer(), dtype);
}

const op::Input& input_of(const op::Card& card, std::size_t i) {
  return card.inputs[std::min(i, card.inputs.size() - 1)];
}

/// Puts operands whose numbers are as the form's dtypes store them into `out`; false if one changes these
/// dtypes, or is wrong.
template <std::size_t count>
inline bool convert_numbers(const CallForm& form, std::span<const Operand, count> operands, Operand* out) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Dtype dtype = form.number_dtypes[i];
    out[i] = operands[i];
    if (operands[i].node != nullptr) continue;
    if (!keeps_dtype(operands[i], dtype, input_of(*form.card, i))) return false;
    out[i].scalar = as_dtype(operands[i], dtype);
  }
  return true;
}

/// A call of this form, whose numbers are as they are stored.
template <std::size_t count>
inline Node* recorded_plain(const CallForm& form, std::span<const Operand, count> operands, Caller caller) {
  const Joined found = joined(operands);
  if (found.component == nullptr || found.is_of_two_engines) return nullptr;
  NodeRef made = new_node(form.card, found.component, caller);
  set_call(*made, form, operands);
  return made.detach();
}

/// A call of this form; null if the operands are of two engines, none is a node, or a number does not fit.
/// Inlined where their number is known.
template <std::size_t count>
inline Node* recorded_as(const CallForm& form, std::span<const Operand, count> operands, Caller caller) {
  if (!form.converts_numbers) return recorded_plain(form, operands, caller);
  std::array<Operand, count == std::dynamic_extent ? CallForm::max_operands : count> converted;
  if (!convert_numbers(form, operands, converted.data())) return nullptr;
  return recorded_plain(form, std::span<const Operand, count>(converted.data(), operands.size()), caller);
}

/// The same of numbers alone. No input keeps the component: the node does.
Node* recorded_of_numbers(const CallForm& form, std::span<const Operand> numbers, Component* component,
                          Caller caller) {
  NodeRef made = new_node(form.card, shared(component), caller);
  set_call(*made, form, numbers);
  return made.detach();
}

/// Of a call with several results: whether its node is the first, or belongs to all of them, so that one may
/// be asked for while the others stay lazy.
enum class FirstResult : std::uint8_t { is_the_call, is_its_own };

/// A node per result of a call that has everything else.
SmallVector<Node*, 2> results_of(NodeRef call, const op::ValueTypes& results, FirstResult first,
                                 Caller caller) {
  if (results.size() == 1) return {call.detach()};
  call->more().results = results;
  const bool has_own = first == FirstResult::is_its_own;
  SmallVector<NodeRef, 2> made;
  for (std::size_t k = has_own ? 0 : 1; k < results.size(); ++k)
    made.push_back(NodeRef::adopt(record_result(call.get(), k, caller)));
  if (!has_own) made.insert(made.begin(), std::move(call));
  SmallVector<Node*, 2> out(results.size());
  for (std::size_t k = 0; k < results.size(); ++k) out[k] = made[k].detach();
  return out;
}

/// Whether a result can have a gradient at all.
bool any_float_of(const op::ValueTypes& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const op::ValueType& type) { return ir::is_float(type.dtype); });
}

/// What is recorded on the way to one call: operands of one dtype.
class Recorder {
 public:
  Recorder(const op::Card& card, std::span<const Operand> given, Caller caller, std::optional<Dtype> dtype)
      : card_(card),
        operands_(given.begin(), given.end()),
        given_count_(given.size()),
        caller_(caller),
        asked_(dtype) {}

  Result<SmallVector<Node*, 2>> run(op::Attributes attributes, const std::shared_ptr<Engine>& engine) {
    TESSERA_TRY(fill_defaults());
    TESSERA_TRY(unify_dtypes());
    op::ValueTypes types;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      types.push_back(operands_[i].node != nullptr ? operands_[i].node->type()
                                                   : op::ValueType{scalar_dtype(i), {}});
    op::Attributes complete = TESSERA_TRY(op::complete_attributes(card_, attributes));
    const op::ValueTypes results = TESSERA_TRY(op::infer(card_, types, complete));
    auto component = joined_or_new(operands_, engine);
    if (!component)
      return Error(component.error().code(), cat(card_.name, ": ", component.error().message()));
    AttributesRef shared_attributes;
    if (!complete.empty()) shared_attributes = std::make_shared<const op::Attributes>(std::move(complete));
    if (results.size() == 1 && is_as_given() && !asked_) {
      SmallVector<Dtype, 8> number_dtypes;
      for (std::size_t i = 0; i < operands_.size(); ++i) number_dtypes.push_back(scalar_dtype(i));
      remember(card_, operands_, number_dtypes, std::move(attributes), shared_attributes, results[0]);
    }
    return nodes(*std::move(component), std::move(shared_attributes), results);
  }

  /// One node per result. Takes over a reference to `component`.
  using AttributesRef = std::shared_ptr<const op::Attributes>;
  SmallVector<Node*, 2> nodes(ComponentRef component, AttributesRef attributes,
                              const op::ValueTypes& results);

 private:
  [[nodiscard]] const op::Input& spec(std::size_t i) const { return input_of(card_, i); }

  Result<void> fill_defaults() {
    while (operands_.size() < card_.inputs.size() &&
           card_.inputs[operands_.size()].kind == op::InputKind::scalar)
      operands_.push_back(default_of(card_.inputs[operands_.size()]));
    if (operands_.size() > card_.inputs.size() &&
        !(card_.inputs.size() > 0 && card_.inputs.back().kind == op::InputKind::variadic))
      return Error(ErrorCode::invalid_argument,
                   cat(card_.name, ": takes ", card_.inputs.size(), " inputs, got ", operands_.size()));
    return {};
  }
  /// Whether no tensor was converted and nothing was filled in.
  [[nodiscard]] bool is_as_given() const { return converted_.empty() && operands_.size() == given_count_; }
  static Operand default_of(const op::Input& input) {
    return input.type == "i64" ? Operand::of(static_cast<std::int64_t>(input.otherwise))
                               : Operand::of(input.otherwise);
  }

  /// One dtype for all operands of type T; numbers take it.
  Result<void> unify_dtypes() {
    std::optional<Dtype> common;
    bool float_number = false, any_float = false, any_number = false, beyond_boolean = false;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (spec(i).type != "T") continue;
      if (operands_[i].node != nullptr)
        common = common ? promoted(*common, operands_[i].node->dtype) : operands_[i].node->dtype;
      else {
        any_number = true;
        const std::int64_t whole = operands_[i].scalar.as_integer();
        beyond_boolean = beyond_boolean || (!operands_[i].is_float && whole != 0 && whole != 1);
        any_float = any_float || operands_[i].is_float;
        float_number = float_number || (operands_[i].is_float && !is_default(operands_[i], spec(i)));
      }
    }
    if (!common && asked_) {
      dtype_ = *asked_;
      return check_numbers();
    }
    if (!common) common = any_float || !any_number ? Dtype::f32 : Dtype::i64;
    if (float_number && !ir::is_float(*common)) common = Dtype::f32;
    if (*common == Dtype::boolean && beyond_boolean) common = Dtype::i64;
    if (!card_.T.contains(*common)) {
      if (*common == Dtype::boolean && card_.T.contains(Dtype::i64)) common = Dtype::i64;
      // The mean of integers that f32 does not tell apart would be wrong by more than its own rounding.
      const bool needs_f64 = card_.traits.reduction && width(*common) > 2 && card_.T.contains(Dtype::f64);
      if (!ir::is_float(*common) && !card_.T.contains(*common) && card_.T.contains(Dtype::f32))
        common = needs_f64 ? Dtype::f64 : Dtype::f32;
    }
    dtype_ = *common;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (spec(i).type == "T" && operands_[i].node != nullptr && operands_[i].node->dtype != dtype_)
        TESSERA_TRY(convert(i));
    return check_numbers();
  }

  /// A number that wrapped around would give wrong results without a word.
  Result<void> check_numbers() const {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (spec(i).type != "T" || operands_[i].node != nullptr || is_default(operands_[i], spec(i))) continue;
      if (!fits(operands_[i], dtype_))
        return Error(ErrorCode::invalid_argument, cat(card_.name, ": ", misfit(operands_[i], dtype_)));
    }
    return {};
  }

  Result<void> convert(std::size_t i) {
    static const op::Card* cast = op::find_card("cast");
    const Operand from[] = {operands_[i]};
    const auto nodes = TESSERA_TRY(record(*cast, from, {{"dtype", dtype_}}, caller_));
    converted_.push_back(NodeRef::adopt(nodes[0]));
    operands_[i] = Operand::of(nodes[0]);
    return {};
  }

  [[nodiscard]] Dtype scalar_dtype(std::size_t i) const {
    if (spec(i).type == "T") return dtype_;
    return ir::parse_dtype(spec(i).type).value_or(Dtype::i64);
  }

  void add_operands(Node& call, bool any_float) {
    call.input_count = static_cast<std::uint32_t>(operands_.size());
    std::size_t scalars = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      Node* node = operands_[i].node;
      if (node != nullptr) {
        track_gradient(call, node, any_float && card_.no_gradient.empty());
      } else {
        const ScalarBits value = as_dtype(operands_[i], scalar_dtype(i));
        if (scalars++ == 0)
          call.scalar = value;
        else
          call.more().scalars.push_back(value);
      }
      if (i < Node::inline_inputs)
        call.inputs[i] = node;
      else
        call.more().inputs.push_back(node);
      if (node != nullptr) retain(node);
    }
  }

  const op::Card& card_;
  SmallVector<Operand, 8> operands_;
  std::size_t given_count_;
  Caller caller_;
  std::optional<Dtype> asked_;
  Dtype dtype_ = Dtype::f32;
  std::vector<NodeRef> converted_;  ///< until the call holds them
};

SmallVector<Node*, 2> Recorder::nodes(ComponentRef component, AttributesRef attributes,
                                      const op::ValueTypes& results) {
  NodeRef call = new_node(&card_, std::move(component), caller_);
  set_type(*call, results[0]);
  add_operands(*call, any_float_of(results));
  if (attributes != nullptr) call->more().attributes = std::move(attributes);
  return results_of(std::move(call), results, FirstResult::is_its_own, caller_);
}

}  // namespace

bool tessera::engine::fits(const Operand& number, Dtype dtype) {
  if (ir::is_float(dtype)) return true;
  return number.is_float ? fits_integer(number.scalar.as_float(), dtype)
                         : fits_integer(number.scalar.as_integer(), dtype);
}

std::string tessera::engine::misfit(const Operand& number, Dtype dtype) {
  const std::string shown = number.is_float ? cat(number.scalar.as_float()) : cat(number.scalar.as_integer());
  return cat("the number ", shown, " does not fit ", dtype);
}

Dtype tessera::engine::promoted(Dtype a, Dtype b) {
  if (a == b || b == Dtype::boolean) return a;
  if (a == Dtype::boolean) return b;
  if (ir::is_float(a) && ir::is_float(b))
    return width(a) == width(b) ? Dtype::f32 : width(a) > width(b) ? a : b;
  if (ir::is_float(a)) return a;
  if (ir::is_float(b)) return b;
  if (ir::is_unsigned(a) == ir::is_unsigned(b)) return width(a) > width(b) ? a : b;
  const Dtype with_sign = ir::is_unsigned(a) ? b : a, without = ir::is_unsigned(a) ? a : b;
  if (width(with_sign) > width(without)) return with_sign;
  return without == Dtype::u64 ? Dtype::f64 : signed_of(width(without) * 2);
}

Result<SmallVector<Node*, 2>> tessera::engine::record(const op::Card& card, std::span<const Operand> operands,
                                                      op::Attributes attributes, Caller caller,
                                                      const std::shared_ptr<Engine>& engine,
                                                      std::optional<Dtype> dtype) {
  if (!dtype)
    if (Node* node = record_known(card, operands, attributes.entries(), caller))
      return SmallVector<Node*, 2>{node};
  auto result = Recorder(card, operands, caller, dtype).run(std::move(attributes), engine);
  if (!result) return std::move(result).error().at(line_of(caller));
  return result;
}

Node* tessera::engine::record_known(const op::Card& card, std::span<const Operand> operands,
                                    AttributeEntries attributes, Caller caller) {
  const CallForm* known = known_form(card, operands, attributes);
  return known == nullptr ? nullptr : recorded_as(*known, operands, caller);
}
Node* tessera::engine::record_known(const op::Card& card, std::span<const Operand, 1> operands,
                                    Caller caller) {
  const CallForm* known = known_form(card, operands);
  return known == nullptr ? nullptr : recorded_as(*known, operands, caller);
}
Node* tessera::engine::record_known(const op::Card& card, std::span<const Operand, 2> operands,
                                    Caller caller) {
  const CallForm* known = known_form(card, operands);
  return known == nullptr ? nullptr : recorded_as(*known, operands, caller);
}

Node* tessera::engine::record_again(const CallForm& form, std::span<const Operand> operands,
                                    const Node& beside, Caller caller) {
  if (Node* const node = recorded_as(form, operands, caller)) return node;
  const auto is_node = [](const Operand& operand) { return operand.node != nullptr; };
  if (std::any_of(operands.begin(), operands.end(), is_node)) return nullptr;
  return recorded_of_numbers(form, operands, beside.component, caller);
}

std::optional<CallForm> tessera::engine::form_of(const Node& call) {
  if (call.card == nullptr || call.card->traits.random || call.input_count > CallForm::max_operands ||
      call.rank > CallForm::max_rank)
    return std::nullopt;
  const Extra* const extra = call.extra;
  if (extra != nullptr && (extra->function != nullptr || extra->custom != nullptr || !extra->results.empty()))
    return std::nullopt;
  for (std::size_t i = 0; i < call.input_count; ++i)
    if (call.input(i) == nullptr && !ir::is_float(scalar_dtype_of(call, i))) return std::nullopt;
  return CallForm(*call.card, call.dtype, call.shape(), extra == nullptr ? nullptr : extra->attributes);
}

Dtype tessera::engine::scalar_dtype_of(const Node& call, std::size_t i) {
  const auto& inputs = call.card->inputs;
  const std::string_view type = inputs[std::min(i, inputs.size() - 1)].type;
  if (type != "T") return ir::parse_dtype(type).value_or(Dtype::i64);
  for (std::size_t k = 0; k < call.input_count; ++k)
    if (inputs[std::min(k, inputs.size() - 1)].type == "T" && call.input(k) != nullptr)
      return call.input(k)->dtype;
  return call.dtype;
}

Node* tessera::engine::make_leaf(const std::shared_ptr<Engine>& engine, Dtype dtype,
                                 std::span<const std::int64_t> shape, Storage storage, Caller caller) {
  NodeRef node = new_node(nullptr, ComponentRef(new Component(engine)), caller);
  node->dtype = dtype;
  node->set_shape(shape);
  node->storage.store(new Storage(std::move(storage)), std::memory_order_release);
  return node.detach();
}

SmallVector<Node*, 2> tessera::engine::record_plain(const op::Card& card, std::span<Node* const> inputs,
                                                    const op::ValueTypes& results, Caller caller) {
  auto component = joined_or_new(inputs, nullptr);
  if (!component) throw Exception(std::move(component).error().at(line_of(caller)));
  NodeRef call = new_node(&card, *std::move(component), caller);
  set_type(*call, results[0]);
  const bool any_float = any_float_of(results) && card.no_gradient.empty();
  for (Node* input : inputs) {
    if (call->input_count < Node::inline_inputs)
      call->inputs[call->input_count] = input;
    else
      call->more().inputs.push_back(input);
    ++call->input_count;
    retain(input);
    track_gradient(*call, input, any_float);
  }
  return results_of(std::move(call), results, FirstResult::is_the_call, caller);
}

SmallVector<Node*, 2> tessera::engine::record_function(ir::FunctionRef function,
                                                       std::span<Node* const> inputs,
                                                       const op::ValueTypes& results,
                                                       std::shared_ptr<const CustomGradient> rules,
                                                       Caller caller) {
  static constexpr op::Input any[] = {{"inputs", "any", op::InputKind::variadic}};
  static constexpr op::Card card{.name = "region", .summary = "a traced function", .inputs = any};
  auto out = record_plain(card, inputs, results, caller);
  NodeRef call = NodeRef::adopt(out[0]);
  call->more().function = std::move(function);  // of several results all have more already: no other is lost
  call->more().custom = std::move(rules);
  out[0] = call.detach();
  return out;
}

Node* tessera::engine::record_custom(Node* y, std::span<Node* const> inputs,
                                     std::shared_ptr<const CustomGradient> rule, Caller caller) {
  static constexpr op::Input any[] = {{"inputs", "any", op::InputKind::variadic}};
  static constexpr op::Card card{
      .name = "custom_gradient",
      .summary = "the first input, with a gradient of its own",
      .inputs = any,
      .view = [](const op::CallInfo&, const op::Layout& layout) { return std::optional(layout); }};
  std::vector<Node*> all{y};
  all.insert(all.end(), inputs.begin(), inputs.end());
  NodeRef out = NodeRef::adopt(record_plain(card, all, {y->type()}, caller)[0]);
  out->more().custom = std::move(rule);
  return out.detach();
}

Node* tessera::engine::make_placeholder(const std::shared_ptr<Engine>& engine, const op::ValueType& type,
                                        Caller caller) {
  NodeRef node = new_node(nullptr, ComponentRef(new Component(engine)), caller);
  set_type(*node, type);
  node->set(Node::placeholder);
  return node.detach();
}

Node* tessera::engine::record_result(Node* call, std::size_t k, Caller caller) {
  NodeRef result = new_node(nullptr, call->component, caller);
  const op::ValueType& type = call->extra->results[k];
  set_type(*result, type);
  result->set(Node::is_result);
  result->more().result = static_cast<std::uint32_t>(k);
  result->input_count = 1;
  result->inputs[0] = call;
  retain(call);
  track_gradient(*result, call);
  return result.detach();
}
