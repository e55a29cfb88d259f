// Canonical form, signature and components, with the rows of TRAPS.md, section S, that concern them.
#include <gtest/gtest.h>

#include "tests/support/stream_text.h"

using namespace tessera;
using namespace tessera::stream;
using namespace tessera::testing;

namespace {

Hash128 json_signature(const std::string& json) { return signature(trace_of_json(json)); }

std::string one_op(const std::string& rest) {
  return R"({"stream":[{"op":"f","inputs":["x","y"],"output":"z")" + rest + "}]}";
}

TEST(Signature, Trap_S1_DependenceMatters) {
  EXPECT_NE(signature_of("a=f(b,c); e=g(a,d)"), signature_of("a=f(b,c); e=g(b,c)"));
}

TEST(Signature, Trap_S2_SlotsMatter) {
  EXPECT_NE(signature_of("a=f(b); c=g(a,b)"), signature_of("a=f(b); c=g(b,a)"));
}

TEST(Signature, Trap_S3_NamesDoNotMatter) {
  EXPECT_EQ(signature_of("a=f(b,c); e=g(a,d)"), signature_of("x=f(y,z); w=g(x,v)"));
}

TEST(Signature, Trap_S4_AChainIsNotAFan) {
  EXPECT_NE(signature_of("a=f(x); b=g(a); c=h(b)"), signature_of("a=f(x); b=g(x); c=h(x)"));
}

TEST(Signature, Trap_S5_EqualExternalsMatter) {
  EXPECT_NE(signature_of("a=f(b,b)"), signature_of("a=f(b,c)"));
  EXPECT_NE(signature_of("a=f(x); b=g(x)"), signature_of("a=f(x); b=g(y)"));
  EXPECT_NE(signature_of("a=f(b,c,b)"), signature_of("a=f(b,c,c)"));
}

TEST(Signature, Trap_S6_AttributesMatterAndTheirOrderDoesNot) {
  EXPECT_NE(json_signature(one_op(R"(,"attrs":{"axis":0})")),
            json_signature(one_op(R"(,"attrs":{"axis":1})")));
  EXPECT_NE(json_signature(one_op(R"(,"attrs":{"shape":[2,3]})")),
            json_signature(one_op(R"(,"attrs":{"shape":[3,2]})")));
  EXPECT_NE(json_signature(one_op(R"(,"attrs":{"a":1})")), json_signature(one_op(R"(,"attrs":{"a":1.0})")));
  EXPECT_NE(json_signature(one_op(R"(,"attrs":{"a":[]})")), json_signature(one_op("")));
  EXPECT_EQ(json_signature(one_op(R"(,"attrs":{"a":1,"b":"x"})")),
            json_signature(one_op(R"(,"attrs":{"b":"x","a":1})")));
  EXPECT_EQ(json_signature(one_op(R"(,"attrs":{})")), json_signature(one_op("")));
}

TEST(Signature, Trap_S7_ShapesAndDtypesMatterUnlessSymbolic) {
  const auto mm = [](const std::string& x, const std::string& y) {
    return json_signature(one_op(R"(,"types":{"x":")" + x + R"(","y":")" + y + R"("})"));
  };
  EXPECT_NE(mm("f32[2,3]", "f32[3,4]"), mm("f32[8,8]", "f32[8,8]"));
  EXPECT_NE(mm("f32[8,8]", "f32[8,8]"), mm("bf16[8,8]", "bf16[8,8]"));
  EXPECT_EQ(mm("f32[N,3]", "f32[3,4]"), mm("f32[M,3]", "f32[3,4]"));
  EXPECT_NE(mm("f32[N,3]", "f32[3,N]"), mm("f32[N,3]", "f32[3,M]"));
  EXPECT_NE(mm("f32[N,3]", "f32[3,4]"), mm("f32[2,3]", "f32[3,4]"));
}

TEST(Signature, Trap_S8_ALiteralIsAParameter) {
  EXPECT_EQ(signature_of("y=mul(x,0.5)"), signature_of("y=mul(x,0.7)"));
  EXPECT_NE(signature_of("y=mul(x,0.5)"), signature_of("y=mul(0.5,x)"));
  EXPECT_NE(signature_of("y=mul(x,0.5)"), signature_of("y=mul(x,w)"));
}

TEST(Signature, Trap_S9_LiveOutsMatter) {
  const std::string stream =
      R"({"stream":[{"op":"mm","inputs":["x","w"],"output":"t"},{"op":"relu","inputs":["t"],"output":"r"}],"live":)";
  EXPECT_NE(json_signature(stream + R"(["r"]})"), json_signature(stream + R"(["r","t"]})"));
  EXPECT_EQ(json_signature(stream + R"(["t","r"]})"), json_signature(stream + R"(["r","t"]})"));
  EXPECT_NE(json_signature(stream + "[]}"), json_signature(stream + R"(["r"]})"));
}

TEST(Signature, Trap_S10_AnIdThatIsWrittenAgainIsAnotherValue) {
  EXPECT_EQ(signature_of("a=f(x); x=g(a); b=h(x)"), signature_of("a=f(x); y=g(a); b=h(y)"));
  EXPECT_NE(signature_of("a=f(x); x=g(a); b=h(x)"), signature_of("a=f(x); y=g(a); b=h(x)"));
  EXPECT_EQ(readable_lines(trace_of("x=f(x); x=f(x)")), (std::vector<std::string>{"t0=f(in0)", "t1=f(t0)"}));
}

TEST(Signature, Trap_S11_InterleavingDoesNotMatter) {
  const auto expected = component_signatures(trace_of("a=f(x); b=g(a); c=h(y); d=k(c)"));
  ASSERT_EQ(expected.size(), 2u);
  for (const char* order : {"c=h(y); a=f(x); b=g(a); d=k(c)", "a=f(x); c=h(y); d=k(c); b=g(a)",
                            "c=h(y); d=k(c); a=f(x); b=g(a)", "a=f(x); c=h(y); b=g(a); d=k(c)"}) {
    EXPECT_EQ(component_signatures(trace_of(order)), expected) << order;
    EXPECT_EQ(signature_of(order), signature_of("a=f(x); b=g(a); c=h(y); d=k(c)")) << order;
  }
}

TEST(Signature, Trap_S16_EqualityDecidesWhenHashesCollide) {
  Encoder constant([](const EncodingView&) { return Hash128{1, 2}; });
  Encoder other([](const EncodingView&) { return Hash128{1, 2}; });
  const Trace chain = trace_of("a=f(b,c); e=g(a,d)"), fan = trace_of("a=f(b,c); e=g(b,c)");
  const Encoding& x = constant.encode(chain);
  const Encoding& y = other.encode(fan);
  EXPECT_EQ(x.signature, y.signature);
  EXPECT_FALSE(x.view() == y.view());
  EXPECT_TRUE(x.view() == other.encode(trace_of("p=f(q,r); s=g(p,t)")).view());
}

TEST(Signature, Trap_S17_EveryParameterIsASlotOfItsOwn) {
  const Trace trace = trace_of("a=mul(x,0.5); b=mul(x,0.7); c=add(a,b)");
  EXPECT_EQ(Encoder().encode(trace).parameters.size(), 2u);
  EXPECT_EQ(signature(trace), signature_of("a=mul(x,0.6); b=mul(x,0.6); c=add(a,b)"));
  EXPECT_NE(signature(trace), signature_of("a=mul(x,0.6); c=add(a,a)"));
}

TEST(Signature, Trap_S18_ADiamondInAnyOrder) {
  EXPECT_EQ(signature_of("a=f(x); b=g(a); c=h(a); d=add(b,c)"),
            signature_of("a=f(x); c=h(a); b=g(a); d=add(b,c)"));
  EXPECT_NE(signature_of("a=f(x); b=g(a); c=h(a); d=add(b,c)"),
            signature_of("a=f(x); b=g(a); c=h(a); d=add(c,b)"));
}

TEST(Signature, Trap_S19_TheSeedsTwoGraphsAreTwoComponents) {
  const Trace trace = trace_of("a=f(b); x=g(y); c=h(a); z=k(x)");
  Components components;
  components.partition(trace);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(std::vector<OpIndex>(components.ops(0).begin(), components.ops(0).end()),
            (std::vector<OpIndex>{0, 2}));
  EXPECT_EQ(std::vector<OpIndex>(components.ops(1).begin(), components.ops(1).end()),
            (std::vector<OpIndex>{1, 3}));
  EXPECT_EQ(components.grouped_order(trace), (std::vector<OpIndex>{0, 2, 1, 3}));
}

TEST(Signature, Trap_S21_EveryBitOfAConstantCounts) {
  const auto constant = [](const std::string& value) {
    return json_signature(one_op(R"(,"attrs":{"value":)" + value + "}"));
  };
  EXPECT_NE(constant("1"), constant("11"));
  EXPECT_NE(constant("16777215.0"), constant("16777216.0"));
  EXPECT_NE(constant("3.14159274"), constant("3.141592741"));
  EXPECT_NE(constant("0.0"), constant("-0.0"));
  EXPECT_NE(json_signature(R"({"stream":[{"op":"mul","inputs":["x"],"output":"t","attrs":{"c":1}},
                                         {"op":"add","inputs":["t"],"output":"y","attrs":{"c":11}}]})"),
            json_signature(R"({"stream":[{"op":"mul","inputs":["x"],"output":"t","attrs":{"c":11}},
                                         {"op":"add","inputs":["t"],"output":"y","attrs":{"c":1}}]})"));
}

