#include "tessera/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>

#include "tessera/base/forked_child.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/op/wide.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/graph.h"

using namespace tessera;
using detail::fail;
using detail::node_of;
using detail::value_at;
using engine::Node;
using engine::Storage;

namespace {

/// The stored value, computed if it was not.
const Storage& stored(const Tensor& tensor, Here here) {
  tensor.eval(here);
  return *tensor.node()->storage.load(std::memory_order_acquire);
}

/// The stored value, in host memory, with its elements row by row; a view that is not is copied once and
/// stays copied.
const Storage& contiguous_storage(const Tensor& tensor, Here here) {
  const Storage& found = stored(tensor, here);
  if (found.layout.is_contiguous()) return found;
  Node& node = *tensor.node();
  engine::Engine& engine = *node.component->engine();
  const auto bytes = static_cast<std::size_t>(node.element_count()) * ir::size_of(node.dtype);
  auto copy = std::make_unique<Storage>(
      Storage{value_at(here, engine.allocate(bytes)), op::contiguous(found.layout.shape)});
  op::copy_elements(found.array(node.dtype), copy->array(node.dtype));
  const std::lock_guard lock(engine.mutex());
  Storage* current = node.storage.load(std::memory_order_acquire);
  if (!current->layout.is_contiguous()) {
    node.more().retired.push_back(current);
    current = copy.release();
    node.storage.store(current, std::memory_order_release);
  }
  return *current;
}

const std::byte* first_element(const Storage& storage, Dtype dtype) {
  return storage.buffer->data() + storage.layout.offset * static_cast<std::int64_t>(ir::size_of(dtype));
}

/// As casts do it: what is outside goes to the nearest end, NaN to 0.
template <class T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
T element_as(const std::byte* at, Dtype dtype) {
  return op::visit_wide(dtype, [&]<class W>(W*) -> T {
    W value{};
    op::loader<W>(dtype)(at, 0, 1, 1, &value);
    if constexpr (!std::is_same_v<W, double>)
      return static_cast<T>(value.v);
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return saturated<T>(value);
    else
      return static_cast<T>(value);
  });
}

}  // namespace

Tensor::Tensor(const Tensor& other) : node_(other.node_) {
  if (node_ != nullptr) engine::retain(node_);
}

Tensor::~Tensor() {
  if (node_ != nullptr) engine::release(node_);
}

Dtype Tensor::dtype(Here here) const { return node_of(*this, "dtype", here).dtype; }

Shape Tensor::shape(Here here) const {
  const Node& node = node_of(*this, "shape", here);
  return {node.shape().begin(), node.shape().end()};
}

std::int64_t Tensor::rank(Here here) const { return node_of(*this, "rank", here).rank; }

std::int64_t Tensor::dim(std::int64_t axis, Here here) const {
  const Node& node = node_of(*this, "dim", here);
  const std::int64_t rank = node.rank;
  if (axis < -rank || axis >= rank)
    fail(here, cat("dim: axis ", axis, " is outside [", -rank, ", ", rank, ") of a ", node.type()));
  return node.shape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
}

std::int64_t Tensor::size(Here here) const {
  std::int64_t out = 1;
  for (std::int64_t dim : node_of(*this, "size", here).shape()) out *= dim;
  return out;
}

const Tensor& Tensor::eval(Here here) const& {
  Node& node = node_of(*this, "eval", here);
  if (node.is_stored()) return *this;
  Node* const nodes[] = {&node};
  value_at(here, node.component->engine()->evaluate(nodes));
  return *this;
}

Tensor Tensor::eval(Here here) && {
  static_cast<const Tensor&>(*this).eval(here);
  return std::move(*this);
}

bool Tensor::is_evaluated(Here here) const { return node_of(*this, "is_evaluated", here).is_stored(); }

std::span<const std::byte> Tensor::bytes(Here here) const& {
  const bool is_host = stored(*this, here).buffer->is_host();
  const Storage& storage = is_host ? contiguous_storage(*this, here) : stored(*this, here);
  return value_at(here, runtime::host_elements(storage, dtype()));
}

