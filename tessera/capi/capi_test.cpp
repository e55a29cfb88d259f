// What C callers can do wrong: each has its code and its message, and nothing is left behind.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tessera/capi/tessera.h"
#include "tessera/engine/engine.h"
#include "tessera/op/catalogue.h"
#include "tests/support/last_error.h"

using tessera::fixture::says;

namespace {

constexpr std::int64_t two_by_three[] = {2, 3};

tsr_tensor make(std::vector<std::int64_t> shape, float value = 1) {
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_tensor_init(&out, shape.data(), static_cast<int>(shape.size()), TSR_BACKEND_F32_CPU), TSR_OK);
  EXPECT_EQ(tsr_tensor_fill(out, value), TSR_OK);
  return out;
}

std::vector<float> read(tsr_tensor tensor, std::size_t count) {
  std::vector<float> out(count);
  EXPECT_EQ(tsr_tensor_get_data(tensor, out.data(), count * sizeof(float)), TSR_OK) << tsr_last_error();
  return out;
}

/// Frees at the end of a test.
struct Handles {
  std::vector<tsr_tensor> tensors;
  ~Handles() {
    for (tsr_tensor tensor : tensors) EXPECT_EQ(tsr_tensor_free(tensor), TSR_OK);
  }
  tsr_tensor operator()(tsr_tensor tensor) {
    tensors.push_back(tensor);
    return tensor;
  }
};

}  // namespace

// ---- null

