#include "tessera/runtime/cuda/call_cache.h"

#include <algorithm>
#include <bit>
#include <variant>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::size_t most_kept = 4096;

/// Every list begins with its length, so that no two calls have the same words.
class KeyWriter {
 public:
  std::optional<CallKey> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                             std::span<const op::Array> results) {
    add(reinterpret_cast<std::uintptr_t>(&call.card()));
    const auto& entries = call.attributes().entries();
    add(entries.size());
    for (const auto& [name, value] : entries) {
      add(name);
      add(value.index());
      std::visit([this](const auto& known) { add(known); }, value);
    }
    add(inputs.size());
    add_arrays(inputs);
    add_arrays(results);
    return is_complete_ ? std::optional(std::move(words_)) : std::nullopt;
  }

 private:
  void add(std::uint64_t word) { words_.push_back(word); }
  void add(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  void add(bool value) { add(std::uint64_t{value}); }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(ir::Dtype dtype) { add(static_cast<std::uint64_t>(dtype)); }
  void add(const std::string& text) {
    add(text.size());
    for (std::size_t i = 0; i < text.size(); i += 8) {
      std::uint64_t word = 0;
      for (std::size_t k = i; k < std::min(i + 8, text.size()); ++k)
        word = word << 8 | static_cast<unsigned char>(text[k]);
      add(word);
    }
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& item : list) add(item);
  }
  void add(const ir::Shape& shape) {
    add(shape.size());
    for (const ir::Dim& dim : shape) {
      is_complete_ = is_complete_ && dim.is_constant();
      if (dim.is_constant()) add(dim.value());
    }
  }

  void add_arrays(std::span<const op::Array> arrays) {
    for (const op::Array& array : arrays) {
      add(array.dtype);
      add(array.rank());
      for (const std::int64_t size : array.layout.shape) add(size);
      for (const std::int64_t stride : array.layout.strides) add(stride);
      add(array.layout.offset);
      add(reinterpret_cast<std::uintptr_t>(array.data) % widest_access);
      const auto same = std::find(seen_.begin(), seen_.end(), array.data);
      add(static_cast<std::uint64_t>(same - seen_.begin()));
      seen_.push_back(array.data);
    }
  }

  CallKey words_;
  std::vector<const std::byte*> seen_;
  bool is_complete_ = true;
};

std::uint64_t hash_of(const CallKey& key) {
  std::uint64_t out = key.size();
  for (const std::uint64_t word : key) {
    out = (out ^ word) * 0x9e3779b97f4a7c15u;
    out ^= out >> 32;
  }
  return out;
}

}  // namespace

std::optional<CallKey> runtime::cuda::call_key(const op::CallInfo& call, std::span<const op::Array> inputs,
                                               std::span<const op::Array> results) {
  return KeyWriter().run(call, inputs, results);
}

ReadyProgramRef CallCache::find(const CallKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(hash_of(key));
  if (found == entries_.end()) return nullptr;
  for (const auto& [known, program] : found->second)
    if (known == key) return program;
  return nullptr;
}

void CallCache::keep(CallKey key, ReadyProgramRef program) {
  const std::lock_guard lock(mutex_);
  if (count_ >= most_kept) {
    entries_.clear();
    count_ = 0;
  }
  auto& list = entries_[hash_of(key)];
  const auto is_same = [&](const auto& entry) { return entry.first == key; };
  if (std::any_of(list.begin(), list.end(), is_same)) return;
  list.emplace_back(std::move(key), std::move(program));
  ++count_;
}

std::size_t CallCache::size() const {
  const std::lock_guard lock(mutex_);
  return count_;
}
