#include "tessera/runtime/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include "tessera/op/catalogue.h"
#include "tessera/runtime/cuda/capture.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/cuda/op_source.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

class CudaMemory : public OnTestDevice {};

}  // namespace

TEST_P(CudaMemory, ComesBackAndIsUsedAgain) {
  DeviceMemory& memory = device_->memory();
  std::byte* first = value_or_throw(memory.allocate(1000));
  memory.free(first, 1000);
  EXPECT_EQ(memory.kept_bytes(), 1024u);
  std::byte* second = value_or_throw(memory.allocate(1020));
  EXPECT_EQ(second, first);
  memory.free(second, 1020);
  memory.trim();
  EXPECT_EQ(memory.kept_bytes(), 0u);
}

TEST_P(CudaMemory, IsThereForNoBytes) {
  std::byte* none = value_or_throw(device_->memory().allocate(0));
  EXPECT_NE(none, nullptr);
  device_->memory().free(none, 0);
}

TEST_P(CudaMemory, HoldsWhatIsCopied) {
  const auto pool = MemoryPool::create({}, device_->memory_space());
  const auto buffer = value_or_throw(pool->allocate(100));
  std::vector<std::byte> in(100, std::byte{7}), out(100);
  value_or_throw(buffer->space()->copy_in(buffer->data(), in));
  value_or_throw(buffer->space()->clear(buffer->data() + 10, 20));
  std::fill_n(in.begin() + 10, 20, std::byte{0});
  value_or_throw(buffer->space()->copy_out(buffer->data(), out));
  EXPECT_EQ(in, out);
}

TEST_P(CudaMemory, ThatIsNotThereIsAnErrorWithBothFigures) {
  DeviceMemory& memory = device_->memory();
  std::byte* kept = value_or_throw(memory.allocate(5000));
  memory.free(kept, 5000);
  const auto refused = memory.allocate(std::size_t{1} << 45);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::memory);
  EXPECT_NE(refused.error().message().find("35184372088832"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().message().find("bytes are free"), std::string::npos);
  EXPECT_EQ(memory.kept_bytes(), 0u) << "what nobody used was given up for it";
  std::byte* after = value_or_throw(memory.allocate(5000));
  memory.free(after, 5000);
}

TEST(CudaMemoryClass, WastesAnEighthAtMost) {
  for (std::size_t bytes = 1; bytes < 100'000'000; bytes += 1 + bytes / 7) {
    const std::size_t size = DeviceMemory::class_of(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size, std::max<std::size_t>(bytes + 511, bytes + bytes / 8)) << bytes;
    EXPECT_EQ(DeviceMemory::class_of(size), size);
  }
  EXPECT_EQ(DeviceMemory::class_of(~std::size_t{0}), ~std::size_t{0});
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaMemory, all_test_devices(), test_device_name);

// ---- calls

namespace {

class CudaCalls : public OnTestDevice {
 protected:
  /// An array of 12 floats on the device, `skipped` elements behind the beginning of its memory.
  op::Array array(float first, std::int64_t skipped = 0) {
    buffers_.push_back(value_or_throw(pool()->allocate(static_cast<std::size_t>(12 + skipped) * 4)));
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) values.push_back(first + static_cast<float>(i));
    std::byte* at = buffers_.back()->data() + skipped * 4;
    value_or_throw(device_->memory().copy_in(at, std::as_bytes(std::span(values))));
    return {op::Dtype::f32, op::contiguous({12}), at};
  }
  std::vector<float> run(std::string_view name, const std::vector<op::Array>& inputs,
                         const op::Attributes& given = {}) {
    const op::Card& card = *op::find_card(name);
    op::ValueTypes types;
    for (const op::Array& input : inputs)
      types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
    const auto attributes = value_or_throw(op::complete_attributes(card, given));
    const op::Array y = array(0);
    value_or_throw(device_->run(op::CallInfo(card, types, attributes), inputs, {&y, 1}));
    std::vector<float> out(12);
    value_or_throw(device_->memory().copy_out(y.data, std::as_writable_bytes(std::span(out))));
    return out;
  }

 private:
  const std::shared_ptr<MemoryPool>& pool() {
    if (pool_ == nullptr) pool_ = MemoryPool::create({}, device_->memory_space());
    return pool_;
  }

