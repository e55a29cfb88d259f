// The weights of a call in the form that it needs: found with the weights if another call has made it, made
// if they stay, and remembered with them as long as there is room.
//
//   const bool stay = packed_.begin(launch.weights, weights);
//   if (packed_.get() == nullptr && !packed_.find(serves) && stay) packed_.use(make());
//   …
//   packed_.end();
#pragma once

#include <memory>
#include <utility>

#include "tessera/op/array.h"
#include "tessera/runtime/buffer.h"
#include "tessera/runtime/cpu/constant_sets.h"
#include "tessera/runtime/cpu/steady_value.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::runtime::cpu {

/// Where the weights of a launch come from.
struct WeightSource {
  bool is_constant = false;
  const Buffer* buffer = nullptr;  ///< that holds them, if its version tells
  MemoryPool* pool = nullptr;      ///< that counts what is derived from them; null: nothing is remembered
};

/// Which elements of the contents were read, and as what.
struct WeightPlace {
  const std::byte* data = nullptr;
  op::Layout layout;
  op::Dtype dtype = op::Dtype::f32;

  explicit WeightPlace(const op::Array& array) : data(array.data), layout(array.layout), dtype(array.dtype) {}
  [[nodiscard]] bool is_of(const op::Array& array) const {
    return data == array.data && dtype == array.dtype && layout == array.layout;
  }
};

/// One thread at a time. Form is a Derived. Between launches it may be given up.
template <class Form>
class WeightsAs {
 public:
  explicit WeightsAs(ConstantSets& constants) : constants_(constants) {}

  /// Sees the weights of a launch. Whether they are those of the launch before. The version of contents does
  /// not say which part of them: a view of the same buffer begins elsewhere.
  [[nodiscard]] bool begin(const WeightSource& source, const op::Array& weights) {
    const std::uint64_t version = source.buffer == nullptr ? no_version : source.buffer->version();
    const bool are_same = source.is_constant || (version != no_version && version == version_);
    const bool stay = are_same && weights.data == data_;
    set_if_other(version_, version);
    set_if_other(data_, weights.data);
    set_if_other(pool_, source.pool);
    if (!stay || set_ == nullptr) see(source, weights);
    used_ = known_.lock();
    if (used_ != nullptr && pool_ != nullptr) pool_->derived()->note_use(*used_);
    return stay;
  }

  /// Null: there is none yet.
  [[nodiscard]] const Form* get() const { return used_.get(); }

  /// Takes the first that was made before and `serves` says yes to. False if there is none.
  template <class Serves>
  bool find(const Serves& serves) {
    if (set_ == nullptr) return false;
    used_ = set_->template find<Form>(serves);
    if (used_ == nullptr) return false;
    known_ = used_;
    if (pool_ != nullptr) pool_->derived()->note_use(*used_);
    return true;
  }
  /// Whether a form of about so many bytes would be remembered.
  [[nodiscard]] bool has_room(std::int64_t bytes) const {
    return set_ != nullptr && pool_ != nullptr && set_->has_room(static_cast<std::size_t>(bytes), *pool_);
  }
  /// Is used in this launch, and remembered if there is room.
  void use(std::shared_ptr<const Form> made) {
    used_ = std::move(made);
    known_ = used_;
    if (set_ != nullptr && pool_ != nullptr) (void)set_->keep(used_, *pool_);
  }
  /// The launch is over.
  void end() { used_ = nullptr; }

 private:
  static constexpr std::uint64_t no_version = 0;

  void see(const WeightSource& source, const op::Array& weights) {
    known_.reset();  // of others, which may still be there
    if (source.is_constant) {
      const auto bytes = static_cast<std::size_t>(weights.size()) * ir::size_of(weights.dtype);
      constant_ = constants_.of(weights.data, bytes);
      set_ = constant_.get();
    } else {
      set_ = source.buffer == nullptr ? nullptr : &source.buffer->derived();
    }
  }

  ConstantSets& constants_;
  std::uint64_t version_ = no_version;
  const std::byte* data_ = nullptr;
  MemoryPool* pool_ = nullptr;
  DerivedSet* set_ = nullptr;  ///< of the weights that were seen last
  std::shared_ptr<DerivedSet> constant_;
  std::shared_ptr<const Form> used_;  ///< in this launch
  std::weak_ptr<const Form> known_;   ///< in the last one that used some
};

}  // namespace tessera::runtime::cpu
