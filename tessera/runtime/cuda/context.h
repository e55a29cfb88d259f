// A GPU: its primary context, which programs that use CUDA's own runtime share, and what it can do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/base/program_end.h"
#include "tessera/base/result.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/driver.h"

namespace tessera::runtime::cuda {

class Context;

/// While it lives, calls of this thread go to a context; another that the thread had comes back after. A
/// thread that had none keeps this one, as CUDA's own runtime does it.
class Current {
 public:
  Current(Current&& other) noexcept
      : stay_(std::move(other.stay_)), driver_(std::exchange(other.driver_, nullptr)) {}
  Current& operator=(Current&&) = delete;
  ~Current();

 private:
  friend class Context;
  /// Without a driver nothing comes back.
  Current(ForeignStay stay, const Driver* driver) : stay_(std::move(stay)), driver_(driver) {}

  ForeignStay stay_;
  const Driver* driver_;
};

/// Thread-safe.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// The device that the driver counts as `number`.
  [[nodiscard]] static Result<std::shared_ptr<const Context>> open(const Driver& driver, int number);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Once the program ends, the thread that ends it gets an error and others do not come back: the driver
  /// takes itself apart.
  [[nodiscard]] Result<Current> enter() const;

  [[nodiscard]] const Driver& driver() const { return driver_; }
  [[nodiscard]] CUcontext handle() const { return handle_; }
  /// As the driver counts devices.
  [[nodiscard]] int number() const { return device_; }
  /// "NVIDIA H200"
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The compute capability: 90 for 9.0.
  [[nodiscard]] int sm() const { return sm_; }
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] const DeviceLimits& limits() const { return limits_; }

 private:
  Context(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}
  Result<void> read_properties();

  const Driver& driver_;
  CUdevice device_;
  CUcontext handle_ = nullptr;
  std::string name_;
  int sm_ = 0;
  std::uint64_t memory_bytes_ = 0;
  DeviceLimits limits_;
};
using ContextRef = std::shared_ptr<const Context>;

/// A queue of work on a device. REQUIRES that its context is current where it is made and used.
class Stream {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const Stream>> create(ContextRef context);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] const ContextRef& context() const { return context_; }
  [[nodiscard]] CUstream handle() const { return handle_; }
  /// Waits until all that was queued is done. The error of a kernel that failed comes out here, with what was
  /// queued last.
  [[nodiscard]] Result<void> wait() const;

  /// What is queued next, in words: drivers do not say which work an error is of. Thread-safe.
  void note_queued(std::string_view what) const;
  /// The same by words that are held: nothing is copied.
  void note_queued(const std::shared_ptr<const std::string>& what) const;
  /// The error with what was queued since the last wait that went through, as far as that is remembered.
  [[nodiscard]] Error blame(Error error) const;

 private:
  /// Words that are held, or else a copy.
  struct Queued {
    std::shared_ptr<const std::string> held;
    std::string copy;
  };
  Stream(ContextRef context, CUstream handle) : context_(std::move(context)), handle_(handle) {}

  ContextRef context_;
  CUstream handle_;
  mutable std::mutex mutex_;
  mutable std::array<Queued, 4> queued_;    ///< the last ones, in turns; their memory is used again
  mutable std::uint64_t queued_count_ = 0;  ///< since the last wait
};

/// A point in a stream whose time is taken. REQUIRES that its context is current where it is made and used.
class Event {
 public:
  [[nodiscard]] static Result<Event> create(ContextRef context, unsigned flags = CU_EVENT_DEFAULT);
  Event(Event&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();

  [[nodiscard]] Result<void> record(const Stream& stream) const;
  /// From `earlier` to this one, both of which have passed.
  [[nodiscard]] Result<double> microseconds_since(const Event& earlier) const;
  [[nodiscard]] CUevent handle() const { return handle_; }

 private:
  Event(ContextRef context, CUevent handle) : context_(std::move(context)), handle_(handle) {}

  ContextRef context_;
  CUevent handle_;
};

}  // namespace tessera::runtime::cuda
