// Plans in files: what is written is what is read, and nothing else is accepted.
#include "tessera/compile/package.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tessera/compile/constants.h"
#include "tessera/compile/plan_program.h"
#include "tessera/ir/parse.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/binding.h"
#include "tessera/plan/known_sizes.h"
#include "tessera/plan/verify.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t version_at = 16, checksum_at = 64, content_at = 80;

ir::FunctionRef last_function(const std::string& text) {
  const auto node = ir::parse(text);
  EXPECT_TRUE(node) << node.error().to_text();
  if (const auto* module = ir::as<ir::Module>(*node)) return module->functions.back();
  return ir::FunctionRef(ir::as<ir::Function>(*node));  // null: an expression
}

/// With fused kernels, as devices have them.
plan::Package packaged(const std::string& text) {
  const auto function = last_function(text);
  const auto planned =
      compiler::plan_program(function, {.name = "test", .sources = {compiler::fused_regions()}});
  EXPECT_TRUE(planned) << planned.error().to_text();
  return compiler::package(*function, {planned->program}, "test");
}

std::string bytes_of(const plan::Package& package) {
  auto bytes = plan::to_bytes(package);
  EXPECT_TRUE(bytes) << bytes.error().to_text();
  return *bytes;
}

Result<plan::Package> read(const std::string& bytes) {
  return plan::from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), bytes.size()))), "x.plan");
}

/// As if the file had been written so.
std::string with_checksum(std::string bytes) {
  const Hash128 hash = hash_text(std::string_view(bytes).substr(content_at));
  for (int i = 0; i < 8; ++i) {
    bytes[checksum_at + static_cast<std::size_t>(i)] = static_cast<char>(hash.high >> 8 * i & 0xff);
    bytes[checksum_at + 8 + static_cast<std::size_t>(i)] = static_cast<char>(hash.low >> 8 * i & 0xff);
  }
  return bytes;
}

std::vector<std::pair<std::string, std::string>> examples() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE_DIR "/examples/ir")) {
    if (entry.path().extension() != ".tsr") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    out.emplace_back(entry.path().filename().string(), text.str());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::int64_t size_or_one(const plan::Plan& plan, std::span<const std::int64_t> sizes, const op::Dim& dim) {
  const auto size = plan::KnownSizes{plan.dims, sizes}.of(dim);
  return size && *size >= 0 && *size < 1000 ? *size : 1;
}

void bind_somehow(const plan::Plan& plan) {
  const std::vector<std::int64_t> sizes(plan.dims.size(), 3);
  std::vector<op::Layout> layouts;
  for (const plan::ValueId input : plan.inputs) {
    op::Extents shape;
    for (const op::Dim& dim : plan.values[input].type.shape) shape.push_back(size_or_one(plan, sizes, dim));
    layouts.push_back(op::contiguous(shape));
  }
  (void)plan::bind(plan, sizes, layouts);
}

constexpr const char* softmax_rows =
    "func f[N, M: i64 in 1..64](x: f32[N, M], w: f32[M, 8]) {\n"
    "  a: f32[N, M] = mul(x, $0:f32)\n"
    "  b: f32[N, M] = softmax(a) {axis = -1}\n"
    "  c: f32[N, 8] = matmul(b, w)\n"
    "  d: f32[N, 8] = relu(c)\n"
    "  e: f32[N, 8] = for 3 (d) with [N, M]() [N, M](i: i64[], s: f32[N, 8]) {\n"
    "    h: f32[N, 8] = mul(s, 0.5)\n"
    "    return h\n"
    "  }\n"
    "  return e, b\n"
    "}\n";

constexpr const char* positive_rows =
    "func f[N](x: f32[N, 4]) {\n"
    "  m: f32[N] = max(x) {axes = [1]}\n"
    "  r: f32[N] = relu(m)\n"
    "  places: i64[N, 1], k: i64 = nonzero(r)\n"
    "  kept: i64[k, 1] = slice(places) {starts = shape[0], stops = shape[k], axes = [0]}\n"
    "  flat: i64[k] = reshape(kept) {shape = shape[k]}\n"
    "  rows: f32[k, 4] = gather(x, flat) {axis = 0}\n"
    "  y: f32[k, 4] = exp(rows)\n"
    "  return y, m, k\n"
    "}\n";

}  // namespace

