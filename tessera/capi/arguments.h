// What comes in from C as values of the library, and back. Whatever is wrong fails with its own code.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tessera/capi/handles.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"

namespace tessera::capi {

/// Where the C function that runs was called, as far as it is known.
inline Here here() { return {place().file, static_cast<int>(place().line)}; }

[[nodiscard]] Dtype dtype_from(std::int64_t dtype);
[[nodiscard]] tsr_dtype dtype_to(Dtype dtype);

/// Null stands for the defaults.
[[nodiscard]] CreateOptions create_options(const tsr_options* options);
[[nodiscard]] CreateOptions create_options(tsr_backend backend);

/// Sizes of at most TSR_MAX_RANK axes.
[[nodiscard]] Shape shape_from(const std::int64_t* shape, int ndim);
[[nodiscard]] op::Attributes attributes_from(const tsr_attribute* attributes, int count);

/// The operands of a call, and the tensors they are handles to.
struct Operands {
  std::vector<Tensor> tensors;
  std::vector<engine::Operand> operands;

  void add(Tensor tensor);
  /// A tensor or a number. The result of another call fails.
  void add(const tsr_operand& operand, int index);
};

/// Records one call, and fails with TSR_ERROR_MERGE if the tensors are of two engines.
[[nodiscard]] std::vector<Tensor> record(const op::Card& card, const Operands& operands,
                                         op::Attributes attributes, const CreateOptions* options = nullptr);
[[nodiscard]] const op::Card& card_from(const char* op);

void require_one_engine(std::span<const Tensor> tensors);

/// Computes. What goes wrong is TSR_ERROR_EXECUTION, a lack of memory TSR_ERROR_MEMORY.
void execute(std::span<const Tensor> tensors);

/// Copies as much as fits and reports the true count.
template <class T>
void copy_out(std::span<const T> values, T* out, int max, int* out_count) {
  std::copy_n(values.begin(), std::min(values.size(), static_cast<std::size_t>(max)), out);
  if (out_count != nullptr) *out_count = static_cast<int>(values.size());
}

}  // namespace tessera::capi