  std::shared_ptr<MemoryPool> pool_;
  std::vector<Ref<Buffer>> buffers_;
};

}  // namespace

TEST_P(CudaCalls, AreMadeOncePerForm) {
  const op::Array a = array(1), b = array(10), c = array(3, 1);
  EXPECT_EQ(run("add", {a, b})[2], 15);
  EXPECT_EQ(run("add", {b, a})[3], 17) << "other addresses, the same form";
  EXPECT_EQ(device_->calls().size(), 1u);
  EXPECT_EQ(run("add", {a, a})[4], 10) << "one array twice";
  EXPECT_EQ(run("add", {a, c})[5], 14) << "one that is not aligned";
  EXPECT_EQ(run("sub", {b, a})[6], 9);
  EXPECT_EQ(device_->calls().size(), 4u);
  op::Array turned = a;
  turned.layout = {{12}, {-1}, 11};
  EXPECT_EQ(run("add", {turned, b})[0], 22) << "one that is read from its end";
  EXPECT_EQ(device_->calls().size(), 5u);
}

TEST_P(CudaCalls, DifferByTheirAttributes) {
  const op::Array a = array(1);
  const auto axis = [](bool reverse) {
    return op::Attributes{{"axis", std::int64_t{0}}, {"reverse", reverse}};
  };
  EXPECT_EQ(run("cumsum", {a}, axis(false))[1], 3);
  EXPECT_EQ(run("cumsum", {a}, axis(true))[11], 12);
  EXPECT_EQ(run("cumsum", {a}, axis(false))[11], 78);
  EXPECT_EQ(device_->calls().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaCalls, all_test_devices(), test_device_name);

/// Elements of every size, through tiles where the axis that lies side by side is another one.
TEST_P(CudaCalls, CopyArraysThatAreTurned) {
  const auto copied = [&](op::Dtype dtype, const op::Extents& shape, const std::vector<std::size_t>& order) {
    const op::Layout dense = op::contiguous(shape);
    op::Layout turned{{}, {}, 0};
    for (const std::size_t axis : order) {
      turned.shape.push_back(dense.shape[axis]);
      turned.strides.push_back(dense.strides[axis]);
    }
    const std::size_t width = ir::size_of(dtype),
                      bytes = static_cast<std::size_t>(op::element_count(shape)) * width;
    std::vector<std::byte> values(bytes), got(bytes), wanted(bytes);
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 7 + i / 251);
    const auto pool = MemoryPool::create({}, device_->memory_space());
    const auto x = value_or_throw(pool->allocate(bytes)), y = value_or_throw(pool->allocate(bytes));
    value_or_throw(x->space()->copy_in(x->data(), values));
    const op::Array from{dtype, turned, x->data()}, to{dtype, op::contiguous(turned.shape), y->data()};
    const StepProgram program = copy_program(from, to);
    value_or_throw(device_->run_program(program, {&from, 1}, {&to, 1}));
    value_or_throw(y->space()->copy_out(y->data(), got));
    for (std::int64_t i = 0; i < op::element_count(shape); ++i) {
      std::int64_t rest = i, place = 0;
      for (std::size_t a = turned.shape.size(); a-- > 0; rest /= turned.shape[a])
        place += rest % turned.shape[a] * turned.strides[a];
      std::copy_n(values.begin() + place * static_cast<std::int64_t>(width), width,
                  wanted.begin() + i * static_cast<std::int64_t>(width));
    }
    EXPECT_EQ(got, wanted);
    return program.launches.at(0).source->entry;
  };
  for (const op::Dtype dtype : {op::Dtype::u8, op::Dtype::bf16, op::Dtype::f32, op::Dtype::f64})
    EXPECT_EQ(copied(dtype, {70, 33}, {1, 0}), "tessera_turned_copy");
  EXPECT_EQ(copied(op::Dtype::f32, {3, 40, 65}, {0, 2, 1}), "tessera_turned_copy");
  EXPECT_EQ(copied(op::Dtype::f32, {40, 3, 33}, {2, 1, 0}), "tessera_turned_copy");
  EXPECT_EQ(copied(op::Dtype::i32, {2, 3, 32, 33}, {1, 3, 0, 2}), "tessera_turned_copy");
  EXPECT_EQ(copied(op::Dtype::f32, {70, 5}, {1, 0}), "tessera_copy") << "too narrow for tiles";
  EXPECT_EQ(copied(op::Dtype::f32, {40, 3, 64}, {1, 0, 2}), "tessera_copy") << "it lies along the same axis";
}

