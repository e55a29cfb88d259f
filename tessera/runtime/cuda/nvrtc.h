// NVRTC, opened at run time: from a source to code for a device. It needs no GPU.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Turns sources into modules that a driver loads. Thread-safe.
class SourceCompiler {
 public:
  virtual ~SourceCompiler() = default;
  /// A module for devices of compute capability `sm` (90 for 9.0). The error has the compiler's message with
  /// its lines.
  [[nodiscard]] virtual Result<std::vector<std::byte>> compile(const Source& source, int sm) const = 0;
  /// What else a module depends on: "nvrtc 13.0".
  [[nodiscard]] virtual const std::string& identity() const = 0;
};

class Nvrtc final : public SourceCompiler {
 public:
  /// The newest library of versions 13 and 12 that the system has. Tried once; the error says what was looked
  /// for. Nothing is opened before the first call.
  [[nodiscard]] static Result<std::shared_ptr<const Nvrtc>> open();

  /// A cubin; PTX, which the driver compiles, for devices that are newer than NVRTC.
  [[nodiscard]] Result<std::vector<std::byte>> compile(const Source& source, int sm) const override;
  [[nodiscard]] const std::string& identity() const override { return identity_; }

  ~Nvrtc() override;

 private:
  struct Functions;
  Nvrtc();
  static Result<std::shared_ptr<const Nvrtc>> try_open();

  std::unique_ptr<Functions> functions_;
  std::vector<int> targets_;  ///< ascending
  std::string identity_;
  mutable std::atomic<bool> has_compiled_{false};
};

}  // namespace tessera::runtime::cuda
