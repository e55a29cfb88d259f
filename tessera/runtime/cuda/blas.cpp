#include "tessera/runtime/cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/library.h"

#define TESSERA_BLAS_FUNCTIONS(X)     \
  X(cublasLtCreate)                   \
  X(cublasLtDestroy)                  \
  X(cublasLtGetStatusName)            \
  X(cublasLtGetStatusString)          \
  X(cublasLtGetVersion)               \
  X(cublasLtMatmul)                   \
  X(cublasLtMatmulAlgoGetHeuristic)   \
  X(cublasLtMatmulDescCreate)         \
  X(cublasLtMatmulDescDestroy)        \
  X(cublasLtMatmulDescSetAttribute)   \
  X(cublasLtMatrixLayoutCreate)       \
  X(cublasLtMatrixLayoutDestroy)      \
  X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceCreate)   \
  X(cublasLtMatmulPreferenceDestroy)  \
  X(cublasLtMatmulPreferenceSetAttribute)

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Algorithms that are tried, and how often each runs.
constexpr int most_algorithms = 8, runs = 4;
/// Multiply-adds below which the first algorithm is taken as it is: the launch is what takes time.
constexpr double least_measured = 1e6;
/// The part of the device's memory that measuring may use.
constexpr std::uint64_t measured_part = 8;

struct Functions {
#define TESSERA_BLAS_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_BLAS_FUNCTIONS(TESSERA_BLAS_MEMBER)
#undef TESSERA_BLAS_MEMBER

  [[nodiscard]] Result<void> checked(cublasStatus_t status, std::string_view what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    const ErrorCode code = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::memory : ErrorCode::device;
    return Error(code,
                 cat(what, ": ", cublasLtGetStatusName(status), " (", cublasLtGetStatusString(status), ")"));
  }
};

