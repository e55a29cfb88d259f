#include "tests/differential/runs.h"

#include <cmath>
#include <cstring>

#include "tessera/base/text.h"
#include "tessera/op/interpreter.h"
#include "tests/support/compare.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

std::string type_text(const op::HostTensor& tensor) {
  return cat(tensor.dtype(), "[", join(tensor.shape(), ", "), "]");
}

bool same_element(const op::ScalarValue& a, const op::ScalarValue& b) {
  if (!ir::is_float(a.dtype)) return a.integer == b.integer;
  if (std::isnan(a.number) || std::isnan(b.number)) return std::isnan(a.number) && std::isnan(b.number);
  return a.number == b.number && std::signbit(a.number) == std::signbit(b.number);
}

std::string element_text(const op::ScalarValue& value) {
  return ir::is_float(value.dtype) ? cat(value.number) : cat(value.integer);
}

/// Calls `f(result, element, expected, got)` until it returns a text.
template <class F>
std::optional<std::string> compare(const Results& expected, const Results& got, F&& f) {
  if (expected.size() != got.size()) return cat(got.size(), " results, expected ", expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].dtype() != got[i].dtype() || expected[i].shape() != got[i].shape())
      return cat("result ", i, " is ", type_text(got[i]), ", expected ", type_text(expected[i]));
    for (std::int64_t k = 0; k < expected[i].size(); ++k) {
      const auto a = fixture::element(expected[i].array(), k), b = fixture::element(got[i].array(), k);
      if (!f(i, static_cast<std::size_t>(k), a, b))
        return cat("element ", k, " of result ", i, " is ", element_text(b), ", expected ", element_text(a));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Results> tessera::differential::run_reference(const ir::Function& function, const Program& program,
                                                     std::span<const double> parameters) {
  const auto bits = fixture::slot_bits(function, parameters);
  return op::interpret(function, program.inputs, {.parameters = bits}, program.sizes);
}

std::optional<std::string> tessera::differential::difference(const Results& expected, const Results& got) {
  return compare(expected, got,
                 [](std::size_t, std::size_t, const auto& a, const auto& b) { return same_element(a, b); });
}
