// Every op that has a CUDA program of its own: its samples in every dtype, on arrays of any strides and
// alignments, on sizes of 0, 1 and many, run by the emulator, and by a GPU where there is one, and compared
// with the reference; and every source shown to NVRTC.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <set>

#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/host_access.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"
#include "tests/support/side_by_side.h"

using namespace tessera;
using namespace tessera::op;
using fixture::dtypes_of;
using fixture::op_samples;
using fixture::Sample;
using runtime::cuda::Emulator;
using runtime::cuda::GuardedArray;
using runtime::cuda::StepProgram;
using runtime::cuda::ThreadOrder;

namespace {

/// What a result may differ by from the reference. Products add up many numbers of both signs in f32.
double tolerance(const Card& card, Dtype dtype) {
  return card.traits.costly && dtype == Dtype::f32 ? 2e-5 : fixture::tolerance(dtype);
}

/// The same elements behind other strides, in memory that is held.
Array scattered(const HostTensor& tensor, std::deque<HostTensor>& held) {
  Layout layout;
  held.push_back(fixture::scattered(tensor, layout));
  return {tensor.dtype(), layout, held.back().array().data};
}

/// The same elements in rows with gaps between them, the first axis backwards.
Array spaced(const HostTensor& tensor, std::deque<HostTensor>& held) {
  if (tensor.shape().empty()) return tensor.array();
  constexpr std::int64_t gap = 3;
  Extents shape = tensor.shape();
  shape.back() += gap;
  held.push_back(value_or_throw(HostTensor::allocate(tensor.dtype(), shape)));
  Layout layout = contiguous(shape);
  layout.shape = tensor.shape();
  if (layout.shape.size() > 1 && layout.shape[0] > 0) {
    layout.offset = layout.strides[0] * (layout.shape[0] - 1);
    layout.strides[0] = -layout.strides[0];
  }
  const Array out{tensor.dtype(), layout, held.back().array().data};
  copy_elements(tensor.array(), out);
  return out;
}

enum class Strides : std::uint8_t { none, odd, spaced };

Array with_strides(const HostTensor& tensor, Strides strides, std::deque<HostTensor>& held) {
  if (strides == Strides::none) return tensor.array();
  return strides == Strides::odd ? scattered(tensor, held) : spaced(tensor, held);
}

/// A call with everything that its run needs.
struct Case {
  std::string text;
  const Card* card = nullptr;
  Attributes attributes;
  ValueTypes types;
  std::deque<HostTensor> held;
  std::deque<GuardedArray> inputs, results;
  std::vector<HostTensor> expected;
  std::optional<Error> error;  ///< of the reference, which knows all that is wrong
  StepProgram program;

  static std::vector<Array> arrays(const std::deque<GuardedArray>& guarded) {
    std::vector<Array> out;
    for (const GuardedArray& array : guarded) out.push_back(array.array());
    return out;
  }
};

ValueType type_of(const Array& array) {
  return {array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape()))};
}

/// The first GPU, if there is one.
class Gpu {
 public:
  static Gpu* find() {
    static const std::unique_ptr<Gpu> gpu = [] {
      auto device = runtime::cuda::open_device(0);
      return device ? std::unique_ptr<Gpu>(new Gpu(*std::move(device))) : nullptr;
    }();
    return gpu.get();
  }

  /// The results of a case in host memory.
  Result<std::vector<HostTensor>> run(const Case& c) {
    std::vector<Ref<runtime::Buffer>> held;
    std::vector<Array> inputs, results;
    for (const GuardedArray& input : c.inputs) inputs.push_back(TESSERA_TRY(copied(input.array(), held)));
    for (const GuardedArray& result : c.results) results.push_back(TESSERA_TRY(copied(result.array(), held)));
    TESSERA_TRY(device_->run(CallInfo(*c.card, c.types, c.attributes), inputs, results));
    std::vector<HostTensor> out;
    for (const Array& result : results) {
      out.push_back(TESSERA_TRY(HostTensor::allocate(result.dtype, result.shape())));
      const std::span<std::byte> bytes(out.back().array().data, out.back().byte_size());
      TESSERA_TRY(pool_->space()->copy_out(result.data, bytes));
    }
    return out;
  }

 private:
  explicit Gpu(std::shared_ptr<runtime::Device> device)
      : device_(std::move(device)), pool_(runtime::MemoryPool::create({}, device_->memory_space())) {}