template <class T>
std::span<const T> Tensor::data(Here here) const& {
  const Dtype own = node_of(*this, "data", here).dtype;
  const bool bits = (own == Dtype::f16 || own == Dtype::bf16) && std::is_same_v<T, std::uint16_t>;
  if (dtype_of<T> != own && !bits)
    fail(here, cat("data() of a tensor of dtype ", own, " was asked for as ", dtype_of<T>));
  const auto all = bytes(here);
  return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
}

template <class T>
T Tensor::item(std::initializer_list<std::int64_t> index, Here here) const {
  const Storage& storage = stored(*this, here);
  const auto& layout = storage.layout;
  if (index.size() == 0 && op::element_count(layout.shape) != 1)
    fail(here, cat("item() needs an index: the tensor has shape [", join(layout.shape, ", "), "]"));
  if (index.size() != 0 && index.size() != layout.rank())
    fail(here, cat("an index of ", index.size(), " numbers was given for a tensor of rank ", layout.rank()));
  std::int64_t offset = layout.offset;
  std::size_t axis = 0;
  for (std::int64_t i : index) {
    const std::int64_t extent = layout.shape[axis], at = i < 0 ? i + extent : i;
    if (at < 0 || at >= extent) fail(here, cat("index ", i, " is outside axis ", axis, " of size ", extent));
    offset += at * layout.strides[axis++];
  }
  std::byte element[8];
  value_at(here, runtime::read_element(*storage.buffer, offset, std::span(element, ir::size_of(dtype()))));
  return element_as<T>(element, dtype());
}

template <class T>
std::vector<T> Tensor::to_vector(Here here) const {
  const auto all = bytes(here);
  const std::size_t size = ir::size_of(dtype());
  std::vector<T> out(all.size() / size);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as<T>(all.data() + i * size, dtype());
  return out;
}

#define TESSERA_ELEMENT_TYPES(use)                                                              \
  use(double) use(float) use(std::int64_t) use(std::int32_t) use(std::int16_t) use(std::int8_t) \
      use(std::uint8_t) use(std::uint16_t) use(std::uint32_t) use(std::uint64_t)
#define TESSERA_INSTANTIATE(T)                                                            \
  template std::span<const T> Tensor::data<T>(Here here) const&;                          \
  template T Tensor::item<T>(std::initializer_list<std::int64_t> index, Here here) const; \
  template std::vector<T> Tensor::to_vector<T>(Here here) const;
TESSERA_ELEMENT_TYPES(TESSERA_INSTANTIATE)
template std::span<const bool> Tensor::data<bool>(Here here) const&;
template bool Tensor::item<bool>(std::initializer_list<std::int64_t> index, Here here) const;
#undef TESSERA_INSTANTIATE
#undef TESSERA_ELEMENT_TYPES

Shape Tensor::strides(Here here) const {
  const auto& strides = stored(*this, here).layout.strides;
  return {strides.begin(), strides.end()};
}

const void* Tensor::storage(Here here) const { return first_element(stored(*this, here), dtype()); }

// ---- writing

void Tensor::fill(Number value, Here here) & {
  const Node& node = node_of(*this, "fill", here);
  const CreateOptions options{.dtype = node.dtype, .engine = node.component->engine()};
  become(detail::filled("fill", shape(), value, options, here), here);
}

/// A tensor that requires gradients goes on doing so.
void Tensor::become(Tensor next, Here here) {
  const bool needs_gradient = node_->is(Node::needs_gradient);
  *this = std::move(next);
  if (needs_gradient) requires_grad(here);
}

void Tensor::assign(const Tensor& other, Here here) & {
  const Node &mine = node_of(*this, "assign", here), &theirs = node_of(other, "assign: argument 0", here);
  if (mine.dtype != theirs.dtype || !detail::have_same_shape(*this, other))
    fail(here, ErrorCode::shape, cat("assign: a ", mine.type(), " cannot be assigned a ", theirs.type()));
  become(other, here);
}

