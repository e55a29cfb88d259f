#include "tessera/runtime/cuda/number_value.h"

#include <bit>
#include <cstddef>

#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

double rounded(double value, ir::Dtype dtype) {
  if (dtype == ir::Dtype::f64) return value;
  std::byte element[8] = {};
  op::storer<double>(dtype)(element, 0, 1, 1, &value);
  op::loader<double>(dtype)(element, 0, 1, 1, &value);
  return value;
}

}  // namespace

std::uint64_t tessera::runtime::cuda::rare_argument_value(std::uint64_t bits, ir::Dtype from, ir::Dtype as) {
  const bool is_float = ir::is_float(from);
  const double number = is_float ? rounded(std::bit_cast<double>(bits), from)
                                 : static_cast<double>(static_cast<std::int64_t>(bits));
  if (as == ir::Dtype::f64) return std::bit_cast<std::uint64_t>(number);
  if (as == ir::Dtype::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  if (!is_float) return bits;
  std::int64_t integer = 0;
  op::storer<double>(ir::Dtype::i64)(reinterpret_cast<std::byte*>(&integer), 0, 1, 1, &number);
  return static_cast<std::uint64_t>(integer);
}