  /// The same elements behind the same strides.
  Result<Array> copied(const Array& host, std::vector<Ref<runtime::Buffer>>& held) {
    std::int64_t low = host.layout.offset, high = low;
    for (std::size_t i = 0; i < host.rank(); ++i) {
      const std::int64_t reach = host.layout.strides[i] * (host.shape()[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto size = static_cast<std::int64_t>(ir::size_of(host.dtype));
    const auto bytes = static_cast<std::size_t>(host.size() == 0 ? 0 : (high - low + 1) * size);
    held.push_back(TESSERA_TRY(pool_->allocate(bytes)));
    TESSERA_TRY(runtime::write_bytes(*held.back(), {host.at(low), bytes}));
    return Array{host.dtype, host.layout, held.back()->data() - low * size};
  }

  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::MemoryPool> pool_;
};

/// All cases of a test: compiled at once, for the compiler's start is what takes time.
class Cases {
 public:
  /// For a device that gives blocks so much.
  explicit Cases(const runtime::cuda::DeviceLimits& limits = {}) : limits_(limits) {}

  /// `misalignment` is where arrays begin, in elements.
  void add(std::string text, const Card& card, const Attributes& attributes,
           const std::vector<HostTensor>& inputs, Strides strides = Strides::none,
           std::int64_t misalignment = 0) {
    Case& c = cases_.emplace_back();
    c.text = std::move(text);
    c.card = &card;
    c.attributes = attributes;
    for (const HostTensor& input : inputs) {
      const Array array = with_strides(input, strides, c.held);
      c.inputs.emplace_back(array, misalignment);
      c.types.push_back(type_of(array));
    }
    const auto types = infer(card, c.types, c.attributes);
    if (!types) return cases_.pop_back();  // these sizes do not make a call
    std::vector<Array> results;
    for (const ValueType& type : *types) {
      c.expected.push_back(value_or_throw(HostTensor::allocate(type.dtype, extents_of(type.shape))));
      results.push_back(c.expected.back().array());
    }
    const CallInfo call(card, c.types, c.attributes);
    auto done = run_reference(call, Case::arrays(c.inputs), results);
    if (!done) c.error = done.error();
    for (const HostTensor& result : c.expected) {
      HostTensor garbage = value_or_throw(HostTensor::allocate(result.dtype(), result.shape()));
      std::memset(garbage.array().data, 0x5a, garbage.byte_size());
      c.results.emplace_back(garbage.array(), misalignment);
    }
    auto program = runtime::cuda::call_program(call, Case::arrays(c.inputs), Case::arrays(c.results),
                                               {.limits = limits_});
    EXPECT_TRUE(program) << c.text << ": " << program.error().to_text();
    if (program) c.program = *std::move(program);
  }

  /// In both orders of threads if `order` is backward.
  void run(ThreadOrder order = ThreadOrder::forward) {
    Emulator emulator;
    std::vector<StepProgram> programs;
    for (const Case& c : cases_) programs.push_back(c.program);
    const auto compiled = emulator.compile(programs);
    ASSERT_TRUE(compiled) << compiled.error().to_text();
    for (Case& c : cases_) {
      SCOPED_TRACE(c.text);
      run(c, emulator, ThreadOrder::forward);
    }
    for (Case& c : cases_) {
      if (order == ThreadOrder::forward) break;
      SCOPED_TRACE(cat(c.text, ", threads backwards"));
      run(c, emulator, ThreadOrder::backward);
    }
    if (Gpu::find() != nullptr) run_on_gpu();
  }

  /// The distinct sources of all cases.
  [[nodiscard]] std::vector<runtime::cuda::SourceRef> sources() const {
    std::map<std::string, runtime::cuda::SourceRef> out;
    for (const Case& c : cases_)
      for (const auto& launch : c.program.launches)
        if (launch.source != nullptr) out[launch.source->text] = launch.source;
    std::vector<runtime::cuda::SourceRef> list;
    for (const auto& [text, source] : out) list.push_back(source);
    return list;
  }
  /// So many blocks have all the work of launches that any number of them can do.
  void take_blocks(std::uint32_t count) {
    for (Case& c : cases_)
      for (auto& launch : c.program.launches) launch.grid.x = count;
  }

  /// Of the first launch of each case.
  [[nodiscard]] std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const Case& c : cases_)
      out.push_back(c.program.launches.empty() ? "" : c.program.launches[0].source->entry);
    return out;
  }
  [[nodiscard]] std::size_t size() const { return cases_.size(); }
  [[nodiscard]] std::size_t launches() const {
    std::size_t out = 0;
    for (const Case& c : cases_) out += c.program.launches.size();
    return out;
  }

 private:
  /// Side by side: a kernel takes long to compile.
  void run_on_gpu() {
    std::vector<std::optional<Result<std::vector<HostTensor>>>> all(cases_.size());
    fixture::side_by_side(all.size(), [&](std::size_t i) { all[i].emplace(Gpu::find()->run(cases_[i])); });
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(cat(cases_[i].text, ", on a GPU"));
      const auto& results = *all[i];
      expect_as_reference(cases_[i], results ? Result<void>() : Result<void>(results.error()),
                          results ? *results : std::vector<HostTensor>());
    }
  }

