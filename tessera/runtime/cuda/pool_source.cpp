// Pooling: a thread per element of the result looks at what its window sees, or at the windows that see it.
#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/window_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

// The image of this element, and its place in it.
constexpr std::string_view place_among_positions = R"(
    const I z = at % places[2], y_ = at / places[2] % places[1], x_ = at / places[2] / places[1] % places[0];
    const I image = at / places[2] / places[1] / places[0];
    const I begin[] = {x_ * stride[0] - pad[0], y_ * stride[1] - pad[1], z * stride[2] - pad[2]};
    const T* const from = x + image * extent[0] * extent[1] * extent[2];
)";

constexpr std::string_view max_body = R"(
    K best = 0;
    I best_place = -1;
    for (I i = 0; i < kernel[0]; ++i) {
      const I a = begin[0] + i * dilation[0];
      if (a < 0 || a >= extent[0]) continue;
      for (I j = 0; j < kernel[1]; ++j) {
        const I b = begin[1] + j * dilation[1];
        if (b < 0 || b >= extent[1]) continue;
        for (I k = 0; k < kernel[2]; ++k) {
          const I c = begin[2] + k * dilation[2];
          if (c < 0 || c >= extent[2]) continue;
          const I place = (a * extent[1] + b) * extent[2] + c;
          const K key = key_of(from[place]);
          if (best_place < 0 || key > best) {
            best = key;
            best_place = place;
          }
        }
      }
    }
    y[at] = best_place < 0 ? (T)0 : from[best_place];
    indices[at] = best_place;
)";

// How many elements an axis averages over: padding counts if it is asked to, what lies beyond never does.
constexpr std::string_view averaged_text = R"(
__device__ inline I averaged(I begin, I kernel, I extent, I pad_end) {
  I end = begin + kernel;
  if (end > extent + pad_end) end = extent + pad_end;
  if (INCLUDE_PAD) return end - begin;
  return (end < extent ? end : extent) - (begin > 0 ? begin : 0);
}
)";

constexpr std::string_view average_body = R"(
    W sum = 0, count = 1;
    for (int i = 0; i < 3; ++i) count *= (W)averaged(begin[i], kernel[i], extent[i], pad_end[i]);
    for (I a = begin[0] > 0 ? begin[0] : 0; a < begin[0] + kernel[0] && a < extent[0]; ++a)
      for (I b = begin[1] > 0 ? begin[1] : 0; b < begin[1] + kernel[1] && b < extent[1]; ++b)
        for (I c = begin[2] > 0 ? begin[2] : 0; c < begin[2] + kernel[2] && c < extent[2]; ++c)
          sum += widen(from[(a * extent[1] + b) * extent[2] + c]);
    y[at] = narrow(sum / count);
)";

constexpr std::string_view spread_body = R"(
    const I c = at % extent[2], b = at / extent[2] % extent[1], a = at / extent[2] / extent[1] % extent[0];
    const I here[] = {a + pad[0], b + pad[1], c + pad[2]};
    const T* const from = x + at / extent[2] / extent[1] / extent[0] * places[0] * places[1] * places[2];
    I low[3], high[3];
    for (int i = 0; i < 3; ++i) {
      low[i] = here[i] < kernel[i] ? 0 : (here[i] - kernel[i]) / stride[i] + 1;
      high[i] = here[i] / stride[i] < places[i] - 1 ? here[i] / stride[i] : places[i] - 1;
    }
    W sum = 0;
    for (I p = low[0]; p <= high[0]; ++p) {
      const W first = (W)averaged(p * stride[0] - pad[0], kernel[0], extent[0], pad_end[0]);
      for (I q = low[1]; q <= high[1]; ++q) {
        const W second = first * (W)averaged(q * stride[1] - pad[1], kernel[1], extent[1], pad_end[1]);
        for (I r = low[2]; r <= high[2]; ++r)
          sum += widen(from[(p * places[1] + q) * places[2] + r]) /
                 (second * (W)averaged(r * stride[2] - pad[2], kernel[2], extent[2], pad_end[2]));
      }
    }
    y[at] = narrow(sum);
)";

struct Pool {
  op::Sliding sliding;
  op::Extents pad_end;  ///< of three axes
};

/// The window of a call over a large side, which is contiguous.
Result<Pool> pool_of(const op::CallInfo& call, const Operand& large, const Operand& small) {
  const op::Window window = TESSERA_TRY(op::window_of(call, ir::shape_of(call.integers("kernel"))));
  Pool out{op::Sliding::of(window, large.shape, small.shape), op::Extents(3, 0)};
  for (std::size_t i = 0; i < window.size(); ++i) out.pad_end[3 - window.size() + i] = window[i].pad_end;
  return out;
}

IndexWidth width_of(const Pool& pool, const Operand& a, const Operand& b) {
  return runtime::cuda::width_of(pool.sliding, std::max(a.size(), b.size()));
}

std::string average_prelude(const op::CallInfo& call, ir::Dtype dtype) {
  return cat(element_text(dtype, Precision::wide),
             "enum { INCLUDE_PAD = ", call.flag("count_include_pad") ? 1 : 0, " };\n", averaged_text);
}

}  // namespace

Result<void> runtime::cuda::write_max_pool(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  if (y.size() == 0) return {};
  const Operand x = program.dense(program.input(0));
  const Pool pool = TESSERA_TRY(pool_of(call, x, y));
  KernelWriter kernel("tessera_max_pool", width_of(pool, x, y), key_text(x.dtype));
  kernel.pointer("const T", "x", x.memory).pointer("T", "y", y.memory);
  kernel.pointer("long long", "indices", program.result(1).memory);
  add_window(kernel, pool.sliding);
  program.add(std::move(kernel).launch_items(cat(place_among_positions, max_body), y.size()));
  return {};
}

Result<void> runtime::cuda::write_avg_pool(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  if (y.size() == 0) return {};
  const Operand x = program.dense(program.input(0));
  const Pool pool = TESSERA_TRY(pool_of(call, x, y));
  KernelWriter kernel("tessera_avg_pool", width_of(pool, x, y), average_prelude(call, x.dtype));
  kernel.pointer("const T", "x", x.memory).pointer("T", "y", y.memory);
  add_window(kernel, pool.sliding);
  kernel.integers("pad_end", pool.pad_end);
  program.add(std::move(kernel).launch_items(cat(place_among_positions, average_body), y.size()));
  return {};
}

Result<void> runtime::cuda::write_avg_pool_gradient(const op::CallInfo& call, ProgramWriter& program) {
  const Operand dx = program.result(0);
  if (dx.size() == 0) return {};
  const Operand dy = program.dense(program.input(0));
  if (dy.size() == 0) {
    program.clear(dx.memory, dx.size() * dx.element_bytes());
    return {};
  }
  const Pool pool = TESSERA_TRY(pool_of(call, dx, dy));
  KernelWriter kernel("tessera_avg_pool_gradient", width_of(pool, dx, dy), average_prelude(call, dx.dtype));
  kernel.pointer("const T", "x", dy.memory).pointer("T", "y", dx.memory);
  add_window(kernel, pool.sliding);
  kernel.integers("pad_end", pool.pad_end);
  program.add(std::move(kernel).launch_items(spread_body, dx.size()));
  return {};
}
