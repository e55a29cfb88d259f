#include "tessera/runtime/cuda/condition_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/counter_source.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using ir::Dtype;

namespace {

/// Kernels on one thread, all of which NVRTC takes; arguments are values of 8 bytes.
class DecidingKernels {
 public:
  explicit DecidingKernels(const std::vector<SourceRef>& sources) {
    StepProgram program;
    for (const SourceRef& source : sources) program.launches.push_back({.source = source});
    value_or_throw(emulator_.compile({&program, 1}));
    for (const SourceRef& source : sources) {
      if (!why_no_nvrtc().empty()) break;
      const auto taken = check_by_nvrtc(*source, "sm_90");
      EXPECT_TRUE(taken) << taken.error().to_text();
    }
  }

  void run(const SourceRef& source, std::vector<std::uint64_t> values) {
    std::vector<void*> pointers;
    for (std::uint64_t& value : values) pointers.push_back(&value);
    value_or_throw(emulator_.run_kernel(*source, {}, pointers.data(), ThreadOrder::forward));
  }

 private:
  Emulator emulator_;
};

template <class T>
std::uint64_t address(T& of) {
  return reinterpret_cast<std::uintptr_t>(&of);
}

/// An element of any dtype.
struct Element {
  Element(Dtype dtype, double value) {
    if (ir::is_float(dtype)) {
      op::storer<double>(dtype)(bytes, 0, 1, 1, &value);
    } else {
      const op::SignedWide whole = static_cast<std::int64_t>(value);
      op::storer<op::SignedWide>(dtype)(bytes, 0, 1, 1, &whole);
    }
  }
  alignas(8) std::byte bytes[8] = {};
};

class ConditionSource : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(ConditionSource, ANumberOfAnyDtypeDecides) {
  std::vector<SourceRef> sources;
  for (const Dtype dtype : ir::all_dtypes()) sources.push_back(branch_source(dtype));
  DecidingKernels kernels(sources);
  for (const Dtype dtype : ir::all_dtypes()) {
    std::vector<std::pair<double, unsigned>> cases{{0, 1}, {1, 0}};
    if (ir::is_float(dtype)) {
      cases.insert(cases.end(), {{-0.0, 1}, {std::nan(""), 0}, {-1e-3, 0}});
    } else if (dtype != Dtype::boolean) {
      cases.emplace_back(100, 0);
    }
    for (const auto& [number, body] : cases) {
      Element element(dtype, number);
      unsigned chosen = 7;
      kernels.run(sources[static_cast<std::size_t>(dtype)], {address(chosen), address(element)});
      EXPECT_EQ(chosen, body) << to_string(dtype) << " " << number;
    }
  }
}

TEST_F(ConditionSource, AChoiceOutsideIsTheLast) {
  const SourceRef source = choice_source(Dtype::i8);
  DecidingKernels kernels({source});
  for (const auto& [number, body] : {std::pair{0.0, 0u}, {2.0, 2u}, {3.0, 3u}, {100.0, 3u}, {-1.0, 3u}}) {
    Element element(Dtype::i8, number);
    unsigned chosen = 7;
    kernels.run(source, {address(chosen), address(element), 4});
    EXPECT_EQ(chosen, body) << number;
  }
}

TEST_F(ConditionSource, ALimitedForCountsAndNotesItsTurns) {
  const SourceRef source = limited_for_source(Dtype::i32, Dtype::u8);
  DecidingKernels kernels(
      {source, limited_for_source(Dtype::f16, Dtype::f32), limited_for_source(Dtype::i64, {})});
  Element count(Dtype::i32, 2);
  std::int64_t turns = 99;
  Status status;
  std::uint8_t index = 77;
  unsigned again = 7;
  const auto turn = [&](bool is_first) {
    kernels.run(source, {address(again), address(count), address(turns), is_first, 5, address(status),
                         address(index)});
    return std::pair(again, static_cast<int>(index));
  };
  EXPECT_EQ(turn(true), (std::pair{1u, 0}));
  EXPECT_EQ(turn(false), (std::pair{1u, 1}));
  EXPECT_EQ(turn(false), (std::pair{0u, 1})) << "the last turn's number stays";
  EXPECT_EQ(status.first, 0u);
  count = Element(Dtype::i32, 6);
  EXPECT_EQ(turn(true), (std::pair{0u, 1})) << "beyond its limit it does not begin";
  EXPECT_EQ(status.first, 1u);
  EXPECT_EQ(status.index, 6);
}

TEST_F(ConditionSource, AResetKeepsTheMost) {
  const SourceRef source = counter_reset_source();
  DecidingKernels kernels({source});
  std::uint64_t counter[2] = {5, 3};
  kernels.run(source, {address(counter)});
  EXPECT_EQ(counter[0], 0u);
  EXPECT_EQ(counter[1], 5u);
  counter[0] = 4;
  kernels.run(source, {address(counter)});
  EXPECT_EQ(counter[1], 5u);
}

}  // namespace
