#include "tessera/runtime/cuda/region_program.h"

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/in_place.h"
#include "tessera/plan/size_conditions.h"
#include "tessera/runtime/cuda/condition_source.h"
#include "tessera/runtime/cuda/function_program.h"
#include "tessera/runtime/cuda/joined_turn.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/plan_nodes.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr unsigned deepest = 16;
constexpr std::int64_t default_region_limit = 1'000'000;
/// What is smaller is copied by the kernel that decides; what is larger by many blocks.
constexpr std::int64_t most_carried = 32 << 10;
constexpr std::uint64_t alignment = 256;
constexpr std::size_t most_body_steps_side_by_side = 4096;

/// A value of the region: how it lies, and where.
struct Given {
  op::Array array;
  Address address;
};

std::int64_t bytes_of(const op::Array& array) {
  return array.size() * static_cast<std::int64_t>(ir::size_of(array.dtype));
}

/// The address of the first element.
Address first_of(const Given& given) {
  Address out = given.address;
  out.byte += given.array.layout.offset * static_cast<std::int64_t>(ir::size_of(given.array.dtype));
  return out;
}

std::uint8_t alignment_of(const Given& given) {
  const auto at = reinterpret_cast<std::uintptr_t>(given.array.at(given.array.layout.offset));
  return static_cast<std::uint8_t>(at % 16);
}

PlanArgument argument(const Address& address) {
  return {.kind = PlanArgument::Kind::address, .address = address};
}
PlanArgument argument(std::int64_t number) {
  return {.kind = PlanArgument::Kind::plain, .bits = static_cast<std::uint64_t>(number)};
}

class RegionWriter {
 public:
  RegionWriter(const plan::Step& step, std::span<const op::Array> inputs, std::span<const op::Array> results,
               std::span<const std::int64_t> sizes, const ProgramOptions& options)
      : step_(step),
        function_(*step.function),
        options_(options),
        nodes_(out_, Numbers::stored),
        input_arrays_(inputs),
        sizes_(sizes) {
    const auto add = [](std::vector<Given>& list, const op::Array& array, Address::Base base) {
      list.push_back({array, {base, static_cast<std::uint32_t>(list.size()), 0}});
    };
    for (const op::Array& input : inputs) add(inputs_, input, Address::Base::input);
    for (const op::Array& result : results) add(results_, result, Address::Base::output);
  }

  Result<PlanProgram> run() {
    if (options_.depth >= deepest)
      return Error(ErrorCode::unsupported, cat("regions nest deeper than ", deepest));
    if (function_.body.size() != 1 || !step_.in_place.empty())
      return Error(ErrorCode::unsupported, cat("'", function_.name, "' is no node of a graph"));
    const ir::Expr& region = *function_.body[0]->value;
    if (const auto* branch = ir::as<ir::IfRegion>(region))
      TESSERA_TRY(write_if(*branch));
    else if (const auto* choice = ir::as<ir::SwitchRegion>(region))
      TESSERA_TRY(write_switch(*choice));
    else if (const auto* loop = ir::as<ir::WhileRegion>(region))
      TESSERA_TRY(write_while(*loop));
    else if (const auto* counted = ir::as<ir::ForRegion>(region))
      TESSERA_TRY(write_for(*counted));
    else
      return Error(ErrorCode::unsupported, cat("'", function_.name, "' is no region"));
    out_.scratch_bytes = most_scratch_;
    return std::move(out_);
  }

 private:
  // ---- values

  Address scratch(std::int64_t bytes) {
    const Address out{Address::Base::scratch, 0, static_cast<std::int64_t>(used_scratch_)};
    used_scratch_ += (static_cast<std::uint64_t>(bytes) + alignment - 1) / alignment * alignment;
    most_scratch_ = std::max(most_scratch_, used_scratch_);
    return out;
  }
  Given scratch(op::Dtype dtype, const op::Extents& shape) {
    op::Array array{dtype, op::contiguous(shape), nullptr};
    const Address at = scratch(bytes_of(array));
    array.data = placeholder(at);
    return {std::move(array), at};
  }