  static void run(Case& c, Emulator& emulator, ThreadOrder order) {
    const auto done = emulator.run(c.program, Case::arrays(c.inputs), Case::arrays(c.results), {}, order);
    std::vector<HostTensor> results;
    for (const GuardedArray& result : c.results) {
      results.push_back(value_or_throw(HostTensor::allocate(result.array().dtype, result.array().shape())));
      copy_elements(result.array(), results.back().array());
      EXPECT_TRUE(result.check());
    }
    expect_as_reference(c, done, results);
  }

  static void expect_as_reference(const Case& c, const Result<void>& done,
                                  const std::vector<HostTensor>& results) {
    if (c.error) {
      ASSERT_FALSE(done) << "expected: " << c.error->message();
      EXPECT_EQ(done.error().message(), c.error->message());
      return;
    }
    ASSERT_TRUE(done) << done.error().to_text() << runtime::cuda::to_text(c.program);
    for (std::size_t k = 0; k < results.size(); ++k)
      EXPECT_LE(fixture::largest_difference(results[k], c.expected[k]),
                tolerance(*c.card, results[k].dtype()))
          << "result " << k << "\n"
          << runtime::cuda::to_text(c.program);
  }

  const runtime::cuda::DeviceLimits limits_;
  std::deque<Case> cases_;
};

void add_sample(Cases& cases, const Sample& sample, Dtype dtype, const Sample::Sizes& sizes,
                Strides strides = Strides::none, std::int64_t misalignment = 0) {
  for (const ValueType& type : sample.types(dtype, &sizes))
    for (const Dim& size : type.shape)
      if (size.value() < 0) return;  // W - 1 without a W
  cases.add(cat(sample.text, " in ", to_string(dtype), " strides ", static_cast<int>(strides)), *sample.card,
            sample.attributes_with(&sizes), sample.values(dtype, sizes, 1), strides, misalignment);
}

/// Of the ops that have programs of their own.
std::vector<const Sample*> own_samples() {
  std::vector<const Sample*> out;
  for (const Sample& sample : op_samples())
    if (runtime::cuda::has_op_program(*sample.card)) out.push_back(&sample);
  return out;
}

/// Of the composite ones that cannot be one kernel.
std::vector<const Sample*> composite_samples() {
  std::vector<const Sample*> out;
  for (const Sample& sample : op_samples())
    if (sample.card->decompose != nullptr && !runtime::cuda::has_op_program(*sample.card) &&
        !kernel::can_fuse(*sample.card, sample.types(dtypes_of(*sample.card).front(), &sample.sizes),
                          sample.attributes_with(&sample.sizes)))
      out.push_back(&sample);
  return out;
}

void add_samples(Cases& cases, const std::set<Dtype>& dtypes) {
  for (const Sample* sample : own_samples())
    for (const Dtype dtype : dtypes_of(*sample->card))
      for (const Strides strides : {Strides::none, Strides::odd})
        if (dtypes.contains(dtype)) add_sample(cases, *sample, dtype, sample->sizes, strides);
}

class CudaOps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CudaOps, EverySampleAgreesWithTheReference) {
  Cases cases;
  const auto all = ir::all_dtypes();
  add_samples(cases, {all.begin(), all.end()});
  EXPECT_GT(cases.size(), 1000U);
  cases.run();
}

TEST_F(CudaOps, CompositeCallsAreComputedByTheirParts) {
  Cases cases;
  for (const Sample* sample : composite_samples())
    for (const Dtype dtype : dtypes_of(*sample->card))
      if (dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::i32) {
        add_sample(cases, *sample, dtype, sample->sizes);
        add_sample(cases, *sample, dtype, sample->sizes, Strides::odd);
      }
  EXPECT_GT(cases.size(), 100U);
  cases.run();
}

TEST_F(CudaOps, SizesOfZeroOneAndManyAgreeWithTheReference) {
  Cases cases;
  for (const Sample* sample : own_samples())
    for (const std::int64_t size : {0, 1, 5, 67})
      for (const auto& [name, symbol] : sample->symbols) {
        Sample::Sizes sizes = sample->sizes;
        sizes[name] = size;
        const Dtype dtype = sample->card->T.contains(Dtype::f32) ? Dtype::f32 : Dtype::i32;
        add_sample(cases, *sample, dtype, sizes, Strides::none, size % 4);
        if (size == 5) add_sample(cases, *sample, dtype, sizes, Strides::odd);
      }
  cases.run();
}

// ---- what the samples are too small for

HostTensor tensor(Dtype dtype, Extents shape, const std::vector<double>& values) {
  return fixture::converted(HostTensor::of<double>(Dtype::f64, std::move(shape), values), dtype);
}

/// Whole numbers from a small range in an order without order: many are equal.
HostTensor noise(Dtype dtype, Extents shape, std::int64_t range, std::uint64_t seed = 1) {
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL;
  for (double& value : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<double>(static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(range)));
    if (!ir::is_unsigned(dtype)) value -= static_cast<double>(range / 2);
  }
  return tensor(dtype, std::move(shape), values);
}

