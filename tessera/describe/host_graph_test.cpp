#include "tessera/describe/host_graph.h"

#include <gtest/gtest.h>

#include <barrier>

#include "tessera/describe/test_graph.h"

using namespace tessera;
using namespace tessera::description;
using namespace tessera::description::fixture;

namespace {

using Floats = std::vector<float>;

/// y = x * by
KernelFunction scale_kernel() {
  return [](KernelCall& call) {
    for (std::size_t i = 0; i < call.values<float>(1).size(); ++i)
      call.values<float>(1)[i] = call.values<float>(0)[i] * static_cast<float>(call.number(2));
  };
}

/// z = y + plus, as a library would: pointers and number are those of the capture. From 100 elements on it
/// makes two calls instead of one.
void shift_capture(CaptureCall& call) {
  const auto y = call.values<float>(0);
  const auto z = call.values<float>(1);
  const auto plus = static_cast<float>(call.number(2));
  const double* device = call.device_number(3);
  const auto part = [=](std::size_t begin, std::size_t end) {
    return [=] {
      for (std::size_t i = begin; i < end; ++i) z[i] = y[i] + plus + static_cast<float>(*device);
    };
  };
  if (z.size() < 100) return call.record("shift", part(0, z.size()));
  call.record("shift_large", part(0, z.size() / 2));
  call.record("shift_large_rest", part(z.size() / 2, z.size()));
}

/// x --scale--> y --shift--> z, y a graph buffer.
struct Fixture {
  explicit Fixture(std::size_t size = 4, bool with_capture = true) {
    const auto n = static_cast<std::int64_t>(size);
    b.kernels().add("scale", scale_kernel()).add_capture("shift", shift_capture);
    b.external("x", Dtype::f32, {n})
        .graph("y", Dtype::f32, {n})
        .external("z", Dtype::f32, {n})
        .external("flag", Dtype::i32, {1});
    b.kernel("k", "scale",
             {read("x", {.buffer = "x"}), write("y", {.buffer = "y", .shape = "same"}), scalar("by", 2)});
    if (with_capture)
      b.captured("c", "shift",
                 {read("y", {.buffer = "y"}), write("z", {.buffer = "z", .shape = "same"}), scalar("plus", 1),
                  device_scalar("device", 0)});
    else
      b.kernel("c", map_kernel([](float v) { return v + 1; }),
               {read("y", {.buffer = "y"}), write("z", {.buffer = "z", .shape = "same"})});
    x.assign(size, 1);
    z.assign(size, 0);
  }
  std::unique_ptr<HostGraph>& graph() {
    if (graph_ == nullptr) {
      Bindings bindings{{"x", bytes(x)}, {"z", bytes(z)}};
      graph_ = value_or_throw(HostGraph::create(*b.finish(), b.kernels(), {.bindings = bindings}));
    }
    return graph_;
  }
  static std::span<std::byte> bytes(Floats& values) { return std::as_writable_bytes(std::span(values)); }
  float launched() {
    const auto report = graph()->launch();
    EXPECT_TRUE(report) << report.error().to_text();
    return z[0];
  }

  Builder b;
  Floats x, z;
  std::unique_ptr<HostGraph> graph_;
};

}  // namespace

// The rows of the seed's first table: kernel nodes.

TEST(UpdateTiers, Trap_G17_ScalarValueIsHot) {
  Fixture f;
  EXPECT_EQ(f.launched(), 3);
  ASSERT_TRUE(f.graph()->set_number("k", "by", 5.0));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::hot);
  EXPECT_EQ(report.cause, "node 'k': number 'by' changed");
  EXPECT_EQ(report.nodes, 1U);
  EXPECT_GT(report.time.count(), 0);
  EXPECT_EQ(f.launched(), 6);
}

TEST(UpdateTiers, Trap_G17_ContentIsNone) {
  Fixture f;
  f.launched();
  f.x[0] = 10;
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::none);
  EXPECT_EQ(report.cause, "");
  EXPECT_EQ(f.launched(), 21);
}

