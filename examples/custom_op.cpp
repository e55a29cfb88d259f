// Custom ops: a C++ function of one's own becomes an op, with shapes, errors, a gradient and plans.
#include <tessera/tessera.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace ts = tessera;

namespace {

/// The largest distance between any two of the points that are the rows of `points`.
void largest_distance(std::span<const ts::Elements> arguments, std::span<const ts::Elements> results) {
  const auto points = arguments[0].data<const float>();
  const auto width = static_cast<std::size_t>(arguments[0].shape()[1]);
  float& largest = results[0].data<float>()[0];
  for (std::size_t a = 0; a < points.size(); a += width)
    for (std::size_t b = 0; b < a; b += width) {
      float sum = 0;
      for (std::size_t i = 0; i < width; ++i)
        sum += (points[a + i] - points[b + i]) * (points[a + i] - points[b + i]);
      largest = std::max(largest, std::sqrt(sum));
    }
}

}  // namespace

int main() {
  const ts::Custom diameter = ts::custom({
      .name = "diameter",
      .types =
          [](std::span<const ts::TensorType> xs) {
            if (xs[0].rank() != 2) throw std::invalid_argument("the points are the rows of a matrix");
            return std::vector<ts::TensorType>{{xs[0].dtype, {}}};
          },
      .run = largest_distance,
  });
  const ts::Custom cube = ts::custom({
      .name = "cube",
      .run =
          [](auto xs, auto ys) {
            for (std::size_t i = 0; i < static_cast<std::size_t>(xs[0].size()); ++i)
              ys[0].template data<float>()[i] = std::pow(xs[0].template data<float>()[i], 3.0f);
          },
      .gradient = [](const auto& xs, const ts::Tensor&,
                     const ts::Tensor& dy) { return std::vector{xs[0] * xs[0] * dy * 3}; },
  });

  // In plain code, which becomes a plan when it is evaluated again and again.
  const ts::Tensor points = ts::from_vector<float>({0, 0, 3, 0, 3, 4}, {3, 2});
  float found = 0;
  for (int i = 1; i <= 100; ++i) found = diameter(points * static_cast<float>(i)).item<float>();
  std::printf("the largest distance is %g\n", found);

  // In a compiled function, and with a gradient.
  const auto loss = ts::compile([&](const ts::Tensor& x) { return ts::sum(cube(x) - x); });
  const auto slope = ts::grad([&](const std::vector<ts::Tensor>& xs) { return loss(xs[0]); });
  std::printf("the slope at 2 is %g\n", slope({ts::tensor({2})})[0].item<float>());

  // A wrong call is said where it was written.
  try {
    (void)diameter(ts::tensor({1, 2}));
    return 1;
  } catch (const ts::Exception& error) {
    std::printf("%s\n", error.error().message().c_str());
  }
  return found == 500 ? 0 : 1;
}