TEST(Signature, EverySpellingOfAnOpIsOneOp) {
  EXPECT_EQ(signature_of("y=torch.relu(x)"), signature_of("y=relu(x)"));
  EXPECT_EQ(signature_of("y=my_own_op(x)"), signature_of("z=my_own_op(a)"));
  EXPECT_NE(signature_of("y=my_own_op(x)"), signature_of("y=my_other_op(x)"));
}

TEST(Signature, AnInPlaceSpellingWrites) {
  EXPECT_NE(signature_of("z=add_(x,y)"), signature_of("z=add(x,y)"));
  // relu reads what add_ left in x, not what x was before.
  EXPECT_EQ(readable_lines(trace_of("z=add_(x,y); r=relu(x)"))[1], "t2=relu(t1)");
}

TEST(Signature, DuplicatesAreNotMerged) {
  EXPECT_NE(signature_of("a=f(x); b=f(x)"), signature_of("a=f(x)"));
  EXPECT_NE(signature_of("a=f(x); b=f(x); c=g(a,b)"), signature_of("a=f(x); c=g(a,a)"));
}

TEST(Signature, SymmetricGraphsInAnyOrder) {
  // Two heads on one trunk, each with two results that read both of its values crosswise.
  const char* orders[] = {"t=f(x); a=g(t); b=g(t); p=h(a,b); q=h(b,a); c=g(t); d=g(t); r=h(c,d); s=h(d,c)",
                          "t=f(x); d=g(t); a=g(t); c=g(t); b=g(t); s=h(d,c); p=h(a,b); r=h(c,d); q=h(b,a)",
                          "t=f(x); a=g(t); c=g(t); b=g(t); d=g(t); q=h(b,a); s=h(d,c); r=h(c,d); p=h(a,b)"};
  for (const char* order : orders) EXPECT_EQ(signature_of(order), signature_of(orders[0])) << order;
  // The same letters, but the results go round in a ring of four instead of two rings of two.
  EXPECT_NE(signature_of("t=f(x); a=g(t); b=g(t); c=g(t); d=g(t); p=h(a,b); q=h(b,c); r=h(c,d); s=h(d,a)"),
            signature_of(orders[0]));
}

