#include "tessera/runtime/cuda/plan_program.h"

#include <algorithm>
#include <map>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/loop_source.h"
#include "tessera/runtime/cuda/region_forms.h"
#include "tessera/runtime/cuda/stored_numbers.h"
#include "tessera/runtime/cuda/user_program.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using plan::StepId;
using plan::Where;

namespace {

/// Stands for an address that is not known yet: far from all others, so that nothing overlaps.
std::byte* placeholder(Address::Base base, std::uint32_t index, std::int64_t byte) {
  const std::uint64_t area = (std::uint64_t{static_cast<std::uint8_t>(base)} + 1) << 56;
  return reinterpret_cast<std::byte*>(area + (std::uint64_t{index} << 42)) + byte;
}

/// Libraries refuse a workspace that begins elsewhere.
constexpr std::uint64_t scratch_alignment = 256;

void sort_unique(std::vector<std::uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class Writer {
 public:
  Writer(const plan::Plan& plan, const plan::Binding& binding, plan::Running running,
         std::span<const std::uint8_t> alignments, Products products)
      : plan_(plan), binding_(binding), running_(running), products_(products), last_of_(plan.steps.size()) {
    out_.alignments.assign(alignments.begin(), alignments.end());
  }

  Result<PlanProgram> run() {
    const auto waits = waits_of_steps();
    std::vector<std::vector<std::int64_t>> scratch(plan_.steps.size());
    for (StepId s = 0; s < plan_.steps.size(); ++s) {
      auto done = add_step(s, waits[s], scratch[s]);
      if (!done)
        return std::move(done)
            .error()
            .note(cat("making step ", s, ", '", plan_.steps[s].name(), "'"))
            .at(plan_.steps[s].span.resolve());
    }
    place_scratch(waits, scratch);
    return std::move(out_);
  }

 private:
  /// One by one: each waits for the one before it.
  [[nodiscard]] std::vector<std::vector<StepId>> waits_of_steps() const {
    if (running_ == plan::Running::side_by_side) return plan::dependencies(plan_);
    std::vector<std::vector<StepId>> out(plan_.steps.size());
    for (StepId s = 1; s < out.size(); ++s) out[s].push_back(s - 1);
    return out;
  }

  [[nodiscard]] Address address_of(plan::ValueId value) const {
    return runtime::cuda::address_of(binding_, value);
  }

  /// The value with an address that has the right alignment and overlaps what the real one does.
  [[nodiscard]] op::Array array_of(plan::ValueId value) const {
    const Address at = address_of(value);
    std::int64_t byte = at.byte;
    if (at.base == Address::Base::input) byte += out_.alignments[at.index];
    if (at.base == Address::Base::output) byte += out_.alignments[plan_.inputs.size() + at.index];
    return {plan_.values[value].type.dtype, binding_.places[value].layout,
            placeholder(at.base, at.index, byte)};
  }

  [[nodiscard]] std::vector<op::Array> arrays_of(const std::vector<plan::ValueId>& values) const {
    std::vector<op::Array> out;
    for (const plan::ValueId value : values) out.push_back(array_of(value));
    return out;
  }

  /// A region that is a loop with a small state, as one kernel. Numbers in cells are for the host to read.
  Result<StepProgram> loop_of(StepId s) const {
    const plan::Step& step = plan_.steps[s];
    for (const plan::ValueId value : step.inputs)
      if (binding_.places[value].where == Where::cell)
        return Error(ErrorCode::unsupported, "a loop over numbers of the host");
    return loop_program(*step.function, arrays_of(step.inputs), arrays_of(step.results));
  }

  Result<StepProgram> program_of(StepId s) const {
    const plan::Step& step = plan_.steps[s];
    const auto inputs = arrays_of(step.inputs), results = arrays_of(step.results);
    if (step.kind != plan::StepKind::call)
      return step_program(step, nullptr, inputs, results, binding_.sizes, products_);
    const op::CallInfo call(*step.card, binding_.input_types[s], binding_.attributes[s]);
    if (op::device_call_of(*step.card) != nullptr)
      return user_program(call, inputs, results, numbers_of(step), step.span.resolve());
    return step_program(step, &call, inputs, results, binding_.sizes, products_);
  }

  /// What the host knows of the inputs that are numbers.
  [[nodiscard]] std::vector<InputNumber> numbers_of(const plan::Step& step) const {
    std::vector<InputNumber> out(step.inputs.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const plan::Value& value = plan_.values[step.inputs[i]];
      if (value.kind == plan::ValueKind::parameter)
        out[i] = {.kind = InputNumber::Kind::slot, .slot = value.index};
      if (value.kind == plan::ValueKind::constant && value.type.rank() == 0)
        out[i] = number_in(plan_.constants[value.index].array().data, value.type.dtype);
      const plan::Place& place = binding_.places[step.inputs[i]];
      if (value.kind == plan::ValueKind::size)
        out[i] = {
            .kind = InputNumber::Kind::value,
            .bits = static_cast<std::uint64_t>(binding_.size_cells[place.index - plan_.parameters.size()])};
    }
    return out;
  }

  Result<void> add_step(StepId s, const std::vector<StepId>& waits, std::vector<std::int64_t>& scratch) {
    std::vector<std::uint32_t> before;
    for (const StepId wait : waits) before.insert(before.end(), last_of_[wait].begin(), last_of_[wait].end());
    sort_unique(before);
    StepProgram program;
    const plan::Step& step = plan_.steps[s];
    if (step.kind == plan::StepKind::call && runs_on_host(*step.card)) return drive(s);
    if (step.kind == plan::StepKind::function && has_regions(*step.function)) {
      auto loop = loop_of(s);
      if (!loop) return drive(s);
      program = *std::move(loop);
    } else if (!binding_.is_view[s]) {
      auto made = program_of(s);
      // The host knows the numbers that code of the program is given.
      const bool is_for_host =
          !made && step.kind == plan::StepKind::function && made.error().code() == ErrorCode::unsupported;
      if (is_for_host) return drive(s);
      program = TESSERA_TRY(std::move(made));
    }
    for (const Launch& launch : program.launches) {
      if (is_empty(launch)) continue;
      add_launch(s, launch, std::move(before));
      before = {static_cast<std::uint32_t>(out_.nodes.size() - 1)};
    }
    // Who does nothing and passes many on to many would make the edges as many as the square of them.
    if (before.size() > 1) {
      out_.nodes.push_back({.step = s, .is_join = true, .after = std::move(before)});
      before = {static_cast<std::uint32_t>(out_.nodes.size() - 1)};
    }
    last_of_[s] = std::move(before);
    scratch = std::move(program.scratch_bytes);
    for (IndexCheck& check : program.checks) out_.checks.push_back({s, std::move(check)});
    return {};
  }

  /// What follows is queued after all that went before: no edge leads over it.
  Result<void> drive(StepId s) {
    out_.driven.push_back({s, static_cast<std::uint32_t>(out_.nodes.size())});
    for (const plan::ValueId value : plan_.steps[s].inputs)
      if (binding_.places[value].where == Where::cell) out_.reads_cells = out_.reads_parameters = true;
    for (auto& last : last_of_) last.clear();
    return {};
  }

  void add_launch(StepId s, const Launch& launch, std::vector<std::uint32_t> after) {
    PlanNode node{.step = s, .kind = launch.kind, .source = launch.source};
    node.product = launch.product;
    node.captured = launch.captured;
    node.grid = launch.grid;
    node.block = launch.block;
    node.shared_bytes = launch.shared_bytes;
    node.bytes = launch.bytes;
    node.after = std::move(after);
    if (const SourceRef stored = stored_numbers(launch)) {
      node.source = stored;
      for (const Argument& argument : launch.arguments)
        node.arguments.push_back(argument.kind == Argument::Kind::number ? stored_number(argument)
                                                                         : bound(s, argument));
    } else {
      for (const Argument& argument : launch.arguments) node.arguments.push_back(bound(s, argument));
    }
    const bool has_target = launch.kind == Launch::Kind::clear || launch.kind == Launch::Kind::copy;
    if (has_target) node.arguments.push_back(bound(s, launch.to));
    if (launch.kind == Launch::Kind::copy) node.arguments.push_back(bound(s, launch.from));
    out_.nodes.push_back(std::move(node));
  }

  /// The source that reads its numbers from memory, if there are many in the plan and some here.
  SourceRef stored_numbers(const Launch& launch) {
    const auto is_number = [](const Argument& argument) { return argument.kind == Argument::Kind::number; };
    if (launch.kind != Launch::Kind::kernel || launch.source->user != nullptr ||
        plan_.parameters.size() <= most_patched_numbers ||
        std::none_of(launch.arguments.begin(), launch.arguments.end(), is_number))
      return nullptr;
    return source_with_stored_numbers(launch);
  }

  PlanArgument stored_number(const Argument& argument) {
    const NumberCell cell{argument.slot, argument.dtype};
    std::uint32_t& known = number_cell_of_[{cell.slot, cell.dtype}];
    if (known == 0) {
      out_.number_cells.push_back(cell);
      known = static_cast<std::uint32_t>(out_.number_cells.size());
    }
    out_.reads_cells = true;
    const std::size_t place = plan_.parameters.size() + binding_.size_cells.size() + known - 1;
    return {.kind = PlanArgument::Kind::address,
            .address = {Address::Base::cell, 0, static_cast<std::int64_t>(place * 8)}};
  }

  PlanArgument bound(StepId s, const Argument& argument) {
    if (argument.kind == Argument::Kind::memory) return bound(s, argument.memory);
    if (argument.kind == Argument::Kind::plain)
      return {.kind = PlanArgument::Kind::plain, .bits = argument.bits};
    return {.kind = PlanArgument::Kind::number, .slot = argument.slot, .dtype = argument.dtype};
  }

  PlanArgument bound(StepId s, const Memory& memory) {
    Address at;
    switch (memory.kind) {
      case Memory::Kind::input:
        at = address_of(plan_.steps[s].inputs[memory.index]);
        break;
      case Memory::Kind::result:
        at = address_of(plan_.steps[s].results[memory.index]);
        break;
      case Memory::Kind::scratch:  // where each lies is known when all are
        at = {Address::Base::scratch, memory.index, 0};
        break;
      case Memory::Kind::status:
        at = {Address::Base::status, 0,
              static_cast<std::int64_t>((out_.checks.size() + memory.index) * sizeof(Status))};
        break;
    }
    at.byte += memory.byte;
    if (at.base == Address::Base::cell) out_.reads_cells = out_.reads_parameters = true;
    return {.kind = PlanArgument::Kind::address, .address = at};
  }

  /// Two steps share memory only if one waits for the other. What is as long as a multiple of the alignment
  /// begins at one.
  void place_scratch(const std::vector<std::vector<StepId>>& waits,
                     const std::vector<std::vector<std::int64_t>>& scratch) {
    std::vector<LiveRange> ranges;
    std::vector<std::size_t> first_of(plan_.steps.size());
    for (StepId s = 0; s < scratch.size(); ++s) {
      first_of[s] = ranges.size();
      for (const std::int64_t bytes : scratch[s]) {
        const std::uint64_t rounded = (static_cast<std::uint64_t>(bytes) + scratch_alignment - 1) /
                                      scratch_alignment * scratch_alignment;
        ranges.push_back({.first = s, .reads = {s}, .bytes = rounded});
      }
    }
    if (ranges.empty()) return;
    const MemoryLayout layout = running_ == plan::Running::one_by_one
                                    ? lay_out(ranges, scratch.size())
                                    : lay_out(ranges, scratch.size(), StepOrder(waits));
    out_.scratch_bytes = layout.bytes;
    for (PlanNode& node : out_.nodes)
      for (PlanArgument& argument : node.arguments)
        if (argument.kind == PlanArgument::Kind::address && argument.address.base == Address::Base::scratch) {
          const std::size_t range = first_of[node.step] + argument.address.index;
          argument.address.index = 0;
          argument.address.byte += static_cast<std::int64_t>(layout.offsets[range]);
        }
  }

  const plan::Plan& plan_;
  const plan::Binding& binding_;
  plan::Running running_;
  Products products_;
  std::map<std::pair<std::uint32_t, ir::Dtype>, std::uint32_t> number_cell_of_;  ///< 1 + its place
  std::vector<std::vector<std::uint32_t>> last_of_;  ///< by step: what must be done for it to be done
  PlanProgram out_;
};

std::string text_of(const Address& address) {
  constexpr std::string_view words[] = {"input", "output", "block", "scratch", "constant", "cell", "status"};
  std::string out = cat(words[static_cast<std::size_t>(address.base)], address.index);
  if (address.byte != 0) out += cat("+", address.byte);
  return out;
}

std::string text_of(const PlanArgument& argument) {
  switch (argument.kind) {
    case PlanArgument::Kind::address:
      return text_of(argument.address);
    case PlanArgument::Kind::number:
      return cat("number", argument.slot, ":", argument.dtype);
    case PlanArgument::Kind::plain:
      break;
  }
  return cat(argument.bits);
}

std::string_view word_for(const PlanNode& node) {
  if (node.is_join) return "join";
  if (node.kind == Launch::Kind::kernel) return node.source->entry;
  if (node.kind == Launch::Kind::product) return "product";
  if (node.kind == Launch::Kind::captured) return node.captured->call->name;
  return node.kind == Launch::Kind::clear ? "clear" : "copy";
}

}  // namespace

Address tessera::runtime::cuda::address_of(const plan::Binding& binding, plan::ValueId value) {
  const plan::Place& place = binding.places[value];
  switch (place.where) {
    case Where::input:
      return {Address::Base::input, place.index, 0};
    case Where::output:
      return {Address::Base::output, place.index, 0};
    case Where::constant:
      return {Address::Base::constant, place.index, 0};
    case Where::cell:
      return {Address::Base::cell, 0, std::int64_t{place.index} * 8};
    case Where::scratch:
      break;
  }
  return {Address::Base::block, 0, place.byte};
}

Result<PlanProgram> tessera::runtime::cuda::plan_program(const plan::Plan& plan, const plan::Binding& binding,
                                                         plan::Running running,
                                                         std::span<const std::uint8_t> alignments,
                                                         Products products) {
  return Writer(plan, binding, running, alignments, products).run();
}

std::string tessera::runtime::cuda::to_text(const PlanProgram& program) {
  std::string out;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const PlanNode& node = program.nodes[i];
    out += cat(i, " step ", node.step, " ", word_for(node), "(");
    for (std::size_t a = 0; a < node.arguments.size(); ++a)
      out += cat(a == 0 ? "" : ", ", text_of(node.arguments[a]));
    out += cat(")", node.after.empty() ? "" : " after ", join(node.after, " "), "\n");
  }
  return out;
}
