// What compiles does what it says: values that would be lost and memory that nobody holds are refused, and a
// number is a number however it is written.
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"

using namespace tessera;
using fixture::message_of;

namespace {

using Floats = std::vector<float>;

template <class T>
concept CanBeWritten = requires(T&& t, const Tensor& value) {
  std::forward<T>(t) = value;
};
template <class T>
concept CanBeFilled = requires(T&& t) {
  std::forward<T>(t).fill(1);
};
template <class T>
concept CanBeAssigned = requires(T&& t, const Tensor& value) {
  std::forward<T>(t).assign(value);
};
template <class T>
concept CanBeUpdated = requires(T&& t, const Tensor& value) {
  std::forward<T>(t).update_slice({0}, value);
};
template <class T>
concept CanBeZeroed = requires(T&& t) {
  std::forward<T>(t).zero_grad();
};
template <class T>
concept ShowsItsMemory = requires(T&& t) {
  std::forward<T>(t).template data<float>();
};
template <class T>
concept ShowsItsBytes = requires(T&& t) {
  std::forward<T>(t).bytes();
};
template <class T>
concept ShowsItsList = requires(T&& t) {
  std::forward<T>(t).tensors();
};

}  // namespace

// ---- Trap_U7: b[1] = t, x.slice(..).fill(0), (x + 1).data<float>()

static_assert(CanBeWritten<Tensor&> && !CanBeWritten<Tensor> && !CanBeWritten<const Tensor&>);
static_assert(CanBeFilled<Tensor&> && !CanBeFilled<Tensor>);
static_assert(CanBeAssigned<Tensor&> && !CanBeAssigned<Tensor>);
static_assert(CanBeUpdated<Tensor&> && !CanBeUpdated<Tensor>);
static_assert(CanBeZeroed<Tensor&> && !CanBeZeroed<Tensor>);
static_assert(ShowsItsMemory<Tensor&> && ShowsItsMemory<const Tensor&> && !ShowsItsMemory<Tensor> &&
              !ShowsItsMemory<const Tensor>);
static_assert(ShowsItsBytes<const Tensor&> && !ShowsItsBytes<Tensor> && !ShowsItsBytes<const Tensor>);
static_assert(ShowsItsList<const OperandList&> && !ShowsItsList<OperandList>);
static_assert(std::is_copy_assignable_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor> &&
              std::is_nothrow_move_constructible_v<Tensor> && std::swappable<Tensor>);

template <class B>
concept PartsCanBeWritten = requires(B& b, const Tensor& t) {
  b[1] = t;
};
template <class B>
concept PartsShowTheirMemory = requires(B& b) {
  (b + 1).template data<float>();
};
static_assert(!PartsCanBeWritten<Tensor> && PartsCanBeWritten<std::vector<Tensor>>);
static_assert(!PartsShowTheirMemory<Tensor>);

TEST(Face, Trap_U7_EvalOfATemporaryGivesTheTensorItself) {
  const Tensor x = ones({3});
  static_assert(std::is_same_v<decltype((x + 1).eval()), Tensor>);
  static_assert(std::is_same_v<decltype(x.eval()), const Tensor&>);
  const Tensor& y = (x + 1).eval();  // lives as long as y
  const auto values = y.data<float>();
  EXPECT_EQ(Floats(values.begin(), values.end()), (Floats{2, 2, 2}));
  const Tensor w = ones({2}).requires_grad();
  EXPECT_TRUE(w.is_tracked());
}

TEST(Face, Trap_U7_PartsAreWrittenByUpdateSlice) {
  Tensor b = zeros({3, 2});
  b.update_slice({1, 0}, ones({1, 2}));
  EXPECT_EQ(b.to_vector<float>(), (Floats{0, 0, 1, 1, 0, 0}));
  std::vector<Tensor> list{zeros({2}), zeros({2})};
  list[1] = ones({2});
  EXPECT_EQ(list[1].to_vector<float>(), (Floats{1, 1}));
}

TEST(Face, Trap_U7_AMovedTensorIsEmptyAndSaysSo) {
  Tensor x = ones({3});
  const Tensor y = std::move(x);
  EXPECT_TRUE(x.is_empty());
  EXPECT_NE(message_of([&] { (void)x.shape(); }).find("shape: the tensor is empty"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)(x + 1); }).find("add: operand 0 is an empty tensor"), std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)concat({y, x});
            }).find("concat: operand 1 is an empty tensor"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)sum(x); }).find("sum: operand 0 is an empty tensor"), std::string::npos);
  x = y;
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 1, 1}));
}