TEST(Signature, EffectsKeepTheirOrder) {
  EXPECT_NE(signature_of("a=f(x) random; b=g(y) random"), signature_of("b=g(y) random; a=f(x) random"));
  EXPECT_NE(signature_of("a=f(x) random"), signature_of("a=f(x)"));
  EXPECT_NE(signature_of("a=f(x) random"), signature_of("a=f(x) read"));
  EXPECT_NE(signature_of("f(w,x) write; y=g(w)"), signature_of("y=g(w); f(w,x) write"));
}

TEST(Signature, ResultsThatWereAskedForHaveAnOrder) {
  const auto asked = [](bool first_first) {
    Trace trace = trace_of("a=f(x); b=f(y)");
    trace.ask_for(trace.result(first_first ? 0 : 1, 0));
    trace.ask_for(trace.result(first_first ? 1 : 0, 0));
    return signature(trace);
  };
  EXPECT_EQ(asked(true), asked(false));  // f and f: the call cannot tell them apart
  Trace one = trace_of("a=f(x); b=g(y)"), other = trace_of("a=f(x); b=g(y)");
  one.ask_for(one.result(0, 0));
  one.ask_for(one.result(1, 0));
  other.ask_for(other.result(1, 0));
  other.ask_for(other.result(0, 0));
  EXPECT_NE(signature(one), signature(other));
}

