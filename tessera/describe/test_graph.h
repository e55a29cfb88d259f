// What the tests of this room share: kernels on floats, graphs with memory of their own.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>

#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/describe/program_order.h"

namespace tessera::description::fixture {

/// y = f(x), element by element: parameters x, y.
inline KernelFunction map_kernel(std::function<float(float)> f) {
  return [f](KernelCall& call) {
    const auto x = call.values<float>(0);
    const auto y = call.values<float>(1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(x[i % x.size()]);
  };
}
/// x = f(x): parameter x.
inline KernelFunction update_kernel(std::function<float(float)> f) {
  return [f](KernelCall& call) {
    for (float& x : call.values<float>(0)) x = f(x);
  };
}
/// x = value: parameter x.
inline KernelFunction fill_kernel(float value) {
  return update_kernel([value](float) { return value; });
}

/// Memory for external buffers.
class Memory {
 public:
  template <class T>
  Memory& add(const std::string& name, const std::vector<T>& values) {
    sizes_[name] = values.size() * sizeof(T);
    all_[name].resize(sizes_[name]);
    set(name, values);
    return *this;
  }
  [[nodiscard]] Bindings bindings() {
    Bindings out;
    for (auto& [name, bytes] : all_) out[name] = {bytes.data(), sizes_[name]};
    return out;
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(const std::string& name) const {
    std::vector<T> out(sizes_.at(name) / sizeof(T));
    std::memcpy(out.data(), all_.at(name).data(), sizes_.at(name));
    return out;
  }
  template <class T>
  void set(const std::string& name, const std::vector<T>& values) {
    std::memcpy(all_.at(name).data(), values.data(), values.size() * sizeof(T));
  }

 private:
  std::map<std::string, std::vector<std::byte>> all_;
  std::map<std::string, std::size_t> sizes_;
};

/// The order in which nodes run.
inline std::vector<std::string> order_of(const Program& program) {
  std::vector<std::string> out;
  for_each_node_in_order(program.graph, program.schedule.sequences,
                         [&](std::uint32_t node) { out.push_back(program.description->nodes[node].id); });
  return out;
}

/// The causes for which node `after` of the launch waits for node `before`, directly.
inline std::vector<Cause> causes(const Program& program, std::string_view before, std::string_view after) {
  const auto& steps = program.schedule.sequences[0].steps;
  const auto is = [&](const Step& step, std::string_view id) {
    return step.kind == StepKind::node && program.description->nodes[step.index].id == id;
  };
  std::vector<Cause> out;
  for (const Step& step : steps)
    if (is(step, after))
      for (const Wait& wait : step.waits)
        if (is(steps[wait.step], before)) out.push_back(wait.cause);
  return out;
}

inline bool contains(const std::vector<Cause>& causes, Cause cause) {
  return std::find(causes.begin(), causes.end(), cause) != causes.end();
}

/// A graph from a builder, with memory.
inline std::unique_ptr<HostGraph> make_graph(Builder& b, Memory& memory, HostOptions options = {}) {
  options.bindings = memory.bindings();
  return value_or_throw(HostGraph::create(*b.finish(), b.kernels(), std::move(options)));
}

/// The messages of a validation, one a line, without places.
inline std::string messages(const Report& report) {
  std::string out;
  for (Diagnostic d : report.diagnostics()) {
    d.at = {};
    out += d.to_text() + "\n";
  }
  return out;
}
inline Report validate(Builder& b, Limits limits = {}) {
  return description::validate(b.finish(), &b.kernels(), limits).report;
}

}  // namespace tessera::description::fixture