TEST(UpdateTiers, Trap_G17_RebindIsWarm) {
  Fixture f(4, false);
  Floats other(4, 7);
  ASSERT_TRUE(f.graph()->bind("x", Fixture::bytes(other)));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::warm);
  EXPECT_EQ(report.cause, "buffer 'x' bound elsewhere");
  EXPECT_EQ(f.launched(), 15);
}

TEST(UpdateTiers, Trap_G17_ResizeIsWarm) {
  Builder b;
  b.graph("y", Dtype::f32, {4}).external("sum", Dtype::f32, {1});
  b.kernel("fill", fill_kernel(2), {write("x", {.buffer = "y"})});
  b.kernel("sum",
           [](KernelCall& c) {
             c.values<float>(1)[0] = 0;
             for (float v : c.values<float>(0)) c.values<float>(1)[0] += v;
           },
           {read("x", {.buffer = "y"}), write("y", {.buffer = "sum"})});
  Memory memory;
  memory.add<float>("sum", {0});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->resize("y", {1000}));
  const UpdateReport report = graph->update();
  EXPECT_EQ(report.tier, Tier::warm);
  EXPECT_EQ(report.cause, "buffer 'y' resized");
  EXPECT_EQ(report.bytes, 4000U);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("sum")[0], 2000);
}

TEST(UpdateTiers, Trap_G17_GridIsWarm) {
  Builder b;
  b.external("x", Dtype::i64, {1});
  b.kernel("k", [](KernelCall& c) { c.values<std::int64_t>(0)[0] = c.grid()[0] * c.grid()[1]; },
           {write("x", {.buffer = "x"})});
  Memory memory;
  memory.add<std::int64_t>("x", {0});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->set_grid("k", {8, 4, 1}));
  EXPECT_EQ(graph->update().tier, Tier::warm);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<std::int64_t>("x")[0], 32);
  EXPECT_FALSE(graph->set_grid("k", {0, 1, 1}));
}

TEST(UpdateTiers, Trap_G17_KernelLogicIsCode) {
  Fixture f;
  f.launched();
  (void)f.graph()->replace_kernel("scale", map_kernel([](float x) { return x + 100; }));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::code);
  EXPECT_EQ(report.cause, "kernel 'scale' changed");
  EXPECT_EQ(report.kernels, 1U);
  EXPECT_EQ(f.launched(), 102);
}

TEST(UpdateTiers, Trap_G17_AKernelFileThatChangedIsCode) {
  Fixture f;
  (void)f.graph()->replace_kernel("scale",
                                  KernelLoader([]() -> Result<KernelFunction> { return scale_kernel(); }));
  EXPECT_EQ(f.graph()->update().tier, Tier::code);
  EXPECT_EQ(f.launched(), 3);
}