#define TESSERA_BLAS(functions, name, ...) \
  TESSERA_TRY((functions).checked((functions).name(__VA_ARGS__), #name))

Result<const Functions*> open_functions() {
  const Library library = TESSERA_TRY(Library::open("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}));
  auto out = std::make_unique<Functions>();
  std::string missing;
#define TESSERA_BLAS_FIND(name) library.find(out->name, #name, missing);
  TESSERA_BLAS_FUNCTIONS(TESSERA_BLAS_FIND)
#undef TESSERA_BLAS_FIND
  if (!missing.empty()) return Error(ErrorCode::unsupported, cat(library.file(), " lacks", missing));
  return out.release();  // lives as long as the program, as the library does
}

Result<const Functions*> functions() {
  static const auto& only = *new Result<const Functions*>(open_functions());  // never destroyed
  return only;
}

cudaDataType_t data_type(ir::Dtype dtype) {
  switch (dtype) {
    case ir::Dtype::f64:
      return CUDA_R_64F;
    case ir::Dtype::f16:
      return CUDA_R_16F;
    case ir::Dtype::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

/// Full precision: f32 is not shortened to tf32, 16-bit floats are added up in f32.
cublasComputeType_t compute_type(ir::Dtype dtype) {
  return dtype == ir::Dtype::f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

/// A descriptor that is given back.
template <class T>
struct Held {
  Held() = default;
  Held(T made, cublasStatus_t (*destroy_it)(T)) : handle(made), destroy(destroy_it) {}
  Held(Held&& other) noexcept : handle(std::exchange(other.handle, nullptr)), destroy(other.destroy) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(handle, other.handle);
    std::swap(destroy, other.destroy);
    return *this;
  }
  ~Held() {
    if (handle != nullptr) destroy(handle);
  }

  T handle = nullptr;
  cublasStatus_t (*destroy)(T) = nullptr;
};

/// The library counts columns first: our row-major c is its transpose, the product of b and a transposed. So
/// its first operand is b, and what is transposed for us is transposed for it.
class LtProduct final : public BlasProduct {
 public:
  LtProduct(const Functions& f, cublasLtHandle_t handle, const Product& product)
      : f_(f), handle_(handle), product_(product) {}

  Result<void> describe() {
    cublasLtMatmulDesc_t made = nullptr;
    const cudaDataType_t scale = product_.dtype == ir::Dtype::f64 ? CUDA_R_64F : CUDA_R_32F;
    TESSERA_BLAS(f_, cublasLtMatmulDescCreate, &made, compute_type(product_.dtype), scale);
    operation_ = {made, f_.cublasLtMatmulDescDestroy};
    TESSERA_TRY(set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, product_.b.is_transposed));
    TESSERA_TRY(set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, product_.a.is_transposed));
    b_ = TESSERA_TRY(layout(product_.b, product_.depth, product_.columns));
    a_ = TESSERA_TRY(layout(product_.a, product_.rows, product_.depth));
    c_ = TESSERA_TRY(layout(product_.c, product_.rows, product_.columns));
    return {};
  }

  /// What the library proposes, best first by its own reckoning.
  Result<std::vector<cublasLtMatmulAlgo_t>> algorithms() const {
    cublasLtMatmulPreference_t made = nullptr;
    TESSERA_BLAS(f_, cublasLtMatmulPreferenceCreate, &made);
    const Held<cublasLtMatmulPreference_t> preference(made, f_.cublasLtMatmulPreferenceDestroy);
    const std::size_t workspace = product_workspace;
    TESSERA_TRY(prefer(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    const auto align = [&](cublasLtMatmulPreferenceAttributes_t which, const Product::Operand& operand) {
      return prefer(made, which, static_cast<std::uint32_t>(operand.alignment));
    };
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.b));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.a));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.c));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.c));
    cublasLtMatmulHeuristicResult_t found[most_algorithms] = {};
    int count = 0;
    TESSERA_BLAS(f_, cublasLtMatmulAlgoGetHeuristic, handle_, operation_.handle, b_.handle, a_.handle,
                 c_.handle, c_.handle, made, most_algorithms, found, &count);
    std::vector<cublasLtMatmulAlgo_t> out;
    for (int i = 0; i < count; ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspace)
        out.push_back(found[i].algo);
    if (out.empty()) return Error(ErrorCode::unsupported, "cuBLASLt has no algorithm for this product");
    return out;
  }

  void set_algorithm(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }

  Result<void> queue(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace,
                     const Stream& stream) const override {
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const bool is_wide = product_.dtype == ir::Dtype::f64;
    const void* alpha = is_wide ? static_cast<const void*>(&wide_one) : &one;
    const void* beta = is_wide ? static_cast<const void*>(&wide_zero) : &zero;
    const auto pointer = [](CUdeviceptr at) {
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
    };
    TESSERA_BLAS(f_, cublasLtMatmul, handle_, operation_.handle, alpha, pointer(b), b_.handle, pointer(a),
                 a_.handle, beta, pointer(c), c_.handle, pointer(c), c_.handle, &algorithm_,
                 pointer(workspace), static_cast<std::size_t>(product_workspace),
                 reinterpret_cast<cudaStream_t>(stream.handle()));
    return {};
  }

 private:
  using Layout = Held<cublasLtMatrixLayout_t>;

  Result<void> set_transposed(cublasLtMatmulDescAttributes_t which, bool is_transposed) const {
    const cublasOperation_t value = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TESSERA_BLAS(f_, cublasLtMatmulDescSetAttribute, operation_.handle, which, &value, sizeof value);
    return {};
  }

  template <class T>
  Result<void> prefer(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t which,
                      const T& value) const {
    TESSERA_BLAS(f_, cublasLtMatmulPreferenceSetAttribute, to, which, &value, sizeof value);
    return {};
  }

  /// Of a matrix of ours: its columns are the library's rows, unless it lies transposed.
  Result<Layout> layout(const Product::Operand& operand, std::int64_t rows, std::int64_t columns) const {
    const auto first = static_cast<std::uint64_t>(operand.is_transposed ? rows : columns);
    const auto second = static_cast<std::uint64_t>(operand.is_transposed ? columns : rows);
    cublasLtMatrixLayout_t made = nullptr;
    TESSERA_BLAS(f_, cublasLtMatrixLayoutCreate, &made, data_type(product_.dtype), first, second,
                 operand.leading);
    Layout out(made, f_.cublasLtMatrixLayoutDestroy);
    const auto batch = static_cast<std::int32_t>(product_.batch);
    TESSERA_BLAS(f_, cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                 sizeof batch);
    TESSERA_BLAS(f_, cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                 &operand.batch, sizeof operand.batch);
    return out;
  }

  const Functions& f_;
  cublasLtHandle_t handle_;
  Product product_;
  Held<cublasLtMatmulDesc_t> operation_;
  Layout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

/// Memory for measuring, as large as the operands reach.
class MeasuredMemory {
 public:
  explicit MeasuredMemory(DeviceMemory& memory) : memory_(memory) {}
  MeasuredMemory(const MeasuredMemory&) = delete;
  MeasuredMemory& operator=(const MeasuredMemory&) = delete;
  ~MeasuredMemory() {
    for (const auto& [at, bytes] : taken_) memory_.free(at, bytes);
  }
  /// Zeros: numbers that are no numbers may take another time.
  Result<CUdeviceptr> take(std::size_t bytes) {
    std::byte* at = TESSERA_TRY(memory_.allocate(bytes));
    taken_.emplace_back(at, bytes);
    TESSERA_TRY(memory_.clear(at, bytes));
    return device_address(at);
  }

