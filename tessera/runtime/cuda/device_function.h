// A function of a module on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tessera/runtime/cuda/context.h"

namespace tessera::runtime::cuda {

/// A loaded module with its one entry.
class Function {
 public:
  /// A cubin, or PTX that ends with a 0; it is launched on `stream` alone. The error has the messages of the
  /// driver's compiler.
  [[nodiscard]] static Result<std::shared_ptr<const Function>> load(std::shared_ptr<const Stream> stream,
                                                                    std::span<const std::byte> code,
                                                                    const std::string& entry);
  /// Waits for its stream: it may be running. Other streams may be captured meanwhile.
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  [[nodiscard]] CUfunction handle() const { return handle_; }
  /// To be called before a launch with so much dynamic shared memory. The first launch with more than every
  /// block has asks for all that the device gives: once, whatever others need. Code `invalid_argument` if
  /// that is less.
  [[nodiscard]] Result<void> allow_shared_bytes(std::uint32_t bytes) const;

 private:
  Function(std::shared_ptr<const Stream> stream, CUmodule module)
      : stream_(std::move(stream)), module_(module) {}

  std::shared_ptr<const Stream> stream_;
  CUmodule module_;
  CUfunction handle_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::uint32_t shared_bytes_ = 0;  ///< that it is known to be allowed
};
using FunctionRef = std::shared_ptr<const Function>;

}  // namespace tessera::runtime::cuda