TEST(UpdateTiers, Trap_G17_StructureIsCold) {
  const auto tier_of = [](std::function<void(Builder&)> before, std::function<void(Builder&)> after) {
    Builder b;
    b.external("x", Dtype::f32, {1}).external("flag", Dtype::i32, {1});
    b.kernels().add("id", [](KernelCall&) {});
    b.kernel("a", "id", {write("o", {.dtype = Dtype::f32, .shape = "[1]"})});
    b.kernel("b", "id", {read("i", {.required = false}), write("o", {.buffer = "x"})});
    Builder next = b;
    before(b);
    after(next);
    Memory memory;
    memory.add<float>("x", {0}).add<std::int32_t>("flag", {0});
    const auto graph = make_graph(b, memory);
    (void)graph->set_description(*next.finish());
    const UpdateReport report = graph->update();
    EXPECT_FALSE(report.error) << report.error->to_text();
    EXPECT_TRUE(graph->launch());
    return cat(to_string(report.tier), ": ", report.cause);
  };
  const auto nothing = [](Builder&) {};
  const auto node = [](Builder& b) { b.kernel("new", "id", {}); };
  const auto edge = [](Builder& b) { b.edge({"a", "o"}, {"b", "i"}); };
  const auto region = [](Builder& b) { b.if_("when", "flag"); };
  const auto dependency = [](Builder& b) { b.dependency("a", "b"); };
  EXPECT_EQ(tier_of(nothing, node), "cold: node 'new' added");
  EXPECT_EQ(tier_of(node, nothing), "cold: node 'new' removed");
  EXPECT_EQ(tier_of(nothing, edge), "cold: edge from 'a' to 'b' added");
  EXPECT_EQ(tier_of(edge, nothing), "cold: edge from 'a' to 'b' removed");
  EXPECT_EQ(tier_of(nothing, region), "cold: region 'when' added");
  EXPECT_EQ(tier_of(region, nothing), "cold: region 'when' removed");
  EXPECT_EQ(tier_of(nothing, dependency), "cold: dependency of 'b' on 'a' added");
  EXPECT_EQ(tier_of(dependency, nothing), "cold: dependency of 'b' on 'a' removed");
  EXPECT_EQ(tier_of(nothing, nothing), "none: ");
}

// The rows of the second: captured nodes.

TEST(UpdateTiers, Trap_G17_ACapturedScalarIsRecapture) {
  Fixture f;
  f.launched();
  ASSERT_TRUE(f.graph()->set_number("c", "plus", 10.0));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::recapture);
  EXPECT_EQ(report.captures, 1U);
  EXPECT_EQ(f.launched(), 12);
}

TEST(UpdateTiers, Trap_G17_ACapturedPointerIsRecapture) {
  Fixture f;
  f.launched();
  Floats other(4, 0);
  ASSERT_TRUE(f.graph()->bind("z", Fixture::bytes(other)));
  EXPECT_EQ(f.graph()->update().tier, Tier::recapture);
  f.z[0] = -1;
  f.launched();
  EXPECT_EQ(f.z[0], -1);
  EXPECT_EQ(other[0], 3);
}

TEST(UpdateTiers, Trap_G17_ACapturedScalarInDeviceMemoryIsHot) {
  Fixture f;
  f.launched();
  ASSERT_TRUE(f.graph()->set_number("c", "device", 0.5));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::hot);
  EXPECT_EQ(report.captures, 0U);
  EXPECT_EQ(f.launched(), 3.5F);
}

TEST(UpdateTiers, Trap_G17_ACapturedNodeAddedOrRemovedIsCold) {
  Fixture f;
  f.launched();
  Description without = *f.b.finish();
  without.nodes.pop_back();
  (void)f.graph()->set_description(without);
  EXPECT_EQ(f.graph()->update().tier, Tier::cold);
  f.z[0] = -1;
  EXPECT_EQ(f.launched(), -1);
  (void)f.graph()->set_description(*f.b.finish());
  EXPECT_EQ(f.graph()->update().tier, Tier::cold);
  EXPECT_EQ(f.launched(), 3);
}

TEST(UpdateTiers, ADescriptionThatDiffersInNumbersIsHot) {
  Fixture f;
  Description next = *f.b.finish();
  next.nodes[0].parameters[2].scalar = 4.0;
  next.nodes[0].at = {};
  (void)f.graph()->set_description(next);
  EXPECT_EQ(f.graph()->update().tier, Tier::hot);
  EXPECT_EQ(f.launched(), 5);
  next.nodes[0].parameters[2].scalar = -0.0;
  (void)f.graph()->set_description(next);
  EXPECT_EQ(f.graph()->update().tier, Tier::hot);
  next.nodes[0].parameters[2].scalar = 0.0;
  (void)f.graph()->set_description(next);
  EXPECT_EQ(f.graph()->update().tier, Tier::hot) << "0 and -0 are two numbers";
}