void add_call(Cases& cases, std::string_view op, const std::vector<HostTensor>& inputs,
              const Attributes& attributes = {}, Strides strides = Strides::none,
              std::int64_t misalignment = 0) {
  const Card& card = *find_card(op);
  std::string text(op);
  for (const HostTensor& input : inputs) text += cat(" ", to_text(type_of(input.array())));
  cases.add(text, card, value_or_throw(complete_attributes(card, attributes)), inputs, strides, misalignment);
}

/// With NaN and zeros of both signs among equal numbers.
HostTensor awkward(Dtype dtype, Extents shape) {
  HostTensor out = fixture::converted(noise(dtype, std::move(shape), 9), Dtype::f64);
  const auto values = out.values<double>();
  const double odd[] = {std::nan(""), -0.0, 0.0, std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] = odd[i / 7 % 5];
  return fixture::converted(out, dtype);
}

TEST_F(CudaOps, LongRowsAreSortedStably) {
  Cases cases;
  for (const bool descending : {false, true}) {
    const Attributes along{{"axis", 0}, {"descending", descending}};
    for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16})
      add_call(cases, "sort", {awkward(dtype, {130})}, along);
    for (const std::int64_t length : {64, 65, 1024, 1025, 5000})
      add_call(cases, "sort", {noise(Dtype::i32, {length}, 50)}, along);
    add_call(cases, "sort", {noise(Dtype::i64, {1100, 3}, 7)}, along, Strides::odd);
    add_call(cases, "sort", {noise(Dtype::u8, {2, 300}, 250)}, {{"axis", 1}, {"descending", descending}});
  }
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, ExtremesOfLongRowsTakeTheFirstOrTheLastAndNaN) {
  Cases cases;
  for (const bool last : {false, true})
    for (const char* op : {"argmax", "argmin"}) {
      for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const std::int64_t length : {20, 100})
          add_call(cases, op, {awkward(dtype, {3, length})}, {{"axis", 1}, {"select_last", last}});
      add_call(cases, op, {noise(Dtype::i32, {20000}, 100)}, {{"axis", 0}, {"select_last", last}});
      add_call(cases, op, {noise(Dtype::u64, {40, 5}, 100)}, {{"axis", 0}, {"select_last", last}},
               Strides::odd);
    }
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, LongRowsAreScannedInChunks) {
  Cases cases;
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      const Attributes along{{"axis", 0}, {"exclusive", exclusive}, {"reverse", reverse}};
      add_call(cases, "cumsum", {noise(Dtype::f32, {5000}, 100)}, along);
      add_call(cases, "cumsum", {noise(Dtype::u8, {2049, 2}, 250)}, along, Strides::odd);
      add_call(cases, "cumprod", {noise(Dtype::i64, {4096}, 50)}, along);
      add_call(cases, "cumsum", {noise(Dtype::bf16, {33, 2}, 3)}, along);
    }
  add_call(cases, "cumsum", {noise(Dtype::i32, {600000}, 100)}, {{"axis", 0}});
  cases.run();
}