TEST(CudaPrecision, IsSaidToTheLibraryAndToReaders) {
  for (const auto products : {ProductPrecision::full, ProductPrecision::tf32}) {
    const bool is_rounded = products == ProductPrecision::tf32;
    std::optional<ProductPrecision> told;
    const auto device =
        value_or_throw(CudaDevice::create(emulated_driver(), 0, emulated_compiler(), {.products = products},
                                          [&](const BlasDevice& with) -> Result<std::unique_ptr<Blas>> {
                                            told = with.precision;
                                            return Error(ErrorCode::unsupported, "none");
                                          }));
    EXPECT_EQ(device->blas(), nullptr);
    EXPECT_EQ(told, products);
    EXPECT_EQ(device->name(), is_rounded ? "cuda:0:tf32" : "cuda:0");
    EXPECT_EQ(device->remark().empty(), !is_rounded);
  }
}

// ---- code

namespace {

SourceRef source(std::string entry, std::string body) {
  return std::make_shared<Source>(
      Source{cat("extern \"C\" __global__ void ", entry, "(float* y) {\n  ", body, "\n}\n"), entry});
}

class CudaModules : public OnTestDevice {};

}  // namespace

TEST_P(CudaModules, AreMadeOncePerSource) {
  const SourceRef sources[] = {source("one", "y[0] = 1;"), source("two", "y[0] = 2;"),
                               source("one", "y[0] = 1;"), source("one", "y[0] = 3;")};
  const auto functions = value_or_throw(device_->modules().get(sources));
  EXPECT_EQ(functions[0], functions[2]);
  EXPECT_NE(functions[0], functions[3]) << "the text is the identity";
  EXPECT_EQ(device_->modules().size(), 3u);
  EXPECT_EQ(value_or_throw(device_->modules().get({sources, 1}))[0], functions[0]);
  EXPECT_EQ(device_->modules().figures().compiled, 3u);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaModules, all_test_devices(), test_device_name);

/// A thread may load a kernel anew while another one captures a call: the old one goes then.
TEST_P(CudaModules, AreDroppedWhileAnotherStreamIsCaptured) {
  std::shared_ptr<const SourceCompiler> compiler = emulated_compiler();
  if (!is_emulated()) compiler = value_or_throw(Nvrtc::open());
  Source source;
  source.entry = "nothing";
  source.text = "extern \"C\" __global__ void nothing(int) {}";
  const ContextRef& context = device_->context();
  const Current current = value_or_throw(context->enter());
  const auto code = value_or_throw(compiler->compile(source, context->sm()));
  const auto running = value_or_throw(Stream::create(context)),
             capturing = value_or_throw(Stream::create(context));
  FunctionRef function = value_or_throw(Function::load(running, code, source.entry));
  const auto captured = capture(*context, *capturing, [&]() -> Result<void> {
    function = nullptr;
    return {};
  });
  EXPECT_TRUE(captured) << captured.error().to_text();
}

TEST(Nvrtc, Trap_G15_SaysWhatIsWrongAndWhere) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().to_text();
  const auto good = (*nvrtc)->compile(*source("good", "y[threadIdx.x] = 1;"), 90);
  ASSERT_TRUE(good) << good.error().to_text();
  EXPECT_GT(good->size(), 100u);
  const auto newer = (*nvrtc)->compile(*source("good", "y[threadIdx.x] = 1;"), 999);
  ASSERT_TRUE(newer) << newer.error().to_text();
  const auto bad = (*nvrtc)->compile(*source("bad", "y[0] = unknown_name;"), 90);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message().find("unknown_name"), std::string::npos) << bad.error().message();
  EXPECT_NE(bad.error().message().find("kernel.cu(2)"), std::string::npos) << bad.error().message();
}

TEST(CudaDevices, AreOpenedOrSayWhyNot) {
  const auto count = device_count();
  const auto opened = open_device(0);
  EXPECT_EQ(opened.ok(), count && *count > 0 && Nvrtc::open());
  if (!count) {
    EXPECT_NE(count.error().message().find("CUDA"), std::string::npos) << count.error().message();
  }
  EXPECT_FALSE(open_device(-1));
  EXPECT_FALSE(open_device(1000));
}