TEST(UpdateTiers, AnIntegerStaysOne) {
  Builder b;
  b.external("x", Dtype::i64, {1});
  b.kernel("k", [](KernelCall& c) { c.values<std::int64_t>(0)[0] = c.integer(1); },
           {write("x", {.buffer = "x"}), integer("n", 1)});
  Memory memory;
  memory.add<std::int64_t>("x", {0});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->set_number("k", "n", 4.0));
  graph->update();
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<std::int64_t>("x")[0], 4);
  EXPECT_FALSE(graph->set_number("k", "n", 4.5));
  EXPECT_FALSE(graph->set_number("k", "x", 1.0));
}

TEST(UpdateTiers, NumbersOfOpsAreHot) {
  Builder b;
  b.external("x", Dtype::f32, {2}).external("y", Dtype::f32, {2});
  b.op("leaky", "leaky_relu", {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  Memory memory;
  memory.add<float>("x", {-1, 1}).add<float>("y", {0, 0});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->set_number("leaky", "alpha", 0.5));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{-0.5, 1}));
  EXPECT_FALSE(graph->set_number("leaky", "beta", 1.0));
  EXPECT_FALSE(graph->set_number("nobody", "alpha", 1.0));
}

TEST(UpdateTiers, Trap_G6_AScalarAndARecaptureInOneUpdate) {
  Fixture f;
  f.launched();
  ASSERT_TRUE(f.graph()->set_number("k", "by", 4.0));
  ASSERT_TRUE(f.graph()->set_number("c", "plus", 100.0));
  ASSERT_TRUE(f.graph()->set_number("c", "device", 0.25));
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::recapture);
  EXPECT_EQ(report.nodes, 2U);
  EXPECT_EQ(f.launched(), 104.25F);
}

TEST(UpdateTiers, AllTiersInOneUpdate) {
  Fixture f;
  f.launched();
  Floats x(8, 3), z(8, 0);
  (void)f.graph()->replace_kernel("scale", [](KernelCall& call) {
    for (std::size_t i = 0; i < call.values<float>(1).size(); ++i)
      call.values<float>(1)[i] = call.values<float>(0)[i] * static_cast<float>(call.number(2)) + 1000;
  });
  ASSERT_TRUE(f.graph()->set_number("k", "by", 2.0));
  ASSERT_TRUE(f.graph()->bind("x", Fixture::bytes(x), Extents{8}));
  ASSERT_TRUE(f.graph()->bind("z", Fixture::bytes(z), Extents{8}));
  ASSERT_TRUE(f.graph()->resize("y", {8}));
  const UpdateReport report = f.graph()->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::code);
  ASSERT_TRUE(f.graph()->launch());
  EXPECT_EQ(z, Floats(8, 1007));
}

TEST(UpdateTiers, Trap_G7_ACaptureWithOtherKernelsIsRecapturedOrRebuiltInTheSameCall) {
  Fixture f(64);
  f.launched();
  const auto grow = [&](std::size_t size, Floats& x, Floats& z) {
    x.assign(size, 1);
    z.assign(size, 0);
    const Extents shape{static_cast<std::int64_t>(size)};
    EXPECT_TRUE(f.graph()->bind("x", Fixture::bytes(x), shape));
    EXPECT_TRUE(f.graph()->bind("z", Fixture::bytes(z), shape));
    EXPECT_TRUE(f.graph()->resize("y", shape));
    const UpdateReport report = f.graph()->update();
    EXPECT_FALSE(report.error);
    EXPECT_TRUE(f.graph()->launch());
    EXPECT_EQ(z, Floats(size, 3));
    return report.tier;
  };
  Floats x1, z1, x2, z2, x3, z3;
  EXPECT_EQ(grow(32, x1, z1), Tier::recapture) << "the library picks the same kernels";
  EXPECT_EQ(grow(128, x2, z2), Tier::cold) << "it picks others";
  EXPECT_EQ(grow(256, x3, z3), Tier::recapture);
  (void)f.graph()->replace_capture("shift", [](CaptureCall& call) {
    const auto z = call.values<float>(1);
    call.record("other", [z] { z[0] = 77; });
  });
  const UpdateReport report = f.graph()->update();
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_EQ(report.cause, "node 'c': the captured calls are others than before");
  ASSERT_TRUE(f.graph()->launch());
  EXPECT_EQ(z3[0], 77);
}

