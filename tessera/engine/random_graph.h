// Descriptions made at random, for tests: whatever runs one gives what it gives node by node.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "tessera/base/text.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/test_graph.h"

namespace tessera::engine::fixture {

using description::Builder;
using description::Parameter;
using description::fixture::map_kernel;
using description::fixture::update_kernel;
using op::Dtype;

inline Parameter from_buffer(std::string name, std::string buffer) {
  return description::read(std::move(name), {.buffer = std::move(buffer)});
}
inline Parameter to_buffer(std::string buffer) {
  return description::write("y", {.buffer = std::move(buffer)});
}

enum class Kinds : std::uint8_t { ops_and_kernels, ops };

/// Nodes on a few buffers, in blocks at random, some of them kernels, many in loops and branches. Values stay
/// small numbers that floats hold exactly, so that no rounding hides a difference.
class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, Kinds kinds) : random_(seed), kinds_(kinds) {}

  Builder make() {
    for (int i = 0; i < 3; ++i) b_.block(cat("b", i)).external(cat("e", i), Dtype::f32, {4});
    b_.graph("g0", Dtype::f32, {4}).graph("g1", Dtype::f32, {4});
    b_.external("count", Dtype::i32, {1}).graph("index", Dtype::i64, {1});
    for (int i = 0; i < 4 + below(14); ++i) {
      b_.in_block(cat("b", below(3)));
      if (below(4) == 0)
        add_region();
      else if (below(4) == 0)
        b_.within(within_ = {});
      add_node(cat("n", i));
    }
    return std::move(b_);
  }

 private:
  int below(std::uint64_t n) { return static_cast<int>(random_() % n); }
  std::string any() {
    static constexpr const char* all[] = {"e0", "e1", "e2", "g0", "g1"};
    return all[below(std::size(all))];
  }

  /// In the region before it, or beside it.
  void add_region() {
    const std::string region = cat("r", regions_++);
    if (below(2) == 0) b_.within(within_ = {});
    const int kind = below(7);
    if (kind == 0) b_.for_(region, below(3), below(2) == 0 ? "index" : "");
    if (kind == 1) b_.for_count_in(region, "count", below(2) == 0 ? "index" : "");
    if (kind == 2) b_.if_else(region, any());
    if (kind == 3) b_.switch_(region, below(2) == 0 ? "count" : "index", 2);
    if (kind == 4) b_.while_(region, any(), 6);
    if (kind >= 5) b_.if_(region, any());
    b_.within(within_ = region, kind == 2 || kind == 3 ? below(2) : 0);
  }

  void add_node(const std::string& name) {
    switch (below(kinds_ == Kinds::ops ? 5 : 7)) {
      case 0:
        b_.op(name, "add", {from_buffer("a", any()), from_buffer("b", any()), to_buffer(any())});
        break;
      case 1:
        b_.op(name, "minimum",
              {from_buffer("a", any()), description::scalar("b", below(5) - 2), to_buffer(any())});
        break;
      case 2:
        b_.op(name, "flip", {from_buffer("x", any()), to_buffer(any())});
        break;
      case 3:
        b_.temporary(name + "_t", Dtype::f32, {4});
        b_.op(name + "_s", "sign", {from_buffer("x", any()), to_buffer(name + "_t")});
        b_.op(name, "add", {from_buffer("a", name + "_t"), from_buffer("b", any()), to_buffer(any())});
        break;
      case 4:
        b_.op(name, "sub", {from_buffer("a", any()), description::scalar("b", 1), to_buffer(any())});
        break;
      case 5:
        b_.kernel(name, map_kernel([](float v) { return 3 - v; }),
                  {from_buffer("x", any()), to_buffer(any())});
        break;
      default:
        b_.kernel(name, update_kernel([](float v) { return std::min(v, 2.0F) + 1; }),
                  {description::read_write("x", {.buffer = any()})});
    }
  }

  std::mt19937_64 random_;
  Kinds kinds_;
  Builder b_;
  std::string within_;
  int regions_ = 0;
};

struct RandomMemory : description::fixture::Memory {
  explicit RandomMemory(std::uint64_t seed) {
    for (int i = 0; i < 3; ++i) add<float>(cat("e", i), {1.0F * static_cast<float>(i), 0, -1, 2});
    add<std::int32_t>("count", {static_cast<std::int32_t>(seed % 4) - 1});
  }
};

}  // namespace tessera::engine::fixture
