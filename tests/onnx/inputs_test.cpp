// Every operator that is imported, given inputs it was not made for: left out, empty, of another dtype, of
// another rank. Each outcome is a result or an error that names the node.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

#include "tessera/engine/engine.h"
#include "tessera/model/onnx_model.h"
#include "tessera/model/tensor_target.h"
#include "tessera/onnx/conformance.h"
#include "tessera/onnx/import.h"
#include "tessera/onnx/mapping.h"
#include "tessera/onnx/read.h"
#include "tests/support/repeats.h"

using namespace tessera;
using onnx::HostTensor;

namespace {

constexpr Dtype all_dtypes[] = {Dtype::f32, Dtype::f64, Dtype::f16,    Dtype::bf16, Dtype::i8,
                                Dtype::i16, Dtype::i32, Dtype::i64,    Dtype::u8,   Dtype::u16,
                                Dtype::u32, Dtype::u64, Dtype::boolean};

/// What a signal handler says before the test ends.
char current_case[512];
void say_where(int signal) {
  const auto say = [](const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); };
  say("crashed at ");
  say(current_case);
  say("\n");
  ::_exit(128 + signal);
}

/// A node whose inputs are changed.
struct Case {
  std::string title;
  onnx::Node node;
  std::vector<HostTensor> values;  ///< by input
  std::int64_t opset = 1;
  onnx::Opsets others = {};
  std::vector<onnx::LocalFunction> functions = {};
};

onnx::Model model_of(const Case& one, bool are_known) {
  onnx::Model model;
  model.file = "generated.onnx";
  model.ir_version = 8;
  model.opsets = one.others;
  model.opsets.emplace_back(one.node.domain, one.opset);
  for (const onnx::LocalFunction& function : one.functions) model.add_function(function);
  model.graph.nodes = {one.node};
  std::set<std::string> given;
  for (std::size_t i = 0; i < one.node.inputs.size(); ++i) {
    const std::string& name = one.node.inputs[i];
    if (name.empty() || !given.insert(name).second) continue;
    const HostTensor& value = one.values[i];
    if (are_known) {
      model.graph.initializers.push_back({name, value, {}});
      continue;
    }
    onnx::DeclaredType type{onnx::DeclaredType::Kind::tensor, value.dtype(), {}, {{}}};
    for (const std::int64_t size : value.shape()) type.shape->emplace_back(size);
    model.graph.inputs.push_back({name, type});
  }
  for (const std::string& name : one.node.outputs)
    if (!name.empty()) model.graph.outputs.push_back({name, {}});
  return model;
}

onnx::Limits small_limits() {
  onnx::Limits limits;
  limits.elements = 1 << 16;
  limits.total_bytes = 1 << 24;
  limits.steps = 100;
  limits.iterations = 100;
  limits.work = 1 << 24;
  return limits;
}

class Outcomes {
 public:
  void check(const Case& one) {
    for (const char* road : {"run", "constants", "function"}) {
      std::snprintf(current_case, sizeof current_case, "%s, %s", one.title.c_str(), road);
      const bool are_known = *road != 'f';
      note(one, road, outcome(model_of(one, are_known), *road == 'r'));
    }
  }
  /// Recorded on tensors.
  void check_recorded(const Case& one, const std::shared_ptr<engine::Engine>& engine) {
    std::snprintf(current_case, sizeof current_case, "%s, recorded", one.title.c_str());
    try {
      const OnnxModel model = onnx_model(model_of(one, true), {.limits = small_limits(), .engine = engine});
      (void)model(std::span<const Tensor>());
      note(one, "recorded", {});
    } catch (const Exception& exception) {
      note(one, "recorded", exception.error());
    }
  }
  [[nodiscard]] std::size_t results() const { return results_; }
  [[nodiscard]] std::size_t errors() const { return errors_; }

 private:
  static Result<void> outcome(const onnx::Model& model, bool runs) {
    if (runs) {
      TESSERA_TRY(onnx::run(model, {}, {.limits = small_limits()}));
      return {};
    }
    TESSERA_TRY(onnx::import_function(model, small_limits()));
    return {};
  }

  void note(const Case& one, const char* road, const Result<void>& outcome) {
    ++(outcome ? results_ : errors_);
    if (outcome) return;
    const Error& error = outcome.error();
    const std::string text = error.to_text();
    const bool names_node =
        text.find(onnx::describe(one.node)) != std::string::npos ||
        text.find("' is no tensor") != std::string::npos;  // a sequence, as an output of the model
    if (names_node && error.code() != ErrorCode::internal) return;
    if (complaints_.insert(cat(one.node.op, road)).second)
      ADD_FAILURE() << one.title << ", " << road << ": " << text.substr(0, 600);
  }