TEST(UpdateTiers, AnotherOpIsPutInItsPlace) {
  Builder b;
  b.external("x", Dtype::f32, {2}).external("y", Dtype::f32, {2}).graph("zero", Dtype::f32, {2});
  b.op("a", "add", {read("a", {.buffer = "x"}), scalar("b", 3), write("y")});
  b.op("b", "mul", {read("a"), read("b", {.buffer = "x"}), write("y")}).edge({"a", "y"}, {"b", "a"});
  b.op("c", "add", {read("a"), read("b", {.buffer = "zero"}), write("y", {.buffer = "y"})})
      .edge({"b", "y"}, {"c", "a"});
  Memory memory;
  memory.add<float>("x", {1, 2}).add<float>("y", {0, 0});
  const auto graph = make_graph(b, memory);
  EXPECT_EQ(graph->report()->warnings(), 1U);
  const auto with = [&](std::string_view first, std::string_view second) {
    Description d = *b.finish();
    d.nodes[0].call = first;
    d.nodes[1].call = second;
    EXPECT_TRUE(graph->set_description(std::move(d)));
    return graph->update();
  };
  const auto launched = [&] {
    EXPECT_TRUE(graph->launch());
    return memory.get<float>("y");
  };
  UpdateReport report = with("add", "sub");
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_EQ(report.cause, "node 'b' changed");
  EXPECT_EQ(report.nodes, 1U) << "the others are as they were";
  EXPECT_EQ(launched(), (std::vector<float>{3, 3}));
  EXPECT_EQ(graph->report()->warnings(), 1U);
  ASSERT_TRUE(graph->set_number("a", "b", 5.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  EXPECT_EQ(launched(), (std::vector<float>{5, 5}));
  // What is no op, or one of other types, is an error, and the last good plan goes on.
  EXPECT_TRUE(with("add", "no_such_op").error);
  EXPECT_NE(with("add", "lt").error->message().find("node 'c'"), std::string::npos);
  EXPECT_EQ(launched(), (std::vector<float>{5, 5}));
  report = with("mul", "add");
  EXPECT_FALSE(report.error);
  EXPECT_EQ(launched(), (std::vector<float>{4, 8})) << "numbers are those of the description again";
}

TEST(HostGraph, Trap_G5_AFailedRebuildKeepsTheLastGoodOneAndTheNextChangeTriesAgain) {
  Fixture f;
  EXPECT_EQ(f.launched(), 3);
  Description broken = *f.b.finish();
  broken.nodes[0].call = "missing";
  (void)f.graph()->set_description(broken);
  const UpdateReport failed = f.graph()->update();
  EXPECT_EQ(failed.tier, Tier::cold);
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->to_text().find("node 'k': there is no kernel 'missing'"), std::string::npos);
  EXPECT_EQ(f.graph()->report()->of_node("k").size(), 1U);
  f.x[0] = 2;
  EXPECT_EQ(f.launched(), 5) << "the old plan goes on";
  const UpdateReport idle = f.graph()->update();
  EXPECT_EQ(idle.tier, Tier::none);
  EXPECT_TRUE(idle.error) << "it is still broken";
  (void)f.graph()->replace_kernel("missing", scale_kernel());
  const UpdateReport repaired = f.graph()->update();
  EXPECT_FALSE(repaired.error);
  EXPECT_EQ(repaired.tier, Tier::cold);
  EXPECT_EQ(f.launched(), 5);
}

TEST(HostGraph, Trap_G5_AChangeThatFailsChangesNothing) {
  Fixture f;
  f.launched();
  ASSERT_TRUE(f.graph()->set_number("k", "by", 9.0));
  Floats small(2);
  ASSERT_TRUE(f.graph()->bind("x", Fixture::bytes(small)));
  const UpdateReport failed = f.graph()->update();
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->message().find("needs 16 bytes, it is bound to 8"), std::string::npos);
  EXPECT_EQ(f.launched(), 3) << "neither the number nor the memory";
  ASSERT_TRUE(f.graph()->bind("x", Fixture::bytes(f.x)));
  EXPECT_FALSE(f.graph()->update().error);
  EXPECT_EQ(f.launched(), 10) << "both";
  ASSERT_TRUE(f.graph()->resize("y", {5}));
  EXPECT_TRUE(f.graph()->update().error) << "the shapes do not agree any more";
  EXPECT_EQ(f.launched(), 10);
}