TEST(SavedPlan, IsReadAsItWasWritten) {
  auto programs = examples();
  ASSERT_GT(programs.size(), 5U);
  programs.emplace_back("softmax_rows", softmax_rows);
  programs.emplace_back("positive_rows", positive_rows);
  std::size_t kernels = 0, saved = 0;
  for (const auto& [name, text] : programs) {
    SCOPED_TRACE(name);
    const auto function = last_function(text);
    if (function == nullptr) continue;
    const auto planned =
        compiler::plan_program(function, {.name = "test", .sources = {compiler::fused_regions()}});
    if (!planned) continue;  // what no plan can express
    const auto package = compiler::package(*function, {planned->program}, "test");
    const std::string bytes = bytes_of(package);
    const auto again = read(bytes);
    ASSERT_TRUE(again) << again.error().to_text();
    EXPECT_EQ(bytes_of(*again), bytes);
    ASSERT_EQ(again->programs[0].parts.size(), package.programs[0].parts.size());
    for (std::size_t p = 0; p < again->programs[0].parts.size(); ++p) {
      const plan::Plan& loaded = *again->programs[0].parts[p].plan;
      EXPECT_EQ(plan::to_text(loaded), plan::to_text(*package.programs[0].parts[p].plan));
      for (const plan::Step& step : loaded.steps) kernels += step.kernel != nullptr ? 1 : 0;
    }
    EXPECT_EQ(again->inputs, package.inputs);
    EXPECT_EQ(again->outputs, package.outputs);
    ++saved;
  }
  EXPECT_GT(saved, 5U);
  EXPECT_GT(kernels, 3U);
}

TEST(SavedPlan, OfAnotherVersionIsRefused) {
  std::string bytes = bytes_of(packaged(softmax_rows));
  bytes[version_at] = '9';
  const auto other = read(with_checksum(bytes));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("was made by version '9"), std::string::npos)
      << other.error().message();
}

TEST(SavedPlan, ThatIsCutOffOrChangedIsRefused) {
  const std::string bytes = bytes_of(packaged(softmax_rows));
  for (std::size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 97)
    EXPECT_FALSE(read(bytes.substr(0, size))) << size;
  EXPECT_FALSE(read(bytes + "x"));
  for (std::size_t at = 0; at < bytes.size(); at += at < 256 ? 1 : 31) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(read(changed)) << at;
  }
}

// Bytes that somebody chose, with a checksum that fits: refused, or a plan that is one.
TEST(SavedPlan, HostileBytesDoNoHarm) {
  std::size_t refused = 0, accepted = 0;
  auto programs = examples();
  programs.emplace_back("positive_rows", positive_rows);
  for (const auto& [name, text] : programs) {
    const auto function = last_function(text);
    if (function == nullptr) continue;
    const auto planned =
        compiler::plan_program(function, {.name = "test", .sources = {compiler::fused_regions()}});
    if (!planned) continue;
    const std::string bytes = bytes_of(compiler::package(*function, {planned->program}, "test"));
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
      std::mt19937 random(seed);
      std::string changed = bytes;
      for (std::uint32_t k = 0; k <= seed % 3; ++k)
        changed[content_at + random() % (changed.size() - content_at)] = static_cast<char>(random());
      const auto result = read(with_checksum(changed));
      if (!result) {
        ++refused;
        continue;
      }
      ++accepted;
      for (const plan::Part& part : result->programs[0].parts) bind_somehow(*part.plan);
    }
  }
  EXPECT_GT(refused, 1000U);
  std::printf("%zu refused, %zu accepted\n", refused, accepted);
}

TEST(SavedPlan, WithAFunctionOfThisProcessSaysItsName) {
  plan::Package package = packaged(softmax_rows);
  static const op::Card mine{.name = "my_filter", .summary = "a function of the program"};
  auto changed = std::make_shared<plan::Plan>(*package.programs[0].parts[0].plan);
  for (plan::Step& step : changed->steps)
    if (step.card != nullptr) step.card = &mine;
  package.programs[0].parts[0].plan = changed;
  const auto bytes = plan::to_bytes(package);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::unsupported);
  EXPECT_NE(bytes.error().message().find("'my_filter'"), std::string::npos) << bytes.error().message();
}

