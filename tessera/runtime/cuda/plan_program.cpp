#include "tessera/runtime/cuda/plan_program.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/loop_source.h"
#include "tessera/runtime/cuda/placeholder.h"
#include "tessera/runtime/cuda/plan_nodes.h"
#include "tessera/runtime/cuda/region_forms.h"
#include "tessera/runtime/cuda/region_program.h"
#include "tessera/runtime/cuda/user_program.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using plan::StepId;
using plan::Where;

namespace {

/// Libraries refuse a workspace that begins elsewhere.
constexpr std::uint64_t scratch_alignment = 256;

class Writer {
 public:
  Writer(const plan::Plan& plan, const plan::Binding& binding, std::span<const std::uint8_t> alignments,
         const ProgramOptions& options)
      : plan_(plan),
        binding_(binding),
        options_(options),
        means_{options.products(plan), options.limits},
        nodes_(out_, stores_numbers() ? Numbers::stored : Numbers::held),
        last_of_(plan.steps.size()) {
    out_.alignments.assign(alignments.begin(), alignments.end());
    out_.plan_constants = static_cast<std::uint32_t>(plan.constants.size());
    out_.sizes = binding.size_cells;
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
  /// Nodes of bodies may not be patched, and patching many takes longer than one copy.
  [[nodiscard]] bool stores_numbers() const {
    return options_.depth > 0 || plan_.parameters.size() > most_patched_numbers;
  }

  /// One by one: each waits for the one before it.
  [[nodiscard]] std::vector<std::vector<StepId>> waits_of_steps() const {
    if (options_.running == plan::Running::side_by_side) return plan::dependencies(plan_);
    std::vector<std::vector<StepId>> out(plan_.steps.size());
    for (StepId s = 1; s < out.size(); ++s) out[s].push_back(s - 1);
    return out;
  }

  [[nodiscard]] Address address_of(plan::ValueId value) const {
    return runtime::cuda::address_of(plan_, binding_, value);
  }
  [[nodiscard]] std::vector<Address> addresses_of(const std::vector<plan::ValueId>& values) const {
    std::vector<Address> out;
    for (const plan::ValueId value : values) out.push_back(address_of(value));
    return out;
  }

  /// The value with an address that has the right alignment and overlaps what the real one does.
  [[nodiscard]] op::Array array_of(plan::ValueId value) const {
    Address at = address_of(value);
    if (at.base == Address::Base::input) at.byte += out_.alignments[at.index];
    if (at.base == Address::Base::output) at.byte += out_.alignments[plan_.inputs.size() + at.index];
    return {plan_.values[value].type.dtype, binding_.places[value].layout, placeholder(at)};
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
      return step_program(step, nullptr, inputs, results, binding_.sizes, means_);
    const op::CallInfo call(*step.card, binding_.input_types[s], binding_.attributes[s]);
    if (op::device_call_of(*step.card) != nullptr)
      return user_program(call, inputs, results, numbers_of(step), step.span.resolve());
    return step_program(step, &call, inputs, results, binding_.sizes, means_);
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
    NodeList before;
    for (const StepId wait : waits) before.insert(before.end(), last_of_[wait].begin(), last_of_[wait].end());
    sort_unique(before);
    const plan::Step& step = plan_.steps[s];
    if (step.kind == plan::StepKind::call && runs_on_host(*step.card))
      return drive(s, "it is a function of the host");
    if (step.kind == plan::StepKind::function && has_regions(*step.function))
      return add_region(s, std::move(before), scratch);
    StepProgram program;
    if (!binding_.is_view[s]) {
      auto made = program_of(s);
      // The host knows the numbers that code of the program is given.
      const bool is_for_host =
          !made && step.kind == plan::StepKind::function && made.error().code() == ErrorCode::unsupported;
      if (is_for_host) return drive(s, made.error().message());
      program = TESSERA_TRY(std::move(made));
    }
    add_program(s, std::move(program), std::move(before), scratch);
    return {};
  }

  void add_program(StepId s, StepProgram program, NodeList before, std::vector<std::int64_t>& scratch) {
    const plan::Step& step = plan_.steps[s];
    StepPlace place{.step = s, .inputs = addresses_of(step.inputs), .results = addresses_of(step.results)};
    place.span = step.span;
    fit_workspaces(program, options_.workspace);
    scratch = std::move(program.scratch_bytes);
    for (std::uint32_t i = 0; i < scratch.size(); ++i)  // where each lies is known when all are
      place.scratch.push_back({Address::Base::scratch, i, 0});
    last_of_[s] = nodes_.joined(s, 0, nodes_.add(std::move(program), place, std::move(before)));
  }

  /// In a kernel if one block can hold it, else as nodes, else by the host.
  Result<void> add_region(StepId s, NodeList before, std::vector<std::int64_t>& scratch) {
    const plan::Step& step = plan_.steps[s];
    if (auto loop = loop_of(s)) {
      add_program(s, *std::move(loop), std::move(before), scratch);
      return {};
    }
    if (options_.bodies == nullptr) return drive(s, options_.without_bodies);
    auto made =
        region_program(step, arrays_of(step.inputs), arrays_of(step.results), binding_.sizes, options_);
    if (!made) return drive(s, made.error().message());
    scratch = {static_cast<std::int64_t>(made->scratch_bytes)};
    const ProgramPlace place{.step = s,
                             .inputs = addresses_of(step.inputs),
                             .outputs = addresses_of(step.results),
                             .scratch = {Address::Base::scratch, 0, 0}};
    last_of_[s] = nodes_.joined(s, 0, nodes_.add(*std::move(made), place, before));
    return {};
  }

  /// What follows is queued after all that went before: no edge leads over it.
  Result<void> drive(StepId s, std::string why) {
    out_.driven.push_back({s, static_cast<std::uint32_t>(out_.nodes.size()), std::move(why)});
    for (const plan::ValueId value : plan_.steps[s].inputs)
      if (binding_.places[value].where == Where::cell) out_.reads_cells = out_.reads_parameters = true;
    for (auto& last : last_of_) last.clear();
    return {};
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
    const MemoryLayout layout = options_.running == plan::Running::one_by_one
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
  const ProgramOptions& options_;
  Means means_;
  PlanProgram out_;
  PlanNodes nodes_;
  std::vector<NodeList> last_of_;  ///< by step: what must be done for it to be done
};

std::string text_of(const Address& address) {
  constexpr std::string_view words[] = {"input", "output", "block",  "scratch", "constant",
                                        "cell",  "size",   "number", "status"};
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
    case PlanArgument::Kind::handle:
      return "condition";
    case PlanArgument::Kind::plain:
      break;
  }
  return cat(argument.bits);
}

std::string_view word_for(const PlanNode& node) {
  if (node.is_join) return "join";
  if (node.conditional.kind == Conditional::Kind::choice) return "choice";
  if (node.conditional.kind == Conditional::Kind::loop) return "loop";
  if (node.kind == Launch::Kind::kernel) return node.source->entry;
  if (node.kind == Launch::Kind::product) return "product";
  if (node.kind == Launch::Kind::captured) return node.captured->call->name;
  return node.kind == Launch::Kind::clear ? "clear" : "copy";
}

}  // namespace

Address tessera::runtime::cuda::address_of(const plan::Plan& plan, const plan::Binding& binding,
                                           plan::ValueId value) {
  const plan::Place& place = binding.places[value];
  const std::size_t parameters = plan.parameters.size();
  switch (place.where) {
    case Where::input:
      return {Address::Base::input, place.index, 0};
    case Where::output:
      return {Address::Base::output, place.index, 0};
    case Where::constant:
      return {Address::Base::constant, place.index, 0};
    case Where::cell:
      if (place.index < parameters) return {Address::Base::cell, 0, std::int64_t{place.index} * 8};
      return {Address::Base::size, 0, static_cast<std::int64_t>(place.index - parameters) * 8};
    case Where::scratch:
      break;
  }
  return {Address::Base::block, 0, place.byte};
}

std::byte* tessera::runtime::cuda::placeholder(const Address& address) {
  return placeholder_in(static_cast<std::uint8_t>(static_cast<std::uint8_t>(address.base) + 1), address.index,
                        address.byte);
}

Result<PlanProgram> tessera::runtime::cuda::plan_program(const plan::Plan& plan, const plan::Binding& binding,
                                                         std::span<const std::uint8_t> alignments,
                                                         const ProgramOptions& options) {
  for (const std::size_t count : {plan.inputs.size(), plan.outputs.size(), plan.constants.size()})
    if (count > most_pieces)
      return Error(ErrorCode::unsupported,
                   cat("a plan with ", count, " arrays of a kind, at most ", most_pieces, " are possible"));
  return Writer(plan, binding, alignments, options).run();
}

std::string tessera::runtime::cuda::to_text(const PlanProgram& program) {
  std::string out;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const PlanNode& node = program.nodes[i];
    out += cat(i, " step ", node.step, node.graph == 0 ? std::string() : cat(" body ", node.graph), " ",
               word_for(node), "(");
    for (std::size_t a = 0; a < node.arguments.size(); ++a)
      out += cat(a == 0 ? "" : ", ", text_of(node.arguments[a]));
    out += cat(")", node.after.empty() ? "" : " after ", join(node.after, " "), "\n");
  }
  return out;
}