TEST(HostGraph, Trap_G15_AKernelThatDoesNotCompileKeepsTheOldOne) {
  Fixture f;
  f.launched();
  const std::string message = "scale.cu:3:14: error: expected ';'";
  (void)f.graph()->replace_kernel(
      "scale", KernelLoader([&]() -> Result<KernelFunction> {
        return Error(ErrorCode::device, "error: expected ';'", {"scale.cu", 3, 14});
      }));
  const UpdateReport failed = f.graph()->update();
  EXPECT_EQ(failed.tier, Tier::code);
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->to_text().find("scale.cu:3:14: node 'k': error: expected ';'"), std::string::npos)
      << failed.error->to_text();
  EXPECT_EQ(f.launched(), 3);
  ASSERT_TRUE(f.graph()->set_number("k", "by", 7.0));
  EXPECT_TRUE(f.graph()->update().error) << "it still does not compile";
  EXPECT_EQ(f.launched(), 3);
  (void)f.graph()->replace_kernel("scale", scale_kernel());
  EXPECT_FALSE(f.graph()->update().error);
  EXPECT_EQ(f.launched(), 8);
}

TEST(HostGraph, Trap_G14_EveryHolderSeesTheNewPointer) {
  // y is held by a kernel, a captured node, an append's reset and an if's zero.
  Builder b;
  b.external("flag", Dtype::i32, {1})
      .external("n", Dtype::i64, {1})
      .graph("y", Dtype::f32, {4})
      .graph("list", Dtype::f32, {4});
  b.if_("when", "flag");
  b.within("when").kernel("fill", fill_kernel(2), {write("x", {.buffer = "y"})});
  b.within().captured("sum",
                      [](CaptureCall& call) {
                        const auto y = call.values<float>(0);
                        const auto n = call.values<std::int64_t>(1);
                        call.record("sum", [y, n] {
                          n[0] = 0;
                          for (float v : y) n[0] += static_cast<std::int64_t>(v);
                        });
                      },
                      {read("y", {.buffer = "y"}), write("n", {.buffer = "n"})});
  b.kernel("push",
           [](KernelCall& c) {
             for (float v : c.values<float>(0)) c.append<float>(1, v);
           },
           {read("y", {.buffer = "y"}), append("l", {.buffer = "list"})});
  Memory memory;
  memory.add<std::int32_t>("flag", {1}).add<std::int64_t>("n", {0});
  const auto graph = make_graph(b, memory);
  for (std::int64_t size : {4, 50, 3, 1000}) {
    ASSERT_TRUE(graph->resize("y", {size}));
    ASSERT_TRUE(graph->resize("list", {size}));
    const UpdateReport report = graph->update();
    ASSERT_FALSE(report.error);
    for (int flag : {1, 0}) {
      memory.set<std::int32_t>("flag", {flag});
      const auto launch = graph->launch();
      ASSERT_TRUE(launch);
      EXPECT_TRUE(launch->overflows.empty());
      EXPECT_EQ(memory.get<std::int64_t>("n")[0], flag * 2 * size);
      EXPECT_EQ(*graph->count("list"), static_cast<std::uint64_t>(size));
    }
  }
  EXPECT_NE(graph->resize("flag", {2}).error().message().find("is external"), std::string::npos);
}

