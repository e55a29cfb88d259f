#include <gtest/gtest.h>

#include "tessera/capi/tessera.h"
#include "tests/support/last_error.h"
#include "tests/support/onnx_file.h"

using namespace tessera::fixture;

namespace {

class CapiModel : public testing::Test {
 protected:
  void SetUp() override {
    path = dense_layer().write("capi_model.onnx");
    ASSERT_EQ(tsr_model_load_onnx(path.c_str(), nullptr, &model), TSR_OK) << tsr_last_error();
    const std::int64_t shape[] = {2, 2};
    ASSERT_EQ(tsr_tensor_init(&x, shape, 2, TSR_BACKEND_F32_CPU), TSR_OK);
    ASSERT_EQ(tsr_tensor_fill(x, 1), TSR_OK);
  }
  void TearDown() override {
    EXPECT_EQ(tsr_tensor_free(x), TSR_OK);
    EXPECT_EQ(tsr_model_free(model), TSR_OK);
  }

  std::string path;
  tsr_model model = nullptr;
  tsr_tensor x = nullptr;
};

}  // namespace

TEST_F(CapiModel, IsAFunctionOnTensors) {
  tsr_tensor y = nullptr;
  ASSERT_EQ(tsr_model_call(model, &x, 1, &y, 1), TSR_OK) << tsr_last_error();
  float values[6] = {};
  ASSERT_EQ(tsr_tensor_get_data(y, values, sizeof values), TSR_OK) << tsr_last_error();
  EXPECT_EQ(std::vector<float>(values, values + 6), (std::vector<float>{5, 0, 10, 5, 0, 10}));
  EXPECT_EQ(tsr_tensor_free(y), TSR_OK);
}

TEST_F(CapiModel, SaysWhatItTakesAndGives) {
  tsr_model_value value{};
  int count = 0;
  ASSERT_EQ(tsr_model_get_inputs(model, &value, 1, &count), TSR_OK);
  EXPECT_EQ(count, 1);
  EXPECT_STREQ(value.name, "x");
  EXPECT_EQ(value.dtype, TSR_F32);
  EXPECT_EQ(value.ndim, 2);
  EXPECT_EQ(value.shape[0], -1);
  EXPECT_EQ(value.shape[1], 2);
  ASSERT_EQ(tsr_model_get_outputs(model, nullptr, 0, &count), TSR_OK);
  EXPECT_EQ(count, 1);
}

TEST_F(CapiModel, WrongCallsChangeNothing) {
  tsr_tensor y = nullptr;
  EXPECT_EQ(tsr_model_call(model, &x, 1, &y, 2), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_model_call(model, nullptr, 0, &y, 1), TSR_ERROR_INVALID_OPERATION);
  EXPECT_EQ(tsr_model_call(model, nullptr, 1, &y, 1), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_model_call(nullptr, &x, 1, &y, 1), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_model_call(reinterpret_cast<tsr_model>(x), &x, 1, &y, 1), TSR_ERROR_HANDLE);
  tsr_tensor wide = nullptr;
  const std::int64_t shape[] = {2, 7};
  ASSERT_EQ(tsr_tensor_init(&wide, shape, 2, TSR_BACKEND_F32_CPU), TSR_OK);
  EXPECT_EQ(tsr_model_call(model, &wide, 1, &y, 1), TSR_ERROR_SHAPE);
  EXPECT_TRUE(says("input 'x' is f32[2, 7]"));
  EXPECT_EQ(tsr_tensor_free(wide), TSR_OK);
  EXPECT_EQ(y, nullptr);
}

TEST_F(CapiModel, FilesThatAreNoModelsAreErrors) {
  tsr_model none = nullptr;
  EXPECT_EQ(tsr_model_load_onnx("nowhere.onnx", nullptr, &none), TSR_ERROR_IO);
  EXPECT_TRUE(says("nowhere.onnx"));
  const std::string damaged = path + ".damaged";
  std::ofstream(damaged, std::ios::binary) << "this is no model";
  EXPECT_EQ(tsr_model_load_onnx(damaged.c_str(), nullptr, &none), TSR_ERROR_PARSE);
  EXPECT_TRUE(says(damaged.c_str()));
  EXPECT_STREQ(tsr_error_name(TSR_ERROR_PARSE), "TSR_ERROR_PARSE");
  EXPECT_EQ(tsr_model_load_onnx(nullptr, nullptr, &none), TSR_ERROR_NULL);
  EXPECT_EQ(tsr_model_load_onnx(path.c_str(), nullptr, nullptr), TSR_ERROR_NULL);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CapiModel, AFreedModelIsFoundOut) {
  tsr_model other = nullptr;
  ASSERT_EQ(tsr_model_load_onnx(path.c_str(), nullptr, &other), TSR_OK);
  EXPECT_EQ(tsr_model_free(other), TSR_OK);
  EXPECT_EQ(tsr_model_free(other), TSR_ERROR_HANDLE);
}