TEST_F(CudaOps, ManyNonzerosAreFoundInOrder) {
  Cases cases;
  add_call(cases, "nonzero", {noise(Dtype::i32, {70, 90}, 3)});
  add_call(cases, "nonzero", {noise(Dtype::f16, {17, 30, 5}, 4)}, {}, Strides::odd);
  add_call(cases, "nonzero", {awkward(Dtype::f32, {2, 1030})});
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, UpdatesOfOneTargetFollowEachOther) {
  Cases cases;
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    const std::string name(reduction);
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::i8, Dtype::boolean}) {
      add_call(cases, "scatter_elements",
               {noise(dtype, {5}, 2), noise(Dtype::i64, {700}, 5), noise(dtype, {700}, 3)},
               {{"axis", 0}, {"reduction", name}});
      add_call(cases, "scatter_nd",
               {noise(dtype, {3, 7}, 2), noise(Dtype::i32, {200, 1}, 3), noise(dtype, {200, 7}, 3)},
               {{"reduction", name}}, Strides::odd);
    }
    add_call(cases, "scatter_elements",
             {awkward(Dtype::f32, {4, 9}), noise(Dtype::i64, {4, 30}, 9), awkward(Dtype::f32, {4, 30})},
             {{"axis", 1}, {"reduction", name}});
    add_call(cases, "scatter_nd",
             {noise(Dtype::f32, {3}, 2), value_or_throw(HostTensor::allocate(Dtype::i64, {4, 0})),
              noise(Dtype::f32, {4, 3}, 9)},
             {{"reduction", name}});
  }
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, OneUpdateARowIsOneKernel) {
  Cases cases;
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i8, Dtype::boolean})
      for (const Strides strides : {Strides::none, Strides::odd}) {
        const Attributes settings{{"axis", 1}, {"reduction", std::string(reduction)}};
        add_call(cases, "scatter_elements",
                 {noise(dtype, {37, 10}, 5), noise(Dtype::i64, {37, 1}, 9), noise(dtype, {37, 1}, 3)},
                 settings, strides);
        add_call(cases, "scatter_elements",
                 {noise(dtype, {3, 5, 7}, 5), noise(Dtype::i32, {3, 1, 7}, 4), noise(dtype, {3, 1, 7}, 3)},
                 settings, strides);
      }
  EXPECT_EQ(cases.size(), 80u);
  EXPECT_EQ(cases.launches(), cases.size());
  // Rows that are not there for all, and none at all.
  add_call(cases, "scatter_elements",
           {noise(Dtype::f32, {6, 10}, 5), noise(Dtype::i64, {4, 1}, 9), noise(Dtype::f32, {4, 1}, 3)},
           {{"axis", 1}});
  add_call(cases, "scatter_elements",
           {noise(Dtype::f32, {6, 10}, 5), noise(Dtype::i64, {0, 1}, 9), noise(Dtype::f32, {0, 1}, 3)},
           {{"axis", 1}});
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, LargerProductsAgreeWithTheReference) {
  Cases cases;
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::f64, Dtype::i8, Dtype::i64})
    add_call(cases, "matmul", {noise(dtype, {70, 33}, 5), noise(dtype, {33, 90}, 5, 2)});
  add_call(cases, "matmul", {noise(Dtype::f32, {2, 17, 40}, 5), noise(Dtype::f32, {2, 40, 20}, 5, 2)}, {},
           Strides::odd);
  add_call(cases, "matmul", {noise(Dtype::i32, {20, 1100}, 5), noise(Dtype::i32, {1100, 20}, 5, 2)});
  add_call(cases, "matmul", {noise(Dtype::u16, {3000}, 300), noise(Dtype::u16, {3000}, 300, 2)});
  add_call(cases, "matmul", {noise(Dtype::f32, {3000}, 5), noise(Dtype::f32, {3000, 3}, 5, 2)});
  add_call(cases, "matmul", {noise(Dtype::f32, {4, 0}, 5), noise(Dtype::f32, {0, 3}, 5)});
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, LargerConvolutionsAgreeWithTheReference) {
  Cases cases;
  const std::vector<std::int64_t> two{2, 2}, pads{1, 0, 1, 2};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i16}) {
    const HostTensor x = noise(dtype, {2, 6, 9, 8}, 5), bias = noise(dtype, {40}, 5, 3);
    const HostTensor w = noise(dtype, {40, 3, 3, 2}, 5, 2), dy = noise(dtype, {2, 40, 5, 5}, 3, 4);
    const Attributes settings{{"strides", two}, {"pads", pads}, {"groups", 2}};
    add_call(cases, "conv", {x, w, bias}, settings);
    add_call(cases, "conv", {x, w}, settings, Strides::odd);
    Attributes sized = settings;
    sized.set("kernel", ir::shape_of(std::vector<std::int64_t>{3, 2}));
    add_call(cases, "conv_weight_gradient", {x, dy}, sized);
    add_call(cases, "conv_transpose", {dy, w, noise(dtype, {6}, 5)}, settings);
  }
  cases.run();
}

TEST_F(CudaOps, TheFirstIndexThatIsOutsideIsNamed) {
  Cases cases;
  const HostTensor x = noise(Dtype::f32, {4, 6}, 9);
  std::vector<double> indices(700, 1);
  indices[650] = 9;
  indices[300] = -5;
  indices[301] = 4;
  const HostTensor bad = tensor(Dtype::i64, {700}, indices);
  add_call(cases, "gather", {x, bad}, {{"axis", 0}});
  add_call(cases, "gather", {noise(Dtype::f32, {4, 0}, 9), bad}, {{"axis", 0}});
  add_call(cases, "one_hot", {bad, tensor(Dtype::f32, {}, {1}), tensor(Dtype::f32, {}, {0})},
           {{"depth", ir::Shape{4}}});
  add_call(cases, "gather_nd", {x, tensor(Dtype::i32, {350, 2}, indices)});
  add_call(cases, "scatter_elements", {noise(Dtype::f32, {4}, 9), bad, noise(Dtype::f32, {700}, 9)},
           {{"axis", 0}, {"reduction", std::string("add")}});
  add_call(cases, "scatter_nd", {x, tensor(Dtype::i64, {700, 1}, indices), noise(Dtype::f32, {700, 6}, 9)});
  const HostTensor rows = noise(Dtype::f32, {700, 4}, 9), column = tensor(Dtype::i64, {700, 1}, indices);
  add_call(cases, "scatter_elements", {rows, column, noise(Dtype::f32, {700, 1}, 9)}, {{"axis", 1}});
  add_call(cases, "scatter_elements",
           {noise(Dtype::f32, {700, 0}, 9), column, noise(Dtype::f32, {700, 1}, 9)}, {{"axis", 1}});
  cases.run(ThreadOrder::backward);
}

