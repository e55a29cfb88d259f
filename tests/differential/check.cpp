#include "tests/differential/check.h"

#include <algorithm>
#include <map>

#include "tessera/base/text.h"
#include "tessera/compile/pipeline.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/op/validate.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/reference/reference_device.h"
#include "tests/differential/random_values.h"
#include "tests/differential/roundings.h"
#include "tests/differential/runs.h"
#include "tests/differential/wide_judge.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

compiler::PassOptions pass_options(const Variant& variant) {
  compiler::PassOptions out;
  out.floats = variant.exact ? compiler::FloatRules::exact : compiler::FloatRules::rounding;
  if (!variant.exact)
    out.takes = [seed = variant.seed](const op::CallInfo& call) {
      return std::hash<std::string_view>()(call.card().name) % 3 == seed % 3;
    };
  return out;
}

/// Devices whose plans are checked.
struct Target {
  std::shared_ptr<runtime::Device> device;
  std::shared_ptr<engine::Engine> engine;  ///< makes plans when it first sees something
};

Target make_target(std::shared_ptr<runtime::Device> device) {
  engine::EngineOptions options{.device = device};
  options.plans = {.threshold = 0, .max_entries = 64, .wait = true};
  return {std::move(device), engine::Engine::create(std::move(options))};
}

/// The CPU as it is used, by its interpreter alone, and with code that is made quickly. No code is stored:
/// these kernels are not met again.
const Target& cpu_target(std::uint64_t seed) {
  const auto make = [](runtime::cpu::KernelOptions kernels) {
    static const auto* nowhere = new runtime::CodeStore("");
    kernels.store = nowhere;
    return make_target(std::make_shared<runtime::cpu::CpuDevice>(
        runtime::cpu::CpuOptions{.threads = 2,
                                 .kernels = kernels,
                                 .plan_body = &engine::plan_body,
                                 .target = {.name = "cpu", .sources = {compiler::fused_regions()}}}));
  };
  static const auto* targets = new std::vector<Target>{make({}), make({.compiles = false}),
                                                       make({.quality = runtime::cpu::CodeQuality::fast})};
  return (*targets)[seed % targets->size()];
}

const Target& reference_target() {
  static const auto* target = [] {
    const auto device = std::make_shared<runtime::ReferenceDevice>();
    return new Target{device, engine::Engine::create({.device = device})};
  }();
  return *target;
}

/// Any other, as it is used. Throws if there is none of this name.
const Target& other_target(const std::string& name) {
  static auto* targets = new std::map<std::string, Target>;
  const auto known = targets->find(name);
  if (known != targets->end()) return known->second;
  return targets->emplace(name, make_target(value_or_throw(engine::find_device(name)))).first->second;
}

const Target& target_of(const Variant& variant) {
  if (variant.device == "reference") return reference_target();
  return variant.device == "cpu" ? cpu_target(variant.seed) : other_target(variant.device);
}

/// One program and what it should give.
class Check {
 public:
  Check(const Program& program, const Variant& variant)
      : program_(program), variant_(variant), target_(target_of(variant)) {}

  Verdict run() {
    auto first = run_reference(*program_.function, program_, program_.first_parameters);
    auto second = run_reference(*program_.function, program_, program_.second_parameters);
    if (!first) return failing(first.error());
    if (!second) return {};
    expected_[0] = *std::move(first);
    expected_[1] = *std::move(second);
    Verdict out{.ran = true};
    for (int run : {0, 1}) judges_[run] = std::make_unique<WideJudge>(program_, parameters(run));
    out.is_vacuous = judges_[0]->is_vacuous();
    for (int run : {0, 1})
      if (const auto text = judges_[run]->outside(expected_[run])) {
        out.failure = cat("reference, run ", run, ": ", *text);
        return out;
      }
    if (is_reference()) {
      if ((out.failure = laws_broken())) return out;
      if ((out.failure = compiled_differs())) return out;
      if ((out.failure = own_ops_differ())) return out;
    }
    if ((out.failure = planned_differs())) return out;
    if (program_.sizes.empty()) out.failure = lazy_differs();
    return out;
  }

 private:
  [[nodiscard]] bool is_reference() const { return variant_.device == "reference"; }

  [[nodiscard]] std::span<const double> parameters(int run) const {
    return run == 0 ? program_.first_parameters : program_.second_parameters;
  }

  /// What is wrong by the reference must be wrong on a device, unless the passes found that no result needs
  /// it. All of them: devices compile bodies of regions for themselves.
  Verdict failing(const Error& error) {
    if (is_reference()) return {};
    const auto compiled = compiler::run_passes(program_.function, {});
    if (!compiled) return {};
    Verdict out{.ran = true};
    if (run_reference(*compiled->function, program_, program_.first_parameters)) return out;
    const auto got = run_planned(program_, plan_options(), *target_.device, target_.device->target(),
                                 program_.first_parameters);
    if (got) out.failure = cat("planned: gives results, not the error: ", error.to_text());
    return out;
  }

  std::optional<std::string> compiled_differs() {
    const auto compiled = compiler::run_passes(
        program_.function, {.passes = pass_options(variant_), .disabled = variant_.disabled, .verify = true});
    if (!compiled) return cat("compiling fails: ", compiled.error().to_text());
    return differs(*compiled->function, "compiled");
  }

