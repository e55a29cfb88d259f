#include "tessera/engine/profiler.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/card.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// The innermost block around both: "a/b" of "a/b/c" and "a/b/d".
std::string_view common_block(std::string_view a, std::string_view b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '/', b_ends = i == b.size() || b[i] == '/';
    if (a_ends && b_ends) end = i;
    if (i == std::min(a.size(), b.size()) || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

void add_op(std::string_view name, const ir::Span& span, std::vector<ProfiledOp>& out) {
  const SourceSpan source = span.resolve();
  out.push_back({std::string(name), source.file, source.line});
}

}  // namespace

std::string KernelSource::name() const {
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(ops.size(), most); ++i) out += cat(i == 0 ? "" : "+", ops[i].name);
  return ops.size() > most ? cat(out, "+", ops.size() - most, " more") : out;
}

SourceLookup::SourceLookup(const Needed& needed, std::span<const std::uint32_t> steps,
                           std::span<const std::string> blocks)
    : blocks_(blocks) {
  const std::size_t count = steps.empty() ? needed.size() : steps.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Node& node = needed.node(steps.empty() ? i : steps[i]);
    if (node.file != nullptr) add_line(node.file, node.line, name_of(node.block));
  }
}

SourceLookup::SourceLookup(std::span<const plan::SourceBlock> blocks) {
  for (const plan::SourceBlock& source : blocks) add_line(source.file, source.line, source.block);
}

void SourceLookup::add_line(std::string_view file, std::uint32_t line, std::string_view block) {
  const auto [known, is_new] = block_of_line_.try_emplace({file, line}, block);
  if (!is_new) known->second = common_block(known->second, block);
}

KernelSource SourceLookup::of_node(const Node& node) const {
  const std::string_view name = node.card != nullptr ? node.card->name : "function";
  return {{{std::string(name), node.file == nullptr ? "" : node.file, node.line}},
          std::string(name_of(node.block))};
}

KernelSource SourceLookup::of_step(const plan::Step& step) const {
  KernelSource out;
  if (step.kind == plan::StepKind::kernel || step.kind == plan::StepKind::library)
    for (const auto& statement : step.function->body) {
      const auto* call = ir::as<ir::Call>(*statement->value);
      add_op(call == nullptr ? step.name() : std::string_view(call->op), statement->span(), out.ops);
    }
  else
    add_op(step.name(), step.span, out.ops);
  std::optional<std::string_view> block;
  for (const ProfiledOp& op : out.ops) {
    const auto known = block_of_line_.find({op.file, op.line});
    if (known == block_of_line_.end()) continue;
    block = block ? common_block(*block, known->second) : known->second;
  }
  out.block = block.value_or("");
  return out;
}

void Profiler::start(ProfilingLevel level) {
  const std::lock_guard lock(mutex_);
  profile_ = {.level = level};
  kernel_numbers_.clear();
  thread_numbers_.clear();
  began_ = Clock::now();
  level_ = level;
}

/// What began at another level, or before the last start, is not counted.
void Profiler::add(const EvaluationTimes& times) {
  const std::lock_guard lock(mutex_);
  if (times.level != profile_.level || times.begin < began_) return;
  ++profile_.evaluations;
  profile_.time += times.end - times.begin;
  add_event(ProfileEvent::none, {.begin = times.begin, .end = times.end});
  for (const KernelRun& run : times.kernels) {
    const std::uint32_t number = kernel_number(run.source);
    ++profile_.kernels[number].runs;
    profile_.kernels[number].time += run.time.end - run.time.begin;
    add_event(number, run.time);
  }
}

std::uint32_t Profiler::kernel_number(const KernelSource& source) {
  std::string key = cat(source.block, "\n");
  for (const ProfiledOp& op : source.ops) key += cat(op.name, " ", op.file, ":", op.line, "\n");
  const auto [known, is_new] =
      kernel_numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(profile_.kernels.size()));
  if (is_new) profile_.kernels.push_back({source.name(), source.ops, source.block});
  return known->second;
}

void Profiler::add_event(std::uint32_t kernel, const runtime::TimedStep& time) {
  if (profile_.level != ProfilingLevel::per_kernel) return;
  if (profile_.events.size() == max_events) {
    ++profile_.events_lost;
    return;
  }
  const auto thread =
      thread_numbers_
          .try_emplace(std::this_thread::get_id(), static_cast<std::uint32_t>(thread_numbers_.size()))
          .first->second;
  profile_.events.push_back({kernel, thread, time.thread, time.begin - began_, time.end - time.begin});
}

Profile Profiler::profile() const {
  const std::lock_guard lock(mutex_);
  Profile out = profile_;
  std::map<std::string, BlockTime> blocks;
  for (const KernelTime& kernel : out.kernels)
    for (std::string path = kernel.block;;) {
      BlockTime& block = blocks.try_emplace(path, BlockTime{path}).first->second;
      block.runs += kernel.runs;
      block.time += kernel.time;
      const std::size_t cut = path.rfind('/');
      if (cut == std::string::npos) break;
      path.resize(cut);
    }
  for (auto& [path, block] : blocks) out.blocks.push_back(std::move(block));
  std::stable_sort(out.blocks.begin(), out.blocks.end(),
                   [](const BlockTime& a, const BlockTime& b) { return a.time > b.time; });
  return out;
}