// ---- gathers that hold rows in shared memory

constexpr runtime::cuda::DeviceLimits large_blocks{227 * 1024};

/// Of an axis of this size, from its end, too.
HostTensor any_indices(Dtype dtype, Extents shape, std::int64_t size) {
  return noise(dtype, std::move(shape), 2 * size, 7);
}

/// `gather_elements` along rows of this length.
void add_row_gather(Cases& cases, Dtype dtype, std::int64_t rows, std::int64_t length, std::int64_t results,
                    Strides strides = Strides::none, std::int64_t misalignment = 0) {
  const Dtype index = length % 2 == 0 ? Dtype::i64 : Dtype::i32;
  add_call(cases, "gather_elements",
           {noise(dtype, {rows, length}, 100), any_indices(index, {rows, results}, length)}, {{"axis", 1}},
           strides, misalignment);
}

/// Cases whose blocks hold rows: warps short ones, blocks long ones, of which few are cut into parts.
void add_held_rows(Cases& cases) {
  const auto size = [](Dtype dtype) { return static_cast<std::int64_t>(ir::size_of(dtype)); };
  for (const Dtype dtype : ir::all_dtypes()) {
    add_row_gather(cases, dtype, 200, 1200 / size(dtype) + 1, 1200 / size(dtype));
    add_row_gather(cases, dtype, 64, 2060, 515);
  }
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::i8})
    for (const std::int64_t misalignment : {0, 3})
      for (const std::int64_t length : {1200 / size(dtype), 4096 / size(dtype) + 5})
        add_row_gather(cases, dtype, 150, length, length + 3, Strides::spaced, misalignment);
  add_row_gather(cases, Dtype::f32, 64, 1000, 1000);
  add_row_gather(cases, Dtype::f32, 3, 4096, 6 * 4096);
  add_call(cases, "gather", {noise(Dtype::f32, {60, 3, 500}, 9), any_indices(Dtype::i64, {30, 20}, 500)},
           {{"axis", 2}});
  add_call(cases, "gather", {noise(Dtype::u16, {5000}, 9), any_indices(Dtype::i32, {9, 20000}, 5000)});
  add_call(cases, "gather_nd",
           {noise(Dtype::f32, {20, 4, 700}, 9), any_indices(Dtype::i64, {20, 4, 30, 25, 1}, 700)},
           {{"batch_dims", 2}});
}

TEST_F(CudaOps, GathersTakeElementsFromRowsThatBlocksHold) {
  Cases cases;
  add_held_rows(cases);
  for (const std::string& entry : cases.entries())
    EXPECT_NE(entry.find("_of_rows"), std::string::npos) << entry;
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, GathersHoldRowsInAllThatABlockHas) {
  Cases cases(large_blocks);
  for (const std::int64_t length : {12'001, 57'852})
    add_row_gather(cases, Dtype::f32, 64, length, length / 4 + 1);
  for (const std::string& entry : cases.entries()) EXPECT_EQ(entry, "tessera_gather_elements_of_rows");
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, GathersHoldOneRowAfterAnother) {
  Cases cases;
  add_row_gather(cases, Dtype::f32, 130, 301, 300);
  add_row_gather(cases, Dtype::i16, 64, 2063, 700);
  cases.take_blocks(5);
  cases.run(ThreadOrder::backward);
}

TEST_F(CudaOps, GathersOfAnyRowsAgreeWithTheReference) {
  Cases cases;
  for (const std::int64_t length : {1, 31, 32, 33, 1000, 4096, 20000})
    for (const Strides strides : {Strides::none, Strides::odd, Strides::spaced})
      for (const std::int64_t misalignment : {0, 1})
        add_row_gather(cases, Dtype::f32, 66, length, length, strides, misalignment);
  add_row_gather(cases, Dtype::f32, 66, 4096, 0);
  add_row_gather(cases, Dtype::f32, 0, 4096, 4096);
  add_call(cases, "gather_elements",
           {noise(Dtype::f32, {66, 0}, 9), value_or_throw(HostTensor::allocate(Dtype::i64, {66, 0}))},
           {{"axis", 1}});
  cases.run();
}

TEST_F(CudaOps, GathersNameTheFirstIndexThatIsOutsideOfAHeldRow) {
  Cases cases;
  const auto with_wrong = [](Extents shape, std::int64_t size) {
    HostTensor out = any_indices(Dtype::i64, std::move(shape), size);
    const auto values = out.values<std::int64_t>();
    values[values.size() - 2] = size + 9;
    values[values.size() / 2] = -size - 1;
    values[values.size() / 2 + 1] = size;
    return out;
  };
  for (const std::int64_t length : {300, 4096}) {
    const HostTensor x = noise(Dtype::f32, {130, length}, 9);
    add_call(cases, "gather_elements", {x, with_wrong({130, length}, length)}, {{"axis", 1}});
    add_call(cases, "gather", {x, with_wrong({length + 3}, length)}, {{"axis", 1}});
    add_call(cases, "gather_nd", {x, with_wrong({130, length, 1}, length)}, {{"batch_dims", 1}});
  }
  for (const std::string& entry : cases.entries())
    EXPECT_NE(entry.find("_of_rows"), std::string::npos) << entry;
  cases.run(ThreadOrder::backward);
}

