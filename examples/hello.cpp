// A softmax layer in ten lines: nothing is computed before eval.
#include <tessera/tessera.h>

#include <cstdio>

namespace ts = tessera;

int main() {
  ts::Tensor x = ts::rand({64, 784}), w = ts::rand({784, 10}), b = ts::zeros({10});
  ts::Tensor y = ts::softmax(ts::matmul(x, w) + b, {.axis = -1});
  ts::eval(y);
  float v = y.item<float>({0, 3});
  std::printf("class 3 has the probability %g\n", v);
  return v > 0 && v < 1 ? 0 : 1;
}
