// The detector, with the rows of TRAPS.md, section S, that concern it.
#include "tessera/stream/hot_path_detector.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/base/text.h"
#include "tests/support/stream_text.h"

using namespace tessera;
using namespace tessera::stream;
using namespace tessera::testing;

namespace {

constexpr std::string_view layer = "a=matmul(x,w); b=relu(a); c=add(b,y)";

HotPathDetector detected(std::string_view text, const HotPathOptions& options = {}) {
  HotPathDetector detector(options);
  record_all(detector, StreamText().parse(text));
  detector.flush();
  return detector;
}

/// "length x count at first_hot_at" of each unit that was hot.
std::string summary(const HotPathDetector& detector) {
  std::vector<std::string> out;
  for (const HotUnit& unit : detector.hot_units())
    out.push_back(cat(unit.length, " x ", unit.count, " at ", unit.first_hot_at));
  return join(out, ", ");
}

/// A chain of `length` ops that differ, on one value that is carried on if `is_carried`.
std::string chain(int length, bool is_carried) {
  std::string out = is_carried ? "t=op0(t)" : "t=op0(x)";
  for (int i = 1; i < length; ++i) out += cat("; t=op", i, "(t)");
  return out;
}

TEST(HotPathDetector, Trap_S12_EachPeriodIsFoundAsItIs) {
  EXPECT_EQ(summary(detected(repeated(layer, 50))), "3 x 50 at 30");
  EXPECT_EQ(detected(repeated(layer, 50)).statistics().hot_instructions, 120u);
  for (const bool is_carried : {false, true}) {
    EXPECT_EQ(summary(detected(repeated(chain(4, is_carried), 50))), "4 x 50 at 40");
    EXPECT_EQ(summary(detected(repeated(chain(25, is_carried), 50))), "25 x 50 at 250");
  }
  EXPECT_EQ(summary(detected(repeated("a=f(x); b=g(x); c=h(y); d=k(x)", 50))), "4 x 50 at 40")
      << "ops that have nothing to do with each other";
}

TEST(HotPathDetector, Trap_S12_SeparatedOccurrencesCount) {
  std::string text = repeated(layer, 5);
  for (int i = 0; i < 45; ++i) text += cat(layer, "; n=noise", i, "(z);");
  EXPECT_EQ(summary(detected(text)), "3 x 50 at 34");
  text = repeated(layer, 5);
  for (int i = 0; i < 45; ++i) text += cat(layer, "; n=noise", i, "(c);");
  EXPECT_EQ(summary(detected(text)), "3 x 50 at 34") << "the noise reads the result of the unit";
  text = repeated(chain(3, true), 5);
  for (int i = 0; i < 45; ++i) text += cat(chain(3, true), "; t=noise", i, "(t);");
  EXPECT_EQ(summary(detected(text)), "3 x 50 at 34") << "the noise is part of the chain";
}

TEST(HotPathDetector, Trap_S12_OccurrencesBeforeTheTwoInARowCount) {
  EXPECT_EQ(
      summary(detected(cat("t=a(t);t=b(t);t=n(t);t=a(t);t=b(t);t=m(t);", repeated("t=a(t);t=b(t)", 8)))),
      "2 x 10 at 22");
}

TEST(HotPathDetector, Trap_S13_MemoryIsBounded) {
  HotPathDetector detector({.max_period = 256, .max_tracked = 16, .max_components = 32});
  StreamText names;
  for (int i = 0; i < 20'000; ++i)
    record_all(detector, names.parse(cat("p", i, "=op", i, "(x); q", i, "=op", i, "(x,p", i, ")")));
  EXPECT_EQ(detector.statistics().instructions, 40'000u);
  EXPECT_EQ(detector.statistics().units, 0u);
  for (int i = 0; i < 200; ++i)
    record_all(detector, names.parse(repeated(cat("u=f", i, "(x); v=g", i, "(u)"), 3)));
  EXPECT_LE(detector.statistics().units, 16u);
  EXPECT_GE(detector.statistics().evictions, 184u);
}

TEST(HotPathDetector, Trap_S14_TheEndInsideAUnitIsNoOccurrence) {
  const HotPathDetector detector = detected(cat(repeated(layer, 20), "a=matmul(x,w); b=relu(a)"));
  EXPECT_EQ(summary(detector), "3 x 20 at 30");
  EXPECT_EQ(detector.statistics().instructions, 62u);
  EXPECT_EQ(detector.statistics().misses, 1u);
}

TEST(HotPathDetector, Trap_S14_AfterAFlushAUnitDoesNotGoOn) {
  HotPathDetector detector;
  StreamText names;
  record_all(detector, names.parse(cat(repeated(layer, 20), "a=matmul(x,w); b=relu(a)")));
  detector.flush();
  record_all(detector, names.parse("c=add(b,y)"));
  detector.flush();
  EXPECT_EQ(summary(detector), "3 x 20 at 30");
  record_all(detector, names.parse(std::string(layer)));
  EXPECT_EQ(summary(detector), "3 x 21 at 30") << "units are kept";
}

TEST(HotPathDetector, Trap_S15_DemotedAndPromotedAgain) {
  HotPathDetector detector({.threshold = 4, .decay = 100});
  StreamText names;
  EXPECT_EQ(record_all(detector, names.parse(repeated(layer, 10))).size(), 7u);
  EXPECT_TRUE(detector.top_units(1)[0].is_hot);
  for (int i = 0; i < 500; ++i) record_all(detector, names.parse(cat("n=noise", i, "(z)")));
  EXPECT_FALSE(detector.top_units(1)[0].is_hot) << "it decayed";
  EXPECT_EQ(record_all(detector, names.parse(repeated(layer, 10))).size(), 7u) << "it is hot again";
  EXPECT_TRUE(detector.top_units(1)[0].is_hot);
  EXPECT_EQ(detector.top_units(1)[0].count, 20u);
}

TEST(HotPathDetector, Trap_S15_AlternatingShapesAreTwoUnits) {
  const auto read = [](InstructionReader& reader, const std::string& json) {
    const auto document = *JsonDocument::parse("<test>", json);
    return *reader.instruction(document.cursor());
  };
  HotPathDetector detector;
  InstructionReader reader(*op::op_facts());
  for (int i = 0; i < 100; ++i) {
    const std::string type = i % 2 == 0 ? "f32[2,3]" : "f32[4,3]";
    detector.record(
        read(reader, cat(R"({"op":"mm","inputs":["x","w"],"output":"a","types":{"x":")", type, "\"}}"))
            .view());
    detector.record(read(reader, R"({"op":"relu","inputs":["a"],"output":"b"})").view());
  }
  detector.flush();
  EXPECT_EQ(summary(detector), "2 x 50 at 38, 2 x 50 at 40");
  EXPECT_EQ(detector.statistics().evictions, 0u);
}

TEST(HotPathDetector, Trap_S16_ForcedCollisions) {
  const HotPathOptions collide{.signature_hash =
                                   [](const EncodingView&) {
                                     return Hash128{7, 7};
                                   },
                               .hash_mask = 0};
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "a=f(x,w); b=g(a,w); p=f(x,w); q=g(w,p); c=f(y,y); d=g(c,y); r=f(y,z); s=g(r,y);";
  HotPathDetector exact, colliding(collide);
  record_all(exact, StreamText().parse(text));
  record_all(colliding, StreamText().parse(text));
  exact.flush();
  colliding.flush();
  EXPECT_EQ(exact.hot_units().size(), 4u) << summary(exact);
  EXPECT_EQ(summary(colliding), summary(exact));
}

TEST(HotPathDetector, Trap_S19_OnlyTheHotGraphIsHot) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += cat("a=f(b); x=g", i, "(y); c=h(a); z=k(x);");
  const HotPathDetector detector = detected(text);
  EXPECT_EQ(summary(detector), "2 x 20 at 39");
  EXPECT_EQ(detector.hot_units()[0].signature, signature_of("a=f(b); c=h(a)"));
}

TEST(HotPathDetector, Trap_S20_ATrainingLoopHasOneUnitPerStep) {
  const std::string step =
      "h=mm(x,w1); r=relu(h); y=mm(r,w2); e=sub(y,t); g=mm(e,w2); d2=mm(r,e); d1=mm(x,g);"
      "w1=axpy(w1,d1,0.1); w2=axpy(w2,d2,0.1)";
  const HotPathDetector detector = detected(repeated(step, 50));
  EXPECT_EQ(summary(detector), "9 x 50 at 90");
  EXPECT_EQ(detector.hot_units()[0].signature, signature_of(step)) << "the weights are inputs of a step";
}

TEST(HotPathDetector, TheAnswerComesWithTheLastInstruction) {
  HotPathDetector detector({.threshold = 3});
  StreamText names;
  EXPECT_TRUE(record_all(detector, names.parse(cat(repeated(layer, 2), "a=matmul(x,w); b=relu(a)"))).empty());
  const auto answers = record_all(detector, names.parse("c=add(b,y)"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].length, 3u);
  EXPECT_EQ(answers[0].signature, signature_of(layer));
}

TEST(HotPathDetector, DataflowIsPartOfAUnit) {
  // The same ops, but g reads another value every second time.
  const HotPathDetector detector = detected(repeated("a=f(x); b=g(a,x); c=f(x); d=g(c,c)", 50));
  EXPECT_EQ(summary(detector), "2 x 50 at 38, 2 x 50 at 40");
  // A value of the round before is an input, whichever it is.
  EXPECT_EQ(summary(detected(repeated("t=f(t); t=g(t,x)", 50))), "2 x 50 at 20");
}

TEST(HotPathDetector, InterleavedStreamsAreTakenApart) {
  EXPECT_EQ(summary(detected(repeated("a=f(b); x=g(y); c=h(a); z=k(x); q=m(z,y)", 50))),
            "2 x 50 at 48, 3 x 50 at 50");
  EXPECT_EQ(summary(detected(repeated("a=mm(x,w); p=mm(x,w); b=relu(a); q=relu(p); c=add(b); r=add(q)", 50))),
            "3 x 100 at 30")
      << "two streams of the same kind in step";
}

TEST(HotPathDetector, RotationsAreOneUnit) {
  const std::string abc = "t=a(t);t=b(t);t=c(t);", bca = "t=b(t);t=c(t);t=a(t);";
  EXPECT_EQ(summary(detected(cat(repeated(abc, 20), "t=n(t);", repeated(bca, 20)))), "3 x 39 at 30");
}

TEST(HotPathDetector, APeriodInsideAPeriodIsCountedAsTheLongerOne) {
  EXPECT_EQ(summary(detected(repeated("t=a(t);t=b(t);t=a(t);t=b(t);t=c(t)", 50))), "5 x 50 at 50");
  EXPECT_EQ(summary(detected(repeated("t=a(t);t=a(t);t=b(t)", 50))), "3 x 50 at 30");
  EXPECT_EQ(summary(detected(repeated("t=a(x);t=b(t);t=a(t);t=b(t);t=c(t)", 50))), "5 x 50 at 50");
}

TEST(HotPathDetector, AHotUnitStaysHotWhenALongerOneIsFound) {
  const std::string longer = cat(layer, "; d=log(c)");
  const HotPathDetector detector = detected(cat(repeated(layer, 20), repeated(longer, 30)));
  EXPECT_EQ(summary(detector), "3 x 22 at 30, 4 x 30 at 100");
  EXPECT_EQ(detector.statistics().hot_instructions, 3u * (10 + 2) + 4u * 20);
}

TEST(HotPathDetector, AUnitThatBeginsAnother) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "a=f(x); b=g(a); p=f(x); q=g(p); r=h(q);";
  EXPECT_EQ(summary(detected(text)), "2 x 30 at 47, 3 x 30 at 50");
}

