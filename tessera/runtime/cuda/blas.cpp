#include "tessera/runtime/cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/library.h"
#include "tessera/runtime/cuda/product_timer.h"

#define TESSERA_BLAS_FUNCTIONS(X)         \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusName)                \
  X(cublasLtGetStatusString)              \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoCheck)              \
  X(cublasLtMatmulAlgoConfigSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute)

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Algorithms that are asked for. The first few are measured, more as long as there is time: some
/// microseconds, and those of so many runs of the best.
constexpr int most_algorithms = 32;
constexpr std::size_t least_algorithms = 4;
constexpr double least_time = 40'000, worthwhile_runs = 100;
/// In rounds, in which all that are left take turns: clocks change while it is measured, and for all of them.
/// The better part goes on to longer turns, at the end long enough for a GPU to be at its power limit.
struct KnockOut {
  std::size_t most;  ///< that take part
  int rounds, runs;
};
constexpr int first_runs = 3;
constexpr KnockOut later_rounds[] = {{8, 3, 4}, {4, 5, 16}};
/// Of so many results and less, the depth of this many algorithms is cut.
constexpr std::int64_t few_results = 1 << 19;
constexpr std::size_t cut_algorithms = 6;
/// Multiply-adds below which the first algorithm is taken as it is: the launch is what takes time.
constexpr double least_measured = 1e6;
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
  const SharedLibrary library =
      TESSERA_TRY(open_library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}));
  auto out = std::make_unique<Functions>();
  std::string missing;
#define TESSERA_BLAS_FIND(name) library.find(out->name, #name, missing);
  TESSERA_BLAS_FUNCTIONS(TESSERA_BLAS_FIND)
#undef TESSERA_BLAS_FIND
  if (!missing.empty()) return Error(ErrorCode::unsupported, cat(library.file(), " lacks", missing));
  return out.release();  // lives as long as the program, as the library does
}