/// The launch of a gather of f32, whose arrays are nowhere.
runtime::cuda::Launch gather_launch(const char* op, const Extents& x, const Extents& indices,
                                    std::int64_t axis, const runtime::cuda::DeviceLimits& limits) {
  const Card& card = *find_card(op);
  const std::vector<Array> in{{Dtype::f32, contiguous(x), reinterpret_cast<std::byte*>(1L << 20)},
                              {Dtype::i64, contiguous(indices), reinterpret_cast<std::byte*>(1L << 40)}};
  const ValueTypes types{type_of(in[0]), type_of(in[1])};
  const Attributes attributes = value_or_throw(complete_attributes(card, {{"axis", axis}}));
  const ValueType type = value_or_throw(infer(card, types, attributes))[0];
  const Array y{type.dtype, contiguous(extents_of(type.shape)), reinterpret_cast<std::byte*>(1L << 42)};
  const CallInfo call(card, types, attributes);
  return value_or_throw(runtime::cuda::op_program(call, in, {&y, 1}, limits)).launches.at(0);
}

/// Which form is right is said in gather_rows_source.cpp.
TEST(CudaGathers, HoldRowsWhereThatPays) {
  struct Shapes {
    Extents x, indices;
    std::int64_t axis;
    const char* op;
    bool is_held, is_held_in_large_blocks;
  };
  const auto entry = [](const Shapes& of, const runtime::cuda::DeviceLimits& limits) {
    return gather_launch(of.op, of.x, of.indices, of.axis, limits).source->entry;
  };
  const char* const elements = "gather_elements";
  for (const Shapes& of :
       {Shapes{{16384, 4096}, {16384, 4096}, 1, elements, true, true},
        Shapes{{16384, 4096}, {16384, 1024}, 1, elements, true, true},
        Shapes{{16384, 4096}, {16384, 1023}, 1, elements, false, false},  // few results of a row
        Shapes{{16384, 256}, {16384, 256}, 1, elements, true, true},      // several rows a block
        Shapes{{16384, 255}, {16384, 255}, 1, elements, false, false},    // few lines of the cache
        Shapes{{16384, 12028}, {16384, 12028}, 1, elements, true, true},  // all of 48 KB
        Shapes{{16384, 12032}, {16384, 12032}, 1, elements, false, true},
        Shapes{{16384, 57852}, {16384, 57852}, 1, elements, false, true},  // all of 227 KB
        Shapes{{16384, 57856}, {16384, 57856}, 1, elements, false, false},
        Shapes{{60, 4096}, {60, 1024}, 1, elements, false, false},        // few blocks
        Shapes{{4096, 16384}, {4096, 16384}, 0, elements, false, false},  // along another axis
        Shapes{{4096}, {1 << 20}, 0, "gather", true, true},
        Shapes{{512, 4096}, {64, 64}, 1, "gather", true, true},
        Shapes{{50000, 768}, {4096}, 0, "gather", false, false}}) {  // whole rows: an embedding
    SCOPED_TRACE(cat(of.op, " of [", join(of.x, ", "), "] by [", join(of.indices, ", "), "]"));
    const std::string held = cat("tessera_", of.op, "_of_rows"), direct = cat("tessera_", of.op);
    EXPECT_EQ(entry(of, {}), of.is_held ? held : direct);
    EXPECT_EQ(entry(of, large_blocks), of.is_held_in_large_blocks ? held : direct);
  }
}

/// Where a multiprocessor has room for one block, there are as many blocks as multiprocessors; rows that give
/// few results are not cut to have them.
TEST(CudaGathers, HoldRowsWhereThereAreBlocksForTheWholeDevice) {
  constexpr runtime::cuda::DeviceLimits device{.shared_bytes = 227 * 1024, .multiprocessors = 132};
  const auto is_held = [&](std::int64_t rows, std::int64_t length, std::int64_t results) {
    const auto launch = gather_launch("gather_elements", {rows, length}, {rows, results}, 1, device);
    return launch.source->entry == "tessera_gather_elements_of_rows";
  };
  EXPECT_FALSE(is_held(131, 57'852, 57'852 / 4));
  EXPECT_TRUE(is_held(132, 57'852, 57'852 / 4));
  EXPECT_TRUE(is_held(66, 57'852, 57'852 / 2)) << "two parts of each";
  EXPECT_FALSE(is_held(65, 57'852, 57'852 / 2));
  EXPECT_TRUE(is_held(64, 28'000, 7'000)) << "two blocks have room";
  EXPECT_FALSE(is_held(131, 29'000, 7'250));
}