TEST(Signature, IsTheSameInEveryProcess) {
  EXPECT_EQ(signature_of("a=matmul(x,w); b=relu(a)").to_hex(), "b6beaae8efd0c9fc2bc0ea7ffc2e6a12");
}

TEST(Readable, TheSeedsExample) {
  EXPECT_EQ(readable_lines(trace_of("tensor_123=matmul(tensor_45,tensor_67); tensor_456=relu(tensor_123)")),
            (std::vector<std::string>{"t0=matmul(in0,in1)", "t1=relu(t0)"}));
}

TEST(Readable, SaysWhatElseThereIs) {
  const Trace trace = trace_of_json(R"({"stream":[
    {"op":"split","inputs":["x",2],"outputs":["a","b"],"types":{"x":"f32[N,4]","a":"f32[N,2]"},"attrs":{"axis":1,"s":"q"}},
    {"op":"print","inputs":["a"],"effect":"read"}],"live":["a"]})");
  EXPECT_EQ(readable_lines(trace),
            (std::vector<std::string>{
                R"(t0:f32[d0,2],t1=split(in0:f32[d0,4],$0){axis=1,s="q"} live:0 dead:1)", "print(t0) read"}));
}

TEST(Components, EffectsAreInOneComponent) {
  const Trace trace = trace_of("a=f(x) random; b=g(y); c=h(z) random; d=k(b)");
  Components components;
  components.partition(trace);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components.component_of(0), components.component_of(2));
  EXPECT_EQ(components.component_of(1), components.component_of(3));
  // What has effects comes last: the others may read what it overwrites.
  EXPECT_EQ(components.grouped_order(trace), (std::vector<OpIndex>{1, 3, 0, 2}));
}

TEST(Components, SharedInputsDoNotJoin) {
  const Trace trace = trace_of("a=f(x); b=f(x); c=g(a); d=add(c,b)");
  Components components;
  components.partition(trace);
  EXPECT_EQ(components.size(), 1u);
  components.partition(trace_of("a=f(x); b=f(x); c=g(a)"));
  EXPECT_EQ(components.size(), 2u);
  components.partition(trace_of(""));
  EXPECT_EQ(components.size(), 0u);
}

TEST(Components, ALongChainDoesNotRecurse) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "x=f(x);";
  const Trace trace = trace_of(text);
  Components components;
  components.partition(trace);
  EXPECT_EQ(components.size(), 1u);
  EXPECT_EQ(Encoder().encode(trace).ops.size(), 100'000u);
}

}  // namespace
