// A recorded call, or a tensor that is stored. What a Tensor is a handle to.
//
// A node is written by the thread that records it and is immutable after, but for four things: its counts,
// the number of its type, which is found when it is asked for, its storage, which is set once, and its
// inputs, which an evaluation that stored the result drops (under the engine's lock). Freeing never recurses.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/slot_memory.h"
#include "tessera/engine/component.h"
#include "tessera/engine/type_number.h"
#include "tessera/ir/function.h"
#include "tessera/op/card.h"
#include "tessera/runtime/storage.h"

namespace tessera::engine {

using ir::Dtype;
using op::Extents;

/// The value of a scalar operand, exact for every dtype: the bits of a double for floats, of an i64 for the
/// others.
class ScalarBits {
 public:
  ScalarBits() = default;
  static ScalarBits of_float(double value) { return ScalarBits(std::bit_cast<std::uint64_t>(value)); }
  static ScalarBits of_integer(std::int64_t value) { return ScalarBits(static_cast<std::uint64_t>(value)); }
  [[nodiscard]] double as_float() const { return std::bit_cast<double>(bits_); }
  [[nodiscard]] std::int64_t as_integer() const { return static_cast<std::int64_t>(bits_); }

 private:
  explicit ScalarBits(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

using runtime::Storage;

struct Node;

/// A gradient of the user's own, in the place of those of what was recorded, or what a traced function needs
/// to know of such ones inside it. The tensors above know what it is.
struct CustomGradient {
  virtual ~CustomGradient() = default;
};

/// What few nodes have.
struct Extra {
  /// Complete; null: none. Calls that were recorded alike share them.
  std::shared_ptr<const op::Attributes> attributes;
  SmallVector<Node*, 4> inputs;         ///< from the fourth on; counted
  SmallVector<ScalarBits, 2> scalars;   ///< from the second on
  Extents dims;                         ///< all of them, if there are more than four
  std::vector<op::ValueType> results;   ///< of a call with several
  std::uint32_t result = 0;             ///< which result of its only input this node is
  std::vector<Storage> stored_results;  ///< of a call with several results that was computed
  std::vector<Storage*> retired;        ///< storages that were replaced; others may still read them
  ir::FunctionRef function;             ///< of a call of a traced function
  std::shared_ptr<const CustomGradient> custom;
  Node* gradient = nullptr;  ///< what backward() found so far; counted

  static void* operator new(std::size_t bytes) { return SlotMemory::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { SlotMemory::free(memory, bytes); }
};
static_assert(sizeof(Extra) <= 512);

struct Node {
  static constexpr std::size_t inline_inputs = 3;
  static constexpr std::size_t inline_dims = 4;
  enum Flag : std::uint16_t {
    tracks_gradient = 1,   ///< backward() may come here: inputs stay after evaluation
    needs_gradient = 2,    ///< a leaf whose gradient is asked for
    is_result = 4,         ///< one of several results of inputs[0]
    is_constant = 8,       ///< never changes, may be folded
    traced = 16,           ///< recorded while a region was traced
    placeholder = 32,      ///< a parameter of a traced region: has no value
    gradient_source = 64,  ///< an argument whose gradient is being asked for
    no_gradient = 128,     ///< traced while no gradients were tracked: none flows out of it
    plan_at_once = 256,    ///< the plan of what computes it is made when it is first evaluated
  };

  // First what walks over the graph look at.
  std::atomic<std::uint32_t> refs{1};  ///< handles and nodes that use it
  std::uint32_t input_count = 0;       ///< operands; a null among the inputs is a scalar
  std::uint32_t epoch = 0;             ///< scratch of walks, under the engine's lock; so is `index`
  std::uint32_t index = 0;
  Node* inputs[inline_inputs] = {};
  std::atomic<Storage*> storage{nullptr};
  Extra* extra = nullptr;
  const op::Card* card = nullptr;  ///< null: a leaf or one of several results
  Dtype dtype = Dtype::f32;
  std::uint8_t rank = 0;
  std::atomic<std::uint16_t> flags{0};
  bool claimed = false;         ///< an evaluation is computing it; under the engine's lock
  bool owns_component = false;  ///< else its inputs keep its component; changes under the engine's lock
  std::uint16_t block = 0;      ///< the named scope it was recorded in
  std::int64_t dims[inline_dims] = {};
  ScalarBits scalar;
  std::atomic<TypeNumber> type_number{no_type_number};
  std::uint32_t line = 0;
  const char* file = nullptr;
  Component* component = nullptr;
  union {
    std::uint64_t id = 0;  ///< distinct per node of the process
    Node* next_dead;       ///< of a node that is being freed: freeing must not allocate
  };

  [[nodiscard]] std::span<const std::int64_t> shape() const {
    return {rank > inline_dims ? extra->dims.data() : dims, rank};
  }
  [[nodiscard]] Node* input(std::size_t i) const {
    return i < inline_inputs ? inputs[i] : extra->inputs[i - inline_inputs];
  }
  [[nodiscard]] bool is(Flag flag) const { return (flags.load(std::memory_order_relaxed) & flag) != 0; }
  void set(Flag flag) { flags.fetch_or(flag, std::memory_order_relaxed); }
  void clear(Flag flag) { flags.fetch_and(static_cast<std::uint16_t>(~flag), std::memory_order_relaxed); }
  [[nodiscard]] bool is_stored() const { return storage.load(std::memory_order_acquire) != nullptr; }
  [[nodiscard]] std::int64_t element_count() const;
  [[nodiscard]] op::ValueType type() const;
  /// The attributes of a call.
  [[nodiscard]] const op::Attributes& attributes() const;
  /// The k-th scalar operand.
  [[nodiscard]] ScalarBits scalar_at(std::size_t k) const { return k == 0 ? scalar : extra->scalars[k - 1]; }
  Extra& more() { return extra != nullptr ? *extra : *(extra = new Extra); }
  void set_shape(std::span<const std::int64_t> shape);

  static void* operator new(std::size_t bytes) { return SlotMemory::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { SlotMemory::free(memory, bytes); }
};
static_assert(sizeof(Node) <= 144);

inline void retain(Node* node) { node->refs.fetch_add(1, std::memory_order_relaxed); }
/// Gives up one reference; frees what nobody holds any more, without recursion.
void release(Node* node);
/// Numbers that no other node has. Threads take them in batches, so that recording shares no counter.
class NodeNumbers {
 public:
  [[nodiscard]] std::uint64_t next() {
    if (next_ == end_) [[unlikely]]
      take_batch();
    return next_++;
  }

 private:
  void take_batch();

  std::uint64_t next_ = 0, end_ = 0;
};
inline constinit thread_local NodeNumbers node_numbers;
/// Takes the inputs of a node whose result is stored away from it; the caller releases them. REQUIRES the
/// engine's lock, under which nothing may be released: that can run code of the user.
void take_inputs(Node& node, std::vector<Node*>& out);

/// A counted pointer to a node, as a Tensor is one.
class NodeRef {
 public:
  NodeRef() = default;
  /// Takes over one reference.
  static NodeRef adopt(Node* node) { return NodeRef(node); }
  static NodeRef share(Node* node) {
    if (node != nullptr) retain(node);
    return NodeRef(node);
  }
  NodeRef(const NodeRef& other) : node_(other.node_) {
    if (node_ != nullptr) retain(node_);
  }
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  ~NodeRef() {
    if (node_ != nullptr) release(node_);
  }
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  [[nodiscard]] Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  Node* detach() { return std::exchange(node_, nullptr); }

 private:
  explicit NodeRef(Node* node) : node_(node) {}
  Node* node_ = nullptr;
};

}  // namespace tessera::engine