 private:
  DeviceMemory& memory_;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;
};

std::size_t bytes_of(const Product& product, const Product::Operand& operand, std::int64_t rows,
                     std::int64_t columns) {
  const std::int64_t lines = operand.is_transposed ? columns : rows;
  const std::int64_t elements = lines * operand.leading + (product.batch - 1) * operand.batch;
  return static_cast<std::size_t>(elements) * ir::size_of(product.dtype);
}

class LtBlas final : public Blas {
 public:
  LtBlas(const Functions& f, cublasLtHandle_t handle, ContextRef context,
         std::shared_ptr<const Stream> stream, std::shared_ptr<DeviceMemory> memory)
      : f_(f),
        handle_(handle),
        context_(std::move(context)),
        stream_(std::move(stream)),
        memory_(std::move(memory)) {}
  ~LtBlas() override {
    if (const auto current = context_->enter()) f_.cublasLtDestroy(handle_);
  }

  Result<BlasProductRef> get(const Product& product) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, made] : products_)
      if (known == product) return made;
    auto made = std::make_shared<LtProduct>(f_, handle_, product);
    TESSERA_TRY(made->describe());
    const auto algorithms = TESSERA_TRY(made->algorithms());
    made->set_algorithm(algorithms[0]);
    // What cannot be measured now is no error: the library's own choice stands.
    if (const auto best = fastest(product, *made, algorithms)) made->set_algorithm(algorithms[*best]);
    if (products_.size() >= most_known) products_.clear();
    products_.emplace_back(product, made);
    return BlasProductRef(made);
  }

  std::string version() const override {
    const std::size_t number = f_.cublasLtGetVersion();
    return cat(number / 10000, ".", number / 100 % 100, ".", number % 100);
  }

 private:
  static constexpr std::size_t most_known = 4096;

  Result<std::size_t> fastest(const Product& product, LtProduct& made,
                              const std::vector<cublasLtMatmulAlgo_t>& algorithms) {
    const double work = static_cast<double>(product.rows) * static_cast<double>(product.columns) *
                        static_cast<double>(product.depth) * static_cast<double>(product.batch);
    const std::size_t bytes[] = {bytes_of(product, product.a, product.rows, product.depth),
                                 bytes_of(product, product.b, product.depth, product.columns),
                                 bytes_of(product, product.c, product.rows, product.columns),
                                 static_cast<std::size_t>(product_workspace)};
    const std::size_t all = bytes[0] + bytes[1] + bytes[2] + bytes[3];
    if (algorithms.size() < 2 || work < least_measured || all > context_->memory_bytes() / measured_part)
      return std::size_t{0};
    MeasuredMemory memory(*memory_);
    CUdeviceptr at[4] = {};
    for (std::size_t i = 0; i < 4; ++i) at[i] = TESSERA_TRY(memory.take(bytes[i]));
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      made.set_algorithm(algorithms[i]);
      const auto time = time_of(made, at);
      if (!time) continue;
      if (least == 0 || *time < least) best = i, least = *time;
    }
    return best;
  }

  Result<double> time_of(const LtProduct& product, const CUdeviceptr (&at)[4]) {
    const Event begin = TESSERA_TRY(Event::create(context_)), end = TESSERA_TRY(Event::create(context_));
    TESSERA_TRY(product.queue(at[0], at[1], at[2], at[3], *stream_));  // loads its code
    TESSERA_TRY(begin.record(*stream_));
    for (int i = 0; i < runs; ++i) TESSERA_TRY(product.queue(at[0], at[1], at[2], at[3], *stream_));
    TESSERA_TRY(end.record(*stream_));
    TESSERA_TRY(stream_->wait());
    return TESSERA_TRY(end.microseconds_since(begin));
  }

  const Functions& f_;
  cublasLtHandle_t handle_;
  ContextRef context_;
  std::shared_ptr<const Stream> stream_;
  std::shared_ptr<DeviceMemory> memory_;
  std::mutex mutex_;
  std::vector<std::pair<Product, std::shared_ptr<LtProduct>>> products_;
};

}  // namespace

Result<std::unique_ptr<Blas>> Blas::open(ContextRef context, std::shared_ptr<const Stream> stream,
                                         std::shared_ptr<DeviceMemory> memory) {
  const Functions* f = TESSERA_TRY(functions());
  cublasLtHandle_t handle = nullptr;
  TESSERA_BLAS(*f, cublasLtCreate, &handle);
  return std::unique_ptr<Blas>(
      std::make_unique<LtBlas>(*f, handle, std::move(context), std::move(stream), std::move(memory)));
}
