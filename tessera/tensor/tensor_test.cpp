// What a user can see of lazy tensors. The ids L1 … L16 are those of the traps.
#include "tessera/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tensor/create.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"
#include "tests/support/growth.h"
#include "tests/support/message.h"
#include "tests/support/repeats.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

std::vector<float> values(const Tensor& tensor) { return tensor.to_vector<float>(); }
using Floats = std::vector<float>;

/// An engine of its own, so that counters count what one test does.
struct Lab {
  std::shared_ptr<Engine> engine = Engine::create();
  [[nodiscard]] Tensor vector(Floats v) const {
    const auto n = static_cast<std::int64_t>(v.size());
    return from_vector(v, {n}, {.engine = engine});
  }
  [[nodiscard]] std::uint64_t kernels() const { return engine->statistics().kernels; }
};

TEST(Tensor, Trap_L1_graphs_that_meet_twice) {
  const Tensor a = tensor({1, 2}), b = tensor({10, 20});
  const Tensor c = a + b, d = c + b;
  EXPECT_TRUE(a.graph().same_as(b.graph()));
  EXPECT_EQ(values(d), (Floats{21, 42}));
  EXPECT_EQ(values(c), (Floats{11, 22}));
}

TEST(Tensor, Trap_L2_merging_never_copies_a_graph) {
  const auto accumulate = [](int steps) {
    Tensor sum = tensor({0});
    for (int i = 0; i < steps; ++i) sum = tensor({1}) + sum;
    EXPECT_EQ(sum.item<int>({0}), steps);
  };
  EXPECT_LT(fixture::growth(fixture::repeats(10'000), fixture::repeats(100'000), accumulate), 40)
      << "quadratic would be 100";
}

TEST(Tensor, Trap_L3_what_was_recorded_keeps_the_old_value) {
  for (const bool eval_between : {false, true}) {
    Tensor a = full({2}, 1);
    const Tensor b = full({2}, 10);
    const Tensor c = a + b;
    if (eval_between) eval(c);
    a.fill(2);
    EXPECT_EQ(values(c), (Floats{11, 11}));
    const Tensor d = a + b;
    EXPECT_EQ(values(d), (Floats{12, 12}));
    EXPECT_EQ(values(c), (Floats{11, 11}));
  }
}

TEST(Tensor, Trap_L3_a_span_that_was_handed_out_does_not_change) {
  Tensor a = full({2}, 1).eval();
  const Tensor same = a;
  const auto seen = same.data<float>();
  a.fill(2);
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(values(a), (Floats{2, 2}));
}

