#include "tessera/tensor/dlpack.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

TEST(Dlpack, there_and_back_shares_memory) {
  Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const void* memory = x.storage();
  const Tensor back = from_dlpack(to_dlpack(x.transpose()));
  x = Tensor();
  EXPECT_EQ(back.storage(), memory);
  EXPECT_EQ(back.shape(), (Shape{3, 2}));
  EXPECT_EQ(back.to_vector<int>(), (std::vector<int>{1, 4, 2, 5, 3, 6}));
}

TEST(Dlpack, every_dtype) {
  for (const Dtype dtype : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, bool_}) {
    const Tensor back = from_dlpack(to_dlpack(full({2}, 1, {.dtype = dtype})));
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.to_vector<int>(), (std::vector<int>{1, 1}));
  }
}

TEST(Dlpack, nothing_is_an_error) { EXPECT_THROW((void)from_dlpack(nullptr), Exception); }

}  // namespace
