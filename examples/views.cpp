// Views: slices, transposes and broadcasts share the storage of what they look at, and writing never shows
// through them.
#include <tessera/tessera.h>

#include <cstdio>
#include <vector>

namespace ts = tessera;

int main() {
  ts::Tensor x = ts::arange(12, {.dtype = ts::f32}).reshape({3, 4});
  ts::Tensor column = x.slice({{}, {1, 2}});  // all rows, column 1
  ts::Tensor turned = x.transpose();
  ts::eval({x, column, turned});

  const auto* base = static_cast<const float*>(x.storage());
  const bool shared = column.storage() == base + 1 && turned.storage() == base;
  std::printf("column and transpose share the storage: %s\n", shared ? "yes" : "no");
  std::printf("strides of the transpose: %lld, %lld\n", static_cast<long long>(turned.strides()[0]),
              static_cast<long long>(turned.strides()[1]));

  x.update_slice({0, 1}, ts::full({3, 1}, -1));
  const auto before = column.to_vector<float>(), after = x.slice({{}, {1, 2}}).to_vector<float>();
  std::printf("column before: %g %g %g\n", before[0], before[1], before[2]);
  std::printf("column after:  %g %g %g\n", after[0], after[1], after[2]);

  const bool kept = before == std::vector<float>{1, 5, 9} && after == std::vector<float>{-1, -1, -1};
  return shared && kept ? 0 : 1;
}
