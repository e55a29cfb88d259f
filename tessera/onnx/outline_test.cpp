#include "tessera/onnx/outline.h"

#include <gtest/gtest.h>

#include "tessera/onnx/read.h"
#include "tests/support/onnx_file.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// A model with one tensor of `count` floats, with `pad` bytes of a name in front of its elements.
OnnxFile with_weights(std::int64_t count, std::size_t pad) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  OnnxFile out;
  const std::string name = "w" + std::string(pad, 'x');
  out.nodes = {onnx_node("Relu", {name}, {"y"})};
  out.tensors = {onnx_tensor(name, {count}, values)};
  out.outputs = {onnx_value("y", {"n"})};
  return out;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(Outline, LeavesLargeTensorsInTheFile) {
  const std::string model = content_of(with_weights(10000, 0).write("outline.onnx"));
  const auto outline = onnx::outline_of(bytes_of(model));
  ASSERT_TRUE(outline);
  EXPECT_LT(outline->size(), 200U);
}

TEST(Outline, SmallTensorsStayInTheMessage) {
  const std::string model = content_of(with_weights(8, 0).write("outline.onnx"));
  const auto outline = onnx::outline_of(bytes_of(model));
  ASSERT_TRUE(outline);
  EXPECT_EQ(*outline, model);
}

TEST(Outline, WeightsAreReadAtEveryAlignment) {
  for (std::size_t pad = 0; pad < 8; ++pad) {
    const auto model = value_or_throw(onnx::read_model(with_weights(1000, pad).write("outline.onnx")));
    const auto values = model.graph.initializers[0].value.values<float>();
    ASSERT_EQ(values.size(), 1000U);
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[999], 999);
  }
}

TEST(Outline, AlignedWeightsAreNotCopied) {
  bool is_mapped_once = false;
  for (std::size_t pad = 0; pad < 4; ++pad) {
    const std::string path = with_weights(1000, pad).write("outline.onnx");
    const auto model = value_or_throw(onnx::read_model(path));
    const auto* data = reinterpret_cast<const char*>(model.graph.initializers[0].value.array().data);
    // A mapping begins at a page: the elements are as far behind it as in the file.
    const std::size_t offset = content_of(path).find(std::string(data, 4000));
    is_mapped_once = is_mapped_once || reinterpret_cast<std::uintptr_t>(data) % 4096 == offset % 4096;
  }
  EXPECT_TRUE(is_mapped_once);
}

TEST(Outline, WhatDoesNotDecodeHasNone) {
  const std::string model = content_of(with_weights(1000, 0).write("outline.onnx"));
  for (std::size_t length = 0; length < model.size(); length += 7) {
    const std::string cut = model.substr(0, length);
    const auto outline = onnx::outline_of(bytes_of(cut));  // must not read beyond the end
    EXPECT_LE(outline.value_or("").size(), cut.size() + 64);
  }
  EXPECT_FALSE(onnx::outline_of(bytes_of("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")));
}

TEST(Outline, AForgedPlaceIsChecked) {
  // A tensor that claims to lie at the end of the file, in the words of an outline.
  EXPECT_FALSE(onnx::place_in("12"));
  EXPECT_FALSE(onnx::place_in("12:"));
  EXPECT_FALSE(onnx::place_in(":12"));
  EXPECT_FALSE(onnx::place_in("1:2 "));
  EXPECT_FALSE(onnx::place_in("-1:2"));
  EXPECT_EQ(onnx::place_in("3:40")->length, 40U);
}