TEST(HostGraph, AResizeCapturesAgainOnlyWhatHoldsTheBuffer) {
  Builder b;
  b.kernels().add_capture("shift", shift_capture);
  b.external("x", Dtype::f32, {4})
      .external("z", Dtype::f32, {4})
      .graph("held", Dtype::f32, {4})
      .graph("out", Dtype::f32, {4});
  b.captured("apart", "shift",
             {read("y", {.buffer = "x"}), write("z", {.buffer = "z"}), scalar("plus", 1),
              device_scalar("device", 0)});
  b.captured("holder", "shift",
             {read("y", {.buffer = "held"}), write("z", {.buffer = "out"}), scalar("plus", 1),
              device_scalar("device", 0)});
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4}).add<float>("z", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory);
  const auto resized = [&](std::int64_t size) {
    EXPECT_TRUE(graph->resize("held", {size}));
    EXPECT_TRUE(graph->resize("out", {size}));
    const UpdateReport report = graph->update();
    EXPECT_FALSE(report.error);
    return report.captures;
  };
  EXPECT_EQ(resized(8), 1U);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("z"), (Floats{2, 3, 4, 5}));
  ASSERT_TRUE(graph->set_number("apart", "device", 10.0));
  ASSERT_FALSE(graph->update().error);
  EXPECT_EQ(resized(9), 1U) << "where the number lies is what was captured";
  ASSERT_TRUE(graph->set_number("apart", "device", 20.0));
  ASSERT_FALSE(graph->update().error);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("z"), (Floats{22, 23, 24, 25}));
  ASSERT_TRUE(graph->set_number("apart", "plus", 2.0));
  EXPECT_EQ(resized(10), 2U) << "and a number that it has looked at";
  ASSERT_TRUE(graph->replace_capture("shift", [](CaptureCall& call) {
    call.record("other", [z = call.values<float>(1)] { std::fill(z.begin(), z.end(), 7.0F); });
  }));
  EXPECT_EQ(resized(11), 2U) << "and another function";
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("z"), Floats(4, 7));
}

TEST(HostGraph, OnlyWhatItKnowsIsReplaced) {
  Builder b;
  b.kernels().add("spare", scale_kernel()).add_capture("shift", shift_capture);
  b.kernel("k", [](KernelCall&) {}, {});
  Memory memory;
  const auto graph = make_graph(b, memory);
  const auto message = [](const Result<void>& done) { return done ? "done" : done.error().to_text(); };
  EXPECT_EQ(message(graph->replace_kernel("scale", scale_kernel())),
            "there is no kernel 'scale'\n  there are 'function of k', 'spare'");
  EXPECT_EQ(message(graph->replace_kernel("k", scale_kernel())),
            "there is no kernel 'k'\n  node 'k' calls 'function of k'");
  EXPECT_EQ(message(graph->replace_capture("k", shift_capture)),
            "there is no capture 'k'\n  there are 'shift'");
  EXPECT_TRUE(graph->replace_kernel("spare", scale_kernel())) << "the next description may call it";
  EXPECT_EQ(graph->update().tier, Tier::none);
}

TEST(HostGraph, AnOpHasNoGrid) {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4});
  b.op("n", "neg", {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4}).add<float>("y", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory);
  const auto refused = graph->set_grid("n", {2, 1, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "node 'n' is op 'neg', which has no grid");
  Description with_grid = b.description();
  with_grid.nodes[0].grid = {2, 1, 1};
  ASSERT_TRUE(graph->set_description(with_grid));
  const UpdateReport report = graph->update();
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->to_text().find("node 'n': an op has no grid"), std::string::npos)
      << report.error->to_text();
}

