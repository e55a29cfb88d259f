#include "tessera/runtime/cuda/emulator/emulated_blas.h"

#include <cmath>

#include "tessera/base/text.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/emulator/emulated_driver.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Elements of a dtype in memory, as doubles.
class Elements {
 public:
  Elements(CUdeviceptr at, ir::Dtype dtype)
      : at_(reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at))), dtype_(dtype) {}

  [[nodiscard]] double get(std::int64_t i) const {
    double out = 0;
    op::loader<double>(dtype_)(at_ + i * width(), 0, 1, 1, &out);
    return out;
  }
  void set(std::int64_t i, double value) const {
    op::storer<double>(dtype_)(at_ + i * width(), 0, 1, 1, &value);
  }

 private:
  [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(ir::size_of(dtype_)); }

  std::byte* at_;
  ir::Dtype dtype_;
};

std::int64_t place(const Product::Operand& operand, std::int64_t row, std::int64_t column) {
  return operand.is_transposed ? column * operand.leading + row : row * operand.leading + column;
}

double activated(double x, Product::Activation activation) {
  if (activation == Product::Activation::relu) return x < 0 ? 0 : x;
  if (activation != Product::Activation::gelu) return x;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

void compute(const Product& p, const ProductMemory& memory) {
  const Elements a(memory.a, p.dtype), b(memory.b, p.dtype), c(memory.c, p.dtype), bias(memory.bias, p.dtype),
      added(memory.added, p.dtype);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t i = 0; i < p.rows; ++i)
      for (std::int64_t j = 0; j < p.columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.depth; ++k)
          sum += a.get(n * p.a.batch + place(p.a, i, k)) * b.get(n * p.b.batch + place(p.b, k, j));
        const std::int64_t to = n * p.c.batch + place(p.c, i, j);
        if (p.finish.adds_bias) sum += bias.get(j);
        if (p.finish.adds_array) sum += added.get(to);
        c.set(to, activated(sum, p.finish.activation));
      }
}

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
      compute(product, memory);
      return std::string();
    };
    return checked(emulated_driver(), emulated_queue(stream.handle(), work), "a product");
  }

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
