// The functions of oneDNN's C interface that are used, and its handles as objects. Only where its header is.
#pragma once

#include <dnnl.h>
#include <dnnl_debug.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/forked_child.h"
#include "tessera/base/large_pages.h"
#include "tessera/runtime/cpu/onednn.h"

namespace tessera::runtime::cpu {

/// By their names without "dnnl_".
#define TESSERA_ONEDNN_FUNCTIONS(X)        \
  X(version)                               \
  X(status2str)                            \
  X(engine_create)                         \
  X(stream_create)                         \
  X(memory_desc_init_by_strides)           \
  X(memory_desc_init_by_tag)               \
  X(memory_desc_equal)                     \
  X(memory_desc_get_size)                  \
  X(memory_create)                         \
  X(memory_destroy)                        \
  X(memory_set_data_handle)                \
  X(gemm_u8s8s32)                          \
  X(matmul_desc_init)                      \
  X(dilated_convolution_forward_desc_init) \
  X(reorder_primitive_desc_create)         \
  X(post_ops_create)                       \
  X(post_ops_destroy)                      \
  X(post_ops_append_binary)                \
  X(post_ops_append_eltwise)               \
  X(post_ops_append_sum)                   \
  X(primitive_attr_create)                 \
  X(primitive_attr_destroy)                \
  X(primitive_attr_set_post_ops)           \
  X(primitive_attr_set_scratchpad_mode)    \
  X(primitive_desc_create)                 \
  X(primitive_desc_destroy)                \
  X(primitive_desc_query)                  \
  X(primitive_desc_query_md)               \
  X(primitive_create)                      \
  X(primitive_destroy)                     \
  X(primitive_execute)

/// Lives as long as the program.
struct OneDnn::Library {
#define TESSERA_ONEDNN_POINTER(name) decltype(&dnnl_##name) name = nullptr;
  TESSERA_ONEDNN_FUNCTIONS(TESSERA_ONEDNN_POINTER)
#undef TESSERA_ONEDNN_POINTER
  /// Of the OpenMP that the library brings; null if it was built without.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;

  [[nodiscard]] Result<void> check(dnnl_status_t status, const char* what) const;
};

/// A handle that is destroyed with its function of the table.
template <class Handle, auto destroy>
class OneDnnHandle {
 public:
  explicit OneDnnHandle(const OneDnn::Library& library) : library_(&library) {}
  OneDnnHandle(OneDnnHandle&& other) noexcept
      : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  OneDnnHandle& operator=(OneDnnHandle&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OneDnnHandle() {
    if (handle_ != nullptr && !is_forked_child()) (library_->*destroy)(handle_);
  }
  [[nodiscard]] Handle get() const { return handle_; }
  /// Where a function of the library puts a new handle.
  [[nodiscard]] Handle* out() { return &handle_; }

 private:
  const OneDnn::Library* library_;
  Handle handle_ = nullptr;
};
using MemoryHandle = OneDnnHandle<dnnl_memory_t, &OneDnn::Library::memory_destroy>;
using PostOpsHandle = OneDnnHandle<dnnl_post_ops_t, &OneDnn::Library::post_ops_destroy>;
using AttributesHandle = OneDnnHandle<dnnl_primitive_attr_t, &OneDnn::Library::primitive_attr_destroy>;
using DescriptorHandle = OneDnnHandle<dnnl_primitive_desc_t, &OneDnn::Library::primitive_desc_destroy>;
using PrimitiveHandle = OneDnnHandle<dnnl_primitive_t, &OneDnn::Library::primitive_destroy>;

/// While it lives, the library uses the calling thread alone: there is no second pool of threads.
class OnCallingThread {
 public:
  explicit OnCallingThread(const OneDnn::Library& library)
      : library_(library),
        before_(library.omp_get_max_threads == nullptr ? 1 : library.omp_get_max_threads()) {
    if (before_ != 1) library_.omp_set_num_threads(1);
  }
  OnCallingThread(const OnCallingThread&) = delete;
  OnCallingThread& operator=(const OnCallingThread&) = delete;
  ~OnCallingThread() {
    if (before_ != 1) library_.omp_set_num_threads(before_);
  }

 private:
  const OneDnn::Library& library_;
  int before_;
};

/// What an argument of a step is bound to.
enum class Slot : std::uint8_t {
  source,
  weights,
  destination,
  bias,
  scale,
  residual,
  scratchpad,  ///< the library's own
  own_source,  ///< the source as the library likes it
  own_destination,
};
inline constexpr std::size_t slot_count = 9;

/// One primitive of the library and what its arguments are.
struct OneDnnStep {
  struct Argument {
    int id = 0;
    dnnl_memory_desc_t form;
    Slot slot = Slot::source;
  };
  PrimitiveHandle primitive;
  std::vector<Argument> arguments;
};

struct PackedWeights::State {
  const OneDnn::Library& library;
  MemoryBlock block;  ///< none if they are part of others
  std::size_t bytes = 0;
  dnnl_memory_desc_t form;
  MemoryHandle memory;
};

struct Primitive::State {
  /// Memory objects of the library for one thread, one list per step.
  struct Binding {
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;
    std::vector<MemoryHandle> held;
  };

  explicit State(const OneDnn::Library& used) : library(used) {}

  /// A binding that nobody else uses now; given back after the run.
  Result<std::unique_ptr<Binding>> take_binding();
  void give_back(std::unique_ptr<Binding> binding);
  Result<void> run(Binding& binding, const PrimitiveOperands& operands, std::byte* scratch) const;

  const OneDnn::Library& library;
  std::vector<OneDnnStep> steps;
  dnnl_memory_desc_t weights_form;
  bool has_packed_weights = false;
  std::string implementation;
  std::size_t scratch_bytes = 0;
  std::size_t scratch_offsets[slot_count] = {};  ///< of the slots that lie in scratch memory
  std::mutex mutex;
  /// As many as ever ran at once, or one for each processor if it runs often. Guarded by the mutex.
  std::vector<std::unique_ptr<Binding>> free;
  std::uint32_t runs = 0;  ///< guarded by the mutex

 private:
  Result<std::unique_ptr<Binding>> new_binding() const;
  [[nodiscard]] void* address(Slot slot, const PrimitiveOperands& operands, std::byte* scratch) const;
};

/// A reorder of the library from one form to another.
[[nodiscard]] Result<OneDnnStep> reorder_step(const OneDnn::Library& library, const dnnl_memory_desc_t& from,
                                              Slot from_slot, const dnnl_memory_desc_t& to, Slot to_slot);
/// The form that sizes and strides describe.
[[nodiscard]] Result<dnnl_memory_desc_t> plain_form(const OneDnn::Library& library, const OperandForm& form);

}  // namespace tessera::runtime::cpu
