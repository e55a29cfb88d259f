// A driver for tests on machines without a GPU: its device is the emulator, its memory is the host's. Graphs
// run their nodes in an order that differs from launch to launch and respects the edges alone, so that a
// missing edge shows. Fresh memory is full of garbage.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/runtime/cuda/driver.h"
#include "tessera/runtime/cuda/nvrtc.h"

namespace tessera::runtime::cuda {

/// One for the whole process; one thread at a time uses it.
[[nodiscard]] const Driver& emulated_driver();

/// "Modules" for the emulated driver: the sources themselves, compiled when they first run.
[[nodiscard]] std::shared_ptr<const SourceCompiler> emulated_compiler();

/// What tests want to see, and to change.
struct EmulatedState {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< of the device
  int shared_bytes = 227 * 1024;                        ///< of a block whose function asks for them
  int multiprocessors = 132;                            ///< as an H200 has them
  std::uint64_t asked_shared = 0;                       ///< times that a function did
  std::uint64_t used_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t instantiated = 0;              ///< graphs
  std::uint64_t launched = 0;                  ///< graphs
  std::uint64_t patched = 0;                   ///< nodes
  std::uint64_t captured = 0;                  ///< streams
  std::uint64_t copied_out = 0;                ///< times that the host asked for memory of the device
  std::uint64_t live_graphs = 0;               ///< and executables
  std::vector<std::intptr_t> waiting_streams;  ///< that were told to wait for an event, in order
  bool refuses_updates = false;
  bool refuses_conditionals = false;
  CUresult loading = CUDA_SUCCESS;        ///< what the driver answers when it is to load a module
  CUresult instantiation = CUDA_SUCCESS;  ///< what the driver answers when it is to make a graph ready
  std::string failure;                    ///< what a kernel or a copy did wrong; launches fail from then on
};
[[nodiscard]] EmulatedState& emulated_state();

/// Work of a library on a stream: done at once, or captured. It gives what went wrong, or nothing.
[[nodiscard]] CUresult emulated_queue(CUstream stream, std::function<std::string()> work);

}  // namespace tessera::runtime::cuda
