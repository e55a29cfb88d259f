// The plain calls of oneDNN, one primitive per op with its own threads: weights packed once as it likes them,
// results in plain layout.
#include <cmath>
#include <dnnl.hpp>
#include <map>
#include <stdexcept>

#include "benchmarks/compare/worker.h"

using namespace dnnl;
using tessera::compare::numbers;
using tessera::compare::Spread;
using tessera::compare::Workload;
using Sizes = std::span<const std::int64_t>;
using Tag = memory::format_tag;

namespace {

const engine& cpu() {
  static const engine out(engine::kind::cpu, 0);
  return out;
}

memory array(const memory::dims& dims, Tag tag) { return {{dims, memory::data_type::f32, tag}, cpu()}; }

memory filled(const memory::dims& dims, Tag tag, std::uint32_t seed, Spread spread = {}) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  const auto values = numbers(count, seed, spread);
  memory out = array(dims, tag);
  std::copy(values.begin(), values.end(), static_cast<float*>(out.get_data_handle()));
  return out;
}

std::vector<float> values_of(const memory& from) {
  const auto* first = static_cast<const float*>(from.get_data_handle());
  return {first, first + from.get_desc().get_size() / sizeof(float)};
}

memory packed(const memory& from, const memory::desc& as) {
  if (from.get_desc() == as) return from;
  memory out(as, cpu());
  stream all(cpu());
  reorder(from, out).execute(all, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, out}});
  all.wait();
  return out;
}

using Call = std::pair<primitive, std::unordered_map<int, memory>>;

Workload of(std::vector<Call> calls, const memory& result) {
  Workload out;
  out.run = [calls = std::move(calls), all = stream(cpu())]() mutable {
    for (auto& [what, arguments] : calls) what.execute(all, arguments);
    all.wait();
  };
  out.run();
  out.first = values_of(result);
  return out;
}

Workload product(Sizes s) {
  const memory x = filled({s[0], s[2]}, Tag::ab, 1),
               w = filled({s[2], s[1]}, Tag::ab, 2, {1.0 / std::sqrt(static_cast<double>(s[2]))}),
               y = array({s[0], s[1]}, Tag::ab);
  const memory::desc any({s[2], s[1]}, memory::data_type::f32, Tag::any);
  const matmul::primitive_desc how(matmul::desc(x.get_desc(), any, y.get_desc()), cpu());
  const memory weights = packed(w, how.weights_desc());
  return of({{matmul(how), {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}}}}, y);
}

Workload softmax(Sizes s) {
  const memory x = filled({s[0], s[1]}, Tag::ab, 1, {4.0}), y = array({s[0], s[1]}, Tag::ab);
  const softmax_forward::primitive_desc how({prop_kind::forward_inference, x.get_desc(), 1}, cpu());
  return of({{softmax_forward(how), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}}}, y);
}

Workload gelu(Sizes s) {
  const memory x = filled({s[0], s[1]}, Tag::ab, 1, {4.0}), y = array({s[0], s[1]}, Tag::ab);
  const eltwise_forward::primitive_desc how(
      {prop_kind::forward_inference, algorithm::eltwise_gelu_erf, x.get_desc(), 0.f, 0.f}, cpu());
  return of({{eltwise_forward(how), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}}}, y);
}

Workload layer_norm(Sizes s) {
  const memory x = filled({s[0], s[1]}, Tag::ab, 1, {4.0}), y = array({s[0], s[1]}, Tag::ab);
  const memory scale = filled({s[1]}, Tag::a, 2, {0.1, 1.0}), shift = filled({s[1]}, Tag::a, 3, {0.1});
  const layer_normalization_forward::primitive_desc how(
      {prop_kind::forward_inference, x.get_desc(), 1e-5f,
       normalization_flags::use_scale | normalization_flags::use_shift},
      cpu());
  return of({{layer_normalization_forward(how),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift}, {DNNL_ARG_DST, y}}}},
            y);
}

/// Between the two the layout is the library's own.
Workload convolutions(Sizes s) {
  const memory::dims dims{s[0], 64, 56, 56}, kernel{64, 64, 3, 3};
  const memory x = filled(dims, Tag::nchw, 1), a = filled(kernel, Tag::oihw, 2, {1.0 / 24}),
               b = filled(kernel, Tag::oihw, 3, {1.0 / 24}), y = array(dims, Tag::nchw);
  const auto any = [](const memory::dims& d) { return memory::desc(d, memory::data_type::f32, Tag::any); };
  post_ops after;
  after.append_eltwise(1.f, algorithm::eltwise_relu, 0.f, 0.f);
  primitive_attr attributes;
  attributes.set_post_ops(after);
  const convolution_forward::primitive_desc how({prop_kind::forward_inference,
                                                 algorithm::convolution_auto,
                                                 any(dims),
                                                 any(kernel),
                                                 any(dims),
                                                 {1, 1},
                                                 {1, 1},
                                                 {1, 1}},
                                                attributes, cpu());
  const memory inside(how.src_desc(), cpu()), middle(how.dst_desc(), cpu()), last(how.dst_desc(), cpu());
  const auto step = [&](const memory& from, const memory& weights, const memory& to) {
    return Call{
        convolution_forward(how),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, packed(weights, how.weights_desc())}, {DNNL_ARG_DST, to}}};
  };
  const auto copy = [](const memory& from, const memory& to) {
    return Call{reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
  };
  if (how.src_desc() != how.dst_desc()) throw std::runtime_error("two layouts between the convolutions");
  return of({copy(x, inside), step(inside, a, middle), step(middle, b, last), copy(last, y)}, y);
}

Workload prepare(const std::string& kind, std::span<const std::string> words) {
  static const std::map<std::string, Workload (*)(Sizes)> kinds{{"matmul", product},
                                                                {"softmax", softmax},
                                                                {"gelu", gelu},
                                                                {"layer_norm", layer_norm},
                                                                {"conv", convolutions}};
  const auto at = kinds.find(kind);
  if (at == kinds.end()) throw std::runtime_error("no single call of oneDNN");
  return at->second(tessera::compare::sizes_of(words));
}

}  // namespace

int main() { return tessera::compare::serve(prepare); }