  /// A value around the region. What is no array of the step is stored first, behind nothing.
  Result<Given> operand(const ir::ExprRef& expr, op::Dtype dtype, NodeList& before) {
    for (std::size_t i = 0; i < function_.params.size(); ++i)
      if (function_.params[i].get() == expr.get()) return inputs_[i];
    if (const auto* dense = ir::as<ir::Dense>(*expr)) return constant(*dense);
    const Given out = scratch(dtype, {});
    const auto whole = ir::function(
        {.name = function_.name, .dims = function_.dims, .params = function_.params, .results = {expr}});
    StepProgram program = TESSERA_TRY(
        function_program(*whole, input_arrays_, {&out.array, 1}, sizes_, {.limits = options_.limits}));
    add_program(std::move(program), inputs_, {&out, 1}, 0, {}, before);
    return out;
  }

  Result<Given> constant(const ir::Dense& dense) {
    op::Extents shape;
    for (const op::Dim& dim : dense.type->shape) {
      if (!dim.is_constant()) return Error(ErrorCode::unsupported, "a constant of unknown size");
      shape.push_back(dim.value());
    }
    const auto data = dense.data.span();
    out_.constants.push_back(op::HostTensor::wrap(dense.type->dtype, shape, data.data(),
                                                  std::make_shared<const ir::FunctionRef>(step_.function)));
    const Address at{Address::Base::constant, static_cast<std::uint32_t>(out_.constants.size() - 1), 0};
    return Given{{dense.type->dtype, op::contiguous(shape), placeholder(at)}, at};
  }