TEST(Tensor, Trap_L4_one_tensor_in_both_slots) {
  const Tensor x = from_vector<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(values(x - x), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(values(matmul(x, x)), (Floats{7, 10, 15, 22}));
  const auto info = (x - x).graph().nodes().back();
  ASSERT_EQ(info.inputs.size(), 2U);
  EXPECT_EQ(info.inputs[0], info.inputs[1]);
}

TEST(Tensor, Trap_L5_what_is_stored_is_not_computed_again) {
  const Lab lab;
  const Tensor c = lab.vector({1, 2}) + lab.vector({3, 4});
  eval(c);
  const void* before = c.storage();
  const auto kernels = lab.kernels();
  const Tensor d = c * 2;
  eval(d);
  EXPECT_EQ(lab.kernels(), kernels + 1);
  EXPECT_EQ(c.storage(), before);
  eval({c, d});
  EXPECT_EQ(lab.kernels(), kernels + 1);
}

TEST(Tensor, Trap_L5_an_intermediate_that_is_held_is_kept) {
  const Lab lab;
  const Tensor c = lab.vector({1, 2}) + 1, d = c * 2;
  eval(d);
  EXPECT_EQ(lab.kernels(), 2U);
  EXPECT_EQ(values(c), (Floats{2, 3}));
  EXPECT_EQ(lab.kernels(), 2U);
}

TEST(Tensor, Trap_L6_the_unrelated_stays_lazy) {
  const Tensor a = tensor({1});
  const Tensor c1 = a + 1, c2 = a + 2;
  eval(c1);
  EXPECT_TRUE(c1.is_evaluated());
  EXPECT_FALSE(c2.is_evaluated());
}

TEST(Tensor, Trap_L7_products_broadcast_their_batches) {
  EXPECT_EQ(matmul(ones({4, 5}), ones({3, 5, 6})).shape(), (Shape{3, 4, 6}));
  const std::string message = message_of([] { (void)matmul(ones({2, 4, 5}), ones({3, 5, 6})); });
  EXPECT_NE(message.find("matmul"), std::string::npos) << message;
  EXPECT_NE(message.find("tensor_test.cpp"), std::string::npos) << message;
}

TEST(Tensor, Trap_L8_reshape_of_views) {
  const Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(values(x.transpose().reshape({6})), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values(broadcast_to(tensor({1, 2}), {.shape = {2, 2}}).reshape({4})), (Floats{1, 2, 1, 2}));
}

TEST(Tensor, Trap_L9_reductions_keep_axes_if_asked) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_EQ(sum(x, {.axes = {1}, .keepdims = true}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(sum(x, {.axes = {0, 2}, .keepdims = true}).shape(), (Shape{1, 3, 1}));
}

TEST(Tensor, Trap_L10_sizes_have_64_bits_and_may_be_zero) {
  const Tensor large = zeros({65536, 65536});
  EXPECT_EQ(large.size(), std::int64_t{1} << 32);
  EXPECT_EQ(values(sum(zeros({0, 3}), {.axes = {0}})), (Floats{0, 0, 0}));
  EXPECT_TRUE(values(zeros({0, 3}) + 1).empty());
  EXPECT_EQ((full({}, 2) + full({}, 3)).item<float>(), 5);
}

TEST(Tensor, Trap_L13_a_long_chain_is_freed_without_recursion) {
  Tensor x = tensor({1});
  const Tensor one = tensor({1});
  for (int i = 0; i < fixture::repeats(10'000'000); ++i) x = x + one;
  EXPECT_EQ(x.shape(), (Shape{1}));
  x = Tensor();
}

TEST(Tensor, Trap_L15_a_loop_of_updates_has_constant_memory) {
  const Lab lab;
  Tensor w = lab.vector({1, 1}), x = lab.vector({0, 0});
  std::uint64_t after_warm_up = 0;
  const int steps = fixture::repeats(100'000);
  for (int i = 0; i < steps; ++i) {
    x.fill(i % 3);
    w = w - 0.5 * (w - x);
    eval(w);
    if (i == 1000) lab.engine->wait_for_plans();  // a plan has buffers of its own
    if (i == steps / 5) after_warm_up = lab.engine->memory().peak;
  }
  EXPECT_EQ(lab.engine->memory().peak, after_warm_up);
  EXPECT_EQ(w.graph().size(), 1U);
  float expected = 1;
  for (int i = 0; i < steps; ++i) expected -= 0.5F * (expected - static_cast<float>(i % 3));
  EXPECT_EQ(values(w), (Floats{expected, expected}));
}

TEST(Tensor, Trap_L16_a_view_keeps_the_old_values) {
  for (const bool eval_first : {false, true}) {
    Tensor x = from_vector<float>({0, 1, 2, 3, 4, 5}, {6});
    const Tensor y = x.slice({{2, 5}});
    if (eval_first) eval(y);
    x.update_slice({3}, tensor({30, 40}));
    EXPECT_EQ(values(y), (Floats{2, 3, 4}));
    EXPECT_EQ(values(x), (Floats{0, 1, 2, 30, 40, 5}));
  }
}

// ---- views

TEST(Tensor, views_share_storage) {
  const Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(x.transpose().storage(), x.storage());
  EXPECT_EQ(x.reshape({3, 2}).storage(), x.storage());
  EXPECT_EQ(broadcast_to(x, {.shape = {4, 2, 3}}).storage(), x.storage());
  EXPECT_EQ(x.slice({{1, 2}, {1, Slice::open}}).storage(), static_cast<const float*>(x.storage()) + 4);
  EXPECT_EQ(x[1].storage(), static_cast<const float*>(x.storage()) + 3);
  EXPECT_EQ(x.slice({{Slice::open, Slice::open, -1}}).strides(), (Shape{-3, 1}));
  EXPECT_EQ(values(x.slice({{Slice::open, Slice::open, -1}})), (Floats{4, 5, 6, 1, 2, 3}));
}

TEST(Tensor, data_is_contiguous_and_stays_where_it_is) {
  const Tensor x = from_vector<float>({1, 2, 3, 4}, {2, 2});
  const Tensor t = x.transpose();
  const auto first = t.data<float>();
  EXPECT_EQ(Floats(first.begin(), first.end()), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(t.data<float>().data(), first.data());
}

// ---- dtypes

TEST(Tensor, promotion) {
  const auto of = [](Dtype a, Dtype b) {
    return (zeros({1}, {.dtype = a}) + zeros({1}, {.dtype = b})).dtype();
  };
  EXPECT_EQ(of(f32, f64), f64);
  EXPECT_EQ(of(f16, bf16), f32);
  EXPECT_EQ(of(i64, f16), f16);
  EXPECT_EQ(of(u8, i8), i16);
  EXPECT_EQ(of(u32, i64), i64);
  EXPECT_EQ(of(u64, i8), f64);
  EXPECT_EQ(of(bool_, i32), i32);
  EXPECT_EQ((zeros({1}, {.dtype = i32}) + 1).dtype(), i32);
  EXPECT_EQ((zeros({1}, {.dtype = i32}) + 0.5).dtype(), f32);
  EXPECT_EQ((zeros({1}, {.dtype = f16}) * 0.5).dtype(), f16);
  EXPECT_EQ(exp(zeros({1}, {.dtype = i32})).dtype(), f32);
}

TEST(Tensor, whole_numbers_are_exact) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Tensor x = from_vector<std::int64_t>({large}, {1}) + std::int64_t{2};
  EXPECT_EQ(x.item<std::int64_t>({0}), large + 2);
  EXPECT_EQ(full({1}, 16777217, {.dtype = i32}).item<int>({0}), 16777217);
}

TEST(Tensor, comparisons_and_bits) {
  const Tensor x = tensor({1, 2, 3});
  EXPECT_EQ((x > 2).to_vector<int>(), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ((x > 2).dtype(), bool_);
  EXPECT_EQ(((x > 1) & (x < 3)).to_vector<int>(), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ((1 - x).to_vector<int>(), (std::vector<int>{0, -1, -2}));
}

// ---- errors

TEST(Tensor, a_wrong_call_names_op_values_and_line) {
  int line = 0;
  const std::string message = message_of([&] {
    line = __LINE__ + 1;
    (void)(ones({2, 3}) + ones({2, 4}));
  });
  EXPECT_NE(message.find("add"), std::string::npos) << message;
  EXPECT_NE(message.find('3'), std::string::npos) << message;
  EXPECT_NE(message.find('4'), std::string::npos) << message;
  EXPECT_NE(message.find("tensor_test.cpp:" + std::to_string(line)), std::string::npos) << message;
}

TEST(Tensor, every_face_names_the_line) {
  const Tensor x = ones({2, 3});
  Tensor y = x;
  const auto expect_here = [](int line, const std::string& message) {
    EXPECT_NE(message.find("tensor_test.cpp:" + std::to_string(line)), std::string::npos) << message;
  };
  expect_here(__LINE__, message_of([&] { (void)zeros({-1}); }));
  expect_here(__LINE__, message_of([&] { (void)x.reshape({-1, -1}); }));
  expect_here(__LINE__, message_of([&] { (void)x.transpose({0, 0}); }));
  expect_here(__LINE__, message_of([&] { (void)x.item<float>({5, 0}); }));
  expect_here(__LINE__, message_of([&] { (void)x.item<float>(); }));
  expect_here(__LINE__, message_of([&] { (void)x.data<double>(); }));
  expect_here(__LINE__, message_of([&] { y.assign(ones({3})); }));
  expect_here(__LINE__, message_of([&] { y.update_slice({1}, ones({2, 3})); }));
  expect_here(__LINE__, message_of([&] { (void)x.slice({{}, {}, {}}); }));
  expect_here(__LINE__, message_of([&] { (void)x.slice({{0, 1, 0}}); }));
  expect_here(__LINE__, message_of([&] { (void)sum(x, {.axes = {2}}); }));
  expect_here(__LINE__, message_of([&] { (void)concat({x, ones({2, 2})}, {.axis = 0}); }));
  expect_here(__LINE__, message_of([&] { (void)exp(Tensor()); }));
  expect_here(__LINE__, message_of([&] { (void)(x + Tensor()); }));
  expect_here(__LINE__, message_of([&] { Tensor().eval(); }));
  expect_here(__LINE__, message_of([&] { (void)zeros({1}, {.device = "tpu"}); }));
  expect_here(__LINE__, message_of([&] { (void)zeros(Shape(17, 1)); }));
  expect_here(__LINE__, message_of([&] { (void)from_vector<float>({1, 2}, {3}); }));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
}

TEST(Tensor, engines_do_not_mix) {
  const Tensor a = tensor({1}), b = Lab().vector({1});
  EXPECT_NE(message_of([&] { (void)(a + b); }).find("two engines"), std::string::npos);
  EXPECT_NE(message_of([&] { eval({a + 1, b + 1}); }).find("two engines"), std::string::npos);
}

TEST(Tensor, a_failed_evaluation_changes_nothing) {
  const Lab lab;
  const Tensor x = lab.vector({1, 2}), y = x + 1;
  const Tensor large = broadcast_to(y, {.shape = {1 << 20, 2}}) + y;
  const auto before = lab.engine->memory().used;
  lab.engine->set_memory_limit(1 << 20);
  const std::string message = message_of([&] { eval(large); });
  EXPECT_NE(message.find("memory"), std::string::npos) << message;
  EXPECT_NE(message.find("for a result of 'add', f32[1048576, 2]"), std::string::npos) << message;
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_FALSE(large.is_evaluated());
  EXPECT_EQ(lab.engine->memory().used, before);
  lab.engine->set_memory_limit(UINT64_MAX);
  EXPECT_EQ(large.item<float>({5, 1}), 6);
  EXPECT_EQ(values(y), (Floats{2, 3}));
}

TEST(Tensor, an_index_out_of_range_fails_where_it_was_recorded) {
  const int line = __LINE__ + 1;
  const Tensor y = gather(tensor({1, 2}), from_vector<std::int64_t>({7}, {1}));
  const std::string message = message_of([&] { eval(y); });
  EXPECT_NE(message.find("gather"), std::string::npos) << message;
  EXPECT_NE(message.find("tensor_test.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_EQ(message_of([&] { eval(y); }), message);
}

TEST(Tensor, numbers_that_do_not_fit_are_errors) {
  const Tensor x = zeros({1}, {.dtype = i8}), u = zeros({1}, {.dtype = u8});
  EXPECT_NE(message_of([&] { (void)(x < 300); }).find("300 does not fit i8"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)(u > -1); }).find("-1 does not fit u8"), std::string::npos);
  EXPECT_EQ(((tensor({1}) > 0) < 2).item<int>({0}), 1);
  EXPECT_NEAR((ones({1}) + UINT64_MAX).item<double>({0}), 1.8446744073709552e19, 1e12);
}

TEST(Tensor, an_operand_behind_one_that_is_left_out_is_an_error) {
  EXPECT_NE(message_of([] { (void)clip(tensor({-5, 5}), {}, 1); }).find("left out"), std::string::npos);
}

TEST(Tensor, a_write_keeps_the_dtype) {
  Tensor x = zeros({3}, {.dtype = i32});
  EXPECT_NE(message_of([&] { x.update_slice({0}, ones({1})); }).find("cannot be written"), std::string::npos);
  EXPECT_EQ(x.dtype(), i32);
}

TEST(Tensor, masks_are_negated_as_masks) {
  EXPECT_EQ((~(tensor({0, 1}) > 0)).to_vector<int>(), (std::vector<int>{1, 0}));
  EXPECT_EQ((~(tensor({0, 1}) > 0)).dtype(), bool_);
}

TEST(Tensor, conversions_of_single_elements_saturate) {
  const Tensor x = tensor({INFINITY, -INFINITY, NAN});
  EXPECT_EQ(x.to_vector<std::int64_t>(), (std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 0}));
}

TEST(Tensor, an_index_names_the_line) {
  const Tensor x = zeros({3});
  const std::string message = message_of([&] { (void)x[5]; });
  EXPECT_NE(message.find("tensor_test.cpp:"), std::string::npos) << message;
}

// ---- the rest

TEST(Tensor, several_results) {
  const auto parts = split(tensor({1, 2, 3}), {.sizes = {1, 2}});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(values(parts[1]), (Floats{2, 3}));
  EXPECT_EQ(values(parts[0]), (Floats{1}));
  const auto best = topk(tensor({3, 9, 5}), {.k = 2});
  EXPECT_EQ(best.indices.to_vector<int>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(values(best.values), (Floats{9, 5}));
}

TEST(Tensor, several_results_are_computed_once) {
  const Lab lab;
  const auto best = topk(lab.vector({3, 9, 5}), {.k = 2});
  eval(best.indices);
  const auto kernels = lab.kernels();
  eval(best.values);
  EXPECT_EQ(lab.kernels(), kernels);
}

TEST(Tensor, async) {
  const Tensor y = ones({100}) * 3;
  Pending pending = eval_async({y});
  pending.wait();
  pending.wait();
  EXPECT_TRUE(pending.is_done());
  EXPECT_TRUE(y.is_evaluated());
  Pending failing = eval_async({gather(tensor({1}), from_vector<std::int64_t>({3}, {1}))});
  EXPECT_NE(message_of([&] { failing.wait(); }), "");
}

TEST(Tensor, text) {
  EXPECT_EQ(from_vector<float>({1, 2.5, 3, 4}, {2, 2}).to_text(), "[[1.0, 2.5],\n [3.0, 4.0]] f32[2, 2]");
  EXPECT_EQ(zeros({0}).to_text(), "[] f32[0]");
  EXPECT_EQ(zeros({std::int64_t{1} << 31, 0}).to_text(), "[] f32[2147483648, 0]");
  EXPECT_EQ(from_vector<std::uint64_t>({UINT64_MAX}, {1}).to_text(), "[18446744073709551615] u64[1]");
  EXPECT_EQ(tensor({-NAN}).to_text(), "[nan] f32[1]");
  EXPECT_LT(zeros({100, 100}).to_text().size(), 1000U);
}

TEST(Tensor, blocks_name_what_is_recorded_in_them) {
  Tensor y;
  {
    const auto outer = block("encoder");
    const auto inner = block("layer1");
    y = tensor({1}) + 1;
  }
  EXPECT_EQ(y.graph().node(node_id(y)).block, "encoder/layer1");
  const Tensor z = y + 1;
  EXPECT_EQ(z.graph().node(node_id(z)).block, "");
}

}  // namespace

// Calls are remembered by the types of their operands: attributes tell them apart.
TEST(Recording, CallsThatDifferInAttributesAlone) {
  const Tensor x = from_vector(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2, 1, 1});
  const Tensor rows = from_vector(std::vector<float>{1, 3}, {1, 2});
  const Tensor one = from_vector(std::vector<float>{1, 1}, {2}),
               zero = from_vector(std::vector<float>{0, 0}, {2});
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(x[0].to_vector<float>(), (std::vector<float>{0, 1, 2, 3}));
    EXPECT_EQ(x[1].to_vector<float>(), (std::vector<float>{4, 5, 6, 7}));
    EXPECT_EQ(x.transpose({1, 0, 2, 3, 4}).to_vector<float>(), (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7}));
    EXPECT_EQ(x.transpose({2, 1, 0, 3, 4}).to_vector<float>(), (std::vector<float>{0, 4, 2, 6, 1, 5, 3, 7}));
    EXPECT_EQ(x.reshape({8}).shape(), (Shape{8}));
    EXPECT_EQ(x.reshape({1, 2, 1, 2, 1, 2}).shape(), (Shape{1, 2, 1, 2, 1, 2}));
    EXPECT_NEAR(layer_norm(rows, one, zero, {.epsilon = 0}).to_vector<float>()[1], 1.0, 1e-6);
    EXPECT_NEAR(layer_norm(rows, one, zero, {.epsilon = 3}).to_vector<float>()[1], 0.5, 1e-6);
    EXPECT_THROW((void)x.reshape({7}), Exception);
  }
}