TEST(HotPathDetector, OneOpIsShorterThanTheShortestUnit) {
  EXPECT_EQ(summary(detected(repeated("t=f(t)", 50))), "");
  EXPECT_EQ(summary(detected(repeated("t=f(t)", 50), {.min_length = 1})), "1 x 50 at 10");
  EXPECT_EQ(summary(detected(repeated(layer, 50), {.min_length = 4})), "");
}

TEST(HotPathDetector, OrderOfIndependentOpsInAUnitDoesNotMatter) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += std::string_view(i % 3 == 0 ? "a=f(x); b=g(a); c=h(a); d=add(b,c);"
                                        : "a=f(x); c=h(a); b=g(a); d=add(b,c);");
  const HotPathDetector detector = detected(text);
  EXPECT_EQ(summary(detector), "4 x 50 at 40");
  EXPECT_EQ(detector.hot_units()[0].signature, signature_of("a=f(x); b=g(a); c=h(a); d=add(b,c)"));
}

TEST(HotPathDetector, ComponentsThatMeetBecomeOne) {
  EXPECT_EQ(summary(detected(repeated("a=f(x); b=g(y); c=add(a,b)", 50))), "3 x 50 at 30");
  EXPECT_NE(detected(repeated("a=f(x); b=g(x); c=add(a,b)", 50)).hot_units()[0].signature,
            detected(repeated("a=f(x); b=g(y); c=add(a,b)", 50)).hot_units()[0].signature);
}