  std::size_t results_ = 0, errors_ = 0;
  std::set<std::string> complaints_;  ///< one for each operator and road
};

HostTensor made(Dtype dtype, const op::Extents& shape) {
  std::vector<std::int64_t> ones(static_cast<std::size_t>(op::element_count(shape)), 1);
  return onnx::tensor_of(dtype, shape, ones);
}

/// Something for every attribute that an operator must have.
std::vector<onnx::Attribute> attributes_of(const std::string& op) {
  onnx::Graph body;
  body.name = "body";
  onnx::Node identity{"", "Constant", "", {}, {"c"}, {{"value_int", std::int64_t{1}, {}, "an integer"}}};
  body.nodes = {identity};
  body.outputs = {{"c", {}}};
  const auto graph = [&](const char* name) {
    return onnx::Attribute{name, std::vector<onnx::Graph>{body}, {}, "a graph"};
  };
  const auto integer = [](const char* name, std::int64_t value) {
    return onnx::Attribute{name, value, {}, "an integer"};
  };
  const auto text = [](const char* name, const char* value) {
    return onnx::Attribute{name, std::string(value), {}, "a string"};
  };
  const auto integers = [](const char* name, std::vector<std::int64_t> values) {
    return onnx::Attribute{name, std::move(values), {}, "integers"};
  };
  if (op == "If") return {graph("then_branch"), graph("else_branch")};
  if (op == "Loop") return {graph("body")};
  if (op == "Scan") return {graph("body"), integer("num_scan_inputs", 1)};
  if (op == "Cast") return {integer("to", 1)};
  if (op == "Einsum") return {text("equation", "i,i->i")};
  if (op == "BitShift") return {text("direction", "LEFT")};
  if (op == "LSTM" || op == "GRU" || op == "RNN") return {integer("hidden_size", 1)};
  if (op == "DepthToSpace" || op == "SpaceToDepth") return {integer("blocksize", 1)};
  if (op == "LRN") return {integer("size", 1)};
  if (op == "Concat") return {integer("axis", 0)};
  if (op.find("Pool") != std::string::npos && op.find("Global") == std::string::npos)
    return {integers("kernel_shape", {1})};
  return {};
}

/// Shapes of the inputs of a call, by the number of the input.
op::Extents shape_of(std::size_t form, std::size_t input) {
  switch (form % 6) {
    case 0:
      return {2};
    case 1:
      return {};
    case 2:
      return {2, 2};
    case 3:
      return {1, 2, 3, 3};
    case 4:
      return input == 0 ? op::Extents{1, 2, 3} : op::Extents{2};
    default:
      return {0};
  }
}

struct Operator {
  std::string name, domain;
  std::int64_t opset;
};

std::vector<Operator> operators() {
  std::set<std::tuple<std::string, std::string, std::int64_t>> all;
  for (const onnx::Mapping& mapping : onnx::all_mappings())
    for (const std::int64_t opset : {std::int64_t{6}, std::int64_t{22}})
      all.emplace(mapping.op, mapping.domain, std::max(mapping.since, opset));
  std::vector<Operator> out;
  for (const auto& [name, domain, opset] : all) out.push_back({name, domain, opset});
  return out;
}

class Trap_U12 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (fixture::is_sanitized) return;  // a sanitizer says more
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, say_where);
  }
  static void TearDownTestSuite() {
    if (fixture::is_sanitized) return;
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, SIG_DFL);
  }
  Outcomes outcomes_;
};