  std::optional<std::string> differs(const ir::Function& function, std::string_view what) {
    for (int run : {0, 1}) {
      const auto got = run_reference(function, program_, parameters(run));
      if (!got) return cat(what, ": ", got.error().to_text());
      if (auto text = compare(*got, run)) return cat(what, ", run ", run, ": ", *text);
    }
    return std::nullopt;
  }

  std::optional<std::string> compare(const Results& got, int run) {
    if (variant_.exact && is_reference()) return difference(expected_[run], got);
    if (auto text = judges_[run]->outside(got)) return text;
    if (!roundings_[run])
      roundings_[run] = std::make_unique<Roundings>(program_, expected_[run], parameters(run), variant_.seed);
    return roundings_[run]->unexplained(got);
  }

  [[nodiscard]] compiler::PlanOptions plan_options() const {
    compiler::PlanOptions out;
    out.pipeline = {.passes = pass_options(variant_), .disabled = variant_.disabled, .verify = true};
    out.pipeline.sizes = [this](std::span<const Ref<ir::Var>> dims) {
      std::vector<std::int64_t> sizes = program_.sizes;
      sizes.resize(dims.size(), 2);  // those that are learned
      return sizes;
    };
    return out;
  }

  /// What plans are tiled by. The reference device runs the ops of any plan: of single steps, or of the tiles
  /// of the CPU.
  [[nodiscard]] pattern::Target plan_target() const {
    const bool tiles = !is_reference() || variant_.seed % 2 != 0;
    pattern::Target out = (tiles && is_reference() ? cpu_target(0) : target_).device->target();
    std::erase_if(out.sources, [&](const auto& source) {
      const auto& left_out = variant_.no_tiles_of;
      return std::find(left_out.begin(), left_out.end(), source->name()) != left_out.end();
    });
    return out;
  }

  std::optional<std::string> planned_differs() {
    const auto got =
        run_planned(program_, plan_options(), *target_.device, plan_target(), program_.first_parameters);
    if (!got && got.error().code() == ErrorCode::unsupported) return std::nullopt;
    if (!got) return cat("planned: ", got.error().to_text());
    const auto text = compare(*got, 0);
    return text ? std::optional(cat("planned: ", *text)) : std::nullopt;
  }

  std::optional<std::string> lazy_differs() {
    for (int run : {0, 1}) {
      const auto got = run_lazily(program_, parameters(run), target_.engine);
      if (!got && got.error().code() == ErrorCode::unsupported) return std::nullopt;
      if (!got) return cat("lazy: ", got.error().to_text());
      for (const Results& results : *got)
        if (const auto text = is_reference() ? difference(expected_[run], results) : compare(results, run))
          return cat("lazy, run ", run, ": ", *text);
    }
    return std::nullopt;
  }

  /// Gradients are compared where small changes of inputs change results little.
  std::optional<std::string> own_ops_differ() {
    if (variant_.exact || !program_.sizes.empty()) return std::nullopt;
    const auto text = twins_differ(program_, program_.first_parameters, target_.engine);
    if (!text && text.error().code() == ErrorCode::unsupported) return std::nullopt;
    return text ? *text : text.error().to_text();
  }

  /// Every pass alone keeps the value, is idempotent, and gives the same object back if nothing changed.
  std::optional<std::string> laws_broken() {
    const auto options = pass_options(variant_);
    std::string_view last;
    for (const compiler::Pass& pass : compiler::function_passes()) {
      if (pass.name == std::exchange(last, pass.name)) continue;
      compiler::PassContext context(options);
      const auto run = std::get<compiler::PassFunction>(pass.run);
      const auto once = run(program_.function, context);
      if (!once) return cat(pass.name, " fails: ", once.error().to_text());
      if (*once == program_.function) continue;
      if (ir::structural_equal(**once, *program_.function, ir::CompareMode::strict))
        return cat(pass.name, " changed nothing but gave another object");
      for (const Error& error : op::validate(**once)) return cat(pass.name, ": ", error.to_text());
      if (auto text = differs(**once, pass.name)) return text;
      const auto twice = run(*once, context);
      if (!twice || *twice != *once) return cat(pass.name, " is not idempotent");
    }
    return std::nullopt;
  }

  const Program& program_;
  const Variant& variant_;
  const Target& target_;
  Results expected_[2];
  std::unique_ptr<WideJudge> judges_[2];
  std::unique_ptr<Roundings> roundings_[2];
};

}  // namespace

Variant tessera::differential::random_variant(std::uint64_t seed, Numbers numbers, std::string device) {
  Random random(seed ^ 0x9e3779b97f4a7c15ULL);
  Variant out{.device = std::move(device), .exact = numbers == Numbers::any, .seed = seed};
  if (random.one_in(3)) return out;
  for (const std::string_view pass : compiler::optional_pass_names())
    if (random.one_in(3)) out.disabled.emplace_back(pass);
  for (const auto& source : cpu_target(0).device->target().sources)
    if (random.one_in(4)) out.no_tiles_of.push_back(source->name());
  return out;
}

Verdict tessera::differential::check(const Program& program, const Variant& variant) {
  return Check(program, variant).run();
}