Result<const Functions*> functions() {
  static auto& opened = *new Once<const Functions*>;  // never destroyed
  return opened.get(&open_functions);
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

/// 16-bit floats are added up in f32.
cublasComputeType_t compute_type(ir::Dtype dtype, ProductPrecision precision) {
  if (dtype == ir::Dtype::f64) return CUBLAS_COMPUTE_64F;
  const bool is_rounded = dtype == ir::Dtype::f32 && precision == ProductPrecision::tf32;
  return is_rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
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

  Result<void> describe(ProductPrecision precision) {
    cublasLtMatmulDesc_t made = nullptr;
    const cudaDataType_t scale = product_.dtype == ir::Dtype::f64 ? CUDA_R_64F : CUDA_R_32F;
    TESSERA_BLAS(f_, cublasLtMatmulDescCreate, &made, compute_type(product_.dtype, precision), scale);
    operation_ = {made, f_.cublasLtMatmulDescDestroy};
    TESSERA_TRY(set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, product_.b.is_transposed));
    TESSERA_TRY(set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, product_.a.is_transposed));
    if (product_.finish != Product::Finish()) TESSERA_TRY(set_finish());
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
    TESSERA_TRY(prefer(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, ways_to_add()));
    const auto align = [&](cublasLtMatmulPreferenceAttributes_t which, const Product::Operand& operand) {
      return prefer(made, which, static_cast<std::uint32_t>(operand.alignment));
    };
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.b));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.a));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.c));
    TESSERA_TRY(align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.c));
    cublasLtMatmulHeuristicResult_t found[most_algorithms] = {};
    int count = 0;
    const cublasStatus_t status =
        f_.cublasLtMatmulAlgoGetHeuristic(handle_, operation_.handle, b_.handle, a_.handle, c_.handle,
                                          c_.handle, made, most_algorithms, found, &count);
    // How the library says that it has none.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
      count = 0;
    else
      TESSERA_TRY(f_.checked(status, "cublasLtMatmulAlgoGetHeuristic"));
    std::vector<cublasLtMatmulAlgo_t> out;
    for (int i = 0; i < count; ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspace)
        out.push_back(found[i].algo);
    if (out.empty())
      return Error(ErrorCode::unsupported, cat("cuBLASLt has no algorithm for ", to_text(product_)));
    return out;
  }

  void set_algorithm(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }
  /// From now on it uses no more memory than its algorithm needs.
  void settle() {
    if (const auto bytes = workspace_of(algorithm_)) workspace_ = static_cast<std::int64_t>(*bytes);
  }
  std::int64_t workspace_bytes() const override { return workspace_; }

  /// One that was kept as bytes, if the library still knows it.
  bool take_algorithm(std::span<const std::byte> bytes) {
    cublasLtMatmulAlgo_t kept = {};
    if (bytes.size() != sizeof kept) return false;
    std::memcpy(&kept, bytes.data(), sizeof kept);
    if (!is_possible(kept)) return false;
    algorithm_ = kept;
    return true;
  }

  /// The same with the depth cut into parts that are computed side by side. Where there are few results, the
  /// library proposes few of these.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> with_cut_depth(
      std::span<const cublasLtMatmulAlgo_t> whole) const {
    std::vector<cublasLtMatmulAlgo_t> out;
    for (const cublasLtMatmulAlgo_t& from : whole)
      for (std::int32_t parts = 2; parts <= 16 && product_.depth / parts >= least_part; parts *= 2)
        for (const std::uint32_t scheme :
             {CUBLASLT_REDUCTION_SCHEME_INPLACE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}) {
          if ((scheme & ways_to_add()) == 0) continue;
          cublasLtMatmulAlgo_t cut = from;
          if (configure(cut, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, parts) &&
              configure(cut, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme) && is_possible(cut))
            out.push_back(cut);
        }
    return out;
  }

  Result<void> queue(const ProductMemory& memory, const Stream& stream) const override {
    const double wide[] = {1, product_.finish.adds_array ? 1.0 : 0.0};
    const float narrow[] = {product_.finish.scale, product_.finish.adds_array ? 1.0f : 0.0f};
    const bool is_wide = product_.dtype == ir::Dtype::f64;
    const void* alpha = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0];
    const void* beta = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
    // Where the bias lies is written into the description, which the library reads before it returns.
    std::unique_lock<std::mutex> lock;
    if (product_.finish.adds_bias) {
      lock = std::unique_lock(mutex_);
      TESSERA_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(memory.bias)));
    }
    const CUdeviceptr added = product_.finish.adds_array ? memory.added : memory.c;
    const cublasStatus_t status = f_.cublasLtMatmul(
        handle_, operation_.handle, alpha, pointer(memory.b), b_.handle, pointer(memory.a), a_.handle, beta,
        pointer(added), c_.handle, pointer(memory.c), c_.handle, &algorithm_, pointer(memory.workspace),
        static_cast<std::size_t>(workspace_), reinterpret_cast<cudaStream_t>(stream.handle()));
    return f_.checked(status,
                      status == CUBLAS_STATUS_SUCCESS ? "" : cat("cublasLtMatmul, ", to_text(product_)));
  }

 private:
  using Layout = Held<cublasLtMatrixLayout_t>;
  static constexpr CUdeviceptr aligned_address = 256;
  static constexpr std::int64_t least_part = 32;

  static void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

  /// How parts of the depth may be added up: those of 16-bit floats not as 16-bit floats.
  [[nodiscard]] std::uint32_t ways_to_add() const {
    const bool is_narrow = ir::size_of(product_.dtype) < 4;
    return is_narrow ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
  }

  /// What an algorithm needs, if the library has it for this product and it is not too much.
  [[nodiscard]] std::optional<std::size_t> workspace_of(const cublasLtMatmulAlgo_t& algorithm) const {
    cublasLtMatmulHeuristicResult_t found = {};
    const bool is_known =
        f_.cublasLtMatmulAlgoCheck(handle_, operation_.handle, b_.handle, a_.handle, c_.handle, c_.handle,
                                   &algorithm, &found) == CUBLAS_STATUS_SUCCESS;
    if (!is_known || found.workspaceSize > static_cast<std::size_t>(product_workspace)) return std::nullopt;
    return found.workspaceSize;
  }
  [[nodiscard]] bool is_possible(const cublasLtMatmulAlgo_t& algorithm) const {
    return workspace_of(algorithm).has_value();
  }

  template <class T>
  bool configure(cublasLtMatmulAlgo_t& to, cublasLtMatmulAlgoConfigAttributes_t which, const T& value) const {
    return f_.cublasLtMatmulAlgoConfigSetAttribute(&to, which, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  }

  template <class T>
  Result<void> set(cublasLtMatmulDescAttributes_t which, const T& value) const {
    TESSERA_BLAS(f_, cublasLtMatmulDescSetAttribute, operation_.handle, which, &value, sizeof value);
    return {};
  }

  Result<void> set_transposed(cublasLtMatmulDescAttributes_t which, bool is_transposed) const {
    return set(which, is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  /// A bias per column of ours is one per row of the library's.
  Result<void> set_finish() const {
    using Activation = Product::Activation;
    const auto [scale, adds_bias, adds_array, activation] = product_.finish;
    cublasLtEpilogue_t epilogue = adds_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    if (activation == Activation::relu)
      epilogue = adds_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (activation == Activation::gelu)
      epilogue = adds_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    TESSERA_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    // The library looks at the alignment of the address when it chooses.
    return adds_bias ? set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(aligned_address)) : Result<void>();
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
  std::int64_t workspace_ = product_workspace;
  mutable std::mutex mutex_;
};

class LtBlas final : public Blas {
 public:
  LtBlas(const Functions& f, cublasLtHandle_t handle, BlasDevice device)
      : f_(f), handle_(handle), device_(std::move(device)) {}
  ~LtBlas() override {
    if (const auto current = device_.context->enter()) f_.cublasLtDestroy(handle_);
  }

  Result<BlasProductRef> get(const Product& product) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, made] : products_)
      if (known == product) return made;
    auto made = std::make_shared<LtProduct>(f_, handle_, product);
    TESSERA_TRY(made->describe(device_.precision));
    TESSERA_TRY(choose_algorithm(product, *made));
    made->settle();
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
  using Timed = std::pair<double, std::size_t>;  ///< microseconds, which algorithm

  /// What was measured by an earlier process, or now; else what the library would choose.
  Result<void> choose_algorithm(const Product& product, LtProduct& made) {
    const double work = static_cast<double>(product.rows) * static_cast<double>(product.columns) *
                        static_cast<double>(product.depth) * static_cast<double>(product.batch);
    const bool is_measured = work >= least_measured;
    // The scale is no matter of the algorithm.
    Product unscaled = product;
    unscaled.finish.scale = 1;
    const std::string key =
        cat("product, cuBLASLt ", version(), ", ", device_.context->name(), ", workspace ", product_workspace,
            device_.precision == ProductPrecision::tf32 ? ", tf32, " : ", ", to_text(unscaled));
    if (is_measured && device_.store != nullptr)
      if (const auto kept = device_.store->load(key); kept && made.take_algorithm(*kept)) return {};
    auto algorithms = TESSERA_TRY(made.algorithms());
    made.set_algorithm(algorithms[0]);
    if (!is_measured) return {};
    if (product.rows * product.columns * product.batch <= few_results) add_cut(made, algorithms);
    // What cannot be measured now is no error: the library's own choice stands.
    const auto best = fastest(product, made, algorithms);
    made.set_algorithm(algorithms[best ? *best : 0]);
    if (best && device_.store != nullptr)
      static_cast<void>(device_.store->save(key, std::as_bytes(std::span(&algorithms[*best], 1))).ok());
    return {};
  }

  /// Behind the first ones: the last ones may not be measured.
  static void add_cut(const LtProduct& made, std::vector<cublasLtMatmulAlgo_t>& to) {
    const auto whole = std::span(to).first(std::min(to.size(), cut_algorithms));
    const auto cut = made.with_cut_depth(whole);
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(whole.size()), cut.begin(), cut.end());
  }

  Result<std::size_t> fastest(const Product& product, LtProduct& made,
                              const std::vector<cublasLtMatmulAlgo_t>& algorithms) {
    const ProductTimer timer = TESSERA_TRY(ProductTimer::create(device_, product));
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Timed> times;
    const auto measure = [&](std::size_t i, int runs) {
      made.set_algorithm(algorithms[i]);
      return timer.microseconds(made, runs);
    };
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      if (const auto time = measure(i, first_runs))
        times.push_back({*time, i}), least = std::min(least, *time);
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
      if (i + 1 >= least_algorithms && spent.count() > least_time + worthwhile_runs * least) break;
    }
    if (times.empty()) return Error(ErrorCode::device, "no algorithm could be measured");
    for (const KnockOut& knock_out : later_rounds) {
      std::sort(times.begin(), times.end());
      times.resize(std::min(times.size(), knock_out.most));
      for (auto& [time, i] : times) time = 0;
      for (int round = 0; round < knock_out.rounds; ++round)
        for (auto& [time, i] : times) {
          const auto again = measure(i, knock_out.runs);
          time += again ? *again : std::numeric_limits<double>::infinity();
        }
    }
    return std::min_element(times.begin(), times.end())->second;
  }

  const Functions& f_;
  cublasLtHandle_t handle_;
  BlasDevice device_;
  std::mutex mutex_;
  std::vector<std::pair<Product, std::shared_ptr<LtProduct>>> products_;
};

}  // namespace

Result<std::unique_ptr<Blas>> Blas::open(const BlasDevice& device) {
  const ForeignOpening opening;
  if (!opening.is_inside())
    return Error(ErrorCode::unsupported,
                 "nothing is opened while the program ends, nor in the child of a fork");
  const Functions* f = TESSERA_TRY(functions());
  cublasLtHandle_t handle = nullptr;
  TESSERA_BLAS(*f, cublasLtCreate, &handle);
  return std::unique_ptr<Blas>(std::make_unique<LtBlas>(*f, handle, device));
}
