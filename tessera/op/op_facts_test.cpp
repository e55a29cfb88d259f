#include "tessera/op/op_facts.h"

#include <gtest/gtest.h>

#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::op;

namespace {

std::string_view meaning(std::string_view spelling) { return op_facts()->find(spelling).canonical; }

TEST(OpFacts, ACardSaysWhatItsOpIsCalled) {
  for (const Card* card : all_cards()) {
    EXPECT_EQ(meaning(card->name), card->name);
    if (card->onnx.type.empty()) continue;
    EXPECT_EQ(meaning(card->onnx.type), card->name) << card->onnx.type;
    EXPECT_EQ(meaning("onnx::" + std::string(card->onnx.type)), card->name) << card->onnx.type;
  }
  EXPECT_EQ(meaning("scaled_dot_product_attention"), "attention");
  EXPECT_EQ(meaning("Tensor.half"), "cast");
  EXPECT_EQ(meaning("//"), "floor_div");
}

TEST(OpFacts, ACardSaysWhichTraitsItsOpHas) {
  for (const Card* card : all_cards()) {
    EXPECT_EQ(op_facts()->has(card->name, "elementwise"), card->traits.elementwise) << card->name;
    EXPECT_EQ(op_facts()->has(card->name, "reduction"), card->traits.reduction) << card->name;
    EXPECT_EQ(op_facts()->has(card->name, "in_place"), card->traits.in_place) << card->name;
  }
  EXPECT_TRUE(op_facts()->has("broadcast_to", "broadcast"));
  EXPECT_TRUE(op_facts()->has("chunk", "view")) << "an op that has no card";
  EXPECT_FALSE(op_facts()->has("my_kernel", "elementwise"));
  EXPECT_FALSE(op_facts()->has("relu", "heavy"));
}

TEST(OpFacts, WhatIsElementwiseOrAReductionHasABodyThatKernelsAreMadeOf) {
  for (const Card* card : all_cards()) {
    EXPECT_EQ(card->traits.elementwise, card->pointwise != nullptr) << card->name;
    EXPECT_EQ(card->traits.indexed, card->indexed != nullptr) << card->name;
    EXPECT_TRUE(card->reduction == nullptr || card->traits.reduction) << card->name;
    EXPECT_TRUE(!card->traits.activation || card->pointwise != nullptr) << card->name;
  }
}

TEST(OpFacts, TheSeedsTable) {
  for (const char* spelling : {"operator.add", "torch.add", "Tensor.add", "Tensor.add_"})
    EXPECT_EQ(meaning(spelling), "add") << spelling;
  for (const char* spelling : {"F.relu", "torch.relu", "nn.ReLU", "relu", "Tensor.relu"})
    EXPECT_EQ(meaning(spelling), "relu") << spelling;
}

TEST(OpFacts, NamespacesComeOff) {
  for (const char* spelling :
       {"torch.nn.functional.relu", "F.relu", "torch.nn.ReLU", "nn.ReLU", "torch.nn.modules.activation.ReLU",
        "torch.Tensor.relu", "Tensor.relu", "aten::relu", "aten::relu_", "torch.ops.aten.relu.default",
        "aten.relu.default", "onnx::Relu", "ai.onnx.Relu", "Relu", "torch._C._nn.relu"})
    EXPECT_EQ(meaning(spelling), "relu") << spelling;
  EXPECT_EQ(meaning("aten::add.Tensor"), "add");
  EXPECT_EQ(meaning("_operator.matmul"), "matmul");
  EXPECT_EQ(meaning("torch.special.expit"), "sigmoid");
}

TEST(OpFacts, OtherNamesAreOrdinaryOps) {
  for (const char* name :
       {"", "my_kernel", "relu6", "torch.relu6", "nn.Fold", "RELU", "add__", "torch.", "aten::", "iadd",
        "____", "torch.nn.modules.", "addmm", "rsub", "__rsub__", "__rmatmul__", "masked_fill_", "\xff\x00x"})
    EXPECT_EQ(meaning(name), name);
}

TEST(OpFacts, TheSameNameInAnotherNamespaceMayBeAnotherOp) {
  EXPECT_EQ(meaning("Max"), "maximum");
  EXPECT_EQ(meaning("torch.max"), "max");
  EXPECT_EQ(meaning("Gather"), "gather");
  EXPECT_EQ(meaning("torch.gather"), "gather_elements");
  EXPECT_EQ(meaning("Tensor.repeat"), "tile");
  EXPECT_EQ(meaning("t"), "t");
  EXPECT_EQ(meaning("Tensor.t"), "transpose");
  EXPECT_EQ(meaning("rand"), "random_uniform");
  EXPECT_EQ(meaning("__rand__"), "bit_and");
  // Its inputs stand in another order than those of ONNX's and of torch.batch_norm.
  EXPECT_EQ(meaning("torch.nn.functional.batch_norm"), "F.batch_norm");
  EXPECT_EQ(meaning("torch.batch_norm"), "batch_norm");
}

TEST(OpFacts, FormsFollowFromTheNames) {
  const std::pair<const char*, const char*> rows[] = {
      {"__add__", "add"},           {"__radd__", "add"},
      {"__and__", "bit_and"},       {"__ror__", "bit_or"},
      {"__truediv__", "div"},       {"__invert__", "bit_not"},
      {"__abs__", "abs"},           {"operator.not_", "logical_not"},
      {"operator.and_", "bit_and"}, {"operator.inv", "bit_not"}};
  for (const auto& [spelling, op] : rows) {
    EXPECT_EQ(meaning(spelling), op) << spelling;
    EXPECT_FALSE(op_facts()->find(spelling).in_place) << spelling;
  }
  const std::pair<const char*, const char*> overwriting[] = {{"add_", "add"},
                                                             {"Tensor.relu_", "relu"},
                                                             {"operator.iadd", "add"},
                                                             {"__imul__", "mul"},
                                                             {"aten::add_.Tensor", "add"},
                                                             {"torch.relu_", "relu"},
                                                             {"__iand__", "bit_and"},
                                                             {"operator.ior", "bit_or"},
                                                             {"Tensor.clamp_", "clip"},
                                                             {"__ifloordiv__", "floor_div"},
                                                             {"Tensor.scatter_", "scatter_elements"}};
  for (const auto& [spelling, op] : overwriting) {
    EXPECT_EQ(meaning(spelling), op) << spelling;
    EXPECT_TRUE(op_facts()->find(spelling).in_place) << spelling;
  }
  EXPECT_FALSE(op_facts()->find("my_op_").in_place);
}

}  // namespace