TEST_F(Trap_U12, EveryOperatorWithEveryInputLeftOutOrOfAnotherType) {
  const auto engine = engine::Engine::create({.plans = {.enabled = false}});
  std::size_t number = 0;
  for (const Operator& op : operators())
    for (const Dtype dtype : all_dtypes)
      for (const std::size_t count : {0, 1, 2, 3, 4, 6, 9})
        for (std::size_t changed = 0; changed <= 2 * count; ++changed) {
          const bool is_common = dtype == Dtype::f32 || dtype == Dtype::i64 || dtype == Dtype::boolean;
          if (op.opset < 22 && !is_common) continue;  // older versions differ in attributes
          const std::size_t form = number++;
          if (fixture::is_sanitized && form % 10 != 0) continue;
          Case one{.title = cat(op.domain, " ", op.name, " of opset ", op.opset, ", ", dtype, ", ", count,
                                " inputs, change ", changed, ", form ", form % 6),
                   .node = {"n", op.name, op.domain, {}, {"y"}, attributes_of(op.name)},
                   .values = {},
                   .opset = op.opset};
          for (std::size_t i = 0; i < count; ++i) {
            const bool is_other = changed == count + i + 1;
            one.node.inputs.push_back(changed == i + 1 ? "" : cat("i", i));
            one.values.push_back(made(!is_other             ? dtype
                                      : ir::is_float(dtype) ? Dtype::i64
                                                            : Dtype::f32,
                                      shape_of(form, i)));
          }
          if (!op.domain.empty()) one.others = {{"", 22}};
          outcomes_.check(one);
          if (form % 7 == 0) outcomes_.check_recorded(one, engine);
        }
  EXPECT_GT(outcomes_.results(), 10'000u / (fixture::is_sanitized ? 10 : 1));
  EXPECT_GT(outcomes_.errors(), 10'000u / (fixture::is_sanitized ? 10 : 1));
}

/// The one node of a test of the ONNX project with what it is given; nothing where that is no list of tensors.
std::optional<Case> case_of(const std::string& folder) {
  auto model = onnx::read_model(folder + "/model.onnx");
  if (!model || model->graph.nodes.size() != 1 || !model->graph.initializers.empty()) return std::nullopt;
  const auto sets = onnx::read_data_sets(*model, folder);
  if (!sets || sets->empty()) return std::nullopt;
  const onnx::Node& node = model->graph.nodes[0];
  Case out{.title = folder.substr(folder.rfind('/') + 1),
           .node = node,
           .values = {},
           .others = model->opsets,
           .functions = model->functions};
  out.opset = onnx::find_opset(model->opsets, node.domain).value_or(1);
  out.node.name = "n";
  for (const std::string& name : node.inputs) {
    const auto at = std::ranges::find(model->graph.inputs, name, &onnx::ValueInfo::name);
    const auto i = static_cast<std::size_t>(at - model->graph.inputs.begin());
    if (!name.empty() &&
        (i >= sets->at(0).inputs.size() || sets->at(0).inputs[i].kind != onnx::DataValue::Kind::tensor))
      return std::nullopt;
    out.values.push_back(name.empty() ? HostTensor() : sets->at(0).inputs[i].tensors[0]);
  }
  return out;
}

TEST_F(Trap_U12, NodesOfTheFormatsTestsWithOneInputChanged) {
  const auto folders = onnx::find_tests(TESSERA_ONNX_TESTDATA "/node");
  if (!folders || folders->empty())
    GTEST_SKIP() << "the tests of the ONNX project are not in " TESSERA_ONNX_TESTDATA;
  std::size_t cases = 0;
  for (const std::string& folder : *folders) {
    const auto whole = case_of(folder);
    if (!whole) continue;
    for (std::size_t i = 0; i < whole->node.inputs.size(); ++i) {
      if (whole->node.inputs[i].empty()) continue;
      const HostTensor& value = whole->values[i];
      const auto try_with = [&](std::string_view what, std::optional<HostTensor> changed) {
        Case one = *whole;
        one.title = cat(whole->title, ": input ", i, " ", what);
        one.node.inputs[i] = changed ? cat("changed", i) : "";
        if (changed) one.values[i] = *std::move(changed);
        outcomes_.check(one);
        ++cases;
      };
      const op::Extents shape(value.shape().begin(), value.shape().end());
      op::Extents longer = shape, shorter = shape;
      longer.insert(longer.begin(), 2);
      if (!shorter.empty()) shorter.pop_back();
      if (fixture::is_sanitized && cases % 10 != 0) {
        ++cases;
        continue;
      }
      try_with("left out", std::nullopt);
      for (const Dtype dtype : all_dtypes)
        if (dtype != value.dtype()) try_with(cat("of ", dtype), made(dtype, shape));
      for (const op::Extents& other :
           {longer, shorter, op::Extents{}, op::Extents{0}, op::Extents{1}, op::Extents{3, 0, 2}})
        try_with(cat("of shape [", join(other, ", "), "]"), made(value.dtype(), other));
      const std::vector<std::int64_t> negative(static_cast<std::size_t>(value.size()), -7);
      try_with("of -7", onnx::tensor_of(value.dtype(), shape, negative));
    }
  }
  EXPECT_GT(cases, 1000u);
}

}  // namespace
