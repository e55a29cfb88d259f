#include "tessera/runtime/cuda/index_text.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view find_text = R"(
__device__ inline bool find(const Index* row, I step, const I* extent, const I* axis_step, long long number,
                            Status* status, I& to) {
  for (int k = 0; k < D; ++k) {
    const long long index = row[k * step];
    if (index < -(long long)extent[k] || index >= (long long)extent[k]) {
      report(status, number * D + k, index);
      return false;
    }
    to += (I)(index < 0 ? index + extent[k] : index) * axis_step[k];
  }
  return true;
}
)";

constexpr std::string_view place_function = R"(
__device__ inline I place_of(I at, const I* size, const I* step) {
  I out = 0;
  for (int a = R - 1; a > 0; --a) {
    out += at % size[a] * step[a];
    at /= size[a];
  }
  return out + at * step[0];
}
)";

constexpr std::string_view check_body = R"(
    I unused = 0;
    find(indices + place_of(at, size, index_step), step, extent, axis_step, at, status, unused);
)";

}  // namespace

op::Extents NamedAxes::sizes() const {
  op::Extents out;
  for (const IndexCheck::Axis& axis : axes) out.push_back(axis.size);
  return out;
}

std::string runtime::cuda::index_text(const Operand& indices, std::size_t depth) {
  return cat("typedef ", stored_type(indices.dtype), " Index;\nenum { D = ", depth, " };\n", status_text(),
             find_text);
}

std::string_view runtime::cuda::place_text() { return place_function; }

void runtime::cuda::write_index_check(ProgramWriter& program, const Operand& indices, const NamedAxes& named,
                                      const Memory& status) {
  op::Extents rows = indices.shape, steps = indices.strides;
  if (named.has_rows) {
    rows.pop_back();
    steps.pop_back();
  }
  const Walk walk = joined_walk(rows, {steps});
  if (walk.points() == 0 || named.axes.empty()) return;
  // The extents may be larger than all places of the indices.
  KernelWriter kernel("tessera_check_indices", IndexWidth::wide, index_text(indices, named.axes.size()));
  kernel.pointer("const Index", "indices", indices.memory).pointer("Status", "status", status);
  kernel.walk(walk, std::vector<std::string_view>{"index_step"});
  kernel.integer("step", named.index_step).integers("extent", named.sizes());
  kernel.integers("axis_step", named.strides);
  kernel.prelude(place_function);
  program.add(std::move(kernel).launch_items(check_body, walk.points()));
}