void Tensor::update_slice(const Shape& starts, const Tensor& update, const Shape& steps, Here here) & {
  static const op::Card& card = detail::card("update_slice");
  if (node_of(*this, "update_slice", here).dtype != node_of(update, "update_slice: the update", here).dtype)
    fail(here, cat("update_slice: a ", update.node_->type(), " cannot be written into a ", node_->type()));
  become(detail::call(card, detail::CallOperands().add(Operand(*this, here)).add(Operand(update, here)),
                      {{"starts", ir::shape_of(starts)}, {"steps", steps}}),
         here);
}

void Tensor::update_slice(std::initializer_list<Tensor> positions, const Tensor& update, const Shape& steps,
                          Here here) & {
  static const op::Card& card = detail::card("update_slice_at");
  if (positions.size() == 0) return update_slice(Shape(), update, steps, here);
  if (node_of(*this, "update_slice", here).dtype != node_of(update, "update_slice: the update", here).dtype)
    fail(here, cat("update_slice: a ", update.node_->type(), " cannot be written into a ", node_->type()));
  detail::CallOperands operands;
  operands.add(Operand(*this, here)).add(Operand(update, here));
  for (const Tensor& position : positions) operands.add(Operand(position, here));
  become(detail::call(card, operands, {{"steps", steps}}), here);
}

// ---- parts and shapes

Tensor Tensor::slice(std::vector<Slice> slices, Here here) const {
  static const op::Card& card = detail::card("slice");
  const Node& node = node_of(*this, "slice", here);
  if (slices.size() > node.rank)
    fail(here, cat("slice: ", slices.size(), " slices were given for a tensor of rank ",
                   static_cast<int>(node.rank)));
  ir::Shape starts, stops;
  Shape steps, axes;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t extent = node.shape()[i];
    const bool forward = slices[i].step > 0;
    starts.push_back(slices[i].start != Slice::open ? slices[i].start : forward ? 0 : -1);
    stops.push_back(slices[i].stop != Slice::open ? slices[i].stop : forward ? extent : -extent - 1);
    steps.push_back(slices[i].step);
    axes.push_back(static_cast<std::int64_t>(i));
  }
  thread_local detail::KeptAttributes attributes;
  attributes.set("axes", axes);
  attributes.set("starts", starts);
  attributes.set("steps", steps);
  attributes.set("stops", stops);
  return detail::call(card, detail::CallOperands().add(Operand(*this, here)), attributes.get());
}

Tensor tessera::slice_at(const Tensor& x, std::initializer_list<Tensor> positions, const Shape& sizes,
                         Here here) {
  static const op::Card& card = detail::card("slice_at");
  detail::CallOperands operands;
  operands.add(Operand(x, here));
  for (const Tensor& position : positions) operands.add(Operand(position, here));
  return detail::call(card, operands, {{"sizes", ir::shape_of(sizes)}});
}

Tensor Tensor::reshape(Shape shape, Here here) const {
  static const op::Card& card = detail::card("reshape");
  thread_local detail::KeptAttributes attributes;
  attributes.set("shape", ir::shape_of(shape));
  return detail::call(card, detail::CallOperands().add(Operand(*this, here)), attributes.get());
}

Tensor Tensor::transpose(Shape permutation, Here here) const {
  static const op::Card& card = detail::card("transpose");
  thread_local detail::KeptAttributes attributes;
  attributes.set("permutation", permutation);
  return detail::call(card, detail::CallOperands().add(Operand(*this, here)), attributes.get());
}

Tensor Tensor::cast(Dtype dtype, Here here) const {
  static const op::Card& card = detail::card("cast");
  return detail::call(card, detail::CallOperands().add(Operand(*this, here)), {{"dtype", dtype}});
}

Tensor Tensor::operator[](Index index) const {
  const auto [i, here] = index;
  node_of(*this, "index", here);
  if (rank() == 0) fail(here, "a tensor of rank 0 has no index");
  Shape rest = shape();
  const std::int64_t extent = rest[0], at = i < 0 ? i + extent : i;
  if (at < 0 || at >= extent) fail(here, cat("index ", i, " is outside axis 0 of size ", extent));
  rest.erase(rest.begin());
  return slice({{at, at + 1, 1}}, here).reshape(std::move(rest), here);
}

