// An immutable run of bytes with an owner: heap memory, a mapped file, memory of the caller.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tessera {

class Bytes {
 public:
  Bytes() = default;
  /// `data` stays valid as long as `owner` lives.
  Bytes(std::span<const std::byte> data, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), data_(data) {}
  /// Takes the vector over.
  static Bytes own(std::vector<std::byte> data) {
    auto held = std::make_shared<const std::vector<std::byte>>(std::move(data));
    return {*held, held};
  }
  /// Copies.
  static Bytes copy(std::span<const std::byte> data) { return own({data.begin(), data.end()}); }

  [[nodiscard]] std::span<const std::byte> span() const { return data_; }
  [[nodiscard]] std::size_t size() const { return data_.size(); }
  [[nodiscard]] const std::byte* data() const { return data_.data(); }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> data_;
};

}  // namespace tessera
