#include "tessera/runtime/cuda/plan_nodes.h"

#include <algorithm>

#include "tessera/runtime/cuda/stored_numbers.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::int64_t cell_bytes = 8;

Address moved(Address address, std::int64_t bytes) {
  address.byte += bytes;
  return address;
}

/// Addresses and numbers of a program, as those of the one it becomes a part of.
class Translation {
 public:
  Translation(const PlanProgram& to, const ProgramPlace& place, std::span<const std::int64_t> numbers)
      : place_(place),
        node_(static_cast<std::uint32_t>(to.nodes.size())),
        body_(to.bodies),
        condition_(to.conditions),
        constant_(to.plan_constants + static_cast<std::uint32_t>(to.constants.size())),
        size_(static_cast<std::int64_t>(to.sizes.size()) * cell_bytes),
        status_(static_cast<std::int64_t>(to.checks.size() * sizeof(Status))),
        numbers_(numbers) {}

  void apply(PlanNode& node) const {
    node.step = place_.step;
    node.graph = node.graph == 0 ? place_.graph : node.graph + body_;
    if (node.condition != 0) node.condition += condition_;
    node.conditional.first_body += body_;
    for (std::uint32_t& before : node.after) before += node_;
    for (PlanArgument& argument : node.arguments)
      if (argument.kind == PlanArgument::Kind::address) argument.address = translated(argument.address);
  }

 private:
  [[nodiscard]] Address translated(const Address& at) const {
    switch (at.base) {
      case Address::Base::input:
        return moved(place_.inputs[at.index], at.byte);
      case Address::Base::output:
        return moved(place_.outputs[at.index], at.byte);
      case Address::Base::block:
        return moved(place_.block, at.byte);
      case Address::Base::scratch:
        return moved(place_.scratch, at.byte);
      case Address::Base::constant:
        return {at.base, at.index + constant_, at.byte};
      case Address::Base::size:
        return moved(at, size_);
      case Address::Base::number:
        return {at.base, 0, numbers_[static_cast<std::size_t>(at.byte / cell_bytes)]};
      case Address::Base::status:
        return moved(at, status_);
      case Address::Base::cell:
        break;
    }
    return at;
  }

  const ProgramPlace& place_;
  std::uint32_t node_, body_, condition_, constant_;
  std::int64_t size_, status_;
  std::span<const std::int64_t> numbers_;
};

}  // namespace

void tessera::runtime::cuda::sort_unique(NodeList& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::uint32_t PlanNodes::add(PlanNode node) {
  for (const PlanArgument& argument : node.arguments) note_reads(argument);
  to_.nodes.push_back(std::move(node));
  return static_cast<std::uint32_t>(to_.nodes.size() - 1);
}

NodeList PlanNodes::add(StepProgram program, const StepPlace& place, NodeList after) {
  for (const Launch& launch : program.launches) {
    if (is_empty(launch)) continue;
    PlanNode node = node_of(launch, place);
    node.after = std::move(after);
    after = {add(std::move(node))};
  }
  for (IndexCheck& check : program.checks) to_.checks.push_back({place.span, std::move(check)});
  return after;
}

NodeList PlanNodes::add(PlanProgram program, const ProgramPlace& place, const NodeList& after) {
  std::vector<std::int64_t> numbers;
  for (const NumberCell& cell : program.number_cells) numbers.push_back(number_cell(cell));
  const Translation translation(to_, place, numbers);
  std::vector<bool> is_waited_for(program.nodes.size(), false);
  const auto first = static_cast<std::uint32_t>(to_.nodes.size());
  NodeList out;
  for (const PlanNode& node : program.nodes)
    for (const std::uint32_t before : node.after) is_waited_for[before] = true;
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    PlanNode& node = program.nodes[i];
    const bool is_outer = node.graph == 0;
    if (is_outer && !is_waited_for[i]) out.push_back(first + i);
    translation.apply(node);
    if (is_outer && node.after.empty()) node.after = after;
    add(std::move(node));
  }
  to_.bodies += program.bodies;
  to_.conditions += program.conditions;
  to_.constants.insert(to_.constants.end(), place.constants.begin(), place.constants.end());
  to_.constants.insert(to_.constants.end(), program.constants.begin(), program.constants.end());
  to_.sizes.insert(to_.sizes.end(), program.sizes.begin(), program.sizes.end());
  for (PlanCheck& check : program.checks) to_.checks.push_back(std::move(check));
  return out.empty() ? after : out;
}