TEST(HotPathDetector, FreedValuesAreGone) {
  // The id comes back as another value from outside, so the second f does not read what g made.
  const HotPathDetector freed = detected(repeated("a=f(x); b=g(a); free a, b; c=h(b,x); free b, c", 50));
  const HotPathDetector held = detected(repeated("a=f(x); b=g(a); c=h(b,x)", 50));
  EXPECT_EQ(summary(freed), "2 x 50 at 29");
  EXPECT_EQ(summary(held), "3 x 50 at 30");
}

TEST(HotPathDetector, EffectsStayInOrder) {
  EXPECT_EQ(summary(detected(repeated("a=mm(x,w); b=dropout(a) random; c=add(b,y)", 50))), "3 x 50 at 30");
  EXPECT_EQ(summary(detected(repeated("a=mm(x,w); add_to(w,a) write", 50))), "2 x 50 at 20");
  // Two graphs with random ops: their order is part of the unit.
  EXPECT_EQ(summary(detected(repeated("a=f(x) random; b=g(y) random", 50))), "2 x 50 at 20");
}

TEST(HotPathDetector, SpellingsAreOneOp) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += std::string_view(i % 2 == 0 ? "a=matmul(x,w); b=relu(a);" : "a=torch.matmul(x,w); b=F.relu(a);");
  EXPECT_EQ(summary(detected(text)), "2 x 50 at 20");
}

