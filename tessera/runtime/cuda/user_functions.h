// Kernels of the program's own on a device. When their code changes they are made anew; if that fails, the
// kernel as it was goes on.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tessera/runtime/cuda/device_function.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Thread-safe.
class UserFunctions {
 public:
  /// Makes a function of CUDA C++.
  using Compile = std::function<Result<FunctionRef>(const SourceRef& source)>;

  explicit UserFunctions(std::shared_ptr<const Stream> stream) : stream_(std::move(stream)) {}

  /// The function of a source whose code is the program's, as the code is now. An error, of a kernel that
  /// never was a good one, names it.
  [[nodiscard]] Result<FunctionRef> get(const Source& source, const Compile& compile);

 private:
  struct Entry {
    std::weak_ptr<op::KernelSource> source;
    std::string entry;
    std::vector<std::uint8_t> parameter_bytes;
    op::KernelCodeRef tried;  ///< the newest code that was seen
    FunctionRef good;
    std::optional<Error> error;  ///< of `tried`
  };

  [[nodiscard]] Entry& entry_of(const Source& source);
  [[nodiscard]] Result<FunctionRef> make(const Source& source, const op::KernelCode& code,
                                         const Compile& compile) const;
  [[nodiscard]] Result<void> check_parameters(const Source& source, const Function& function) const;

  std::shared_ptr<const Stream> stream_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tessera::runtime::cuda
