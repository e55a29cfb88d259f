#include "tests/fault/graph_seeds.h"

#include <map>

#include "tessera/base/text.h"
#include "tessera/describe/read_json.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_package.h"
#include "tests/differential/listed_run.h"
#include "tests/differential/random_description.h"

using namespace tessera;
using namespace tessera::fixture;
using namespace tessera::description;

namespace {

/// Floats, attributes, constants and numbers; random descriptions have integers of one shape.
constexpr const char* tensors = R"({
  "name": "tensors",
  "blocks": [{"id": "outer"}, {"id": "inner", "parent": "outer"}],
  "buffers": [
    {"id": "x", "lifetime": "external", "dtype": "f32", "shape": [3, 8]},
    {"id": "w", "lifetime": "external", "dtype": "f32", "shape": [8, 5]},
    {"id": "y", "lifetime": "external", "dtype": "f32", "shape": [3, 5]},
    {"id": "sum", "lifetime": "graph", "dtype": "f32", "shape": [3, 5]},
    {"id": "rows", "lifetime": "region", "dtype": "i64", "shape": [6]},
    {"id": "more", "lifetime": "graph", "dtype": "i64", "shape": [1]},
    {"id": "which", "lifetime": "external", "dtype": "i64", "shape": [1]},
    {"id": "t", "lifetime": "region", "dtype": "f32", "shape": [3, 5], "region": "choose"}],
  "nodes": [
    {"id": "soft", "block": "inner", "op": "softmax", "attributes": {"axis": 1}, "parameters": [{"name": "x", "buffer": "x"}]},
    {"id": "product", "block": "inner", "op": "matmul", "parameters": [{"name": "b", "buffer": "w"}]},
    {"id": "scaled", "block": "inner", "op": "mul", "parameters": [{"name": "b", "scalar": 0.5}, {"name": "y", "buffer": "y"}]},
    {"id": "add", "block": "outer", "op": "add", "region": "choose", "branch": 1,
     "parameters": [{"name": "a", "buffer": "y"}, {"name": "b", "scalar": 2}, {"name": "y", "buffer": "t"}]},
    {"id": "keep", "block": "outer", "op": "add", "region": "choose", "branch": 1,
     "parameters": [{"name": "a", "buffer": "t"}, {"name": "b", "buffer": "sum"}, {"name": "y", "buffer": "sum"}]},
    {"id": "clear", "block": "outer", "op": "mul", "region": "choose", "branch": 0,
     "parameters": [{"name": "a", "buffer": "sum"}, {"name": "b", "scalar": 0}, {"name": "y", "buffer": "sum"}]},
    {"id": "set", "block": "outer", "op": "identity", "parameters": [{"name": "x", "buffer": "which"}, {"name": "y", "buffer": "more"}]},
    {"id": "fill", "block": "outer", "kernel": "append", "parameters": [{"name": "rows", "access": "append", "buffer": "rows"}, {"name": "count", "scalar": 3}]},
    {"id": "see", "block": "outer", "kernel": "look", "grid": [2, 3], "parameters": [{"name": "rows", "buffer": "rows"}, {"name": "missing", "required": false}]},
    {"id": "down", "block": "outer", "kernel": "count_down", "region": "loop", "parameters": [{"name": "x", "access": "read_write", "buffer": "more"}]}],
  "edges": [{"from": ["soft", "y"], "to": ["product", "a"]}, {"from": ["product", "y"], "to": ["scaled", "a"]}],
  "dependencies": [{"before": "scaled", "after": "fill"}],
  "regions": [
    {"id": "choose", "block": "outer", "kind": "switch", "condition": "which", "branches": 3},
    {"id": "loop", "block": "outer", "kind": "while", "condition": "more", "limit": 20}]
})";

Description description_of(std::size_t index) {
  if (index % 4 == 0) return value_or_throw(read_description("tensors.json", tensors)).description;
  for (std::uint64_t seed = index;; seed += 1'000) {  // most are valid
    differential::Random random(seed);
    Description out = differential::random_description(random);
    if (validate(std::make_shared<const Description>(out), nullptr).program != nullptr) return out;
  }
}

}  // namespace

const std::string& tessera::fixture::graph_seed(std::size_t index) {
  static std::map<std::size_t, std::string> known;
  std::string& out = known[index];
  if (out.empty())
    out = value_or_throw(engine::to_bytes(value_or_throw(
        engine::compile_graph(description_of(index), *value_or_throw(engine::find_device("cpu"))))));
  return out;
}

KernelTable tessera::fixture::graph_kernels() {
  KernelTable out;
  for (int i = 0; i < differential::mix_kernels; ++i) out.add(cat("mix", i), differential::mixing_kernel(i));
  for (int i = 0; i < differential::mix_captures; ++i)
    out.add_capture(cat("capture", i), differential::mixing_capture(100 + i));
  out.add("count_down", [](KernelCall& call) {
    if (const auto words = call.values<std::int64_t>(0); !words.empty()) differential::count_down(words);
  });
  out.add("append", [](KernelCall& call) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(call.integer(1), 100); ++i) call.append(0, i);
  });
  out.add("look", [](KernelCall& call) { static_cast<void>(call.values<std::int64_t>(0)); });
  return out;
}
