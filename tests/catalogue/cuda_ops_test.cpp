// Every op that has a CUDA program of its own: its samples in every dtype, on arrays of any strides and
// alignments, on sizes of 0, 1 and many, run by the emulator and compared with the reference; and every
// source shown to NVRTC.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"

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

/// What a result may differ by from the reference, which computes in f64 and rounds once.
double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 1e-12;
    case Dtype::f32:
      return 2e-6;
    case Dtype::f16:
      return 1.0 / 1024;
    case Dtype::bf16:
      return 1.0 / 128;
    default:
      return 0;
  }
}

/// The same elements behind other strides: last axis first, every second element, the first axis backwards.
Array scattered(const HostTensor& tensor, std::deque<HostTensor>& held) {
  const Extents& shape = tensor.shape();
  Extents reversed(shape.size() + 1, 2);
  for (std::size_t i = 0; i < shape.size(); ++i)
    reversed[i] = std::max<std::int64_t>(shape[shape.size() - 1 - i], 1);
  held.push_back(value_or_throw(HostTensor::allocate(tensor.dtype(), reversed)));
  const Layout whole = contiguous(reversed);
  Layout layout{shape, Extents(shape.size(), 0), 1};
  for (std::size_t i = 0; i < shape.size(); ++i) layout.strides[i] = whole.strides[shape.size() - 1 - i];
  if (!shape.empty() && shape[0] > 0) {
    layout.offset += (shape[0] - 1) * layout.strides[0];
    layout.strides[0] = -layout.strides[0];
  }
  const Array out{tensor.dtype(), layout, held.back().array().data};
  copy_elements(tensor.array(), out);
  return out;
}

enum class Strides : std::uint8_t { none, odd };

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

/// All cases of a test: compiled at once, for the compiler's start is what takes time.
class Cases {
 public:
  /// `misalignment` is where arrays begin, in elements.
  void add(std::string text, const Card& card, const Attributes& attributes,
           const std::vector<HostTensor>& inputs, Strides strides = Strides::none,
           std::int64_t misalignment = 0) {
    Case& c = cases_.emplace_back();
    c.text = std::move(text);
    c.card = &card;
    c.attributes = attributes;
    for (const HostTensor& input : inputs) {
      const Array array = strides == Strides::odd ? scattered(input, c.held) : input.array();
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
    auto program = runtime::cuda::op_program(call, Case::arrays(c.inputs), Case::arrays(c.results));
    EXPECT_TRUE(program) << c.text << ": " << program.error().to_text();
    if (program) c.program = *std::move(program);
  }

  void run() {
    Emulator emulator;
    std::vector<StepProgram> programs;
    for (const Case& c : cases_) programs.push_back(c.program);
    const auto compiled = emulator.compile(programs);
    ASSERT_TRUE(compiled) << compiled.error().to_text();
    for (Case& c : cases_)
      for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) {
        SCOPED_TRACE(cat(c.text, order == ThreadOrder::forward ? "" : ", threads backwards"));
        run(c, emulator, order);
      }
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
  [[nodiscard]] std::size_t size() const { return cases_.size(); }

 private:
  static void run(Case& c, Emulator& emulator, ThreadOrder order) {
    const auto done = emulator.run(c.program, Case::arrays(c.inputs), Case::arrays(c.results), {}, order);
    if (c.error) {
      ASSERT_FALSE(done) << "expected: " << c.error->message();
      EXPECT_EQ(done.error().message(), c.error->message());
      return;
    }
    ASSERT_TRUE(done) << done.error().to_text() << runtime::cuda::to_text(c.program);
    for (std::size_t k = 0; k < c.expected.size(); ++k) {
      const Array& got = c.results[k].array();
      HostTensor copy = value_or_throw(HostTensor::allocate(got.dtype, got.shape()));
      copy_elements(got, copy.array());
      EXPECT_LE(fixture::largest_difference(copy, c.expected[k]), tolerance(got.dtype))
          << "result " << k << "\n"
          << runtime::cuda::to_text(c.program);
      EXPECT_TRUE(c.results[k].check());
    }
  }

  std::deque<Case> cases_;
};

void add_sample(Cases& cases, const Sample& sample, Dtype dtype, const Sample::Sizes& sizes,
                Strides strides = Strides::none, std::int64_t misalignment = 0) {
  const auto types = sample.types(dtype, &sizes);
  cases.add(cat(sample.text, " in ", to_string(dtype), " strides ", static_cast<int>(strides)), *sample.card,
            sample.attributes_with(&sizes), sample.values(dtype, sizes, 1), strides, misalignment);
}

std::vector<const Sample*> own_samples() {
  std::vector<const Sample*> out;
  for (const Sample& sample : op_samples())
    if (runtime::cuda::has_op_program(*sample.card)) out.push_back(&sample);
  return out;
}

void add_every_dtype(Cases& cases) {
  for (const Sample* sample : own_samples())
    for (const Dtype dtype : dtypes_of(*sample->card))
      for (const Strides strides : {Strides::none, Strides::odd})
        add_sample(cases, *sample, dtype, sample->sizes, strides);
}

class CudaOps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CudaOps, EverySampleAgreesWithTheReference) {
  Cases cases;
  add_every_dtype(cases);
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
        if (size != 0) add_sample(cases, *sample, dtype, sizes, Strides::odd);
      }
  cases.run();
}

TEST(CudaOpSources, AreTakenByNvrtc) {
  if (const std::string why = runtime::cuda::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  Cases cases;
  add_every_dtype(cases);
  for (const runtime::cuda::SourceRef& source : cases.sources())
    for (const char* architecture : {"sm_80", "sm_90"}) {
      const auto taken = runtime::cuda::check_by_nvrtc(*source, architecture);
      EXPECT_TRUE(taken) << taken.error().to_text();
    }
}

}  // namespace
