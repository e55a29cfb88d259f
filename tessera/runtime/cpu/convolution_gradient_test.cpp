#include "tessera/runtime/cpu/convolution_gradient.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/product_case.h"

using namespace tessera;
using namespace tessera::fixture;
using namespace tessera::runtime::cpu;

namespace {

using AxisNumbers = std::vector<std::int64_t>;

struct Geometry {
  op::Extents small, weights;  ///< of a transposed convolution
  AxisNumbers strides = {}, pads = {}, dilations = {};
  std::int64_t groups = 1;
  AxisNumbers output_padding = {};
};

const Geometry geometries[] = {
    {{1, 3, 9, 8}, {3, 5, 3, 3}},
    {{2, 4, 7, 6}, {4, 6, 2, 2}, {2, 2}},
    {{2, 4, 7, 6}, {4, 6, 4, 4}, {2, 2}, {1, 1, 1, 1}},
    {{1, 4, 5, 9}, {4, 3, 3, 2}, {2, 3}, {1, 0, 2, 1}, {1, 2}, 2, {1, 2}},
    {{3, 6, 40}, {6, 2, 5}, {3}, {2, 1}, {2}, 3},
    {{1, 2, 5, 5}, {2, 7, 3, 3}, {4, 4}, {2, 2, 2, 2}},
};

op::HostTensor random_tensor(op::Extents shape, std::uint32_t seed) {
  return f32_tensor(shape, random_floats(op::element_count(shape), seed));
}

/// By products, and by the reference.
void expect_right(std::string_view name, const std::vector<op::HostTensor>& inputs,
                  const op::Attributes& attributes) {
  const op::Card& card = *op::find_card(name);
  const op::Attributes complete = value_or_throw(op::complete_attributes(card, attributes));
  std::vector<op::Array> arrays;
  op::ValueTypes types;
  for (const op::HostTensor& input : inputs) {
    arrays.push_back(input.array());
    types.push_back({input.dtype(), ir::shape_of(std::span<const std::int64_t>(input.shape()))});
  }
  const auto expected = value_or_throw(op::run_reference(card, arrays, complete))[0];
  const auto got = value_or_throw(op::HostTensor::allocate(op::Dtype::f32, expected.shape()));
  for (float& value : got.values<float>()) value = 99;  // all of it is written
  ThreadPool threads(2);
  Libraries libraries(false, threads.size());
  const op::Array results[] = {got.array()};
  ASSERT_TRUE(value_or_throw(run_convolution_gradient({card, types, complete}, arrays, results,
                                                      {.threads = threads, .libraries = libraries})));
  EXPECT_LE(largest_difference(got, expected), 1e-4) << name;
}

op::Attributes attributes_of(const Geometry& geometry) {
  return {{"strides", geometry.strides},
          {"pads", geometry.pads},
          {"dilations", geometry.dilations},
          {"groups", geometry.groups}};
}

}  // namespace

TEST(ConvolutionGradient, TransposedConvolutionsAgreeWithTheReference) {
  for (const Geometry& geometry : geometries) {
    SCOPED_TRACE(cat("weights [", join(geometry.weights, ", "), "]"));
    op::Attributes attributes = attributes_of(geometry);
    attributes.set("output_padding", geometry.output_padding);
    std::vector<op::HostTensor> inputs{random_tensor(geometry.small, 1), random_tensor(geometry.weights, 2)};
    expect_right("conv_transpose", inputs, attributes);
    inputs.push_back(random_tensor({geometry.weights[1] * geometry.groups}, 3));
    expect_right("conv_transpose", inputs, attributes);
  }
}

TEST(ConvolutionGradient, OfWeightsAgreesWithTheReference) {
  for (const Geometry& geometry : geometries) {
    SCOPED_TRACE(cat("weights [", join(geometry.weights, ", "), "]"));
    op::Attributes attributes = attributes_of(geometry);
    attributes.set("output_padding", geometry.output_padding);
    const auto small = random_tensor(geometry.small, 1), weights = random_tensor(geometry.weights, 2);
    const auto large = call("conv_transpose", {small, weights}, attributes);
    attributes = attributes_of(geometry);
    op::Shape kernel;
    for (std::size_t i = 2; i < geometry.weights.size(); ++i) kernel.push_back(geometry.weights[i]);
    attributes.set("kernel", kernel);
    expect_right("conv_weight_gradient", {random_tensor(large.shape(), 4), small}, attributes);
  }
}

TEST(ConvolutionGradient, OfLargeImagesGoesInParts) {
  const Geometry geometry{{1, 3, 200, 220}, {3, 40, 3, 3}, {1, 1}, {1, 1, 1, 1}};
  expect_right("conv_transpose", {random_tensor(geometry.small, 1), random_tensor(geometry.weights, 2)},
               attributes_of(geometry));
}