TEST(CapiNull, OutPointers) {
  Handles own;
  const tsr_tensor x = own(make({2, 3}));
  EXPECT_EQ(tsr_tensor_init(nullptr, two_by_three, 2, TSR_BACKEND_F32_CPU), TSR_ERROR_NULL);
  EXPECT_TRUE(says("tsr_tensor_init: 'out' is null"));
  EXPECT_EQ(tsr_tensor_create(nullptr, two_by_three, 2, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_engine_create(0, 0, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_add(x, x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_sub(x, x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_gemm(x, x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_transpose(x, nullptr, 0, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_reshape(x, two_by_three, 2, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_reduce_sum(x, nullptr, 0, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_copy(x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_graph(x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_node_id(x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_dtype(x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_shape(x, nullptr, 0, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_data(x, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_get_data(x, nullptr, 24), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_node_print(nullptr), TSR_ERROR_NULL);
}

TEST(CapiNull, Handles) {
  tsr_tensor out = nullptr;
  int count = 0;
  tsr_node node;
  EXPECT_EQ(tsr_tensor_free(nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_free(nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_engine_free(nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_fill(nullptr, 1), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_fill_rand(nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_set_data(nullptr, &count, 4), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_get_data(nullptr, &count, 4), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_add(nullptr, nullptr, &out), TSR_ERROR_NULL);
  EXPECT_TRUE(says("'a' is null"));
  EXPECT_EQ(tsr_execute(nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_execute_all(&out, 1), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_merge(nullptr, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_get_node(nullptr, {}, &node), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_get_inputs(nullptr, {}, nullptr, 0, &count), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_topological_sort(nullptr, nullptr, 0, &count), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_to_dot(nullptr, "x.dot"), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_graph_print(nullptr), TSR_ERROR_NULL);
}

TEST(CapiNull, ArraysAndTexts) {
  Handles own;
  const tsr_tensor x = own(make({2, 3}));
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_tensor_init(&out, nullptr, 2, TSR_BACKEND_F32_CPU), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_set_data(x, nullptr, 24), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_transpose(x, nullptr, 2, &out), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_reshape(x, nullptr, 1, &out), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_reduce_sum(x, nullptr, 1, &out), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_call(nullptr, nullptr, 0, nullptr, 0, &out, 1, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_call("relu", nullptr, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_NULL);
  const tsr_operand input = tsr_operand_tensor(x);
  EXPECT_EQ(tsr_call("relu", &input, 1, nullptr, 1, &out, 1, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_call("relu", &input, 1, nullptr, 0, nullptr, 1, nullptr), TSR_ERROR_NULL);
  const tsr_attribute nameless = tsr_attribute_integer(nullptr, 1);
  EXPECT_EQ(tsr_call("softmax", &input, 1, &nameless, 1, &out, 1, nullptr), TSR_ERROR_NULL);
  const tsr_attribute no_text = tsr_attribute_text("mode", nullptr);
  EXPECT_EQ(tsr_call("relu", &input, 1, &no_text, 1, &out, 1, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_tensor_from_memory(&out, nullptr, two_by_three, 2, nullptr, nullptr, nullptr),
            TSR_ERROR_NULL);
  EXPECT_EQ(out, nullptr);
}

TEST(CapiNull, NegativeLengths) {
  Handles own;
  const tsr_tensor x = own(make({2, 3}));
  tsr_tensor out = nullptr;
  int count = 0;
  EXPECT_EQ(tsr_tensor_init(&out, two_by_three, -1, TSR_BACKEND_F32_CPU), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_transpose(x, nullptr, -1, &out), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_tensor_shape(x, nullptr, -1, &count), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_execute_all(nullptr, -1), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_execute_all(nullptr, 0), TSR_OK);
}

// ---- handles

TEST(CapiHandles, FreedOnesAreFoundOut) {
  const tsr_tensor x = make({2});
  ASSERT_EQ(tsr_tensor_free(x), TSR_OK);
  tsr_tensor out = nullptr;
  float value = 0;
  EXPECT_EQ(tsr_tensor_free(x), TSR_ERROR_HANDLE);
  EXPECT_TRUE(says("was freed"));
  EXPECT_EQ(tsr_tensor_fill(x, 1), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_add(x, x, &out), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_execute(x), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_tensor_get_data(x, &value, sizeof value), TSR_ERROR_HANDLE);
  const tsr_operand input = tsr_operand_tensor(x);
  EXPECT_EQ(tsr_call("relu", &input, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_HANDLE);
  EXPECT_TRUE(says("inputs[0]"));
}

TEST(CapiHandles, ASlotInUseAgainDoesNotReviveTheOldHandle) {
  const tsr_tensor old = make({2}, 1);
  ASSERT_EQ(tsr_tensor_free(old), TSR_OK);
  Handles own;
  std::vector<tsr_tensor> later;
  for (int i = 0; i < 100; ++i) later.push_back(own(make({2}, 2)));
  EXPECT_EQ(tsr_tensor_fill(old, 9), TSR_ERROR_HANDLE);
  for (tsr_tensor tensor : later) EXPECT_EQ(read(tensor, 2), (std::vector<float>{2, 2}));
}

TEST(CapiHandles, ForeignPointersAreFoundOut) {
  int on_the_stack = 0;
  const auto on_the_heap = std::make_unique<std::array<char, 64>>();
  EXPECT_EQ(tsr_tensor_free(reinterpret_cast<tsr_tensor>(&on_the_stack)), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_execute(reinterpret_cast<tsr_tensor>(on_the_heap.get())), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_execute(reinterpret_cast<tsr_tensor>(std::uintptr_t{1})), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_execute(reinterpret_cast<tsr_tensor>(~std::uintptr_t{0})), TSR_ERROR_HANDLE);
}

TEST(CapiHandles, OfAnotherTypeAreFoundOut) {
  Handles own;
  const tsr_tensor x = own(make({2}));
  tsr_graph graph = nullptr;
  ASSERT_EQ(tsr_tensor_graph(x, &graph), TSR_OK);
  EXPECT_EQ(tsr_tensor_free(reinterpret_cast<tsr_tensor>(graph)), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_graph_free(reinterpret_cast<tsr_graph>(x)), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_graph_free(graph), TSR_OK);
}

TEST(CapiHandles, LivesAreIndependent) {
  tsr_engine engine = nullptr;
  ASSERT_EQ(tsr_engine_create(0, 7, &engine), TSR_OK);
  tsr_tensor a = nullptr, b = nullptr;
  const tsr_options options{engine, nullptr, TSR_F32};
  ASSERT_EQ(tsr_tensor_create(&a, two_by_three, 2, &options), TSR_OK);
  ASSERT_EQ(tsr_tensor_fill(a, 3), TSR_OK);
  ASSERT_EQ(tsr_add(a, a, &b), TSR_OK);
  EXPECT_EQ(tsr_engine_free(engine), TSR_OK);
  EXPECT_EQ(tsr_engine_free(engine), TSR_ERROR_HANDLE);
  EXPECT_EQ(tsr_tensor_free(a), TSR_OK);
  EXPECT_EQ(read(b, 6), std::vector<float>(6, 6.0f));
  EXPECT_EQ(tsr_tensor_free(b), TSR_OK);
}

TEST(CapiHandles, SeveralThreadsMakeAndFreeThem) {
  Handles own;
  const tsr_tensor shared = own(make({4}, 1));
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        tsr_tensor sum = nullptr;
        float values[4] = {};
        wrong[t] += tsr_add(shared, shared, &sum) != TSR_OK;
        wrong[t] += tsr_tensor_get_data(sum, values, sizeof values) != TSR_OK || values[3] != 2.0f;
        wrong[t] += tsr_tensor_free(sum) != TSR_OK;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

// ---- errors

TEST(CapiErrors, ShapesThatDoNotAgree) {
  Handles own;
  const tsr_tensor a = own(make({2, 3})), b = own(make({4, 5}));
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_add(a, b, &out), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("tsr_add: add: "));
  EXPECT_EQ(tsr_gemm(a, b, &out), TSR_ERROR_SHAPE);
  const std::int64_t seven[] = {7}, twice[] = {-1, -1}, negative[] = {-2, 3};
  EXPECT_EQ(tsr_reshape(a, seven, 1, &out), TSR_ERROR_SHAPE);
  EXPECT_EQ(tsr_reshape(a, twice, 2, &out), TSR_ERROR_SHAPE);
  EXPECT_EQ(tsr_tensor_init(&out, negative, 2, TSR_BACKEND_F32_CPU), TSR_ERROR_SHAPE);
  const std::uint32_t double_axis[] = {0, 0}, outside[] = {0, 2};
  EXPECT_EQ(tsr_transpose(a, double_axis, 2, &out), TSR_ERROR_SHAPE);
  EXPECT_EQ(tsr_transpose(a, outside, 2, &out), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("perm[1] is 2"));
  float values[5] = {};
  EXPECT_EQ(tsr_tensor_set_data(a, values, sizeof values), TSR_ERROR_SHAPE);
  EXPECT_EQ(tsr_tensor_get_data(a, values, sizeof values), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("have 24 bytes, not 20"));
  EXPECT_EQ(out, nullptr);
}

TEST(CapiErrors, SizesThatOverflow) {
  const std::int64_t huge[] = {INT64_MAX, 16};
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_tensor_init(&out, huge, 2, TSR_BACKEND_F32_CPU), TSR_ERROR_SHAPE);
  // One that does not overflow is a matter of memory; the limit says no before the system is asked.
  tsr_engine engine = nullptr;
  ASSERT_EQ(tsr_engine_create(1 << 30, 0, &engine), TSR_OK);
  const std::int64_t large[] = {std::int64_t{1} << 40, 1 << 16};
  const tsr_options options{engine, nullptr, TSR_F32};
  EXPECT_EQ(tsr_tensor_create(&out, large, 2, &options), TSR_ERROR_MEMORY);
  EXPECT_EQ(tsr_engine_free(engine), TSR_OK);
}

TEST(CapiEngines, AreMadeOnADevice) {
  tsr_engine engine = nullptr;
  EXPECT_EQ(tsr_engine_create_on("cpu:precise:threads=2", 0, 0, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_engine_create_on("abacus", 0, 0, &engine), TSR_ERROR_DEVICE);
  EXPECT_EQ(tsr_engine_create_on("cpu:threads=many", 0, 0, &engine), TSR_ERROR_DEVICE);
  ASSERT_EQ(tsr_engine_create_on("cpu:precise:threads=2", 0, 0, &engine), TSR_OK);
  const tsr_options options{engine, "cpu:precise:threads=2", TSR_F32};
  tsr_tensor a = nullptr, b = nullptr;
  ASSERT_EQ(tsr_tensor_create(&a, two_by_three, 2, &options), TSR_OK);
  ASSERT_EQ(tsr_tensor_fill(a, 3), TSR_OK);
  ASSERT_EQ(tsr_add(a, a, &b), TSR_OK);
  EXPECT_EQ(read(b, 6), std::vector<float>(6, 6.0f));
  EXPECT_EQ(tsr_tensor_free(a), TSR_OK);
  EXPECT_EQ(tsr_tensor_free(b), TSR_OK);
  EXPECT_EQ(tsr_engine_free(engine), TSR_OK);
}

TEST(CapiErrors, RanksAboveTheLimit) {
  Handles own;
  const tsr_tensor x = own(make({1}));
  const std::vector<std::int64_t> ones(TSR_MAX_RANK + 1, 1);
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_tensor_init(&out, ones.data(), TSR_MAX_RANK + 1, TSR_BACKEND_F32_CPU),
            TSR_ERROR_INVALID_OPERATION);
  EXPECT_TRUE(says("17"));
  EXPECT_EQ(tsr_reshape(x, ones.data(), TSR_MAX_RANK + 1, &out), TSR_ERROR_INVALID_OPERATION);
  ASSERT_EQ(tsr_reshape(x, ones.data(), TSR_MAX_RANK, &out), TSR_OK);
  EXPECT_EQ(tsr_tensor_free(out), TSR_OK);
}

TEST(CapiErrors, MoreAxesThanThereAre) {
  Handles own;
  const tsr_tensor x = own(make({2, 3}));
  const std::uint32_t perm[] = {2, 1, 0};
  const std::uint8_t mask[] = {1, 0, 1};
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_transpose(x, perm, 3, &out), TSR_ERROR_RANK);
  EXPECT_EQ(tsr_reduce_sum(x, mask, 3, &out), TSR_ERROR_RANK);
  EXPECT_TRUE(says("3 axes, the tensor has 2"));
}

TEST(CapiErrors, WritingToAComputedTensor) {
  Handles own;
  const tsr_tensor x = own(make({2}, 1));
  tsr_tensor y = nullptr;
  ASSERT_EQ(tsr_add(x, x, &y), TSR_OK);
  own(y);
  const float values[2] = {};
  for (int executed = 0; executed < 2; ++executed) {
    EXPECT_EQ(tsr_tensor_fill(y, 5), TSR_ERROR_INVALID_OPERATION);
    EXPECT_EQ(tsr_tensor_fill_rand(y), TSR_ERROR_INVALID_OPERATION);
    EXPECT_EQ(tsr_tensor_set_data(y, values, sizeof values), TSR_ERROR_INVALID_OPERATION);
    EXPECT_TRUE(says("computed by an op"));
    EXPECT_EQ(tsr_execute(y), TSR_OK);
  }
  EXPECT_EQ(read(y, 2), (std::vector<float>{2, 2}));
}

TEST(CapiErrors, TwoEngines) {
  tsr_engine other = nullptr;
  ASSERT_EQ(tsr_engine_create(0, 0, &other), TSR_OK);
  Handles own;
  const tsr_tensor here = own(make({2, 3}));
  tsr_tensor there = nullptr, out = nullptr;
  const tsr_options options{other, nullptr, TSR_F32};
  ASSERT_EQ(tsr_tensor_create(&there, two_by_three, 2, &options), TSR_OK);
  own(there);
  EXPECT_EQ(tsr_add(here, there, &out), TSR_ERROR_MERGE);
  const tsr_operand list[] = {tsr_operand_tensor(here), tsr_operand_tensor(there)};
  EXPECT_EQ(tsr_call("concat", list, 2, nullptr, 0, &out, 1, nullptr), TSR_ERROR_MERGE);
  const tsr_tensor both[] = {here, there};
  EXPECT_EQ(tsr_execute_all(both, 2), TSR_ERROR_MERGE);
  tsr_graph first = nullptr, second = nullptr;
  ASSERT_EQ(tsr_tensor_graph(here, &first), TSR_OK);
  ASSERT_EQ(tsr_tensor_graph(there, &second), TSR_OK);
  EXPECT_EQ(tsr_graph_merge(first, second), TSR_ERROR_MERGE);
  EXPECT_EQ(tsr_graph_free(first), TSR_OK);
  EXPECT_EQ(tsr_graph_free(second), TSR_OK);
  EXPECT_EQ(tsr_engine_free(other), TSR_OK);
}

TEST(CapiErrors, ComputingFailsAndLeavesTheValues) {
  Handles own;
  const tsr_tensor x = own(make({3}, 1));
  tsr_tensor indices = nullptr, taken = nullptr;
  const std::int64_t one[] = {1}, outside[] = {99};
  const tsr_options integers{nullptr, nullptr, TSR_I64};
  ASSERT_EQ(tsr_tensor_create(&indices, one, 1, &integers), TSR_OK);
  own(indices);
  ASSERT_EQ(tsr_tensor_set_data(indices, outside, sizeof outside), TSR_OK);
  const tsr_operand inputs[] = {tsr_operand_tensor(x), tsr_operand_tensor(indices)};
  ASSERT_EQ(tsr_call("gather", inputs, 2, nullptr, 0, &taken, 1, nullptr), TSR_OK) << tsr_last_error();
  own(taken);
  float value = 0;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(tsr_execute(taken), TSR_ERROR_EXECUTION);
    EXPECT_TRUE(says("99"));
    EXPECT_EQ(tsr_tensor_get_data(taken, &value, sizeof value), TSR_ERROR_EXECUTION);
  }
  EXPECT_EQ(read(x, 3), (std::vector<float>{1, 1, 1}));
}

TEST(CapiErrors, MemoryLimit) {
  tsr_engine small = nullptr;
  ASSERT_EQ(tsr_engine_create(1000, 0, &small), TSR_OK);
  const tsr_options options{small, nullptr, TSR_F32};
  const std::int64_t fits[] = {100}, does_not[] = {1000};
  Handles own;
  tsr_tensor x = nullptr, y = nullptr, z = nullptr;
  EXPECT_EQ(tsr_tensor_create(&x, does_not, 1, &options), TSR_ERROR_MEMORY);
  EXPECT_TRUE(says("memory limit"));
  ASSERT_EQ(tsr_tensor_create(&x, fits, 1, &options), TSR_OK);
  own(x);
  ASSERT_EQ(tsr_add(x, x, &y), TSR_OK);
  own(y);
  EXPECT_EQ(tsr_execute(y), TSR_OK);
  ASSERT_EQ(tsr_add(y, x, &z), TSR_OK);
  own(z);
  EXPECT_EQ(tsr_execute(z), TSR_ERROR_MEMORY);
  EXPECT_EQ(tsr_engine_free(small), TSR_OK);
}

TEST(CapiErrors, Devices) {
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_tensor_init(&out, two_by_three, 2, static_cast<tsr_backend>(0)), TSR_ERROR_DEVICE);
  const tsr_options options{nullptr, "abacus", TSR_F32};
  EXPECT_EQ(tsr_tensor_create(&out, two_by_three, 2, &options), TSR_ERROR_DEVICE);
  EXPECT_TRUE(says("'abacus'"));
  const tsr_options odd{nullptr, nullptr, static_cast<tsr_dtype>(13)};
  EXPECT_EQ(tsr_tensor_create(&out, two_by_three, 2, &odd), TSR_ERROR_INVALID_OPERATION);
}

TEST(CapiErrors, FilesThatCannotBeWritten) {
  Handles own;
  tsr_graph graph = nullptr;
  ASSERT_EQ(tsr_tensor_graph(own(make({2})), &graph), TSR_OK);
  EXPECT_EQ(tsr_graph_to_dot(graph, "/no/such/folder/graph.dot"), TSR_ERROR_IO);
  EXPECT_EQ(tsr_graph_free(graph), TSR_OK);
}

TEST(CapiErrors, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(tsr_tensor_free(nullptr), TSR_ERROR_NULL);
  std::string other = "not run";
  std::thread([&] { other = tsr_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_TRUE(says("tsr_tensor_free"));
}

TEST(CapiErrors, NamesOfCodes) {
  EXPECT_STREQ(tsr_error_name(TSR_ERROR_CYCLE), "TSR_ERROR_CYCLE");
  EXPECT_STREQ(tsr_error_name(0), "TSR_OK");
  EXPECT_STREQ(tsr_error_name(-1399), "unknown");
}

// ---- memory of the caller

TEST(CapiMemory, IsSharedAndGivenBackOnce) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int calls = 0;
  tsr_tensor x = nullptr, y = nullptr;
  ASSERT_EQ(
      tsr_tensor_from_memory(
          &x, data, two_by_three, 2, nullptr, [](void* context) { ++*static_cast<int*>(context); }, &calls),
      TSR_OK);
  const void* elements = nullptr;
  ASSERT_EQ(tsr_tensor_data(x, &elements), TSR_OK);
  EXPECT_EQ(elements, data);
  ASSERT_EQ(tsr_add(x, x, &y), TSR_OK);
  EXPECT_EQ(tsr_tensor_free(x), TSR_OK);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(read(y, 6), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(tsr_tensor_free(y), TSR_OK);
  EXPECT_EQ(calls, 1);
}

TEST(CapiMemory, StaysWithTheCallerIfItIsNotTaken) {
  float data[6] = {};
  int calls = 0;
  const auto count = [](void* context) { ++*static_cast<int*>(context); };
  tsr_tensor x = nullptr;
  const std::vector<std::int64_t> ones(TSR_MAX_RANK + 1, 1);
  EXPECT_LT(tsr_tensor_from_memory(&x, data, ones.data(), TSR_MAX_RANK + 1, nullptr, count, &calls), 0);
  const tsr_options nowhere{nullptr, "abacus", TSR_F32};
  EXPECT_LT(tsr_tensor_from_memory(&x, data, two_by_three, 2, &nowhere, count, &calls), 0);
  EXPECT_EQ(calls, 0);
}

TEST(CapiMemory, ADeleterMayThrowAndMayCallBack) {
  float data[6] = {};
  tsr_tensor x = nullptr;
  ASSERT_EQ(tsr_tensor_from_memory(
                &x, data, two_by_three, 2, nullptr,
                [](void*) {
                  tsr_tensor made = make({2});
                  EXPECT_EQ(tsr_tensor_free(made), TSR_OK);
                  throw std::runtime_error("from a deleter");
                },
                nullptr),
            TSR_OK);
  EXPECT_EQ(tsr_tensor_free(x), TSR_OK);
}

// ---- any op

TEST(CapiCall, UnknownOpsAttributesAndOperands) {
  Handles own;
  const tsr_operand input = tsr_operand_tensor(own(make({2})));
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_call("relu6000", &input, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  EXPECT_TRUE(says("no op 'relu6000'"));
  EXPECT_EQ(tsr_call("sofmax", &input, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  EXPECT_TRUE(says("there is no op 'sofmax', perhaps 'softmax'"));
  const tsr_attribute colour = tsr_attribute_integer("colour", 3);
  EXPECT_LT(tsr_call("relu", &input, 1, &colour, 1, &out, 1, nullptr), 0);
  EXPECT_TRUE(says("colour"));
  const tsr_attribute twice[] = {tsr_attribute_integer("axis", 0), tsr_attribute_integer("axis", 0)};
  EXPECT_EQ(tsr_call("softmax", &input, 1, twice, 2, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  const tsr_attribute odd = tsr_attribute_of_kind("axis", static_cast<tsr_attribute_kind>(77), 0);
  EXPECT_EQ(tsr_call("softmax", &input, 1, &odd, 1, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  const tsr_operand result = tsr_operand_result(0, 0);
  EXPECT_EQ(tsr_call("relu", &result, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  tsr_operand unknown = input;
  unknown.kind = static_cast<tsr_operand_kind>(9);
  EXPECT_EQ(tsr_call("relu", &unknown, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_call("add", &input, 1, nullptr, 0, &out, 1, nullptr), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(out, nullptr);
}

TEST(CapiCall, ReachesEveryOp) {
  // A call without inputs is right or wrong by the op's own rules, never for want of the op.
  for (const tessera::op::Card* card : tessera::op::all_cards()) {
    tsr_tensor out = nullptr;
    const int code = tsr_call(std::string(card->name).c_str(), nullptr, 0, nullptr, 0, &out, 1, nullptr);
    if (code == TSR_OK)
      EXPECT_EQ(tsr_tensor_free(out), TSR_OK);
    else
      EXPECT_TRUE(says(std::string(card->name).c_str()));
    EXPECT_FALSE(says("there is no op")) << card->name;
  }
}

TEST(CapiCall, SeveralResultsAndAttributesOfEachKind) {
  Handles own;
  const tsr_tensor x = own(make({4}));
  const float data[] = {3, 1, 4, 2};
  ASSERT_EQ(tsr_tensor_set_data(x, data, sizeof data), TSR_OK);
  const tsr_operand input = tsr_operand_tensor(x);
  const tsr_attribute attributes[] = {tsr_attribute_integer("k", 2)};
  tsr_tensor out[2] = {};
  int count = 0;
  ASSERT_EQ(tsr_call("topk", &input, 1, attributes, 1, out, 2, &count), TSR_OK) << tsr_last_error();
  EXPECT_EQ(count, 2);
  EXPECT_EQ(read(own(out[0]), 2), (std::vector<float>{4, 3}));
  std::int64_t places[2] = {};
  EXPECT_EQ(tsr_tensor_get_data(own(out[1]), places, sizeof places), TSR_OK);
  EXPECT_EQ(places[0], 2);
  EXPECT_EQ(places[1], 0);
  // Results that do not fit are dropped, and counted.
  tsr_tensor first = nullptr;
  ASSERT_EQ(tsr_call("topk", &input, 1, attributes, 1, &first, 1, &count), TSR_OK);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(read(own(first), 2), (std::vector<float>{4, 3}));
  // A dtype
  const tsr_attribute to = tsr_attribute_dtype("dtype", TSR_I32);
  tsr_tensor whole = nullptr;
  tsr_dtype dtype = TSR_F32;
  ASSERT_EQ(tsr_call("cast", &input, 1, &to, 1, &whole, 1, nullptr), TSR_OK);
  EXPECT_EQ(tsr_tensor_dtype(own(whole), &dtype), TSR_OK);
  EXPECT_EQ(dtype, TSR_I32);
  // A list and a flag
  const std::int64_t axes[] = {0};
  const tsr_attribute sum[] = {tsr_attribute_integers("axes", axes, 1), tsr_attribute_bool("keepdims", 1)};
  tsr_tensor total = nullptr;
  ASSERT_EQ(tsr_call("sum", &input, 1, sum, 2, &total, 1, nullptr), TSR_OK);
  EXPECT_EQ(read(own(total), 1), std::vector<float>{10});
}

TEST(CapiCall, OpsWithoutTensorsTakeEngineAndDtypeFromTheOptions) {
  tsr_engine engine = nullptr;
  ASSERT_EQ(tsr_engine_create(0, 0, &engine), TSR_OK);
  const tsr_options options{engine, nullptr, TSR_F64};
  const tsr_operand value = tsr_operand_real(2.5);
  const tsr_attribute shape = tsr_attribute_integers("shape", two_by_three, 2);
  tsr_tensor full = nullptr, zeros = nullptr, sum = nullptr;
  ASSERT_EQ(tsr_call_in(&options, "full", &value, 1, &shape, 1, &full, 1, nullptr), TSR_OK)
      << tsr_last_error();
  ASSERT_EQ(tsr_tensor_create(&zeros, two_by_three, 2, &options), TSR_OK);
  ASSERT_EQ(tsr_add(full, zeros, &sum), TSR_OK);
  double values[6] = {};
  ASSERT_EQ(tsr_tensor_get_data(sum, values, sizeof values), TSR_OK) << tsr_last_error();
  EXPECT_EQ(values[5], 2.5);
  for (tsr_tensor tensor : {full, zeros, sum}) EXPECT_EQ(tsr_tensor_free(tensor), TSR_OK);
  EXPECT_EQ(tsr_engine_free(engine), TSR_OK);
}

TEST(CapiGraph, AnInputIsALeafWithoutAttributes) {
  Handles own;
  const tsr_tensor x = own(make({2}, 3));
  ASSERT_EQ(tsr_tensor_fill_rand(x), TSR_OK);
  tsr_graph graph = nullptr;
  tsr_node_id id{};
  tsr_node node{};
  ASSERT_EQ(tsr_tensor_graph(x, &graph), TSR_OK);
  ASSERT_EQ(tsr_tensor_node_id(x, &id), TSR_OK);
  ASSERT_EQ(tsr_graph_get_node(graph, id, &node), TSR_OK);
  EXPECT_EQ(node.op_type, TSR_OP_LEAF);
  EXPECT_STREQ(node.op_name, "leaf");
  EXPECT_EQ(node.input_count, 0);
  std::int64_t sizes[2] = {};
  int count = 0;
  EXPECT_EQ(tsr_node_get_integers(graph, id, "shape", sizes, 2, &count), TSR_ERROR_NOT_FOUND);
  EXPECT_EQ(tsr_graph_free(graph), TSR_OK);
}

TEST(CapiGraph, AFurtherResultIsANodeOfItsCall) {
  Handles own;
  const tsr_operand input = tsr_operand_tensor(own(make({4})));
  const tsr_attribute k = tsr_attribute_integer("k", 2);
  tsr_tensor out[2] = {};
  ASSERT_EQ(tsr_call("topk", &input, 1, &k, 1, out, 2, nullptr), TSR_OK);
  own(out[0]);
  own(out[1]);
  tsr_graph graph = nullptr;
  tsr_node nodes[3] = {};
  int count = 0;
  ASSERT_EQ(tsr_tensor_graph(out[1], &graph), TSR_OK);
  ASSERT_EQ(tsr_graph_get_nodes(graph, nodes, 3, &count), TSR_OK);
  ASSERT_EQ(count, 3);
  EXPECT_STREQ(nodes[1].op_name, "topk");
  EXPECT_STREQ(nodes[2].op_name, "result");
  EXPECT_EQ(nodes[2].dtype, TSR_I64);
  tsr_node_id call{};
  EXPECT_EQ(tsr_graph_get_inputs(graph, nodes[2].id, &call, 1, &count), TSR_OK);
  EXPECT_EQ(call.low, nodes[1].id.low);
  EXPECT_EQ(tsr_graph_free(graph), TSR_OK);
}

TEST(CapiGraph, TextsAreCutToTheRoomThereIs) {
  Handles own;
  const tsr_operand input = tsr_operand_tensor(own(make({2, 3})));
  const tsr_attribute equation = tsr_attribute_text("equation", "ij->ji");
  tsr_tensor out = nullptr;
  ASSERT_EQ(tsr_call("einsum", &input, 1, &equation, 1, &out, 1, nullptr), TSR_OK) << tsr_last_error();
  own(out);
  tsr_graph graph = nullptr;
  tsr_node_id id{};
  ASSERT_EQ(tsr_tensor_graph(out, &graph), TSR_OK);
  ASSERT_EQ(tsr_tensor_node_id(out, &id), TSR_OK);
  char text[4] = {};
  std::size_t length = 0;
  EXPECT_EQ(tsr_node_get_text(graph, id, "equation", text, sizeof text, &length), TSR_OK) << tsr_last_error();
  EXPECT_STREQ(text, "ij-");
  EXPECT_EQ(length, 6U);
  EXPECT_EQ(tsr_node_get_text(graph, id, "equation", nullptr, 0, &length), TSR_OK);
  EXPECT_EQ(tsr_graph_free(graph), TSR_OK);
}

// ---- descriptions

TEST(CapiDescribe, CallsInAnyOrder) {
  Handles own;
  const tsr_tensor x = own(make({3}, 2));
  // call 0: relu(call 1), call 1: x * x - 1
  const tsr_operand relu[] = {tsr_operand_result(2, 0)};
  const tsr_operand square[] = {tsr_operand_tensor(x), tsr_operand_tensor(x)};
  const tsr_operand less[] = {tsr_operand_result(1, 0), tsr_operand_real(1)};
  const tsr_call_description calls[] = {
      {"relu", relu, 1, nullptr, 0}, {"mul", square, 2, nullptr, 0}, {"sub", less, 2, nullptr, 0}};
  const tsr_operand results[] = {tsr_operand_result(0, 0), tsr_operand_result(1, 0), tsr_operand_tensor(x)};
  tsr_tensor out[3] = {};
  ASSERT_EQ(tsr_describe(calls, 3, results, 3, out), TSR_OK) << tsr_last_error();
  EXPECT_EQ(read(own(out[0]), 3), (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(read(own(out[1]), 3), (std::vector<float>{4, 4, 4}));
  EXPECT_EQ(read(own(out[2]), 3), (std::vector<float>{2, 2, 2}));
}

TEST(CapiDescribe, ACycleIsFoundAndNamed) {
  Handles own;
  const tsr_tensor x = own(make({3}));
  const tsr_operand first[] = {tsr_operand_tensor(x)};
  const tsr_operand second[] = {tsr_operand_result(0, 0), tsr_operand_result(2, 0)};
  const tsr_operand third[] = {tsr_operand_result(1, 0)};
  const tsr_call_description calls[] = {
      {"relu", first, 1, nullptr, 0}, {"add", second, 2, nullptr, 0}, {"exp", third, 1, nullptr, 0}};
  const tsr_operand result = tsr_operand_result(0, 0);
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_describe(calls, 3, &result, 1, &out), TSR_ERROR_CYCLE);
  EXPECT_TRUE(says("call 1 (add) needs call 2 (exp) needs call 1 (add)"));
  const tsr_operand self[] = {tsr_operand_result(0, 0)};
  const tsr_call_description loop{"relu", self, 1, nullptr, 0};
  EXPECT_EQ(tsr_describe(&loop, 1, &result, 1, &out), TSR_ERROR_CYCLE);
  EXPECT_EQ(out, nullptr);
}

TEST(CapiDescribe, WrongCallsAndResults) {
  Handles own;
  const tsr_operand input = tsr_operand_tensor(own(make({3})));
  const tsr_call_description relu{"relu", &input, 1, nullptr, 0};
  tsr_tensor out = nullptr;
  for (const tsr_operand& wrong : {tsr_operand_result(1, 0), tsr_operand_result(-1, 0),
                                   tsr_operand_result(0, 1), tsr_operand_result(0, -1), tsr_operand_real(1)})
    EXPECT_EQ(tsr_describe(&relu, 1, &wrong, 1, &out), TSR_ERROR_INVALID_OPERATION);
  const tsr_operand outside = tsr_operand_result(7, 0), result = tsr_operand_result(0, 0);
  const tsr_call_description of_outside{"relu", &outside, 1, nullptr, 0};
  EXPECT_EQ(tsr_describe(&of_outside, 1, &result, 1, &out), TSR_ERROR_INVALID_OPERATION);
  EXPECT_TRUE(says("call 7; there are 1"));
  const tsr_call_description nameless{nullptr, &input, 1, nullptr, 0};
  EXPECT_EQ(tsr_describe(&nameless, 1, &result, 1, &out), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_describe(nullptr, 0, nullptr, 0, nullptr), TSR_OK);
}

TEST(CapiErrors, NameTheLineOfTheCaller) {
  Handles own;
  const tsr_tensor a = own(make({2})), b = own(make({3}));
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_at("model.c", 42), TSR_OK);
  EXPECT_EQ(tsr_add(a, b, &out), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("tsr_add: model.c:42: add: "));
  EXPECT_EQ(tsr_add(a, b, &out), TSR_ERROR_SHAPE);  // one call only
  EXPECT_FALSE(says("model.c"));
  EXPECT_EQ(tsr_at("model.c", 43), TSR_OK);
  EXPECT_EQ(tsr_add(a, nullptr, &out), TSR_ERROR_NULL);
  EXPECT_TRUE(says("model.c:43: "));
  EXPECT_EQ(tsr_at(nullptr, 44), TSR_OK);
  EXPECT_EQ(tsr_add(a, nullptr, &out), TSR_ERROR_NULL);
  EXPECT_FALSE(says(":44"));
}

TEST(CapiErrors, ThatShowLaterNameTheLineThatRecorded) {
  Handles own;
  const tsr_tensor a = own(make({2}));
  const tsr_operand inputs[] = {tsr_operand_tensor(a), tsr_operand_tensor(a)};
  tsr_tensor index = nullptr, out = nullptr;
  const tsr_options integers{nullptr, nullptr, TSR_I64};
  const std::int64_t one[] = {1};
  ASSERT_EQ(tsr_tensor_create(&index, one, 1, &integers), TSR_OK);
  own(index);
  const std::int64_t nine = 9;
  ASSERT_EQ(tsr_tensor_set_data(index, &nine, sizeof nine), TSR_OK);
  const tsr_operand gathered[] = {inputs[0], tsr_operand_tensor(index)};
  tsr_at("model.c", 7);
  ASSERT_EQ(tsr_call("gather", gathered, 2, nullptr, 0, &out, 1, nullptr), TSR_OK) << tsr_last_error();
  own(out);
  tsr_at("main.c", 99);
  EXPECT_EQ(tsr_execute(out), TSR_ERROR_EXECUTION);
  EXPECT_TRUE(says("tsr_execute: model.c:7: gather")) << tsr_last_error();
}

TEST(CapiDescribe, AnErrorNamesTheCall) {
  Handles own;
  const tsr_tensor a = own(make({2})), b = own(make({3}));
  const tsr_operand pair[] = {tsr_operand_tensor(a), tsr_operand_tensor(b)};
  const tsr_call_description add{"add", pair, 2, nullptr, 0};
  const tsr_operand result = tsr_operand_result(0, 0);
  tsr_tensor out = nullptr;
  EXPECT_EQ(tsr_describe(&add, 1, &result, 1, &out), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("call 0 (add)"));
}

// ---- plans from files

TEST(CapiPlan, ErrorsOfLoadingEndWithThePath) {
  const auto path = (std::filesystem::path(testing::TempDir()) / "capi_damaged.plan").string();
  tsr_plan plan = nullptr;
  const auto ends_with_path = [&] { return std::string_view(tsr_last_error()).ends_with(path); };
  std::filesystem::remove(path);
  EXPECT_EQ(tsr_plan_load(path.c_str(), nullptr, &plan), TSR_ERROR_IO);
  EXPECT_TRUE(ends_with_path()) << tsr_last_error();
  for (const std::string& content :
       {std::string(), std::string("this is no plan"), std::string(4096, '\0')}) {
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(tsr_plan_load(path.c_str(), nullptr, &plan), TSR_ERROR_PARSE) << tsr_last_error();
    EXPECT_TRUE(ends_with_path()) << tsr_last_error();
  }
  EXPECT_EQ(plan, nullptr);
}