TEST(HotPathDetector, LongPeriods) {
  EXPECT_EQ(summary(detected(repeated(chain(10'000, true), 12))), "10000 x 12 at 100000");
  std::string few;  // a long round of few ops, none of which occurs once
  for (std::uint32_t i = 0; i < 10'000; ++i)
    few += cat("t=op", std::to_string((i * 2654435761U >> 16) % 5), "(t);");
  const HotPathDetector detector = detected(repeated(few, 12));
  const auto units = detector.hot_units();
  const auto longest = std::max_element(units.begin(), units.end(),
                                        [](const auto& a, const auto& b) { return a.length < b.length; });
  ASSERT_NE(longest, units.end());
  EXPECT_EQ(longest->length, 10'000u);
  EXPECT_EQ(longest->count, 12u);
  EXPECT_EQ(summary(detected(repeated(chain(300, true), 20), {.max_period = 256})), "")
      << "longer than the longest";
}

TEST(HotPathDetector, StatisticsAddUp) {
  const HotPathDetector detector = detected(cat(repeated(layer, 50), repeated(chain(4, true), 50)));
  const HotPathStatistics statistics = detector.statistics();
  EXPECT_EQ(statistics.instructions, 350u);
  EXPECT_EQ(statistics.hot_instructions, 120u + 160u);
  EXPECT_EQ(statistics.units, 2u);
  EXPECT_EQ(statistics.hits, 100u);
  ASSERT_EQ(detector.top_units(1).size(), 1u);
  EXPECT_EQ(detector.top_units(9).size(), 2u);
  EXPECT_EQ(detector.top_units(1)[0].count, 50u);
}

TEST(HotPathDetector, Trap_S9_WhatDiesInsideIsPartOfAUnit) {
  const auto units = [](std::string_view round) {
    HotPathDetector detector;
    StreamText text;
    record_all(detector, text.parse(repeated(round, 50)));
    detector.flush();
    return detector.hot_units();
  };
  const auto held = units("t = mm(x, w); r = relu(t)"), dead = units("t = mm(x, w); r = relu(t); free t");
  const auto all_dead = units("t = mm(x, w); r = relu(t); free t, r");
  ASSERT_EQ(held.size(), 1u);
  ASSERT_EQ(dead.size(), 1u);
  ASSERT_EQ(all_dead.size(), 1u);
  for (const auto& found : {held, dead, all_dead}) {
    EXPECT_EQ(found[0].length, 2u);
    EXPECT_EQ(found[0].count, 50u);
  }
  EXPECT_NE(held[0].signature, dead[0].signature);
  EXPECT_NE(held[0].signature, all_dead[0].signature);
  EXPECT_NE(dead[0].signature, all_dead[0].signature);
  // Where it dies does not matter, and what came from before the unit does not.
  const auto later = units("t = mm(x, w); r = relu(t); s = neg(r); free t");
  const auto sooner = units("t = mm(x, w); r = relu(t); free t; s = neg(r)");
  ASSERT_EQ(later.size(), 1u);
  ASSERT_EQ(sooner.size(), 1u);
  EXPECT_EQ(later[0].signature, sooner[0].signature);
  const auto carried = units("g = grad(w); v = sub(w, g); free g, w; w = id(v); free v");
  ASSERT_EQ(carried.size(), 1u);
  EXPECT_EQ(carried[0].count, 50u);
  EXPECT_EQ(carried[0].length, 3u);
}

TEST(HotPathDetector, Trap_S9_UnitsThatDifferInWhatDiesAreCountedApart) {
  HotPathDetector detector;
  StreamText text;
  const std::string round = "t = mm(x, w); r = relu(t); free t; u = mm(x, w); s = relu(u); k = end(s)";
  record_all(detector, text.parse(repeated(round, 40)));
  record_all(detector, text.parse(repeated("t = mm(x, w); r = relu(t); free t, r", 40)));
  detector.flush();
  std::set<std::string> signatures;
  for (const HotUnit& unit : detector.hot_units()) signatures.insert(unit.signature.to_hex());
  EXPECT_GE(signatures.size(), 2u);
}

}  // namespace