std::shared_ptr<engine::Engine> Tensor::engine(Here here) const {
  return node_of(*this, "engine", here).component->engine();
}

// ---- operators

Tensor tessera::operator+(const Operand& a, const Operand& b) {
  static const op::Card& card = detail::card("add");
  return detail::binary(card, a, b);
}
Tensor tessera::operator-(const Operand& a, const Operand& b) {
  static const op::Card& card = detail::card("sub");
  return detail::binary(card, a, b);
}
Tensor tessera::operator*(const Operand& a, const Operand& b) {
  static const op::Card& card = detail::card("mul");
  return detail::binary(card, a, b);
}
Tensor tessera::operator/(const Operand& a, const Operand& b) {
  static const op::Card& card = detail::card("div");
  return detail::binary(card, a, b);
}
Tensor tessera::operator%(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("mod"), a, b);
}
Tensor tessera::operator-(const Operand& x) { return detail::unary(detail::card("neg"), x); }
Tensor tessera::operator==(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("eq"), a, b);
}
Tensor tessera::operator!=(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("ne"), a, b);
}
Tensor tessera::operator<(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("lt"), a, b);
}
Tensor tessera::operator<=(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("le"), a, b);
}
Tensor tessera::operator>(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("gt"), a, b);
}
Tensor tessera::operator>=(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("ge"), a, b);
}
Tensor tessera::operator&(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("bit_and"), a, b);
}
Tensor tessera::operator|(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("bit_or"), a, b);
}
Tensor tessera::operator^(const Operand& a, const Operand& b) {
  return detail::binary(detail::card("bit_xor"), a, b);
}
Tensor tessera::operator~(const Operand& x) {
  const bool is_mask =
      x.kind() == Operand::Kind::tensor && !x.tensor().is_empty() && x.tensor().dtype() == Dtype::boolean;
  return detail::unary(detail::card(is_mask ? "logical_not" : "bit_not"), x);
}

// ---- evaluation

namespace {

[[noreturn]] void fail_empty_among(std::string_view function, std::span<const Tensor> tensors, Here here) {
  const auto at = std::ranges::find_if(tensors, &Tensor::is_empty) - tensors.begin();
  fail(here, cat(function, ": argument ", at, " is an empty tensor"));
}

}  // namespace

void tessera::eval(std::span<const Tensor> tensors, Here here) {
  SmallVector<Node*, 8> nodes;
  for (const Tensor& tensor : tensors) {
    if (tensor.is_empty()) fail_empty_among("eval", tensors, here);
    Node& node = *tensor.node();
    if (!nodes.empty() && node.component->engine() != nodes[0]->component->engine())
      fail(here, "tensors of two engines cannot be evaluated together");
    nodes.push_back(&node);
  }
  if (!nodes.empty()) value_at(here, nodes[0]->component->engine()->evaluate(nodes));
}

struct Pending::State {
  std::vector<Tensor> tensors;
  std::shared_future<void> done;
};

void Pending::wait() {
  if (state_ == nullptr) return;
  if (!is_forked_child()) return state_->done.get();
  if (!is_done()) throw Exception(forked_child_error());  // nor can its thread be joined
}

bool Pending::is_done() const {
  return state_ == nullptr || state_->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

Pending tessera::eval_async(std::vector<Tensor> tensors, Here here) {
  check_no_forked_child();
  for (const Tensor& tensor : tensors)
    if (tensor.is_empty()) fail_empty_among("eval_async", tensors, here);
  Pending out;
  // The end of a future waits for its thread, which the child of a fork does not have.
  out.state_ = std::shared_ptr<Pending::State>(new Pending::State, [](Pending::State* state) {
    if (!is_forked_child()) delete state;
  });
  out.state_->tensors = std::move(tensors);
  out.state_->done = std::async(std::launch::async, [state = out.state_.get(), here] {
                       eval(state->tensors, here);
                     }).share();
  return out;
}
