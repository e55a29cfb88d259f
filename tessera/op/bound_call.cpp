#include "tessera/op/bound_call.h"

#include <algorithm>

#include "tessera/op/device_call.h"

using namespace tessera;
using namespace tessera::op;

namespace {

std::int64_t bytes_between(const Array& array) {
  return array.size() * static_cast<std::int64_t>(ir::size_of(array.dtype));
}

}  // namespace

bool tessera::op::overlap(const Array& a, const Array& b) {
  return a.data < b.data + bytes_between(b) && b.data < a.data + bytes_between(a);
}

std::vector<std::size_t> tessera::op::results_over_inputs(const CallInfo& call, std::span<const Array> inputs,
                                                          std::span<const Array> results) {
  std::vector<std::size_t> out;
  if (device_call_of(call.card()) != nullptr) return out;
  const bool is_element_wise = call.card().pointwise != nullptr;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto is_in_the_way = [&](const Array& input) {
      const bool is_itself = input.data == results[i].data && input.layout == results[i].layout &&
                             ir::size_of(input.dtype) == ir::size_of(results[i].dtype);
      return overlap(input, results[i]) && !(is_element_wise && is_itself);
    };
    if (std::any_of(inputs.begin(), inputs.end(), is_in_the_way)) out.push_back(i);
  }
  return out;
}
