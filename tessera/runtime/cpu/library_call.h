// A step that a library computes, on arrays of known sizes and strides.
//
//   auto call = TESSERA_TRY(make_library_call(form, inputs, results, libraries));
//   TESSERA_TRY(call->begin({inputs, results, numbers, weights}));
//   TESSERA_TRY(call->run({0, call->items()}, scratch));  // or parts of them, on several threads
//   call->end();
//
// Operands that do not lie as the library needs them are copied; weights that stay are packed once.
#pragma once

#include <memory>

#include "tessera/runtime/buffer.h"
#include "tessera/runtime/cpu/library_form.h"
#include "tessera/runtime/cpu/product_cache.h"
#include "tessera/runtime/cpu/thread_pool.h"
#include "tessera/runtime/cpu/weight_form.h"

namespace tessera::runtime::cpu {

/// The products and convolutions that a device has made.
struct Libraries {
  Libraries(bool precise, unsigned threads) : is_precise(precise), threads(threads) {}

  const bool is_precise;   ///< methods that are faster and less exact are not taken
  const unsigned threads;  ///< that share the items of a call
  MatmulCache products{1024};
  ConvolutionCache convolutions{256};
  ConvolutionCache winograd{256};
  ConvolutionCache gathered{64, ProductLibrary::blocked};  ///< for weights that are not finite
  ConstantSets constants;                                  ///< what is derived from them
};

struct LibraryLaunch {
  std::span<const op::Array> inputs;       ///< of the layouts that the call was made for
  std::span<const op::Array> results;      ///< contiguous
  std::span<const std::uint64_t> numbers;  ///< parameters of the plan, by slot, as ir::number_bits
  WeightSource weights;
};

/// What the result of a form is multiplied by in a launch.
[[nodiscard]] float scale_of(const LibraryForm& form, const LibraryLaunch& launch);

/// One thread at a time, but for run().
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// Reads the weights of the launches to come, before the first begins, if they are constants and that takes
  /// long: several calls may do so at once. begin() does it where nobody did.
  virtual void read_constants(const LibraryLaunch& /*launch*/) {}
  /// Before the items of a launch are run.
  [[nodiscard]] virtual Result<void> begin(const LibraryLaunch& launch) = 0;
  [[nodiscard]] virtual std::int64_t items() const = 0;
  /// Threads may run disjoint ranges at once, each with its own scratch.
  [[nodiscard]] virtual Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const = 0;
  /// After all items are done. What is derived from the weights may be given up until the next begin().
  virtual void end() {}
  /// If the items of the launch that has begun are blocks of rows, the rows of one: each item computes its
  /// rows of the result from the same rows of the left operand and of what is added. Else 0.
  [[nodiscard]] virtual std::int64_t row_block() const { return 0; }
  /// What computes it: "brg:avx512_core", "blocked".
  [[nodiscard]] virtual std::string implementation() const = 0;
};

using LibraryCallRef = std::unique_ptr<LibraryCall>;

/// All items of a call that has begun, and its end, on the threads of a pool; `scratch` has one for each. The
/// first error, if there are any.
[[nodiscard]] Result<void> run_items(LibraryCall& call, ThreadPool& threads,
                                     std::span<kernel::Scratch> scratch);

/// A product or an attention is cut into blocks of `row_block` rows where it can be, if that is not 0.
[[nodiscard]] Result<LibraryCallRef> make_library_call(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results,
                                                       Libraries& libraries, std::int64_t row_block = 0);

/// The geometry of a convolution over one or two axes.
[[nodiscard]] Result<ConvolutionSpec> convolution_spec(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       const op::Array& result);

/// The fastest convolution for filters of finite numbers; sets the method of `spec`.
[[nodiscard]] Result<std::shared_ptr<const Convolution>> find_convolution(ConvolutionSpec& spec,
                                                                          Libraries& libraries);
/// That one, or one that is right for these filters, which may not be finite.
[[nodiscard]] Result<std::shared_ptr<const Convolution>> convolution_for(
    const std::shared_ptr<const Convolution>& found, const float* filters, Libraries& libraries);

// One per library op, each in a file of its own.
[[nodiscard]] Result<LibraryCallRef> make_matmul_call(const LibraryForm& form,
                                                      std::span<const op::Array> inputs,
                                                      std::span<const op::Array> results,
                                                      Libraries& libraries, std::int64_t row_block);
[[nodiscard]] Result<LibraryCallRef> make_half_matmul_call(const LibraryForm& form,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_integer_matmul_call(const LibraryForm& form,
                                                              std::span<const op::Array> inputs,
                                                              std::span<const op::Array> results,
                                                              Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_convolution_call(const LibraryForm& form,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_slice_convolution_call(const LibraryForm& form,
                                                                 std::span<const op::Array> inputs,
                                                                 std::span<const op::Array> results,
                                                                 Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_pointwise_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_depthwise_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results);
[[nodiscard]] Result<LibraryCallRef> make_integer_convolution_call(const LibraryForm& form,
                                                                   std::span<const op::Array> inputs,
                                                                   std::span<const op::Array> results,
                                                                   Libraries& libraries);
[[nodiscard]] Result<LibraryCallRef> make_attention_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         std::int64_t row_block);
/// Whether each filter of a convolution sees one channel.
[[nodiscard]] bool is_depthwise(const LibraryForm& form, std::span<const op::Array> inputs);
/// Whether a convolution sees one element at a time, each once.
[[nodiscard]] bool is_pointwise(const LibraryForm& form, std::span<const op::Array> inputs);
[[nodiscard]] Result<LibraryCallRef> make_pooling_call(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results);

}  // namespace tessera::runtime::cpu