TEST(HostGraph, Trap_G16_UpdatesWhileLaunchesAreInFlight) {
  constexpr int rounds = 300;
  Fixture f(64);
  HostGraph& graph = *f.graph();
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  const auto launch = [&] {
    while (!done) {
      if (!graph.launch()) ++wrong;
      std::this_thread::yield();
    }
  };
  std::thread first(launch), second(launch);
  for (int i = 0; i < rounds; ++i) {
    (void)graph.set_number("k", "by", double(i));
    if (i % 3 == 0) (void)graph.set_number("c", "plus", double(i));
    if (i % 5 == 0) (void)graph.replace_kernel("scale", scale_kernel());
    if (i % 7 == 0) (void)graph.resize("y", {64});
    if (i % 11 == 0) {
      Description next = *f.b.finish();
      next.dependencies.assign(static_cast<std::size_t>(i % 2), {"k", "c", {}});
      (void)graph.set_description(next);
    }
    if (graph.update().error) ++wrong;
  }
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  (void)graph.set_number("k", "by", 5.0);
  (void)graph.set_number("c", "plus", 1.0);
  EXPECT_FALSE(graph.update().error);
  EXPECT_EQ(f.launched(), 6);
}

TEST(HostGraph, Trap_G16_AnUpdateWaitsForTheLaunchThatReadsWhatItChanges) {
  Builder b;
  b.external("x", Dtype::f32, {1});
  std::barrier started(2);
  std::atomic<bool> has_ended = false;
  b.kernel("slow",
           [&](KernelCall& call) {
             started.arrive_and_wait();
             std::this_thread::sleep_for(std::chrono::milliseconds(30));
             call.values<float>(0)[0] = static_cast<float>(call.number(1));
             has_ended = true;
           },
           {write("x", {.buffer = "x"}), scalar("s", 1)});
  Memory memory;
  memory.add<float>("x", {0});
  const auto graph = make_graph(b, memory);
  std::thread launch([&] { EXPECT_TRUE(graph->launch()); });
  started.arrive_and_wait();
  ASSERT_TRUE(graph->set_number("slow", "s", 2.0));
  EXPECT_FALSE(graph->update().error);
  EXPECT_TRUE(has_ended);
  launch.join();
  EXPECT_EQ(memory.get<float>("x")[0], 1) << "the launch in flight kept what it began with";
}

TEST(HostGraph, FunctionsCannotCallTheGraphThatRunsThem) {
  Builder b;
  HostGraph* graph = nullptr;
  int refused = 0;
  const auto call_all = [&] {
    refused += graph->launch() ? 0 : 1;
    refused += graph->update().error ? 1 : 0;
    refused += graph->set_number("k", "n", 1.0) ? 0 : 1;
    refused += graph->set_description({}) ? 0 : 1;
    refused += graph->program() ? 0 : 1;
    refused += graph->report() ? 0 : 1;
    refused += graph->count("b") ? 0 : 1;
  };
  b.kernel("k", [&](KernelCall&) { call_all(); }, {});
  Memory memory;
  const auto made = make_graph(b, memory);
  graph = made.get();
  ASSERT_TRUE(made->launch());
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(made->update().tier, Tier::none);
  (void)made->replace_kernel("function of k", KernelLoader([&]() -> Result<KernelFunction> {
                               call_all();
                               return KernelFunction([](KernelCall&) {});
                             }));
  EXPECT_EQ(made->update().tier, Tier::code);
  EXPECT_EQ(refused, 14);
  EXPECT_TRUE(made->launch());
}

TEST(HostGraph, ACaptureThatThrowsIsAnErrorOfItsNode) {
  Fixture f;
  f.launched();
  (void)f.graph()->replace_capture("shift", [](CaptureCall&) { throw std::runtime_error("no workspace"); });
  const UpdateReport report = f.graph()->update();
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->to_text().find("node 'c': no workspace"), std::string::npos);
  EXPECT_EQ(f.launched(), 3);
}