  /// What bodies take, by the types of their parameters from `first` on.
  Result<std::vector<Given>> operands(std::span<const ir::ExprRef> list, const ir::Function& body,
                                      std::size_t first, NodeList& before) {
    std::vector<Given> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto type = op::value_type(*body.params.at(first + i)->type);
      if (!type) return Error(ErrorCode::unsupported, "a body takes a tuple");
      out.push_back(TESSERA_TRY(operand(list[i], type->dtype, before)));
    }
    return out;
  }

  Result<std::vector<std::int64_t>> sizes_of(std::span<const ir::ExprRef> dims) const {
    std::vector<std::int64_t> out;
    const auto leaf = [&](const ir::Expr& expr) -> std::optional<op::ScalarValue> {
      for (std::size_t i = 0; i < function_.dims.size() && i < sizes_.size(); ++i)
        if (function_.dims[i].get() == &expr) return op::ScalarValue{op::Dtype::i64, 0, sizes_[i]};
      return std::nullopt;
    };
    for (const ir::ExprRef& dim : dims) {
      const auto size = op::evaluate_scalar(*dim, leaf);
      if (!size) return Error(ErrorCode::unsupported, "a size that depends on data");
      out.push_back(size->integer);
    }
    return out;
  }

  // ---- nodes

  /// Appends a program over these values; `to` gets what is to be waited for.
  void add_program(StepProgram program, std::span<const Given> inputs, std::span<const Given> results,
                   std::uint32_t graph, const NodeList& after, NodeList& to) {
    StepPlace place{.graph = graph, .span = step_.span};
    for (const Given& input : inputs) place.inputs.push_back(input.address);
    for (const Given& result : results) place.results.push_back(result.address);
    for (const std::int64_t bytes : program.scratch_bytes) place.scratch.push_back(scratch(bytes));
    const NodeList last = nodes_.add(std::move(program), place, after);
    to.insert(to.end(), last.begin(), last.end());
    sort_unique(to);
  }

  void copy(const Given& from, const Given& to, std::uint32_t graph, const NodeList& after, NodeList& last) {
    add_program(copy_program(from.array, to.array), {&from, 1}, {&to, 1}, graph, after, last);
  }

  std::uint32_t add_decision(SourceRef source, std::vector<PlanArgument> arguments, std::uint32_t condition,
                             std::uint32_t graph, NodeList after, std::uint32_t threads = 1) {
    PlanNode node{.condition = condition, .graph = graph, .source = std::move(source)};
    node.block = {threads, 1, 1};
    node.arguments = {{.kind = PlanArgument::Kind::handle}};
    node.arguments.insert(node.arguments.end(), arguments.begin(), arguments.end());
    node.after = std::move(after);
    return nodes_.add(std::move(node));
  }

  /// Its bodies are still empty.
  Conditional add_conditional(Conditional::Kind kind, std::uint32_t bodies, std::uint32_t condition,
                              std::uint32_t after) {
    PlanNode node{.conditional = {kind, out_.bodies + 1, bodies}, .condition = condition};
    node.after = {after};
    out_.bodies += bodies;
    const Conditional out = node.conditional;
    nodes_.add(std::move(node));
    return out;
  }

  // ---- bodies

  /// A body with its values: a plan, bound to sizes and layouts.
  struct Body {
    plan::PlanRef plan;
    plan::Binding binding;
    plan::Running running = plan::Running::side_by_side;
  };

  Result<Body> bound_body(const ir::FunctionRef& function, std::span<const Given> inputs,
                          std::span<const std::int64_t> sizes) const {
    Body out;
    out.plan = TESSERA_TRY(options_.bodies->get(function));
    if (out.plan->steps.size() > most_body_steps_side_by_side) out.running = plan::Running::one_by_one;
    std::vector<op::Layout> layouts;
    for (const Given& input : inputs) {
      layouts.push_back(input.array.layout);
      layouts.back().offset = 0;
    }
    out.binding = TESSERA_TRY(plan::bind(*out.plan, sizes, layouts, out.running));
    TESSERA_TRY(plan::check_sizes(*out.plan, sizes));
    return out;
  }

  /// Where the buffers of a body lie: the results themselves where they lie as results do, else memory of the
  /// region.
  std::vector<Given> buffers_of(const Body& body, std::span<const Given> results) {
    std::vector<std::optional<Given>> found(body.binding.buffers.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const plan::Place& place = body.binding.output(*body.plan, i);
      const bool is_whole = place.where == plan::Where::output && !found[place.index] &&
                            place.layout == results[i].array.layout && place.layout.offset == 0 &&
                            body.binding.buffers[place.index].bytes == bytes_of(results[i].array);
      if (is_whole) found[place.index] = results[i];
    }
    std::vector<Given> out;
    for (std::size_t b = 0; b < found.size(); ++b)
      out.push_back(found[b] ? *found[b] : scratch(op::Dtype::u8, {body.binding.buffers[b].bytes}));
    return out;
  }

  /// Runs a body in a graph: from inputs to results, which overlap nothing that it reads. Returns what is to
  /// be waited for.
  Result<NodeList> add_body(const ir::FunctionRef& function, std::span<const Given> inputs,
                            std::span<const Given> results, std::span<const std::int64_t> sizes,
                            std::uint32_t graph, const NodeList& after) {
    const Body body = TESSERA_TRY(bound_body(function, inputs, sizes));
    const std::vector<Given> buffers = buffers_of(body, results);
    std::vector<std::uint8_t> alignments;
    ProgramPlace place{.graph = graph, .constants = body.plan->constants};
    for (const Given& input : inputs) {
      place.inputs.push_back(first_of(input));
      alignments.push_back(alignment_of(input));
    }
    for (const Given& buffer : buffers) {
      place.outputs.push_back(first_of(buffer));
      alignments.push_back(alignment_of(buffer));
    }
    ProgramOptions options = options_;
    options.running = body.running;
    ++options.depth;
    PlanProgram program = TESSERA_TRY(plan_program(*body.plan, body.binding, alignments, options));
    if (!program.driven.empty()) {
      const DrivenStep& driven = program.driven[0];
      return Error(ErrorCode::unsupported,
                   cat("the host drives '", body.plan->steps[driven.step].name(), "' in it: ", driven.why));
    }
    place.block = scratch(static_cast<std::int64_t>(body.binding.memory.bytes));
    place.scratch = scratch(static_cast<std::int64_t>(program.scratch_bytes));
    const std::uint32_t constants = out_.plan_constants + static_cast<std::uint32_t>(out_.constants.size());
    NodeList last = nodes_.add(std::move(program), place, after);
    last = nodes_.joined(0, graph, std::move(last));
    const BodyValues values{inputs, buffers, place.block, constants};
    return copy_outputs(body, values, results, graph, std::move(last));
  }

  /// Where the values of a body lie.
  struct BodyValues {
    std::span<const Given> inputs, buffers;
    Address block;
    std::uint32_t constants = 0;  ///< before its own
  };

  /// A result of a body, as its plan has it.
  static Result<Given> output(const Body& body, const BodyValues& values, std::size_t i) {
    const plan::ValueId value = body.plan->outputs[i];
    const plan::Place& place = body.binding.places[value];
    const op::Dtype dtype = body.plan->values[value].type.dtype;
    Address at = address_of(*body.plan, body.binding, value);
    if (at.base == Address::Base::input || at.base == Address::Base::output) {
      const Given& lies_in = (at.base == Address::Base::input ? values.inputs : values.buffers)[at.index];
      const op::Array& array = lies_in.array;
      return Given{{dtype, place.layout, array.at(array.layout.offset)}, first_of(lies_in)};
    }
    if (at.base == Address::Base::size) return Error(ErrorCode::unsupported, "a body whose result is a size");
    if (at.base == Address::Base::constant) at.index += values.constants;
    if (at.base == Address::Base::block)
      at = {values.block.base, values.block.index, values.block.byte + at.byte};
    return Given{{dtype, place.layout, placeholder(at)}, at};
  }

  /// Results that the body computes elsewhere, or only passes on.
  Result<NodeList> copy_outputs(const Body& body, const BodyValues& values, std::span<const Given> results,
                                std::uint32_t graph, NodeList last) {
    NodeList out;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Given from = TESSERA_TRY(output(body, values, i));
      const bool is_there = first_of(from) == first_of(results[i]) &&
                            from.array.layout.strides == results[i].array.layout.strides;
      if (!is_there) copy(from, results[i], graph, last, out);
    }
    if (out.empty()) return last;
    return nodes_.joined(0, graph, std::move(out));
  }

  /// The bodies of a choice; one of them runs, so all have the same memory.
  Result<void> add_bodies(std::span<const ir::FunctionRef> bodies, std::span<const Given> inputs,
                          std::span<const std::int64_t> sizes, const Conditional& conditional) {
    const std::uint64_t begin = used_scratch_;
    for (std::uint32_t i = 0; i < bodies.size(); ++i) {
      used_scratch_ = begin;
      TESSERA_TRY(add_body(bodies[i], inputs, results_, sizes, conditional.first_body + i, {}));
    }
    return {};
  }

  // ---- regions

  Result<void> write_if(const ir::IfRegion& region) {
    NodeList before;
    const Given condition = TESSERA_TRY(operand(region.condition, op::Dtype::boolean, before));
    const ir::FunctionRef bodies[] = {region.then_body, region.else_body};
    return write_choice(branch_source(condition.array.dtype), {argument(first_of(condition))}, bodies,
                        region.captures, region.dims, std::move(before));
  }

  Result<void> write_switch(const ir::SwitchRegion& region) {
    NodeList before;
    const Given index = TESSERA_TRY(operand(region.index, op::Dtype::i64, before));
    return write_choice(
        choice_source(index.array.dtype),
        {argument(first_of(index)), argument(static_cast<std::int64_t>(region.bodies.size()))}, region.bodies,
        region.captures, region.dims, std::move(before));
  }

  Result<void> write_choice(SourceRef source, std::vector<PlanArgument> arguments,
                            std::span<const ir::FunctionRef> bodies, std::span<const ir::ExprRef> captures,
                            std::span<const ir::ExprRef> dims, NodeList before) {
    const auto inputs = TESSERA_TRY(operands(captures, *bodies[0], 0, before));
    const auto sizes = TESSERA_TRY(sizes_of(dims));
    const std::uint32_t condition = ++out_.conditions;
    const std::uint32_t decision =
        add_decision(std::move(source), std::move(arguments), condition, 0, std::move(before));
    const Conditional conditional = add_conditional(
        Conditional::Kind::choice, static_cast<std::uint32_t>(bodies.size()), condition, decision);
    return add_bodies(bodies, inputs, sizes, conditional);
  }

  /// What a loop carries: it lies in the results, and in other memory while a turn computes it, unless it can
  /// be computed in its place.
  struct Carried {
    std::vector<Given> next;
    std::vector<CarriedBytes> small;      ///< copied by the kernel that decides
    std::vector<PlanArgument> arguments;  ///< to, from: of those
    std::vector<std::size_t> large;       ///< copied before
  };

  /// The body takes what is carried from its parameter `first` on.
  Result<Carried> carried(const ir::FunctionRef& body, std::size_t first) {
    const plan::PlanRef plan = TESSERA_TRY(options_.bodies->get(body));
    Carried out;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Given& now = results_[i];
      if (plan::can_replace(*plan, plan->inputs[first + i], plan->outputs[i])) {
        out.next.push_back(now);
        continue;
      }
      out.next.push_back(scratch(now.array.dtype, now.array.shape()));
      const std::int64_t size = bytes_of(now.array);
      if (size == 0) continue;
      if (bytes += size; bytes > most_carried) {
        out.large.push_back(i);
        continue;
      }
      const std::uint32_t low = alignment_of(now) | static_cast<std::uint32_t>(size % 16);
      out.small.push_back({i, size, low == 0 ? 16u : low % 4 == 0 ? 4u : 1u});
      out.arguments.push_back(argument(first_of(now)));
      out.arguments.push_back(argument(first_of(out.next.back())));
    }
    return out;
  }

  /// The values before the first turn.
  Result<NodeList> add_inits(std::span<const ir::ExprRef> inits, NodeList before) {
    NodeList out = before;
    for (std::size_t i = 0; i < inits.size(); ++i) {
      NodeList stored = before;
      const Given init = TESSERA_TRY(operand(inits[i], results_[i].array.dtype, stored));
      if (init.array.shape() != results_[i].array.shape() || init.array.dtype != results_[i].array.dtype)
        return Error(ErrorCode::unsupported, "a loop that carries values of other types than it begins with");
      copy(init, results_[i], 0, stored, out);
    }
    return nodes_.joined(0, 0, std::move(out));
  }

  static std::vector<Given> with(std::span<const Given> first, std::span<const Given> second) {
    std::vector<Given> out(first.begin(), first.end());
    out.insert(out.end(), second.begin(), second.end());
    return out;
  }

  Result<void> write_while(const ir::WhileRegion& region) {
    NodeList before;
    const auto captures = TESSERA_TRY(operands(region.captures, *region.body, region.inits.size(), before));
    const auto sizes = TESSERA_TRY(sizes_of(region.dims));
    const Given flag = scratch(op::Dtype::boolean, {}), turns = scratch(op::Dtype::i64, {});
    const Carried state = TESSERA_TRY(carried(region.body, 0));
    const std::int64_t limit = region.limit.value_or(default_region_limit);
    const Address status{Address::Base::status, 0,
                         static_cast<std::int64_t>(out_.checks.size() * sizeof(Status))};
    out_.checks.push_back({step_.span, {.op = function_.name, .axes = {}, .limit = limit}});
    const auto arguments = [&](bool is_first) {
      return std::vector<PlanArgument>{argument(flag.address), argument(turns.address),
                                       argument(std::int64_t{is_first}), argument(limit), argument(status)};
    };
    const NodeList begun = TESSERA_TRY(add_inits(region.inits, std::move(before)));
    NodeList known =
        TESSERA_TRY(add_body(region.condition, with(results_, captures), {&flag, 1}, sizes, 0, begun));
    known.insert(known.end(), begun.begin(), begun.end());
    sort_unique(known);
    const std::uint32_t condition = ++out_.conditions;
    const std::uint32_t decision =
        add_decision(while_source(flag.array.dtype, {}), arguments(true), condition, 0, std::move(known));
    const std::uint32_t body = add_conditional(Conditional::Kind::loop, 1, condition, decision).first_body;
    const NodeList computed =
        TESSERA_TRY(add_body(region.body, with(results_, captures), state.next, sizes, body, {}));
    const auto seen = with(state.next, captures);
    if (add_checking_turn(*region.condition, seen, limit, {turns, {{}, status}}, state, condition, body,
                          computed))
      return {};
    NodeList over = TESSERA_TRY(add_body(region.condition, seen, {&flag, 1}, sizes, body, computed));
    add_turn(while_source(flag.array.dtype, state.small), arguments(false), state, condition, body, computed,
             std::move(over));
    return {};
  }

  Result<void> write_for(const ir::ForRegion& region) {
    NodeList before;
    const auto captures =
        TESSERA_TRY(operands(region.captures, *region.body, region.inits.size() + 1, before));
    const Given count = TESSERA_TRY(operand(region.count, op::Dtype::i64, before));
    const auto sizes = TESSERA_TRY(sizes_of(region.dims));
    const Given turns = scratch(op::Dtype::i64, {});
    const Carried state = TESSERA_TRY(carried(region.body, 1));
    const auto arguments = [&](bool is_first) {
      return std::vector<PlanArgument>{argument(first_of(count)), argument(turns.address),
                                       argument(std::int64_t{is_first})};
    };
    NodeList begun = TESSERA_TRY(add_inits(region.inits, std::move(before)));
    const std::uint32_t condition = ++out_.conditions;
    const std::uint32_t decision =
        add_decision(for_source(count.array.dtype, {}), arguments(true), condition, 0, std::move(begun));
    const std::uint32_t body = add_conditional(Conditional::Kind::loop, 1, condition, decision).first_body;
    const auto inputs = with({&turns, 1}, with(results_, captures));
    const NodeList computed = TESSERA_TRY(add_body(region.body, inputs, state.next, sizes, body, {}));
    add_turn(for_source(count.array.dtype, state.small), arguments(false), state, condition, body, computed,
             state.large.empty() ? computed : NodeList());
    return {};
  }

  /// The end of a turn whose kernel finds out itself whether there is another, if there is such a kernel.
  bool add_checking_turn(const ir::Function& function, std::span<const Given> seen, std::int64_t limit,
                         std::vector<Given> results, const Carried& state, std::uint32_t condition,
                         std::uint32_t body, const NodeList& computed) {
    std::vector<op::Array> arrays;
    for (const Given& given : seen) arrays.push_back(given.array);
    auto program = checking_turn(function, arrays, limit, state.small);
    if (!program) return false;
    NodeList before, last;
    if (state.large.empty()) before = computed;
    for (const std::size_t i : state.large) copy(state.next[i], results_[i], body, computed, before);
    results.insert(results.end(), results_.begin(), results_.end());
    add_program(*std::move(program), seen, results, body, nodes_.joined(0, body, std::move(before)), last);
    PlanNode& node = out_.nodes.back();
    node.condition = condition;
    node.arguments[0] = {.kind = PlanArgument::Kind::handle};
    join_turn(state);
    return true;
  }

  /// The last node ends a turn. If it waits for one small kernel alone, that ends the turn itself.
  void join_turn(const Carried& state) {
    std::vector<NextBytes> next;
    for (const CarriedBytes& one : state.small) next.push_back({first_of(state.next[one.value]), one.bytes});
    const PlanNode& turn = out_.nodes.back();
    const auto before = static_cast<std::uint32_t>(out_.nodes.size() - 2);
    if (turn.after != NodeList{before} || out_.nodes[before].graph != turn.graph) return;
    const auto is_of_body = [&](const PlanNode& node) { return node.graph == turn.graph; };
    const bool is_whole_body = std::count_if(out_.nodes.begin(), out_.nodes.end(), is_of_body) == 2;
    if (auto joined = joined_turn(out_.nodes[before], turn, next, is_whole_body ? Turns::all : Turns::one)) {
      out_.nodes.pop_back();
      out_.nodes.back() = *std::move(joined);
    }
  }

  /// The end of a turn: what was computed takes its place, and whether there is another turn is decided.
  void add_turn(SourceRef source, std::vector<PlanArgument> arguments, const Carried& state,
                std::uint32_t condition, std::uint32_t body, const NodeList& computed, NodeList after) {
    for (const std::size_t i : state.large) copy(state.next[i], results_[i], body, computed, after);
    arguments.insert(arguments.end(), state.arguments.begin(), state.arguments.end());
    add_decision(std::move(source), std::move(arguments), condition, body,
                 nodes_.joined(0, body, std::move(after)), turn_threads(state.small));
    join_turn(state);
  }

  const plan::Step& step_;
  const ir::Function& function_;
  const ProgramOptions& options_;
  PlanProgram out_;
  PlanNodes nodes_;
  std::vector<Given> inputs_, results_;
  std::span<const op::Array> input_arrays_;
  std::span<const std::int64_t> sizes_;
  std::uint64_t used_scratch_ = 0, most_scratch_ = 0;
};

}  // namespace

Result<PlanProgram> tessera::runtime::cuda::region_program(const plan::Step& step,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           std::span<const std::int64_t> sizes,
                                                           const ProgramOptions& options) {
  return RegionWriter(step, inputs, results, sizes, options).run();
}
