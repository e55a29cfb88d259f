#include "tessera/ir/canonical_name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

using namespace tessera::ir;

namespace {

/// Each op with its spellings, as programs write them.
struct Row {
  std::string canonical;
  std::string spellings;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      // clang-format off
    {"abs", "abs absolute Abs Tensor.abs_ __abs__"},
    {"acos", "acos arccos onnx::Acos Tensor.acos_ Tensor.arccos_"},
    {"acosh", "acosh arccosh Acosh Tensor.acosh_ Tensor.arccosh_"},
    {"add", "add Add Tensor.add_ __add__ __radd__ __iadd__ operator.iadd +"},
    {"all", "all"},
    {"any", "any"},
    {"arange", "arange Range"},
    {"argmax", "argmax onnx::ArgMax"},
    {"argmin", "argmin onnx::ArgMin"},
    {"asin", "asin arcsin onnx::Asin Tensor.asin_ Tensor.arcsin_"},
    {"asinh", "asinh arcsinh Asinh Tensor.asinh_ Tensor.arcsinh_"},
    {"atan", "atan arctan onnx::Atan Tensor.atan_ Tensor.arctan_"},
    {"atan2", "atan2 arctan2 Tensor.atan2_ Tensor.arctan2_"},
    {"atanh", "atanh arctanh Atanh Tensor.atanh_ Tensor.arctanh_"},
    {"attention", "attention Attention torch.nn.functional.scaled_dot_product_attention"},
    {"avg_pool", "avg_pool avg_pool1d torch.nn.functional.avg_pool2d avg_pool3d torch.nn.AvgPool1d torch.nn.AvgPool2d torch.nn.AvgPool3d AveragePool"},
    {"batch_norm", "batch_norm torch.nn.BatchNorm1d torch.nn.BatchNorm2d torch.nn.BatchNorm3d onnx::BatchNormalization"},
    {"bit_and", "bit_and bitwise_and onnx::BitwiseAnd Tensor.bitwise_and_ operator.and_ __and__ __rand__ __iand__ operator.iand &"},
    {"bit_not", "bit_not bitwise_not onnx::BitwiseNot Tensor.bitwise_not_ operator.invert operator.inv __invert__ ~"},
    {"bit_or", "bit_or bitwise_or BitwiseOr Tensor.bitwise_or_ operator.or_ __or__ __ror__ __ior__ operator.ior |"},
    {"bit_xor", "bit_xor bitwise_xor onnx::BitwiseXor Tensor.bitwise_xor_ operator.xor __xor__ __rxor__ __ixor__ operator.ixor ^"},
    {"broadcast_to", "broadcast_to torch.ops.aten.expand.default onnx::Expand"},
    {"cast", "cast onnx::Cast astype Tensor.to Tensor.type Tensor.float Tensor.half Tensor.double Tensor.bfloat16 Tensor.int Tensor.long Tensor.short Tensor.bool"},
    {"ceil", "ceil onnx::Ceil Tensor.ceil_"},
    {"clip", "clip clamp onnx::Clip Tensor.clamp_ Tensor.clip_"},
    {"concat", "concat cat concatenate onnx::Concat"},
    {"conv", "conv torch.nn.functional.conv1d torch.nn.functional.conv2d torch.nn.functional.conv3d torch.nn.Conv1d torch.nn.Conv2d torch.nn.Conv3d onnx::Conv"},
    {"cos", "cos Cos Tensor.cos_"},
    {"cosh", "cosh onnx::Cosh Tensor.cosh_"},
    {"cross_entropy", "torch.nn.functional.cross_entropy torch.nn.CrossEntropyLoss SoftmaxCrossEntropyLoss"},
    {"cumsum", "cumsum onnx::CumSum Tensor.cumsum_"},
    {"div", "div divide true_divide operator.truediv Div Tensor.div_ Tensor.divide_ Tensor.true_divide_ __truediv__ __itruediv__ __div__ __idiv__ operator.itruediv /"},
    {"einsum", "einsum onnx::Einsum"},
    {"elu", "torch.nn.functional.elu torch.nn.ELU Elu Tensor.elu_"},
    {"eq", "eq Equal Tensor.eq_ __eq__ =="},
    {"erf", "erf Erf Tensor.erf_"},
    {"erfc", "erfc Tensor.erfc_"},
    {"exp", "exp Exp Tensor.exp_"},
    {"exp2", "exp2 Tensor.exp2_"},
    {"expm1", "expm1 Tensor.expm1_"},
    {"eye", "eye"},
    {"flip", "flip"},
    {"floor", "floor Floor Tensor.floor_"},
    {"floor_div", "floor_div floor_divide operator.floordiv Tensor.floor_divide_ __floordiv__ __ifloordiv__ operator.ifloordiv //"},
    {"fmod", "fmod Tensor.fmod_"},
    {"full", "full"},
    {"gather", "gather onnx::Gather index_select"},
    {"gather_elements", "gather_elements onnx::GatherElements torch.gather Tensor.gather aten::gather"},
    {"gather_nd", "gather_nd onnx::GatherND"},
    {"ge", "ge greater_equal onnx::GreaterOrEqual Tensor.ge_ __ge__ >="},
    {"gelu", "torch.nn.functional.gelu torch.nn.GELU onnx::Gelu"},
    {"gelu_tanh", "gelu_tanh"},
    {"global_avg_pool", "global_avg_pool GlobalAveragePool"},
    {"global_max_pool", "global_max_pool GlobalMaxPool"},
    {"group_norm", "torch.nn.functional.group_norm torch.nn.GroupNorm onnx::GroupNormalization"},
    {"gt", "gt greater Greater Tensor.gt_ __gt__ >"},
    {"hard_sigmoid", "hard_sigmoid torch.nn.functional.hardsigmoid torch.nn.Hardsigmoid HardSigmoid Tensor.hardsigmoid_"},
    {"hard_swish", "hard_swish torch.nn.functional.hardswish torch.nn.Hardswish HardSwish Tensor.hardswish_"},
    {"identity", "identity torch.nn.Identity Tensor.contiguous"},
    {"isfinite", "isfinite"},
    {"isinf", "isinf IsInf"},
    {"isnan", "isnan IsNaN"},
    {"l1_norm", "l1_norm onnx::ReduceL1"},
    {"l2_norm", "l2_norm onnx::ReduceL2"},
    {"layer_norm", "torch.nn.functional.layer_norm torch.nn.LayerNorm onnx::LayerNormalization"},
    {"le", "le less_equal LessOrEqual Tensor.le_ __le__ <="},
    {"leaky_relu", "torch.nn.functional.leaky_relu torch.nn.LeakyReLU LeakyRelu Tensor.leaky_relu_"},
    {"log", "log Log Tensor.log_"},
    {"log10", "log10 Tensor.log10_"},
    {"log1p", "log1p Tensor.log1p_"},
    {"log2", "log2 Tensor.log2_"},
    {"log_softmax", "torch.nn.functional.log_softmax torch.nn.LogSoftmax torch.ops.aten._log_softmax.default"},
    {"logical_and", "logical_and And Tensor.logical_and_"},
    {"logical_not", "logical_not Not Tensor.logical_not_ operator.not_"},
    {"logical_or", "logical_or onnx::Or Tensor.logical_or_"},
    {"logical_xor", "logical_xor Xor Tensor.logical_xor_"},
    {"logsumexp", "logsumexp ReduceLogSumExp"},
    {"lt", "lt less onnx::Less Tensor.lt_ __lt__ <"},
    {"matmul", "matmul torch.ops.aten.mm.default torch.ops.aten.bmm.default onnx::MatMul __matmul__ __imatmul__ operator.imatmul @"},
    {"max", "max torch.ops.aten.amax.default ReduceMax"},
    {"max_pool", "max_pool max_pool1d torch.nn.functional.max_pool2d max_pool3d torch.nn.MaxPool1d torch.nn.MaxPool2d torch.nn.MaxPool3d MaxPool"},
    {"maximum", "maximum Max"},
    {"mean", "mean onnx::ReduceMean"},
    {"min", "min torch.ops.aten.amin.default ReduceMin"},
    {"minimum", "minimum Min"},
    {"mish", "torch.nn.functional.mish torch.nn.Mish Tensor.mish_"},
    {"mod", "mod remainder Mod Tensor.remainder_ __mod__ __imod__ operator.imod %"},
    {"mul", "mul multiply Mul Tensor.mul_ Tensor.multiply_ __mul__ __rmul__ __imul__ operator.imul *"},
    {"ne", "ne not_equal Tensor.ne_ __ne__ !="},
    {"neg", "neg negative Neg Tensor.neg_ Tensor.negative_ __neg__"},
    {"nonzero", "nonzero NonZero"},
    {"one_hot", "torch.nn.functional.one_hot onnx::OneHot"},
    {"pad", "torch.nn.functional.pad Pad torch.ops.aten.constant_pad_nd.default"},
    {"pow", "pow Pow Tensor.pow_ __pow__ __ipow__ operator.ipow **"},
    {"prelu", "torch.nn.functional.prelu torch.nn.PReLU PRelu"},
    {"prod", "prod onnx::ReduceProd"},
    {"random_normal", "random_normal randn onnx::RandomNormal"},
    {"random_uniform", "random_uniform rand RandomUniform"},
    {"reciprocal", "reciprocal onnx::Reciprocal Tensor.reciprocal_"},
    {"relu", "torch.nn.functional.relu torch.nn.ReLU onnx::Relu Tensor.relu_"},
    {"reshape", "reshape Tensor.view Reshape torch.ops.aten._unsafe_view.default"},
    {"rms_norm", "rms_norm torch.nn.RMSNorm onnx::RMSNormalization"},
    {"round", "round Round Tensor.round_"},
    {"rsqrt", "torch.ops.aten.rsqrt.default Tensor.rsqrt_"},
    {"scatter_elements", "scatter_elements ScatterElements torch.scatter Tensor.scatter aten::scatter Tensor.scatter_ aten::scatter_"},
    {"scatter_nd", "scatter_nd ScatterND"},
    {"selu", "torch.nn.functional.selu torch.nn.SELU onnx::Selu Tensor.selu_"},
    {"shift_left", "shift_left bitwise_left_shift operator.lshift __lshift__ Tensor.bitwise_left_shift_ __ilshift__ operator.ilshift <<"},
    {"shift_right", "shift_right bitwise_right_shift operator.rshift __rshift__ Tensor.bitwise_right_shift_ __irshift__ operator.irshift >>"},
    {"sigmoid", "sigmoid torch.nn.Sigmoid Tensor.sigmoid_ expit"},
    {"sign", "sign onnx::Sign Tensor.sign_"},
    {"silu", "torch.nn.functional.silu torch.nn.SiLU Tensor.silu_ swish Swish"},
    {"sin", "sin Sin Tensor.sin_"},
    {"sinh", "sinh onnx::Sinh Tensor.sinh_"},
    {"slice", "slice Slice Tensor.narrow"},
    {"softmax", "torch.nn.functional.softmax torch.nn.Softmax torch.ops.aten._softmax.default"},
    {"softplus", "torch.nn.functional.softplus torch.nn.Softplus"},
    {"softsign", "torch.nn.functional.softsign torch.nn.Softsign"},
    {"sort", "sort"},
    {"split", "split Split"},
    {"sqrt", "sqrt onnx::Sqrt Tensor.sqrt_"},
    {"square", "square Tensor.square_"},
    {"squeeze", "squeeze Squeeze"},
    {"stop_gradient", "stop_gradient Tensor.detach"},
    {"sub", "sub subtract Sub Tensor.sub_ Tensor.subtract_ __sub__ __isub__ operator.isub -"},
    {"sum", "sum ReduceSum"},
    {"tan", "tan Tan Tensor.tan_"},
    {"tanh", "tanh torch.nn.Tanh Tensor.tanh_"},
    {"tile", "tile onnx::Tile Tensor.repeat aten::repeat"},
    {"topk", "topk onnx::TopK"},
    {"transpose", "transpose torch.ops.aten.permute.default Transpose torch.t Tensor.t aten::t Tensor.swapaxes Tensor.swapdims movedim moveaxis"},
    {"tril", "tril Tensor.tril_"},
    {"triu", "triu Tensor.triu_"},
    {"trunc", "trunc fix Tensor.trunc_ Tensor.fix_"},
    {"unsqueeze", "unsqueeze Unsqueeze expand_dims"},
    {"update_slice", "update_slice"},
    {"where", "where Where"},
    {"F.batch_norm", "F.batch_norm"},
    {"adaptive_avg_pool", "adaptive_avg_pool adaptive_avg_pool1d torch.nn.functional.adaptive_avg_pool2d adaptive_avg_pool3d torch.nn.AdaptiveAvgPool1d torch.nn.AdaptiveAvgPool2d torch.nn.AdaptiveAvgPool3d"},
    {"adaptive_max_pool", "adaptive_max_pool adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d torch.nn.AdaptiveMaxPool1d torch.nn.AdaptiveMaxPool2d torch.nn.AdaptiveMaxPool3d"},
    {"chunk", "chunk torch.chunk Tensor.chunk"},
    {"select", "select torch.select Tensor.select"},
    {"stack", "stack torch.stack"},
    {"unbind", "unbind torch.unbind Tensor.unbind"},
    {"dropout", "torch.nn.functional.dropout torch.nn.Dropout Tensor.dropout_"},
    {"embedding", "torch.nn.functional.embedding torch.nn.Embedding"},
    {"flatten", "flatten torch.nn.Flatten"},
    {"getitem", "operator.getitem __getitem__"},
    {"linear", "torch.nn.functional.linear torch.nn.Linear"},
      // clang-format on
  };
  return all;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(CanonicalName, EverySpellingMeansItsOp) {
  for (const Row& row : rows())
    for (const std::string& spelling : words(row.spellings))
      EXPECT_EQ(canonical_name(spelling), row.canonical) << spelling;
}

TEST(CanonicalName, EveryRowOfTheTableIsTested) {
  std::set<const OpSpelling*> tested;
  for (const Row& row : rows())
    for (const std::string& spelling : words(row.spellings)) tested.insert(find_op_spelling(spelling));
  for (const OpSpelling& row : op_spellings()) EXPECT_TRUE(tested.contains(&row)) << row.spelling;
}

TEST(CanonicalName, ACanonicalNameMeansItself) {
  for (const OpSpelling& row : op_spellings())
    EXPECT_EQ(canonical_name(row.canonical), row.canonical) << row.spelling;
}

TEST(CanonicalName, TheSeedsTable) {
  for (const char* spelling : {"operator.add", "torch.add", "Tensor.add", "Tensor.add_"})
    EXPECT_EQ(canonical_name(spelling), "add") << spelling;
  for (const char* spelling : {"F.relu", "torch.relu", "nn.ReLU", "relu", "Tensor.relu"})
    EXPECT_EQ(canonical_name(spelling), "relu") << spelling;
}

TEST(CanonicalName, NamespacesComeOff) {
  for (const char* spelling :
       {"torch.nn.functional.relu", "F.relu", "torch.nn.ReLU", "nn.ReLU", "torch.nn.modules.activation.ReLU",
        "torch.Tensor.relu", "Tensor.relu", "aten::relu", "aten::relu_", "torch.ops.aten.relu.default",
        "aten.relu.default", "onnx::Relu", "ai.onnx.Relu", "Relu", "torch._C._nn.relu"})
    EXPECT_EQ(canonical_name(spelling), "relu") << spelling;
  EXPECT_EQ(canonical_name("aten::add.Tensor"), "add");
  EXPECT_EQ(canonical_name("_operator.matmul"), "matmul");
  EXPECT_EQ(canonical_name("torch.special.expit"), "sigmoid");
}

TEST(CanonicalName, OtherNamesAreOrdinaryOps) {
  for (const char* name :
       {"", "my_kernel", "relu6", "torch.relu6", "nn.Fold", "RELU", "add__", "torch.",
        "aten::", "torch.nn.modules.", "addmm", "rsub", "__rsub__", "masked_fill_", "\xff\x00x"})
    EXPECT_EQ(canonical_name(name), name);
}

TEST(CanonicalName, TheSameNameInAnotherNamespaceMayBeAnotherOp) {
  EXPECT_EQ(canonical_name("Max"), "maximum");
  EXPECT_EQ(canonical_name("torch.max"), "max");
  EXPECT_EQ(canonical_name("Gather"), "gather");
  EXPECT_EQ(canonical_name("torch.gather"), "gather_elements");
  EXPECT_EQ(canonical_name("Tensor.repeat"), "tile");
  EXPECT_EQ(canonical_name("t"), "t");
  EXPECT_EQ(canonical_name("Tensor.t"), "transpose");
  // Its inputs stand in another order than those of ONNX's and of torch.batch_norm.
  EXPECT_EQ(canonical_name("torch.nn.functional.batch_norm"), "F.batch_norm");
  EXPECT_EQ(canonical_name("torch.batch_norm"), "batch_norm");
}

TEST(CanonicalName, KnowsWhichSpellingsOverwrite) {
  for (const char* spelling :
       {"add_", "Tensor.relu_", "operator.iadd", "__imul__", "aten::add_.Tensor", "torch.relu_"})
    EXPECT_TRUE(is_in_place_spelling(spelling)) << spelling;
  for (const char* spelling : {"add", "and_", "or_", "not_", "operator.and_", "__add__", "my_op_", "Relu"})
    EXPECT_FALSE(is_in_place_spelling(spelling)) << spelling;
}

TEST(CanonicalName, OnlyAnOverwritingSpellingEndsInAnUnderscore) {
  for (const OpSpelling& row : op_spellings()) {
    const bool python_word = row.spelling == "and_" || row.spelling == "or_" || row.spelling == "not_";
    if (row.spelling.ends_with("_") && !row.spelling.ends_with("__")) {
      EXPECT_NE(row.in_place, python_word) << row.spelling;
    }
  }
}

}  // namespace