NodeList PlanNodes::joined(plan::StepId step, std::uint32_t graph, NodeList list) {
  if (list.size() <= 1) return list;
  return {add(PlanNode{.step = step, .is_join = true, .graph = graph, .after = std::move(list)})};
}

PlanNode PlanNodes::node_of(const Launch& launch, const StepPlace& place) {
  PlanNode node{.step = place.step, .graph = place.graph, .kind = launch.kind, .source = launch.source};
  node.product = launch.product;
  node.captured = launch.captured;
  node.grid = launch.grid;
  node.block = launch.block;
  node.shared_bytes = launch.shared_bytes;
  node.bytes = launch.bytes;
  const SourceRef stored = stored_numbers(launch);
  if (stored != nullptr) node.source = stored;
  for (const Argument& argument : launch.arguments) {
    if (stored == nullptr || argument.kind != Argument::Kind::number) {
      node.arguments.push_back(bound(argument, place));
      continue;
    }
    const Address at{Address::Base::number, 0, number_cell({argument.slot, argument.dtype})};
    node.arguments.push_back({.kind = PlanArgument::Kind::address, .address = at});
  }
  const bool has_target = launch.kind == Launch::Kind::clear || launch.kind == Launch::Kind::copy;
  if (has_target) node.arguments.push_back(bound(launch.to, place));
  if (launch.kind == Launch::Kind::copy) node.arguments.push_back(bound(launch.from, place));
  return node;
}

/// The source that reads its numbers from memory, if it has some and they are there.
SourceRef PlanNodes::stored_numbers(const Launch& launch) const {
  const auto is_number = [](const Argument& argument) { return argument.kind == Argument::Kind::number; };
  if (numbers_ == Numbers::held || launch.kind != Launch::Kind::kernel || launch.source->user != nullptr ||
      std::none_of(launch.arguments.begin(), launch.arguments.end(), is_number))
    return nullptr;
  return source_with_stored_numbers(launch);
}

std::int64_t PlanNodes::number_cell(const NumberCell& cell) {
  const auto next = static_cast<std::int64_t>(to_.number_cells.size()) * cell_bytes;
  const auto [known, is_new] = number_cells_.try_emplace({cell.slot, cell.dtype}, next);
  if (is_new) to_.number_cells.push_back(cell);
  return known->second;
}

void PlanNodes::note_reads(const PlanArgument& argument) {
  if (argument.kind != PlanArgument::Kind::address) return;
  const Address::Base base = argument.address.base;
  to_.reads_parameters = to_.reads_parameters || base == Address::Base::cell;
  to_.reads_cells = to_.reads_cells || base == Address::Base::cell || base == Address::Base::size ||
                    base == Address::Base::number;
}

PlanArgument PlanNodes::bound(const Argument& argument, const StepPlace& place) {
  if (argument.kind == Argument::Kind::memory) return bound(argument.memory, place);
  if (argument.kind == Argument::Kind::plain)
    return {.kind = PlanArgument::Kind::plain, .bits = argument.bits};
  return {.kind = PlanArgument::Kind::number, .slot = argument.slot, .dtype = argument.dtype};
}

PlanArgument PlanNodes::bound(const Memory& memory, const StepPlace& place) {
  Address at;
  switch (memory.kind) {
    case Memory::Kind::input:
      at = place.inputs[memory.index];
      break;
    case Memory::Kind::result:
      at = place.results[memory.index];
      break;
    case Memory::Kind::scratch:
      at = place.scratch[memory.index];
      break;
    case Memory::Kind::status:
      at = {Address::Base::status, 0,
            static_cast<std::int64_t>((to_.checks.size() + memory.index) * sizeof(Status))};
      break;
  }
  return {.kind = PlanArgument::Kind::address, .address = moved(at, memory.byte)};
}