/// So that registers for three blocks of the most threads are left to the compiler.
TEST(CudaGathers, OfLongRowsHaveBlocksOf256To512Threads) {
  struct Row {
    std::int64_t length;
    std::uint32_t threads;
  };
  for (const auto& [length, threads] :
       {Row{4'096, 256}, Row{9'000, 256}, Row{10'000, 512}, Row{57'852, 512}}) {
    const auto launch = gather_launch("gather_elements", {1024, length}, {1024, length}, 1, large_blocks);
    EXPECT_EQ(launch.block.x, threads) << length;
    EXPECT_NE(launch.source->text.find("__launch_bounds__(512)"), std::string::npos) << launch.source->text;
  }
}

TEST_F(CudaOps, ResultsInPlaceOfAnInputAreNotCopied) {
  const HostTensor x = noise(Dtype::f32, {5, 3}, 9), update = noise(Dtype::f32, {2, 3}, 9, 2);
  const Card& card = *find_card("update_slice");
  const Attributes attributes = value_or_throw(complete_attributes(card, {{"starts", ir::Shape{1}}}));
  const std::vector<Array> inputs{x.array(), update.array()};
  const ValueTypes types{type_of(inputs[0]), type_of(inputs[1])};
  const CallInfo call(card, types, attributes);
  const HostTensor expected = value_or_throw(run_reference(card, inputs, attributes))[0];
  const StepProgram program = value_or_throw(runtime::cuda::op_program(call, inputs, {&inputs[0], 1}, {}));
  EXPECT_EQ(program.launches.size(), 1U);
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  ASSERT_TRUE(emulator.run(program, inputs, {&inputs[0], 1}));
  EXPECT_TRUE(fixture::same_bits(x, expected));
}

// ---- sources

TEST(CudaOpSources, AreTakenByNvrtc) {
  if (const std::string why = runtime::cuda::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const auto check = [](const std::set<Dtype>& dtypes, const char* architecture) {
    Cases cases;
    add_samples(cases, dtypes);
    add_held_rows(cases);
    const std::vector<runtime::cuda::SourceRef> sources = cases.sources();
    std::vector<std::optional<Result<void>>> taken(sources.size());
    fixture::side_by_side(sources.size(), [&](std::size_t i) {
      taken[i].emplace(runtime::cuda::check_by_nvrtc(*sources[i], architecture));
    });
    for (const auto& one : taken) EXPECT_TRUE(*one) << one->error().to_text();
  };
  check({Dtype::f32, Dtype::bf16, Dtype::i64}, "sm_90");
  check({Dtype::f16, Dtype::boolean}, "sm_80");
}

/// The text is the identity of a source: a size in it would mean another kernel for every size.
TEST(CudaOpSources, DoNotDependOnSizes) {
  std::size_t compared = 0;
  for (const Sample* sample : own_samples()) {
    // What has size 1 is no axis, and what is copied at once depends on what sizes are multiples of.
    Sample::Sizes small = sample->sizes, larger = sample->sizes;
    for (auto& [name, size] : small) size += 1;
    for (auto& [name, size] : larger) size += 9;
    Cases cases, larger_cases;
    const Dtype dtype = dtypes_of(*sample->card).front();
    add_sample(cases, *sample, dtype, small, Strides::odd);
    add_sample(larger_cases, *sample, dtype, larger, Strides::odd);
    // Where there is nothing to join or to merge, there are fewer launches.
    if (cases.launches() != larger_cases.launches()) continue;
    ++compared;
    std::set<std::string> texts;
    for (const auto& source : cases.sources()) texts.insert(source->text);
    for (const auto& source : larger_cases.sources())
      EXPECT_TRUE(texts.contains(source->text)) << sample->text << "\n" << source->text;
  }
  EXPECT_GT(compared, own_samples().size() / 2);
}

TEST(CudaOpSources, OfHeldRowsDoNotDependOnSizes) {
  Cases cases(large_blocks);
  add_row_gather(cases, Dtype::f32, 200, 300, 300);
  add_row_gather(cases, Dtype::i32, 64, 4096, 1024);
  add_row_gather(cases, Dtype::u32, 70, 20000, 10000, Strides::spaced);
  EXPECT_EQ(cases.sources().size(), 1u);
  EXPECT_EQ(cases.launches(), 3u);
}

/// Fused kernels, views and what is made of other ops need no program of their own.
TEST(CudaOpCoverage, EveryOpRunsOnTheDevice) {
  for (const Sample& sample : op_samples()) {
    const Card& card = *sample.card;
    const bool fuses = kernel::can_fuse(card, sample.types(dtypes_of(card).front(), &sample.sizes),
                                        sample.attributes_with(&sample.sizes));
    EXPECT_TRUE(fuses || card.decompose != nullptr || runtime::cuda::has_op_program(card)) << sample.text;
  }
}

}  // namespace
