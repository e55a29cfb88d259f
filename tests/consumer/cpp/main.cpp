#include <tessera/tessera.h>

#include <iostream>

namespace ts = tessera;

int main() {
  const ts::Tensor x = ts::full({2, 3}, 2), y = ts::sum(x * x + 1);
  std::cout << "sum " << y.item<float>() << "\n";
  try {
    (void)(x + ts::zeros({4, 5}));
  } catch (const ts::Exception& exception) {
    std::cout << exception.what() << "\n";
    return y.item<float>() == 30 ? 0 : 1;
  }
  return 1;
}