TEST(SavedPlan, EqualConstantsAreWrittenOnce) {
  const op::HostTensor weights = value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {64, 64}));
  const op::HostTensor others = value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {64, 64}));
  others.values<float>()[4095] = 1;
  const auto bytes_with = [&](const op::HostTensor& second) {
    op::IrBuilder b;
    const op::Value x = b.parameter("x", {ir::Dtype::f32, {64, 64}});
    const auto product = [&](const op::Value& with, const op::HostTensor& by) {
      return b.call("matmul", {with, b.import(compiler::dense_constant(by), x.type())});
    };
    const auto function =
        value_or_throw(b.function("main", std::vector{product(product(x, weights), second)}));
    const auto planned = value_or_throw(compiler::plan_program(function, {.name = "test", .sources = {}}));
    return bytes_of(compiler::package(*function, {planned.program}, "test"));
  };
  const std::size_t apart = bytes_with(others).size();
  const op::HostTensor equal = value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {64, 64}));
  EXPECT_LE(bytes_with(equal).size() + weights.byte_size(), apart);
  EXPECT_TRUE(read(bytes_with(equal)));
}

TEST(SavedPlan, ProgramsThatFlagsChooseAmongAreInOneFile) {
  plan::Package package = packaged(softmax_rows);
  package.programs.push_back(package.programs[0]);
  package.flags = {{.input = 1, .rank = 2}};
  package.inputs.insert(package.inputs.begin() + 1, "is_cached");
  const std::string bytes = bytes_of(package);
  const auto again = read(bytes);
  ASSERT_TRUE(again) << again.error().to_text();
  ASSERT_EQ(again->programs.size(), 2U);
  EXPECT_EQ(plan::to_text(*again->programs[1].parts[0].plan),
            plan::to_text(*package.programs[0].parts[0].plan));
  EXPECT_EQ(op::to_text(plan::input_types(*again)[1]), "bool[1, 1]");
  EXPECT_EQ(plan::variant_text(again->inputs, again->flags, 1), "is_cached = true");
  package.flags[0].input = 9;
  EXPECT_NE(read(bytes_of(package)).error().message().find("its flags are no inputs of it"),
            std::string::npos);
}

// What a run keeps is taken by the next one, whatever its flags are.
TEST(SavedPlan, StatesAreTheSameForAllValuesOfTheFlags) {
  const auto counting = [](const std::string& dtype) {
    const std::string type = dtype + "[3]";
    return packaged("func f(x: " + type + ", s: " + type + ") {\n  t: " + type +
                    " = add(x, s)\n  return t\n}\n");
  };
  plan::Package package = counting("f32");
  package.programs.push_back(package.programs[0]);
  package.flags = {{.input = 1, .rank = 0}};
  package.inputs = {"x", "is_cached"};
  package.states = {0};
  EXPECT_TRUE(read(bytes_of(package)));
  package.programs[1] = counting("f64").programs[0];
  const auto refused = read(bytes_of(package));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the file is damaged: state 0 is no output");
}

// A part of a program is bound to what an earlier one gave, of which its plan knows only dtype and rank.
TEST(Binding, RefusesInputsOfOtherShapes) {
  const auto package = packaged("func f[N](x: f32[N, 4]) {\n  y: f32[N, 4] = exp(x)\n  return y\n}\n");
  const plan::Plan& plan = *package.programs[0].parts[0].plan;
  const std::vector<std::int64_t> sizes = {3};
  const std::vector<op::Layout> fits = {op::contiguous({3, 4})}, larger = {op::contiguous({3, 5})};
  EXPECT_TRUE(plan::bind(plan, sizes, fits));
  const auto refused = plan::bind(plan, sizes, larger);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "input 0 of the plan has shape [3, 5], expected f32[3, 4]");
}

// Two symbols that a call needs to be equal are a condition of the plan, not a write beyond its memory.
TEST(SizeConditions, AreCheckedAtEveryBinding) {
  const auto package = packaged(
      "func f[N, M](x: f32[4, N], y: f32[M, 4]) {\n"
      "  z: f32[4, 4] = matmul(x, y)\n"
      "  return z\n"
      "}\n");
  const auto layouts = [](std::int64_t n, std::int64_t m) {
    return std::vector<op::Layout>{op::contiguous({4, n}), op::contiguous({m, 4})};
  };
  const std::vector<std::int64_t> equal = {5, 5}, other = {5, 6};
  EXPECT_TRUE(plan::bind(*package.programs[0].parts[0].plan, equal, layouts(5, 5)));
  const auto wrong = plan::bind(*package.programs[0].parts[0].plan, other, layouts(5, 6));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "the plan needs N = M, but they are 5 and 6");
}
