#include "tessera/runtime/cuda/emulator/emulated_blas.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/emulator/emulated_driver.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

std::byte* bytes_at(CUdeviceptr at) { return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at)); }

std::string what_is_wrong(const Product& p, const ProductMemory& memory) {
  const auto is_aligned = [](CUdeviceptr at, std::uint64_t to) { return at != 0 && at % to == 0; };
  if (!is_aligned(memory.a, p.a.alignment) || !is_aligned(memory.b, p.b.alignment) ||
      !is_aligned(memory.c, p.c.alignment))
    return "an operand of a product is not aligned as was said";
  if (!is_aligned(memory.workspace, 256)) return "the workspace of a product is not aligned";
  if (p.finish.adds_bias && !is_aligned(memory.bias, 16)) return "the bias of a product is not aligned";
  if (p.finish.adds_array && !is_aligned(memory.added, p.c.alignment))
    return "what is added to a product is not aligned";
  return "";
}

class EmulatedProduct final : public BlasProduct {
 public:
  explicit EmulatedProduct(const Product& product) : product_(product) {}

  Result<void> queue(const ProductMemory& memory, const Stream& stream) const override {
    if (const std::string why = what_is_wrong(product_, memory); !why.empty())
      return Error(ErrorCode::device, cat(why, ": ", to_text(product_)));
    const auto work = [product = product_, memory] {
      ++emulated_blas_state().products;
      compute_product(product, {.a = bytes_at(memory.a),
                                .b = bytes_at(memory.b),
                                .bias = bytes_at(memory.bias),
                                .added = bytes_at(memory.added),
                                .c = bytes_at(memory.c)});
      return std::string();
    };
    return checked(emulated_driver(), emulated_queue(stream.handle(), work), "a product");
  }

  std::int64_t workspace_bytes() const override { return emulated_blas_state().workspace_bytes; }

 private:
  Product product_;
};

class EmulatedBlas final : public Blas {
 public:
  Result<BlasProductRef> get(const Product& product) override {
    if (!emulated_blas_state().has_ends && product.finish != Product::Finish())
      return Error(ErrorCode::unsupported, cat("there is no algorithm for ", to_text(product)));
    return BlasProductRef(std::make_shared<EmulatedProduct>(product));
  }
  std::string version() const override { return "emulated"; }
};

}  // namespace

EmulatedBlasState& tessera::runtime::cuda::emulated_blas_state() {
  static auto& only = *new EmulatedBlasState;
  return only;
}

Result<std::unique_ptr<Blas>> tessera::runtime::cuda::open_emulated_blas(const BlasDevice&) {
  return std::unique_ptr<Blas>(std::make_unique<EmulatedBlas>());
}
