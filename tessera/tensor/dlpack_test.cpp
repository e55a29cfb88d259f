#include "tessera/tensor/dlpack.h"

#include <gtest/gtest.h>

#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/dlpack_layout.h"

using namespace tessera;

namespace {

/// Memory that other libraries know.
class Dlpack : public testing::Test {
 protected:
  void SetUp() override {
    const auto space = engine::Engine::default_engine()->device().memory_space();
    if (space != nullptr && !space->location()) GTEST_SKIP() << "no library shares the memory of the device";
  }
};

TEST_F(Dlpack, there_and_back_shares_memory) {
  Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const void* memory = x.storage();
  const Tensor back = from_dlpack(to_dlpack(x.transpose()));
  x = Tensor();
  EXPECT_EQ(back.storage(), memory);
  EXPECT_EQ(back.shape(), (Shape{3, 2}));
  EXPECT_EQ(back.to_vector<int>(), (std::vector<int>{1, 4, 2, 5, 3, 6}));
}

TEST_F(Dlpack, every_dtype) {
  for (const Dtype dtype : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, bool_}) {
    const Tensor back = from_dlpack(to_dlpack(full({2}, 1, {.dtype = dtype})));
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.to_vector<int>(), (std::vector<int>{1, 1}));
  }
}

TEST_F(Dlpack, tensors_without_elements) {
  const Tensor back = from_dlpack(to_dlpack(zeros({0, 3})));
  EXPECT_EQ(back.shape(), (Shape{0, 3}));
}

/// A tensor of the host that counts how often it is given back.
struct Given {
  float values[4] = {1, 2, 3, 4};
  std::int64_t shape[2] = {2, 2};
  int deleted = 0;
  DLManagedTensor managed{
      .dl_tensor = {values, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0},
      .manager_ctx = this,
      .deleter = [](DLManagedTensor* self) { ++static_cast<Given*>(self->manager_ctx)->deleted; }};
};

std::string refusal_of(Given& given, const DlpackOptions& options = {}) {
  try {
    const Tensor made = from_dlpack(&given.managed, options);
  } catch (const Exception& exception) {
    EXPECT_EQ(given.deleted, 1) << "it was taken over";
    return exception.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST_F(Dlpack, memory_of_the_host_is_taken_by_every_device) {
  Given given;
  {
    const Tensor x = from_dlpack(&given.managed) + 1.0;
    EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{2, 3, 4, 5}));
  }
  EXPECT_EQ(given.deleted, 1);
}

TEST_F(Dlpack, what_makes_no_tensor_is_refused) {
  EXPECT_THROW((void)from_dlpack(nullptr), Exception);
  const DlpackOptions on_reference{.engine =
                                       engine::Engine::create({.device = *engine::find_device("reference")})};
  Given elsewhere, ambiguous, negative, complex, misaligned;
  elsewhere.managed.dl_tensor.device = {2, 1};
  EXPECT_NE(refusal_of(elsewhere, on_reference)
                .find("the tensor is on device type 2, number 1, the engine computes on reference"),
            std::string::npos);
  EXPECT_NE(refusal_of(ambiguous, {.stream = 0}).find("0 is no stream"), std::string::npos);
  negative.shape[1] = -2;
  EXPECT_NE(refusal_of(negative).find("axis 1 has the negative size -2"), std::string::npos);
  complex.managed.dl_tensor.dtype = {5, 64, 1};
  EXPECT_NE(refusal_of(complex).find("dtype code 5 of 64 bits"), std::string::npos);
  misaligned.managed.dl_tensor.byte_offset = 2;
  EXPECT_NE(refusal_of(misaligned).find("not aligned"), std::string::npos);
}

}  // namespace