// ---- Trap_U8

enum Count { three = 3 };

template <class T>
class Trap_U8_Number : public testing::Test {};
using NumberTypes = testing::Types<int, unsigned, long, unsigned long, long long, unsigned long long, short,
                                   signed char, unsigned char, std::size_t, float, double, bool, Count>;
TYPED_TEST_SUITE(Trap_U8_Number, NumberTypes);

TYPED_TEST(Trap_U8_Number, MeansTheSameOnEveryRoad) {
  const auto three_or_one = static_cast<TypeParam>(std::is_same_v<TypeParam, bool> ? 1 : 3);
  const auto n = static_cast<float>(three_or_one);
  const Tensor x = tensor({5, -2});
  for (int round = 0; round < 3; ++round) {  // as it is first recorded, and as it is known
    EXPECT_EQ((x + three_or_one).template to_vector<float>(), (Floats{5 + n, -2 + n}));
    EXPECT_EQ((three_or_one - x).template to_vector<float>(), (Floats{n - 5, n + 2}));
    EXPECT_EQ((x * three_or_one).dtype(), f32);
    EXPECT_EQ(maximum(x, three_or_one).template to_vector<float>(), (Floats{5, n}));
    EXPECT_EQ(pow(x, three_or_one).template item<float>({0}), n == 1 ? 5 : 125);
    EXPECT_EQ(where(x > 0, x, three_or_one).template to_vector<float>(), (Floats{5, n}));
    EXPECT_EQ(clip(x, 0, three_or_one).template to_vector<float>(), (Floats{n, 0}));
    EXPECT_EQ((x < three_or_one).template to_vector<int>(), (std::vector<int>{0, 1}));
  }
}

TEST(Trap_U8_Numbers, DtypesFollowTheRulesWhenTheCallIsKnown) {
  for (int round = 0; round < 3; ++round) {
    const Tensor ints = from_vector<std::int32_t>({5, -2}, {2}),
                 bytes = from_vector<std::uint8_t>({5, 250}, {2}), flags = ints > 0,
                 halves = tensor({5, -2}).cast(f16);
    EXPECT_EQ((ints + 1).dtype(), i32);
    EXPECT_EQ((ints + 1).to_vector<int>(), (std::vector<int>{6, -1}));
    EXPECT_EQ((ints + 1.5).dtype(), f32);
    EXPECT_EQ((ints + 1.5).item<float>({0}), 6.5F);
    EXPECT_EQ((halves * 2).dtype(), f16);
    EXPECT_EQ((bytes + 1).dtype(), u8);
    EXPECT_NE(message_of([&] { (void)(bytes + 300); }).find("add: the number 300 does not fit u8"),
              std::string::npos);
    EXPECT_NE(message_of([&] { (void)(bytes - -1); }).find("sub: the number -1 does not fit u8"),
              std::string::npos);
    EXPECT_EQ((ints * std::int64_t{7}).item<int>({0}), 35);
    EXPECT_NE(message_of([&] { (void)(ints + (std::int64_t{1} << 40)); }).find("does not fit i32"),
              std::string::npos);
    EXPECT_EQ((flags == 1).to_vector<int>(), (std::vector<int>{1, 0}));
    EXPECT_EQ((flags * 1).to_vector<int>(), (std::vector<int>{1, 0}));
    EXPECT_EQ((flags * 5).to_vector<int>(), (std::vector<int>{5, 0}));
    EXPECT_EQ((flags * 5).dtype(), i64);
    EXPECT_EQ(clip(ints, 0).to_vector<int>(), (std::vector<int>{5, 0}));
    EXPECT_EQ(clip(ints, 0).dtype(), i32);
    EXPECT_EQ(clip(ints, 0, 2.5).dtype(), f32);
    EXPECT_EQ((bytes + std::uint64_t{18446744073709551615U}).dtype(), f32);
  }
}

TEST(Trap_U8_Numbers, ArePartsOfTheSamePlanHoweverTheyAreWritten) {
  const auto engine = Engine::create({.plans = {.wait = true}});
  const Tensor x = ones({3}, {.engine = engine}).eval();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(((x + 1.0F) * 2.0).item<float>({0}), 4);
    EXPECT_EQ(((x + 1) * 3L).item<float>({0}), 6);
    EXPECT_EQ(((x + three) * true).item<float>({0}), 4);
  }
  EXPECT_EQ(engine->statistics().plans_made, 1U);
}
