#include "tessera/engine/call_form.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::engine;

CallForm::CallForm(const op::Card& called, Dtype dtype, std::span<const std::int64_t> sizes,
                   std::shared_ptr<const op::Attributes> complete)
    : card(&called),
      result{dtype, static_cast<std::uint8_t>(sizes.size()), type_number(dtype, sizes)},
      tracks_gradient(ir::is_float(dtype) && called.no_gradient.empty()),
      attributes(std::move(complete)) {
  std::copy(sizes.begin(), sizes.end(), result.dims.begin());
}
