#include "tessera/op/array.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tessera;
using namespace tessera::op;

namespace {

/// The numbers of an array in row-major order.
std::vector<std::int32_t> read(const Array& array) {
  std::vector<std::int32_t> out;
  for_each_offset<1>(array.shape(), {&array.layout}, [&](const auto& at) {
    out.push_back(*reinterpret_cast<const std::int32_t*>(array.at(at[0])));
  });
  return out;
}

/// Copies between two layouts of one shape, and says whether every element arrived and nothing else changed.
void expect_copied(const Layout& from, const Layout& to) {
  const HostTensor source = value_or_throw(HostTensor::allocate(Dtype::i32, {4096})),
                   target = value_or_throw(HostTensor::allocate(Dtype::i32, {4096}));
  std::iota(source.values<std::int32_t>().begin(), source.values<std::int32_t>().end(), 1);
  const Array in{Dtype::i32, from, source.array().data}, out{Dtype::i32, to, target.array().data};
  copy_elements(in, out);
  EXPECT_EQ(read(out), read(in));
  const auto all = target.values<std::int32_t>();
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](std::int32_t x) { return x != 0; }), out.size());
}

TEST(CopyElements, JoinsAxesThatGoOn) {
  expect_copied(contiguous({3, 4, 5}), {{3, 4, 5}, {40, 10, 2}, 7});  // one line with steps
  expect_copied({{3, 4, 5}, {40, 5, 1}, 3}, contiguous({3, 4, 5}));   // a slice of the second axis
  expect_copied({{2, 3, 4, 1}, {12, 4, 1, 1}, 0}, {{2, 3, 4, 1}, {24, 8, 2, 1}, 1});
  expect_copied({{4, 3, 5}, {5, 20, 1}, 0}, contiguous({4, 3, 5}));  // transposed: nothing goes on
  expect_copied({{3, 4, 5}, {0, 5, 1}, 2}, contiguous({3, 4, 5}));   // repeated
  expect_copied({{4, 5}, {-5, -1}, 100}, contiguous({4, 5}));        // backwards
}

TEST(CopyElements, TakesOneElementAndNone) {
  expect_copied({{1, 1}, {9, 7}, 5}, {{1, 1}, {3, 2}, 8});
  expect_copied({{}, {}, 4}, {{}, {}, 3});
  expect_copied({{3, 0, 2}, {2, 2, 1}, 0}, {{3, 0, 2}, {4, 4, 2}, 0});
}

}  // namespace
